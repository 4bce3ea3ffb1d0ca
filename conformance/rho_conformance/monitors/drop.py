"""Dropping handles: RHO-DROP-1, 2, 3, 5, 6 (contract part 2.10)."""

from __future__ import annotations

from . import messages as m
from .base import Report, Rules
from .commit import deaf, due_revision, forced, start_text, suffix
from .entities import NEVER, Run, error_name, is_ok
from .shut import counted
from .stimuli import STARTS
from .view import View


def drop_1(view: View, report: Report) -> None:
    """Open work is told or dropped, delays are over, nothing new begins."""
    for run in view.runs:
        for step in run.drops[:1]:
            report.opportunity()
            for upcall in run.upcalls:
                if upcall.step > step and upcall.name in ("ModelCall", "ToolExecute", "Compact", "Collect"):
                    report.bad(f"{upcall.name} after the run was dropped", upcall)
            if view.single(step) and view.live(step) in ([], [run]):
                for wait in sorted(view.waiting(step)):
                    if wait != "recorder" and not deaf(view, run, wait):
                        report.bad(f"dropped, and still waiting on {wait}", step, run.name)
            _told(view, report, run, step)
            report.episode(step, view.kinds(step - 1))


def _told(view: View, report: Report, run: Run, step: int) -> None:
    """Open model requests and executions must see their end, where the driver reports such ends at all."""
    if not any(o.name == "Abandoned" for o in view.obs):
        return
    for attempt in run.attempts:
        late = attempt.abandoned is None or attempt.abandoned.step > step
        if attempt.opened.step < step and attempt.end is None and late and not deaf(view, run, "model"):
            report.bad("dropped, and the open model request was not told", step, run.name)
    for call in run.calls:
        late = call.abandoned is None or call.abandoned.step > step
        opened = bool(call.executes) and call.executes[0].step < step
        if opened and call.end is None and late and not deaf(view, run, f"tool:{call.id}"):
            report.bad(f"dropped, and the open tool call {call.id} was not told", step, run.name)


def drop_2(view: View, report: Report) -> None:
    """The session is idle again, not busy, and accepts a new run."""
    for run in view.runs:
        for step in run.drops[:1]:
            report.opportunity()
            facts = view.facts(step, run.session)
            quiet = not any(deaf(view, run, w) or w == "recorder" for w in view.waiting(step))
            if facts.get("busy") is not None and view.single(step) and quiet:
                report.ok_or_bad(facts["busy"] is False, "dropped, and the session stays busy", step, run.name)
                state = facts.get("state")
                settled = state is None or facts["busy"] or state == "Idle" or _was_settling(view, run, step)
                report.ok_or_bad(settled, f"dropped, and the state is {state}", step, run.name)
                report.episode(step, view.kinds(step - 1))
            _accepts(view, report, run, step)
            _uncounted(view, report, step)


def _uncounted(view: View, report: Report, step: int) -> None:
    """A later shutdown does not count the dropped run."""
    later = next((s for s in view.stim("shutdown") if s.step > step), None)
    count = counted(view.reply(later)) if later is not None else None
    if later is None or count is None or not view.alone(later) or view.stim("compact"):
        return
    live = len(view.live(later.step - 1))
    report.ok_or_bad(count <= live, f"shutdown counts {count} runs, {live} are alive", later)


def _was_settling(view: View, run: Run, step: int) -> bool:
    """A drop that met a run after its commit, at a blocked terminal send: its state may stay."""
    return view.full(step - 1)


def _accepts(view: View, report: Report, run: Run, step: int) -> None:
    following = next((s for s in view.stim(*STARTS) if s.step > step and s.session == run.session), None)
    if following is None or view.facts(following.step - 1, run.session).get("busy") is not False:
        return
    reply = view.reply(following)
    shut = any(s.step <= following.step for s in view.stim("shutdown"))
    if reply is not None and view.single(following.step) and not shut:
        message = f"after the drop a start answered {reply.get('value')!r}"
        report.ok_or_bad(is_ok(reply), message, reply)


