"""Ordering around tool calls: RHO-ORD-4 to 10 (contract part 2.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from . import messages as m
from .base import Report, Rules
from .entities import CALL_EVENTS, NEVER, Call, Obs, Run
from .view import View

Json = Any


def ord_4(view: View, report: Report) -> None:
    """ToolProposed, then ToolStarted, then the first side effect."""
    for call in view.calls():
        report.opportunity()
        proposed, started = call.first("ToolProposed"), call.first("ToolStarted")
        if proposed and started and call.run.place(started) < call.run.place(proposed):
            report.bad(f"ToolStarted of {call.id} before its ToolProposed", started)
        for event in call.events:
            if proposed is None and call.run.whole and event.name != "ToolFinished":
                report.bad(f"{event.name} of {call.id}, which was never proposed", event)
                break
        if proposed is not None:
            for upcall in call.prepares[:1] + call.executes[:1]:
                _after(view, report, call, proposed, upcall)
        _whole_batch_first(view, report, call)
        if started is not None and call.executes:
            _after(view, report, call, started, call.executes[0])
        if proposed is None and call.executes and call.run.whole:
            report.bad(f"{call.id} was executed and never proposed", call.executes[0])


def _whole_batch_first(view: View, report: Report, call: Call) -> None:
    """No call of a batch is prepared before its last proposal was sent (per subset, D3)."""
    if not call.prepares or call.order < 0:
        return
    batch = [c for c in call.run.calls if c.attempt is call.attempt and c.honoured == call.honoured]
    last = batch[-1].first("ToolProposed") if batch else None
    step = call.prepares[0].step
    required = [next(iter(call.run.of("Started")), None), *(c.first("ToolProposed") for c in batch)]
    if not view.eager(step, call.run.session) and view.crowded(call.run, step, required):
        report.bad(f"{call.id} was prepared before its batch can have been proposed", call.prepares[0])
    elif last is not None and view.unsent(call.run, last, call.prepares[0].step):
        report.bad(f"{call.id} was prepared before the last proposal of its batch", call.prepares[0])


def _after(view: View, report: Report, call: Call, event: Obs, upcall: Obs) -> None:
    if view.unsent(call.run, event, upcall.step):
        report.bad(f"{upcall.name} of {call.id} before its {event.name} can have been sent", upcall)
    else:
        report.episode(upcall, event.name, call.honoured)


def ord_5(view: View, report: Report) -> None:
    """An available call: ToolStarted, its progress in order, exactly one ToolFinished (D2)."""
    for call in view.calls():
        if not call.available or call.order < 0:
            continue
        report.opportunity()
        finished, started = call.of("ToolFinished"), call.of("ToolStarted")
        for extra in finished[1:]:
            report.bad(f"a second ToolFinished of {call.id}", extra)
        for extra in started[1:]:
            report.bad(f"a second ToolStarted of {call.id}", extra)
        unseen = call.honoured and finished and finished[0].get("kind") == "Cancelled"
        if finished and not started and not call.run.gap and not unseen:
            report.bad(f"ToolFinished of the available call {call.id} without ToolStarted", finished[0])
        _updates(report, call)
        if finished:
            report.episode(finished[0], finished[0].get("result"), call.honoured, bool(call.of("ToolUpdated")))
        elif started:
            _missing_finish(view, report, call, started[0])


def _updates(report: Report, call: Call) -> None:
    shown = [str(e.get("progress")) for e in call.of("ToolUpdated")]
    given = [str(i.value) for i in call.items if i.kind == "progress"]
    finished = call.first("ToolFinished")
    for event in call.of("ToolUpdated"):
        if finished is not None and call.run.place(event) > call.run.place(finished):
            report.bad(f"ToolUpdated of {call.id} after its ToolFinished", event)
    at = call.events[-1] if call.events else call.born
    if shown != given[: len(shown)]:
        report.bad(f"progress of {call.id} arrived as {shown}, was given as {given}", at)
    elif len(shown) < len(given) and finished is not None and _settled_itself(call, finished):
        report.bad(f"progress of {call.id} was lost: {given[len(shown) :]}", at)


def _settled_itself(call: Call, finished: Obs) -> bool:
    """A synchronous call ended by itself, and its end was read in a stream that nobody drained, before any
    cancel.

    A cancel drops the progress that still waits for the reader, although the tool has returned (R3, R4).
    """
    if call.honoured or call.end is None or call.run.gap:
        return False
    return finished.get("kind") != "Cancelled" and call.run.cancel_step > finished.step


def _missing_finish(view: View, report: Report, call: Call, started: Obs) -> None:
    """A started call with no ToolFinished in a stream that was read to its end."""
    run = call.run
    if not run.whole or run.terminal is None:
        return
    if run.ending in ("Interrupted", "Persistence") or run.panics:
        return
    stop = min(run.cancel_step, fail_step(run))
    if call.honoured and call.of("ToolDetached"):
        report.bad(f"the detached call {call.id} never finished", run.terminal)
    elif run.terminal.name == "Completed" or stop == NEVER:
        report.bad(f"the started call {call.id} never finished", run.terminal)
    elif call.ended_step >= stop:
        report.variant("D2:none")
    elif view.full(stop - 1):
        report.variant("D2:lost-blocked")
    else:
        report.bad(f"{call.id} had completed before the end, its ToolFinished is missing", run.terminal)


def fail_step(run: Run) -> int:
    """First step at which something other than a cancel may have made the run fail while calls were open."""
    reused = [i.step for ask in run.asks.values() for _, i in ask.posed[1:]]
    ended = [a.end.step for a in run.attempts if a.end is not None and not a.good]
    compactor = [s.step for s in run.stims if s.name == "compactor" and s.get("return") is None]
    return min(reused + ended + compactor, default=NEVER)


def ord_6(view: View, report: Report) -> None:
    """An unavailable call: ToolFinished{unavailable}, never started or executed; an error result."""
    for call in view.calls():
        if call.available or call.order < 0:
            continue
        report.opportunity()
        for event in [*call.of("ToolStarted"), *call.executes, *call.of("ToolDetached")]:
            report.bad(f"{event.name} of {call.id}, whose tool does not exist", event)
        finished = call.first("ToolFinished")
        if finished is not None:
            known = finished.get("result") == "unavailable" or finished.get("kind") == "Cancelled"
            report.ok_or_bad(known, f"{call.id} finished as {finished.get('result')}", finished)
            report.episode(finished)
        elif call.run.whole and call.run.ending == "Completed":
            report.bad(f"the unavailable call {call.id} got no ToolFinished", call.run.terminal or call.born)
        for position, ok in _results_of(view, call):
            report.ok_or_bad(ok is not True, f"the result of the unavailable {call.id} is ok", position)


def _results_of(view: View, call: Call) -> list[tuple[int, bool | None]]:
    found: list[tuple[int, bool | None]] = []
    for attempt in call.run.attempts:
        if call.attempt is not None and attempt.step_no > call.attempt.step_no:
            shown = m.results(attempt.opened.get("messages") or ())
            found += [(attempt.opened.step, ok) for _, name, ok, _ in shown if name == call.id]
    return found[:1]


def ord_7(view: View, report: Report) -> None:
    """An honoured async call: Started, Detached, then Finished; the loop goes on."""
    for call in view.calls():
        if call.honoured:
            report.opportunity()
        detached, started = call.first("ToolDetached"), call.first("ToolStarted")
        finished = call.first("ToolFinished")
        if detached is not None:
            place = call.run.place(detached)
            if not call.honoured and call.order >= 0:
                report.bad(f"ToolDetached of {call.id}, which is not an honoured async call", detached)
            if (started is None and not call.run.gap) or (started and call.run.place(started) > place):
                report.bad(f"ToolDetached of {call.id} before its ToolStarted", detached)
            if finished is not None and call.run.place(finished) < place:
                report.bad(f"ToolDetached of {call.id} after its ToolFinished", detached)
            report.episode(detached, finished is not None)
            if call.end is not None and call.end.kind == "panic" and finished is None and _listened(view, call.run):
                report.variant("D6:hangs")
        elif finished is not None and _ran_to_its_end(call, finished):
            report.bad(f"the async call {call.id} ran and finished without ToolDetached", finished)
        if call.honoured and call.executes:
            _loop_continues(view, report, call)
        half = call.marked or view.tool_config(call.tool).get("mode") == "async"
        if half and not call.honoured and call.executes and detached is None:
            # Marked or declared, but not both: it had the chance to detach wrongly, and did not.
            report.episode(call.executes[0], "synchronous")


def _listened(view: View, run: Run) -> bool:
    """Whether all that the run sent was seen, and it was not interrupted."""
    seen = run.whole or (view.eager(view.length, run.session) and not run.gap)
    return seen and not run.severed and run.ending not in ("Interrupted", "Persistence")


def _ran_to_its_end(call: Call, finished: Obs) -> bool:
    """An honoured call was executed and ended by itself, in a stream that nobody drained."""
    if not call.honoured or not call.executes or call.end is None or call.run.gap:
        return False
    if call.run.cancel_step <= finished.step:
        return False  # the cancel may have come before ToolDetached was sent (R1)
    return finished.get("kind") != "Cancelled" and call.end.kind != "prep_fail"


def _loop_continues(view: View, report: Report, call: Call) -> None:
    """A lone detached call must not hold up the next request."""
    attempt, step = call.attempt, call.executes[0].step
    if attempt is None or attempt.end is None or attempt.end.step != step or len(attempt.response_calls) != 1:
        return
    waits = view.waiting(step)
    quiet = view.eager(step, call.run.session) and view.single(step) and waits == {f"tool:{call.id}"}
    if quiet and attempt.step_no < view.max_steps() and call.run.cancel_step > step:
        report.bad(f"the loop waits for the detached call {call.id} instead of going on", step, call.run.name)


def ord_7b(view: View, report: Report) -> None:
    """Every detached call is finished exactly once before the terminal event."""
    for call in view.calls():
        if not call.of("ToolDetached"):
            continue
        report.opportunity()
        run, finished = call.run, call.of("ToolFinished")
        if len(finished) > 1:
            report.bad(f"{len(finished)} ToolFinished of the detached call {call.id}", finished[1])
        if run.terminal is None or run.gap or run.panics or run.severed:
            continue
        late = [f for f in finished if run.place(f) > run.place(run.terminal)]
        if not finished or late:
            report.bad(f"the detached call {call.id} was not finished before the end", run.terminal)
        else:
            report.episode(finished[0], run.terminal.name, finished[0].get("result"))


def ord_8(view: View, report: Report) -> None:
    """Proposals of one response in block order (D3)."""
    for run in view.runs:
        for attempt in run.attempts:
            if len(attempt.response_calls) < 2:
                continue
            report.opportunity()
            calls = [c for c in run.calls if c.attempt is attempt]
            proposed = [(run.place(p), c) for c in calls if (p := c.first("ToolProposed"))]
            for call in calls:
                for extra in call.of("ToolProposed")[1:]:
                    report.bad(f"{call.id} was proposed twice", extra)
            if len(proposed) > 1:
                _proposal_order(report, attempt.opened, [c for _, c in sorted(proposed, key=lambda p: p[0])])
            if run.whole and len(proposed) < len(calls):
                _unproposed(report, run, calls)


def _proposal_order(report: Report, at: Obs, calls: Sequence[Call]) -> None:
    where = calls[-1].first("ToolProposed") or at
    if not _sorted(calls):
        mixed = _sorted([c for c in calls if c.honoured]) and _sorted([c for c in calls if not c.honoured])
        if not mixed:
            report.bad(f"proposals came as {[c.id for c in calls]}, not in model order", where)
            return
        report.variant("D3:subset-order")
    report.episode(where, tuple(c.honoured for c in calls)[:3])


def _sorted(calls: Sequence[Call]) -> bool:
    return all(a.order < b.order for a, b in pairwise(calls))


def _unproposed(report: Report, run: Run, calls: Sequence[Call]) -> None:
    silent = [c for c in calls if not c.of("ToolProposed")]
    mixed = any(c.honoured for c in calls)
    if run.ending == "Completed" and run.ended_ok and run.ended_ok.get("stop") != "MaxSteps":
        report.bad(f"{[c.id for c in silent]} were never proposed", run.terminal or calls[0].born)
    elif mixed and not any(c.honoured for c in silent) and any(c.prepares for c in calls):
        # Where nothing had begun, the end came between two proposals: no answer to the question of D3.
        report.variant("D3:unproposed")


def ord_9(view: View, report: Report) -> None:
    """Per-call events carry their call id and stand between its start and its one end."""
    for run in view.runs:
        for event in run.events:
            if event.name in CALL_EVENTS and not event.call_id:
                report.bad(f"{event.name} carries no call id", event)
    for call in view.calls():
        if not call.events or (call.run.gap and not call.of("ToolProposed")):
            continue
        report.opportunity()
        _inside(report, call)
        report.episode(call.events[-1], len(call.of("ToolUpdated")) > 0, len(call.of("ToolFinished")))


def _inside(report: Report, call: Call) -> None:
    started = ended = False
    for event in call.events:
        if ended:
            report.bad(f"{event.name} of {call.id} after its ToolFinished", event)
        if event.name in ("ToolUpdated", "ToolHostInputRequested", "ToolDetached") and not started:
            report.bad(f"{event.name} of {call.id} before its ToolStarted", event)
        if event.name == "ToolProposed" and event is not call.events[0]:
            report.bad(f"ToolProposed of {call.id} is not its first event", event)
        started = started or event.name == "ToolStarted"
        ended = ended or event.name == "ToolFinished"


def ord_10(view: View, report: Report) -> None:
    """Sync results in model order, async results in completion order, in every request and in the history."""
    for run in view.runs:
        for attempt in run.attempts:
            _result_order(report, run, attempt.opened.get("messages") or (), attempt.opened.step)
        history = view.after(run).get("history")
        if isinstance(history, list):
            _result_order(report, run, history, run.end_step)


def _result_order(report: Report, run: Run, history: Sequence[Json], step: int) -> None:
    places: dict[str, int] = {}
    for position, name, _, _ in m.results(history):
        places.setdefault(name, position)
    times = Counter(c.id for c in run.calls)
    groups: dict[int, list[Call]] = {}
    for call in run.calls:
        if times[call.id] == 1 and call.id in places and call.attempt is not None:
            groups.setdefault(id(call.attempt), []).append(call)
    for calls in groups.values():
        sync = [c for c in calls if not c.honoured]
        if len(sync) > 1:
            report.opportunity()
            got = sorted(sync, key=lambda c: places[c.id])
            message = f"results stand as {[c.id for c in got]}, not in model order"
            report.ok_or_bad(_sorted(got), message, step, run.name)
            reverse = sync[0].ended_step > sync[-1].ended_step
            report.episode(step, "sync", reverse, min(len(sync), 3))
    _completion_order(report, run, history, step)


def _completion_order(report: Report, run: Run, history: Sequence[Json], step: int) -> None:
    """Only results that are the tool's own count: a request may show a stand-in for a call that still
    runs."""
    own: dict[str, int] = {}
    ends = {c.id: c.end for c in run.calls if c.honoured and c.end is not None and c.of("ToolDetached")}
    for position, name, _, text in m.results(history):
        end = ends.get(name)
        if end is not None and end.kind in ("return", "fail") and text == end.value:
            own.setdefault(name, position)
    # A job that is interrupted may still end within its grace: then the order of the interrupts counts (D23).
    stop = run.cancel_step
    if run.attempts and (run.ended_ok or {}).get("stop") != "EndTurn":
        stop = min(stop, run.attempts[-1].opened.step)
    jobs = [c for c in run.calls if c.id in own and c.ended_step < stop]
    for first in jobs:
        for second in jobs:
            if first.ended_step < second.ended_step:
                message = f"the result of {first.id} completed first and stands after {second.id}"
                report.ok_or_bad(own[first.id] < own[second.id], message, step, run.name)
                report.episode(step, "async", first.order > second.order)


RULES: Rules = {
    "RHO-ORD-4": ord_4,
    "RHO-ORD-5": ord_5,
    "RHO-ORD-6": ord_6,
    "RHO-ORD-7": ord_7,
    "RHO-ORD-7b": ord_7b,
    "RHO-ORD-8": ord_8,
    "RHO-ORD-9": ord_9,
    "RHO-ORD-10": ord_10,
}
