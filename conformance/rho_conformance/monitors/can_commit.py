"""What the cancel and failure commits leave behind: RHO-CAN-8 to 14, FAIL-1, FAIL-2 (contract part 2.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import messages as m
from .base import Report, Rules
from .commit import (
    ATTEMPTS,
    captured,
    completed_before,
    due_revision,
    final_history,
    holds_assistant,
    result_of,
    start_text,
    suffix,
)
from .entities import NEVER, Attempt, Call, Obs, Run, ok_value
from .view import View

Json = Any


def can_8(view: View, report: Report) -> None:
    """The cancel commit installs the user message, completed responses and what was applied."""
    for run, history in _cancelled(view, report):
        _committed(view, report, run, history)
        report.episode(run.cancel_step, min(len(completed_before(run, run.cancel_step)), 2))


def _cancelled(view: View, report: Report) -> Iterator[tuple[Run, list[Json]]]:
    """Runs that ended by a cancel commit with what they added."""
    for run in view.runs:
        if run.cancel_step < NEVER and run.cancel_step not in run.drops:
            report.opportunity()
            found = suffix(view, run)
            if run.terminal is not None and run.terminal.name == "Cancelled" and found is not None:
                yield run, found


def _committed(view: View, report: Report, run: Run, history: list[Json]) -> None:
    text = start_text(run)
    if text is not None:
        message = f"the user message {text!r} is not in the committed history"
        report.ok_or_bad(text in m.users(history), message, run.end_step, run.name)
    stop = min(run.cancel_step, run.end_step)
    done = completed_before(run, stop)
    if view.full(stop - 1):
        done = done[:-1]
    for attempt in done:
        message = f"the completed response of step {attempt.step_no} is not in the committed history"
        report.ok_or_bad(holds_assistant(history, attempt), message, run.end_step, run.name)
    for steer in run.steers:
        if steer.applied:
            message = f"the applied steer {steer.name} is not in the committed history"
            report.ok_or_bad(steer.text in m.users(history), message, run.end_step, run.name)


def can_9(view: View, report: Report) -> None:
    """An AbortedAssistant is the last message, of the unfinished attempt alone, and begins with what was
    shown (D24)."""
    for run in view.runs:
        history = suffix(view, run)
        if run.ending not in ("Cancelled", "Failed") or history is None or run.severed or not run.attempts:
            continue
        report.opportunity()
        aborted = [i for i, x in enumerate(history) if m.kind(x) == "aborted"]
        for place in aborted:
            message = "an AbortedAssistant that is not the last message"
            report.ok_or_bad(place == len(history) - 1, message, run.end_step, run.name)
        _capture(view, report, run, history[aborted[-1]] if aborted else None)


def _capture(view: View, report: Report, run: Run, aborted: Json) -> None:
    last, stop = run.attempts[-1], min(run.cancel_step, run.end_step)
    returned = last.good and last.end is not None and last.end.step < stop and not view.full(stop - 1)
    if aborted is None:
        if captured(last) and not last.good and not last.malformed and not _abandoned(run, last):
            report.variant("D24:absent")
        return
    at = run.end_step
    report.ok_or_bad(not returned, "an AbortedAssistant after the provider had returned", at, run.name)
    # What a cooperative provider answers after the cancel is ignored, malformed or not.
    heard = run.ending == "Failed" or (last.end is not None and last.end.step < run.cancel_step)
    # Its ModelCallCompleted may have been blocked: then the attempt had not ended for the run.
    heard = heard and not view.full(stop - 1)
    stale = (last.malformed and heard) or (last.reset is not None and run.ending == "Cancelled")
    report.ok_or_bad(not stale, "an AbortedAssistant of an attempt that was abandoned", at, run.name)
    if any(i.kind == "physical_retry" for i in last.items):
        return
    text, shown = m.text(aborted), last.shown_text("AssistantTextDelta")
    if view.taken_known and not stale:
        given = last.taken_text("delta")
        report.ok_or_bad(given.startswith(text), f"aborted text {text!r} is no prefix of {given!r}", at, run.name)
    report.ok_or_bad(text.startswith(shown), f"aborted text {text!r} lacks what was shown", at, run.name)
    report.episode(at, run.ending, bool(text), bool(m.calls(aborted)), bool(shown))


def _abandoned(run: Run, attempt: Attempt) -> bool:
    """Whether a retry was due, so that what was captured is no part of the run any more (RHO-RET-10)."""
    if attempt.reset is not None or attempt.end is None:
        return attempt.reset is not None
    return attempt.retryable and attempt.number < ATTEMPTS and attempt.end.step <= run.cancel_step < NEVER


def can_10(view: View, report: Report) -> None:
    """No raw reasoning in history, snapshot or request."""
    canaries = _canaries(view)
    if not canaries:
        return
    report.opportunity(len(canaries))
    for obs, where, content in _durable(view):
        for canary in canaries:
            if m.holds(content, canary):
                report.bad(f"raw reasoning {canary!r} stands in {where}", obs)
    for run in view.runs:
        taken = [i for a in run.attempts for i in a.items if i.kind == "reasoning"]
        if taken and (run.end_step < NEVER or len(run.attempts) > 1):
            report.episode(taken[0].step, run.ending)


def _canaries(view: View) -> list[str]:
    taken = {str(i.value) for r in view.runs for a in r.attempts for i in a.items if i.kind == "reasoning"}
    others = [i.value for r in view.runs for a in r.attempts for i in a.items if i.kind != "reasoning"]
    others += [i.value for c in view.calls() for i in c.items]
    others += [s.value for s in view.stims if s.name not in ("provider", "tool", "compactor")]
    others += [view.config.get("history"), view.config.get("system")]
    return sorted(t for t in taken if len(t) >= 3 and not any(m.holds(o, t) for o in others))


def _durable(view: View) -> Iterator[tuple[Obs | int, str, Json]]:
    for run in view.runs:
        for attempt in run.attempts:
            yield attempt.opened, "a request", attempt.opened.get("messages")
        for upcall in run.up("Compact"):
            yield upcall, "what the compactor got", upcall.get("messages")
    snapshots = {s.reply for s in view.stims if s.name == "snapshot"}
    for name in snapshots:
        for reply in view.replies.get(name, ()):
            yield reply, "a snapshot", ok_value(reply)
    seen: set[tuple[str, Json, int]] = set()
    for step in range(1, view.length + 1):
        for session in view.sessions:
            facts = view.facts(step, session)
            history = facts.get("history")
            if not isinstance(history, list):
                continue
            key = (session, facts.get("revision"), len(history))
            if key not in seen:
                seen.add(key)
                yield step, "the committed history", history


def can_11(view: View, report: Report) -> None:
    """The cancel commit raises the revision by one; Cancelled carries it; the outcome is Cancelled."""
    for run in view.runs:
        if run.cancel_step < NEVER and run.cancel_step not in run.drops:
            report.opportunity()
        event = run.terminal
        if event is not None and event.name == "Cancelled":
            _revision(view, report, run, event)
            if run.outcome is not None:
                report.ok_or_bad(run.error == "Cancelled", f"the outcome is {run.outcome!r}", event)
            report.episode(event)


def _revision(view: View, report: Report, run: Run, event: Obs) -> None:
    named, due = event.get("revision"), due_revision(view, run, 1)
    if isinstance(named, int) and due is not None:
        report.ok_or_bad(named == due, f"{event.name} carries revision {named}, due is {due}", event)
    now = view.after(run).get("revision")
    if isinstance(named, int) and isinstance(now, int) and run.end_step <= event.step:
        report.ok_or_bad(named == now, f"{event.name} carries revision {named}, the session has {now}", event)


def _settled_calls(view: View, report: Report, run: Run, calls: list[Call], stop: int) -> bool:
    """Check that each call has exactly one result, the real one if it had completed before ``stop``."""
    history = final_history(view, run)
    if history is None:
        return False
    held = {c for x in history if m.kind(x) == "assistant" for c in m.calls(x)}
    for call in calls:
        if call.id not in held or sum(c.id == call.id for c in calls) > 1:
            continue
        number = sum(1 for r in m.results(history) if r[1] == call.id)
        message = f"call {call.id} has {number} results in the committed history"
        report.ok_or_bad(number == 1, message, run.end_step, run.name)
        found = result_of(history, call)
        if found is not None:
            _result(view, report, call, found, stop)
    return True


def _result(view: View, report: Report, call: Call, found: tuple[bool | None, str], stop: int) -> None:
    ok, text = found
    run, end = call.run, call.end
    if end is not None and end.step < stop and end.kind == "return":
        message = f"the completed result of {call.id} became {text!r} (ok={ok})"
        report.ok_or_bad(ok is not False and text == str(end.value), message, run.end_step, run.name)
    elif (end is None or end.step > stop) and call.available:
        stops = view.tool_config(call.tool).get("on_cancel", "stop") == "stop"
        if stops:
            message = f"the interrupted call {call.id} has an ok result"
            report.ok_or_bad(ok is not True, message, run.end_step, run.name)


def can_12(view: View, report: Report) -> None:
    """A cancel in a batch keeps completed results and answers every other call."""
    for run, _ in _ended(view, report, "Cancelled"):
        calls = [c for c in run.calls if not c.honoured and _open_at(c, run.cancel_step)]
        if calls and _settled_calls(view, report, run, _batch(run, calls), run.cancel_step):
            done = sum(1 for c in _batch(run, calls) if c.ended_step < run.cancel_step)
            report.episode(run.cancel_step, min(done, 1), bool(calls[0].executes), bool(calls[0].prepares))


def _ended(view: View, report: Report, *endings: str) -> Iterator[tuple[Run, Obs]]:
    for run in view.runs:
        if run.calls and (run.cancel_step < NEVER or run.ending in endings):
            report.opportunity()
        if run.terminal is not None and run.terminal.name in endings and not run.severed:
            yield run, run.terminal


def _open_at(call: Call, step: int) -> bool:
    return call.born < step <= call.ended_step and not any(f.step < step for f in call.of("ToolFinished"))


def _batch(run: Run, calls: list[Call]) -> list[Call]:
    owners = {id(c.attempt) for c in calls}
    return [c for c in run.calls if id(c.attempt) in owners]


def can_13(view: View, report: Report) -> None:
    """Calls queued behind pending jobs get their result although the scheduler never saw them."""
    for run, _ in _ended(view, report, "Cancelled"):
        queued = [c for c in run.calls if not c.honoured and not c.executes and _open_at(c, run.cancel_step)]
        behind = [c for c in queued if any(o.honoured and o.attempt is c.attempt for o in run.calls)]
        if behind and _settled_calls(view, report, run, behind, run.cancel_step):
            report.episode(run.cancel_step, min(len(behind), 2), bool(behind[0].of("ToolProposed")))


def can_14(view: View, report: Report) -> None:
    """Pending jobs are interrupted before the commit of Cancelled, Failed and MaxSteps."""
    for run, terminal in _ended(view, report, "Cancelled", "Failed", "Completed"):
        stop = min(run.cancel_step, terminal.step)
        jobs = [c for c in run.calls if c.honoured and c.of("ToolDetached") and c.ended_step >= stop]
        if not jobs or run.gap:
            continue
        for call in jobs:
            finished = call.first("ToolFinished")
            late = finished is None or run.place(finished) > run.place(terminal)
            report.ok_or_bad(not late, f"the pending job {call.id} has no ToolFinished before the end", terminal)
            if finished is not None and call.end is None:
                report.ok_or_bad(finished.get("result") != "ok", f"the interrupted job {call.id} is ok", finished)
        _settled_calls(view, report, run, jobs, stop)
        report.episode(terminal, terminal.name, min(len(jobs), 2))


def fail_1(view: View, report: Report) -> None:
    """A failed run commits the same way."""
    for run in view.runs:
        if any(a.end is not None and not a.good for a in run.attempts):
            report.opportunity()
        event = run.terminal
        if run.severed or run.panics:
            continue
        if event is None and run.ending == "Failed" and run.whole and run.cancel_step == NEVER:
            report.bad(f"the outcome is {run.outcome!r}, and no Failed was sent", run.end_step, run.name)
        if event is None or event.name != "Failed":
            continue
        _revision(view, report, run, event)
        history = suffix(view, run)
        if history is not None:
            _committed(view, report, run, history)
            for call in m.unanswered(history):
                report.bad(f"call {call} is unanswered after the failure", event)
            if run.attempts and run.attempts[-1].malformed:
                aborted = any(m.kind(x) == "aborted" for x in history)
                report.ok_or_bad(not aborted, "an AbortedAssistant after a malformed response", event)
        report.episode(event, bool(run.attempts and captured(run.attempts[-1])))


def fail_2(view: View, report: Report) -> None:
    """A run interrupted by the loss of its reader installs nothing more."""
    for run in view.runs:
        if run.closes:
            report.opportunity()
        if not run.closes or run.ending != "Interrupted":
            continue
        now, due = view.after(run).get("revision"), due_revision(view, run, 0)
        hidden = sum(1 for s in run.stims if s.name == "compactor")
        if isinstance(now, int) and due is not None:
            message = f"interrupted, and the revision went to {now} (at most {due + hidden} is due)"
            report.ok_or_bad(now <= due + hidden, message, run.end_step, run.name)
        history, text = suffix(view, run), start_text(run)
        if history is not None and text is not None and not run.up("CollectAck"):
            message = "interrupted, and the candidate history was installed"
            report.ok_or_bad(text not in m.users(history), message, run.end_step, run.name)
        report.episode(run.end_step)


RULES: Rules = {
    "RHO-CAN-8": can_8,
    "RHO-CAN-9": can_9,
    "RHO-CAN-10": can_10,
    "RHO-CAN-11": can_11,
    "RHO-CAN-12": can_12,
    "RHO-CAN-13": can_13,
    "RHO-CAN-14": can_14,
    "RHO-FAIL-1": fail_1,
    "RHO-FAIL-2": fail_2,
}
