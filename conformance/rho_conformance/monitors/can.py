"""Cancellation as a request: RHO-CAN-1 to 7, 15 (contract part 2.9)."""

from __future__ import annotations

from .base import Report, Rules
from .commit import clean_cancel, deaf, due_revision, forced
from .entities import NEVER, Run
from .view import View


def can_1(view: View, report: Report) -> None:
    """A cancel at a known wait ends the run with the outcome Cancelled."""
    for run in view.runs:
        if run.cancels:
            report.opportunity()
        step = clean_cancel(view, run)
        if step is None or step not in run.cancels:
            continue
        _unheard(view, report, run, step)
        if run.ending is None:
            continue
        _must_cancel(view, report, run, step)
        report.episode(step, view.kinds(step - 1))


def _unheard(view: View, report: Report, run: Run, step: int) -> None:
    """The run goes on waiting for what the cancel should have ended."""
    if view.live(step) == [run]:
        left = [w for w in view.waiting(step) if w not in ("reader", "recorder") and not deaf(view, run, w)]
        report.ok_or_bad(not left, f"cancelled, and it goes on waiting for {sorted(left)}", step, run.name)


def _must_cancel(view: View, report: Report, run: Run, step: int) -> None:
    if run.ending == "Persistence" or forced(run) or any(s > step for s in (*run.drops, *run.closes)):
        return
    message = f"cancelled while waiting on {view.kinds(step - 1)}, it ended {run.ending}"
    report.ok_or_bad(run.ending == "Cancelled", message, step, run.name)


def can_2(view: View, report: Report) -> None:
    """One shared token, and cancelling twice is cancelling once."""
    for run in view.runs:
        asked = len(run.cancels) + len(run.token_cancels) + len(run.shutdowns)
        if asked:
            report.opportunity()
            _token(view, report, run)
        if asked < 2 or run.ending != "Cancelled":
            continue
        for extra in run.terminals[1:]:
            report.bad(f"a second terminal event, {extra.name}, after a second cancel", extra)
        due, now = due_revision(view, run, 1), view.after(run).get("revision")
        if due is not None and isinstance(now, int) and not run.severed:
            report.ok_or_bad(now <= due, f"cancelled twice: revision {now}, at most {due} is due", run.end_step)
        report.episode(max(run.cancels + run.token_cancels + run.shutdowns), min(asked, 3))


def _token(view: View, report: Report, run: Run) -> None:
    step = run.cancel_step
    state = view.token(step, run)
    if state is not None and step not in run.drops and clean_cancel(view, run) == step:
        message = f"cancelled, and a clone of the token is {state}"
        report.ok_or_bad(state == "cancelled", message, step, run.name)


def can_3(view: View, report: Report) -> None:
    """A provider or sync tool that cancels its token cancels the run."""
    for run in view.runs:
        for step in run.token_cancels[:1]:
            report.opportunity()
            if step != run.cancel_step or not view.single(step) or forced(run):
                continue
            if not view.full(step - 1) and view.live(step - 1) == [run]:
                _unheard(view, report, run, step)
            if run.ending is None:
                continue
            if view.full(step - 1) or any(s > step for s in (*run.drops, *run.closes)):
                continue
            unread = run.ending == "Interrupted" and bool(run.closes)  # cancel and consumer loss together (R23)
            if run.ending != "Persistence" and not unread:
                message = f"an extension cancelled the run's token, and it ended {run.ending}"
                report.ok_or_bad(run.ending == "Cancelled", message, step, run.name)
            report.episode(step)


def can_4(view: View, report: Report) -> None:
    """Dropping a clone of the token does not cancel."""
    for run in view.runs:
        items = [i for a in run.attempts for i in a.items] + [i for c in run.calls for i in c.items]
        for item in (i for i in items if i.kind == "drop_token"):
            report.opportunity()
            if run.cancel_step <= item.step:
                continue
            state = view.token(item.step, run)
            report.ok_or_bad(state != "cancelled", "dropping a clone cancelled the token", item.step, run.name)
            if run.cancel_step == NEVER:
                gone = run.ending == "Cancelled" and not forced(run)
                report.ok_or_bad(not gone, "dropping a clone of the token cancelled the run", item.step, run.name)
            if run.ending is not None or run.end_step > item.step:
                report.episode(item.step)


