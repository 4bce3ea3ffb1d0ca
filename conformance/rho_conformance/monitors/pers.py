"""Losing the event consumer, and persistence: RHO-PERS-1, 2, 3, 5 (contract part 2.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import messages as m
from .base import Report, Rules
from .commit import boundary_inputs, due_revision, start_text, suffix
from .entities import NEVER, Attempt, Run
from .ord import committed_compactions
from .view import View

Json = Any


def _needed_a_send(view: View, run: Run, step: int) -> bool:
    """Whether the runtime certainly had to send a nonterminal event after its reader was gone at ``step``."""
    if view.full(step - 1):
        return True
    if any(a.opened.step > step and _announced_late(run, a, step) for a in run.attempts):
        return True
    # Behind an authorisation nothing is sent any more: ToolStarted came before it.
    tools = [u for u in run.up("ToolExecute") if not view.tool_config(str(u.get("name"))).get("authorize")]
    if any(u.step > step for u in tools):
        return True
    shown = ("delta", "summary", "usage")
    return any(i.step > step and i.kind in shown and i.value for a in run.attempts for i in a.items)


def _announced_late(run: Run, attempt: Attempt, step: int) -> bool:
    """Whether what comes before this request was due after ``step``: StepStarted, or the reset of a failure."""
    before = [a for a in run.attempts if a.step_no == attempt.step_no and a.number == attempt.number - 1]
    return attempt.number == 1 or any(a.end is not None and a.end.step > step for a in before)


def pers_1(view: View, report: Report) -> None:
    """Without a reader the next nonterminal send interrupts the run (D4)."""
    for run in view.runs:
        for step in run.closes[:1]:
            report.opportunity()
            for event in run.events:
                if event.step > step:
                    report.bad(f"{event.name} was read although the reader is gone", event)
            if run.ending is None or run.cancel_step < NEVER or run.panics or not view.single(step):
                continue
            if not _needed_a_send(view, run, step):
                continue
            _interrupted(view, report, run, step)


def _interrupted(view: View, report: Report, run: Run, step: int) -> None:
    outcome = run.outcome if isinstance(run.outcome, Mapping) else {}
    if run.ending == "Interrupted":
        report.episode(step, view.kinds(step - 1))
    elif run.error == "Provider" and outcome.get("kind") == "Interrupted":
        if any(a.failure is not None and a.failure.get("kind") == "Interrupted" for a in run.attempts):
            return  # the provider's own failure, and no answer to the question of D4
        report.variant("D4:failed")
        report.episode(step, "failed")
    elif run.error == "Persistence" and view.facts(step, run.session).get("revision", 0) >= 2**64 - 1:
        return  # whatever it would have committed, there is no revision left to commit it as
    elif not (view.full(step - 1) and run.ending in ("Completed", "Failed", "Cancelled")):
        report.bad(f"the reader is gone, and the run ended {run.ending}", step, run.name)


def pers_2(view: View, report: Report) -> None:
    """An interrupted run installs nothing beyond what was committed before."""
    for run in view.runs:
        if run.closes or run.panics:
            report.opportunity()
        if run.ending != "Interrupted" or run.cancel_step < NEVER or run.crashed < NEVER:
            continue
        due, now = due_revision(view, run, 0), view.after(run).get("revision")
        hidden = sum(1 for s in run.stims if s.name == "compactor")
        if due is not None and isinstance(now, int):
            message = f"interrupted: revision {now}, due is {due}"
            report.ok_or_bad(due - boundary_inputs(run) <= now <= due + hidden, message, run.end_step, run.name)
        history, text = suffix(view, run), start_text(run)
        if history is not None and text is not None and not boundary_inputs(run):
            message = "interrupted, and candidate history was installed"
            report.ok_or_bad(text not in m.users(history), message, run.end_step, run.name)
        report.episode(run.end_step, bool(run.closes), bool(run.calls))


def pers_3(view: View, report: Report) -> None:
    """A compaction or boundary input committed before an interruption stays."""
    for run in view.runs:
        kept = [(s, "compaction") for s in committed_compactions(view, run)]
        kept += [(u.step, "boundary input") for u in run.up("CollectAck") if u.get("accepted")]
        report.opportunity(len(kept))
        if not kept or run.ending not in ("Interrupted", None) or run.end_step == NEVER:
            continue
        if run.ending is None and not run.drops:
            continue
        step, what = max(kept)
        then, now = view.facts(step, run.session), view.after(run)
        if "revision" not in then or "revision" not in now or step >= run.end_step:
            continue
        message = f"the {what} committed at revision {then['revision']} is gone: {now['revision']}"
        report.ok_or_bad(now["revision"] >= then["revision"], message, run.end_step, run.name)
        if now["revision"] == then["revision"] and "history" in then:
            same = then["history"] == now.get("history")
            report.ok_or_bad(same, f"the history of the {what} was changed by the interruption", run.end_step, run.name)
        report.episode(run.end_step, what)


def pers_5(view: View, report: Report) -> None:
    """Only the host saves."""
    known, last = False, 0
    for step in range(1, view.length + 1):
        saves = view.facts(step, view.first_session).get("saves")
        if not isinstance(saves, int):
            continue
        known = True
        asked = sum(1 for s in view.stims_at.get(step, ()) if s.name == "save")
        report.ok_or_bad(saves - last <= asked, f"{saves - last} saves, the host asked for {asked}", step)
        last = saves
    if not known:
        if view.length:
            report.untestable("the driver counts no saves")
        return
    for run in view.runs:
        report.opportunity()
        if run.end_step < NEVER:
            report.episode(run.end_step, run.ending)


RULES: Rules = {"RHO-PERS-1": pers_1, "RHO-PERS-2": pers_2, "RHO-PERS-3": pers_3, "RHO-PERS-5": pers_5}
