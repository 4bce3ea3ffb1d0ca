"""Known limitations, as permitted behaviours: RHO-LIM-1 to 4 (contract part 2.14)."""

from __future__ import annotations

from . import messages as m
from .base import Report, Rules
from .commit import start_text, suffix
from .entities import NEVER, Run
from .view import View


def lim_1(view: View, report: Report) -> None:
    """One terminal event or none, never two, whatever the exit."""
    for run in view.runs:
        report.opportunity()
        for extra in run.terminals[1:]:
            report.bad(f"a second terminal event, {extra.name}", extra)
        if run.end_step < NEVER and (run.closed or run.terminal or run.severed):
            report.variant(f"LIM-1:{min(len(run.terminals), 1)}")
            report.episode(run.end_step, run.ending, len(run.terminals))


def lim_2(view: View, report: Report) -> None:
    """A dropped run sends none, or Cancelled; it never completes after the drop."""
    for run in view.runs:
        for step in run.drops[:1]:
            report.opportunity()
            late = [e for e in run.terminals if e.step >= step]
            wrong = [e for e in late if e.name != "Cancelled"]
            if not view.full(step - 1) and view.single(step):
                for event in wrong:
                    report.bad(f"{event.name} after the run was dropped", event)
                state = view.after(run).get("state")
                gone = state in ("Completed", "Failed")
                report.ok_or_bad(not gone, f"dropped, and the state became {state}", step, run.name)
                _not_completed(view, report, run, step)
            report.variant("LIM-2:" + ("sent" if late else "none"))
            report.episode(step, view.kinds(step - 1))


def _not_completed(view: View, report: Report, run: Run, step: int) -> None:
    if run.outcome_reply is not None and run.outcome_reply.step > step:
        report.ok_or_bad(run.ended_ok is None, "the run completed after it was dropped", run.outcome_reply)
    history, last = suffix(view, run), run.attempts[-1] if run.attempts else None
    if history and last is not None and last.end is None:
        answers = [x for x in history if m.kind(x) == "assistant"]
        good = sum(1 for a in run.attempts if a.good) + (run.stim.name == "start_tool")  # the host's own call
        text = "the history holds more responses than the provider returned before the drop"
        report.ok_or_bad(len(answers) <= good, text, step, run.name)


def _panicked(run: Run) -> int:
    """Step at which a provider or a synchronous tool panicked for certain."""
    steps = [a.end.step for a in run.attempts if a.end is not None and a.end.kind == "panic"]
    steps += [c.end.step for c in run.calls if c.end is not None and c.end.kind == "panic" and not c.honoured]
    return min(steps, default=NEVER)


def _exhausted(view: View, run: Run, step: int) -> bool:
    """Whether a commit had no revision left to be."""
    revision = view.facts(step, run.session).get("revision")
    return isinstance(revision, int) and revision >= 2**64 - 1


def lim_3(view: View, report: Report) -> None:
    """A panic surfaces as Interrupted with no event and nothing installed, or as a typed failure (D30)."""
    for run in view.runs:
        step = _panicked(run)
        if step == NEVER or run.cancel_step <= step or run.severed:
            continue
        report.opportunity()
        for extra in run.terminals[1:]:
            report.bad(f"a second terminal event, {extra.name}, after a panic", extra)
        if run.ending is None:
            busy = view.facts(step, run.session).get("busy")
            others = any(w.startswith("tool:") or w in ("reader", "recorder") for w in view.waiting(step))
            report.ok_or_bad(busy is not True or others, "a panic, and the session stays busy", step, run.name)
            continue
        if run.ending == "Interrupted":
            report.ok_or_bad(run.terminal is None, "Interrupted by a panic, and a terminal event", step, run.name)
            _nothing_installed(view, report, run)
        elif run.ending == "Failed" or (run.ending == "Persistence" and _exhausted(view, run, step)):
            report.variant("D30:failed")
        else:
            report.bad(f"a panic, and the run ended {run.ending}", step, run.name)
        report.episode(step, run.ending, bool(run.calls))


def _nothing_installed(view: View, report: Report, run: Run) -> None:
    history, text = suffix(view, run), start_text(run)
    if history is not None and text is not None and not run.up("CollectAck"):
        message = "interrupted by a panic, and candidate history was installed"
        report.ok_or_bad(text not in m.users(history), message, run.end_step, run.name)


def lim_4(view: View, report: Report) -> None:
    """A terminal event that nobody can receive is lost, and nothing else."""
    for run in view.runs:
        for step in run.closes[:1]:
            report.opportunity()
            if run.ending is None or run.cancel_step < NEVER:
                continue
            committed = run.ending in ("Completed", "Failed")
            _same_outcome(view, report, run, step)
            if run.terminal is not None and run.terminal.step > step:
                report.bad("a terminal event was read although the reader is gone", run.terminal)
            history = suffix(view, run)
            text = start_text(run)
            if committed and history is not None and text is not None:
                message = f"the reader was gone, and the {run.ending} run committed nothing"
                report.ok_or_bad(text in m.users(history), message, run.end_step, run.name)
                report.variant("LIM-4:lost")
                report.episode(step, run.ending)


def _same_outcome(view: View, report: Report, run: Run, step: int) -> None:
    """A run that had committed before its reader went away keeps that outcome."""
    if run.start_step >= step:
        return  # the state before is that of the run before
    state = view.facts(step - 1, run.session).get("state")
    if state in ("Completed", "Failed") and step <= run.end_step:
        message = f"it had {state.lower()} before the reader went away, and ended {run.ending}"
        report.ok_or_bad(run.ending == state, message, step, run.name)


RULES: Rules = {"RHO-LIM-1": lim_1, "RHO-LIM-2": lim_2, "RHO-LIM-3": lim_3, "RHO-LIM-4": lim_4}