def can_5(view: View, report: Report) -> None:
    """Cancellation ends every wait it is raced against, at once."""
    for run in view.runs:
        _blocked_send(view, report, run)
        step = clean_cancel(view, run)
        if step is None:
            continue
        report.opportunity()
        if view.live(step) in ([], [run]):
            for wait in sorted(view.waiting(step)):
                if wait not in ("reader", "recorder") and not deaf(view, run, wait):
                    report.bad(f"cancelled, and still waiting on {wait}", step, run.name)
        report.episode(step, view.kinds(step - 1))


def _blocked_send(view: View, report: Report, run: Run) -> None:
    """A cancel drops a blocked event send: the run commits without a reader."""
    step = run.cancel_step
    if step == NEVER or step in run.drops or not view.single(step) or view.waiting(step - 1) != {"reader"}:
        return
    before, after = view.facts(step - 1, run.session), view.facts(step, run.session)
    # Not every send can be dropped: the completion of a compaction or of a job keeps its place.
    kept = run.up("Compact") or run.up("CollectAck") or any(c.honoured for c in run.calls) or run.end_step <= step
    if kept or view.live(step - 1) != [run] or before.get("state") not in ("Running", "WaitingForHostInput"):
        return
    if before.get("revision") != view.before(run.start_step, run.session).get("revision", before.get("revision")):
        return  # committed already, whatever its state shows (R28): it only sends its last events
    report.opportunity()
    kept = any(deaf(view, run, wait) for wait in view.waiting(step))
    if not kept and "revision" in before and before["revision"] < 2**64 - 1:
        same = before["revision"] == after.get("revision")
        report.ok_or_bad(not same, "cancelled at a blocked send, and nothing was committed", step, run.name)
        report.episode(step, "blocked send")


def can_7(view: View, report: Report) -> None:
    """No new model or tool work once cancelled."""
    for run in view.runs:
        step = run.cancel_step
        if step == NEVER or step in run.drops:
            continue
        report.opportunity()
        clean = clean_cancel(view, run) == step
        work = [u for u in run.upcalls if u.name in ("ModelCall", "ToolExecute")]
        late = [u for u in work if u.step > step or (clean and u.step == step)]
        spare = 0 if clean else 1
        for upcall in late:
            if upcall.name == "ModelCall" and spare:
                spare -= 1
            elif view.full(upcall.step - 1) or (not clean and upcall.name == "ToolExecute"):
                continue
            else:
                report.bad(f"{upcall.name} after the cancel", upcall)
        cancelled = next((e for e in run.terminals if e.name == "Cancelled"), None)
        if cancelled is not None:
            for upcall in work:
                if upcall.step > cancelled.step:
                    report.bad(f"{upcall.name} after the event Cancelled", upcall)
        if run.ending == "Cancelled":
            report.episode(step, view.kinds(step - 1))


def can_15(view: View, report: Report) -> None:
    """A raced cancel ends Cancelled, Interrupted or as the work that won, with visible commits plus at most
    one."""
    for run in view.runs:
        step = run.cancel_step
        if step == NEVER or step in run.drops or (view.single(step) and not view.full(step - 1)):
            continue
        report.opportunity()
        for extra in run.terminals[1:]:
            report.bad(f"a second terminal event, {extra.name}", extra)
        due, now = due_revision(view, run, 1), view.after(run).get("revision")
        if due is not None and isinstance(now, int):
            hidden = len([s for s in run.stims if s.name == "compactor"])
            message = f"revision {now} after a raced cancel, at most {due} by the visible commits"
            report.ok_or_bad(now <= due + hidden, message, run.end_step, run.name)
        if run.terminal is not None and run.outcome is not None:
            agrees = run.ending == run.terminal.name or run.terminal.name == "Failed"
            report.ok_or_bad(agrees, f"{run.terminal.name} with the outcome {run.outcome!r}", run.terminal)
        if run.ending is not None:
            report.variant(f"CAN-15:{run.ending}")
            report.episode(step, run.ending)


RULES: Rules = {
    "RHO-CAN-1": can_1,
    "RHO-CAN-2": can_2,
    "RHO-CAN-3": can_3,
    "RHO-CAN-4": can_4,
    "RHO-CAN-5": can_5,
    "RHO-CAN-7": can_7,
    "RHO-CAN-15": can_15,
}
