"""Session state as an observation: RHO-STATE-1 to 5 (contract part 2.13)."""

from __future__ import annotations

from typing import Any

from .base import Report, Rules
from .entities import NEVER, Run, error_name
from .stimuli import STARTS
from .view import View

Json = Any
STATES = ("Idle", "Running", "WaitingForHostInput", "Cancelling", "Completed", "Failed")
BUSY_STATES = ("Running", "WaitingForHostInput", "Cancelling")
USES = (*STARTS, "append", "replace_history", "reset", "restore", "crash", "compact", "shutdown")


def _facts(view: View, report: Report, key: str) -> bool:
    known = any(key in view.facts(s, name) for s in range(1, view.length + 1) for name in view.sessions)
    if not known and view.length:
        report.untestable(f"the driver reports no {key}")
    return known


def state_1(view: View, report: Report) -> None:
    """One of the six states."""
    if not _facts(view, report, "state"):
        return
    for step in range(1, view.length + 1):
        report.opportunity()
        for session in view.sessions:
            state = view.facts(step, session).get("state")
            if state is not None:
                report.ok_or_bad(state in STATES, f"the state of {session} is {state!r}", step)
                report.episode(step, state)


def _quiet_until(view: View, run: Run) -> int:
    """Last step up to which nobody used the session after the run ended."""
    for step in range(run.end_step + 1, view.length + 1):
        used = [s for s in view.stims_at.get(step, ()) if s.session == run.session or s.name == "crash"]
        if any(s.name in USES for s in used):
            return step - 1
    return view.length


def _rests(view: View, report: Report, run: Run, state: str) -> None:
    if run.end_step == NEVER or view.touched(run, run.end_step):
        return
    for step in range(run.end_step, _quiet_until(view, run) + 1):
        facts = view.facts(step, run.session)
        seen = facts.get("state")
        if seen is not None and facts.get("busy") is False and seen != state:
            report.bad(f"the run ended {run.ending}, and the state is {seen} instead of {state}", step, run.name)
            return
    report.episode(run.end_step, run.ending)


def state_2(view: View, report: Report) -> None:
    """Completed and Failed stay visible after the run."""
    if not _facts(view, report, "state"):
        return
    for run in view.runs:
        report.opportunity()
        if run.ending in ("Completed", "Failed") and not run.severed and not run.panics:
            _rests(view, report, run, str(run.ending))


def state_3(view: View, report: Report) -> None:
    """An accepted run moves a Completed or Failed session to Running."""
    if not _facts(view, report, "state"):
        return
    for run in view.runs:
        before = view.facts(run.start_step - 1, run.session).get("state")
        if before not in ("Completed", "Failed"):
            continue
        report.opportunity()
        facts = view.facts(run.start_step, run.session)
        state = facts.get("state")
        if state is None or not view.single(run.start_step) or run.end_step <= run.start_step:
            continue
        message = f"a run was accepted in state {before}, and the state is {state}"
        report.ok_or_bad(state in BUSY_STATES, message, run.start_step, run.name)
        report.episode(run.start_step, before)


def state_4(view: View, report: Report) -> None:
    """Idle after a cancelled, dropped, interrupted or panicked run, or a refused commit."""
    if not _facts(view, report, "state"):
        return
    for run in view.runs:
        if run.cancel_step < NEVER or run.severed or run.panics:
            report.opportunity()
        dropped = bool(run.drops) and run.terminal is None and run.crashed == NEVER
        if run.ending in ("Cancelled", "Interrupted", "Persistence") or (dropped and run.ending is None):
            if run.terminal is not None and run.terminal.name != "Cancelled":
                continue
            if any(view.full(s - 1) or not view.single(s) for s in run.drops):
                continue
            _rests(view, report, run, "Idle")


def state_5(view: View, report: Report) -> None:
    """Busy from the accepted start until the work is gone, and never after the outcome was taken."""
    if not _facts(view, report, "busy"):
        return
    for run in view.runs:
        report.opportunity()
        _busy_while_unfinished(view, report, run)
        reply = run.outcome_reply
        if reply is None or any(s.name in USES for s in view.stims_at.get(reply.step, ())):
            continue
        busy = view.facts(reply.step, run.session).get("busy")
        compacting = any(s.name == "compact" and s.step <= reply.step for s in view.stims)
        newer = compacting or any(
            o is not run and o.session == run.session and o.start_step > run.start_step for o in view.runs
        )
        if busy is not None and not newer:
            report.ok_or_bad(busy is False, "the outcome was taken and the session is still busy", reply, run.name)
            report.episode(reply.step, run.ending)
        _start_after(view, report, run, reply.step)


def _busy_while_unfinished(view: View, report: Report, run: Run) -> None:
    """Work of a run in a session that says it is not busy."""
    work = [u for u in run.upcalls if u.name in ("ModelCall", "ToolExecute") and u.step > run.end_step]
    for upcall in work[:1]:
        if run.outcome_reply is None or run.outcome_reply.step >= upcall.step:
            report.bad(f"{upcall.name} while the session was not busy", upcall)


def _start_after(view: View, report: Report, run: Run, step: int) -> None:
    following = next((s for s in view.stims if s.name in STARTS and s.step > step and s.session == run.session), None)
    if following is None or any(
        o.session == run.session and o.end_step >= following.step > o.start_step for o in view.runs
    ):
        return
    reply = view.reply(following)
    waits = view.waits_for(following.step - 1, "compactor")
    if reply is not None and error_name(reply) == "SessionBusy" and view.single(following.step) and not waits:
        report.bad("the outcome was taken, and a new run is refused as busy", reply, run.name)


RULES: Rules = {
    "RHO-STATE-1": state_1,
    "RHO-STATE-2": state_2,
    "RHO-STATE-3": state_3,
    "RHO-STATE-4": state_4,
    "RHO-STATE-5": state_5,
}