def drop_3(view: View, report: Report) -> None:
    """Nothing installed, or the whole cancel commit; never a part of the candidate."""
    for run in view.runs:
        for step in run.drops[:1]:
            report.opportunity()
            low, now = due_revision(view, run, 0), view.after(run).get("revision")
            if low is None or not isinstance(now, int) or run.end_step == NEVER:
                continue
            hidden = sum(1 for s in run.stims if s.name == "compactor")
            message = f"dropped: revision {now}, permitted {low} to {low + 1}"
            report.ok_or_bad(low <= now <= low + 1 + hidden, message, step, run.name)
            if not hidden:
                report.variant("DROP-3:" + ("nothing" if now == low else "commit"))
            history = suffix(view, run)
            if history is not None:
                _whole(report, run, history, step, now == low)
            report.episode(step, view.kinds(step - 1))


def _whole(report: Report, run: Run, history: list[object], step: int, nothing: bool) -> None:
    for call in m.unanswered(history):
        if call in {c.id for c in run.calls}:
            report.bad(f"dropped, and the call {call} stands without a result", step, run.name)
    text = start_text(run)
    if text is None or run.up("CollectAck"):
        return
    if not nothing and history and text not in m.users(history):
        report.bad("dropped, and a part of the candidate without its user message was installed", step, run.name)
    if nothing and text in m.users(history):
        report.bad("dropped, and candidate history was installed without a new revision", step, run.name)


def _handles(view: View, report: Report, name: str) -> None:
    for stim in view.stim(name):
        for run in view.live(stim.step - 1):
            if name == "drop_session" and run.session != stim.session:
                continue
            report.opportunity()
            if run.cancel_step <= stim.step or run.severed or not view.alone(stim):
                continue
            token = view.token(stim.step, run)
            report.ok_or_bad(token != "cancelled", f"{name} cancelled {run.name}", stim, run.name)
            if run.cancel_step == NEVER and run.ending is not None:
                gone = run.ending in ("Cancelled", "Interrupted") and not forced(run)
                report.ok_or_bad(not gone, f"after {name} the run ended {run.ending}", stim, run.name)
                report.episode(stim.step, run.ending)
            same = view.waiting(stim.step - 1) <= view.waiting(stim.step)
            report.ok_or_bad(same, f"{name} ended what the run waited for", stim, run.name)


def drop_5(view: View, report: Report) -> None:
    """Dropping a session handle, or one clone of the runtime, stops no run that is held."""
    _handles(view, report, "drop_session")
    _handles(view, report, "drop_runtime")


def drop_6(view: View, report: Report) -> None:
    """Dropping the runtime is no shutdown."""
    for stim in view.stim("drop_runtime"):
        report.opportunity()
        shut = any(s.step <= stim.step for s in view.stim("shutdown"))
        for run in view.live(stim.step - 1):
            if run.cancel_step > stim.step and view.alone(stim) and run.ending is not None and not run.severed:
                gone = run.ending == "Cancelled" and run.cancel_step == NEVER and not forced(run)
                report.ok_or_bad(not gone, "dropping the runtime cancelled a held run", stim, run.name)
                report.episode(stim.step, run.ending)
        for later in view.stim(*STARTS, "compact"):
            reply = view.reply(later)
            if later.step <= stim.step or reply is None:
                continue
            closed = error_name(reply) == "RuntimeShutdown" and not shut and not _shut_before(view, later.step)
            report.ok_or_bad(not closed, "dropping the runtime shut it down", reply)
            report.episode(later.step, later.name)


def _shut_before(view: View, step: int) -> bool:
    return any(s.step <= step for s in view.stim("shutdown"))


RULES: Rules = {
    "RHO-DROP-1": drop_1,
    "RHO-DROP-2": drop_2,
    "RHO-DROP-3": drop_3,
    "RHO-DROP-5": drop_5,
    "RHO-DROP-6": drop_6,
}
