"""Buffering and delivery: RHO-BUF-1 to 6, 10 (contract part 2.1)."""

from __future__ import annotations

from . import messages as m
from .align import missing
from .base import Report, Rules
from .commit import final_history
from .entities import DELTAS, NEVER, Attempt, Run
from .view import View

IN_FLIGHT = 17
"""Provider items that may be under way beside a full channel: sixteen queued and one in hand (contract
BUF-2)."""
SHOWING = frozenset({"delta", "reasoning", "summary", "call_delta", "context", "usage", "web_search", "hosted"})


def buf_1(view: View, report: Report) -> None:
    """No event of one run on the channel of another."""
    many = len(view.runs) > 1
    owners = {c.id: {o.run.name for o in view.calls() if o.id == c.id and o.order >= 0} for c in view.calls()}
    for run in view.runs:
        if many:
            report.opportunity()
        for event in run.events:
            named = event.get("run_id")
            if named is not None and named != run.name:
                report.bad(f"{event.name} of {named} on the channel of {run.name}", event)
            told = event.get("session_id")
            if told is not None and told != run.session:
                report.bad(f"{event.name} of session {told} on the channel of {run.session}", event)
            known = owners.get(event.call_id or "")
            if known and run.name not in known:
                report.bad(f"{event.name} of {event.call_id}, a call of {sorted(known)}", event)
        if many and run.events:
            together = any(
                o is not run and o.start_step < run.end_step and run.start_step < o.end_step for o in view.runs
            )
            report.episode(run.events[0], together)


def buf_2(view: View, report: Report) -> None:
    """Unread events stay within the capacity and a few items in flight; zero is refused."""
    if view.config.get("event_capacity") == 0:
        report.opportunity()
        if view.runs:
            report.bad("a channel of capacity zero was accepted", view.runs[0].start_step, view.runs[0].name)
        else:
            report.episode(1, "zero")
    if not view.taken_known:
        report.untestable("the driver does not report what the runtime took")
        return
    for run in view.runs:
        held = [s for s in range(run.start_step, min(run.end_step, view.length) + 1) if not view.eager(s, run.session)]
        if held:
            _bounded(view, report, run, held)


def _bounded(view: View, report: Report, run: Run, held: list[int]) -> None:
    items = [i for a in run.attempts for i in a.items if i.kind in SHOWING and i.value and i.step < run.cancel_step]
    loose = _coalesces(run)
    produced = 0
    by_step: dict[int, int] = {}
    for place, item in enumerate(items):
        same = place > 0 and items[place - 1].kind == item.kind and loose
        produced += 0 if same else 1
        by_step[item.step] = produced
    report.opportunity()
    count = 0
    for step in range(run.start_step, held[-1] + 1):
        count = by_step.get(step, count)
        bound = view.max_sent(run, step)
        if bound == NEVER or view.eager(step, run.session):
            continue
        if count > bound + IN_FLIGHT:
            report.bad(f"{count} provider items were taken, {bound} events can have been sent", step, run.name)
            return
        if view.full(step):
            report.episode(step, min(run.capacity, 2))


def _coalesces(run: Run) -> bool:
    """Whether this implementation joins deltas: then their number says nothing about the queue."""
    for attempt in run.attempts:
        given = sum(1 for i in attempt.items if i.kind in DELTAS.values() and i.value)
        shown = sum(1 for e in attempt.events if e.name in DELTAS)
        if attempt.completed is not None and shown < given and not missing(attempt):
            return True
    return False


def buf_3(view: View, report: Report) -> None:
    """A full channel delays events; it loses, reorders and breaks nothing."""
    if not view.taken_known:
        report.untestable("the driver does not report what the runtime took")
        return
    for run in view.runs:
        blocked = [s for s in range(run.start_step, min(run.end_step, view.length) + 1) if view.full(s)]
        if blocked:
            report.opportunity()
        for attempt in run.attempts:
            if attempt.completed is None or run.gap or not _undisturbed(run, attempt):
                continue
            lost = missing(attempt)
            if lost:
                report.bad(f"a full channel or not, these were never seen: {lost[:3]}", attempt.completed)
            elif any(attempt.opened.step <= s <= attempt.completed.step for s in blocked):
                report.episode(attempt.completed, min(run.capacity, 2), len(blocked) > 1)


def _undisturbed(run: Run, attempt: Attempt) -> bool:
    return attempt.end is not None and run.cancel_step > attempt.end.step and not run.severed


def buf_4(view: View, report: Report) -> None:
    """Behind a blocked send nothing goes on: the work that opened needs no more events than can have been
    sent."""
    for run in view.runs:
        needed, work = (
            1,
            sorted((u for u in run.upcalls if u.name in ("ModelCall", "ToolExecute")), key=lambda u: u.seq),
        )
        last_step = 0
        for upcall in work:
            if upcall.name == "ToolExecute":
                needed += 2
            else:
                number = upcall.get("step")
                needed += 1 if number != last_step or not isinstance(number, int) else 0
                last_step = number if isinstance(number, int) else last_step
            bound = view.max_sent(run, upcall.step)
            if needed > bound and not view.eager(upcall.step, run.session):
                report.bad(f"{upcall.name} needs {needed} events before it, {bound} can have been sent", upcall)
        for step in range(run.start_step, min(run.end_step, view.length) + 1):
            if view.full(step):
                report.opportunity()
                report.episode(step, view.kinds(step))


def buf_5(view: View, report: Report) -> None:
    """Awaiting the outcome drains the channel itself: no deadlock."""
    for run in view.runs:
        for step in run.outcomes_asked[:1]:
            behind = not view.eager(step, run.session) or view.full(step - 1)
            if behind:
                report.opportunity()
            live = view.live(step)
            pending = run.outcome_reply is None or run.outcome_reply.step > step
            if pending and view.full(step) and live == [run] and not run.severed:
                report.bad("the outcome is awaited and the run still waits for its reader", step, run.name)
            elif run.outcome_reply is not None and behind:
                report.episode(step, run.ending)


def buf_6(view: View, report: Report) -> None:
    """What is numbered arrives in the order of its numbers."""
    for run in view.runs:
        report.opportunity()
        step = attempt = 0
        for event in run.events:
            number = event.get("attempt")
            if event.name == "StepStarted":
                told = event.get("step")
                if isinstance(told, int):
                    report.ok_or_bad(told > step, f"StepStarted {told} after {step}", event)
                    step, attempt = told, 0
            elif isinstance(number, int) and not (run.gap and event.step >= min(run.outcomes_asked)):
                report.ok_or_bad(number >= attempt, f"attempt {number} after attempt {attempt}", event)
                attempt = max(attempt, number)
        _texts(view, report, run)
        for call in run.calls:
            shown = [str(e.get("progress")) for e in call.of("ToolUpdated")]
            given = [str(i.value) for i in call.items if i.kind == "progress"]
            if shown and sorted(shown) == sorted(given[: len(shown)]):
                report.ok_or_bad(
                    shown == given[: len(shown)], f"progress of {call.id} came as {shown}", call.events[-1]
                )
        if len(run.events) > 2:
            report.episode(run.events[-1], min(step, 3), attempt)


def _texts(view: View, report: Report, run: Run) -> None:
    for attempt in run.attempts if view.taken_known else ():
        for name, kind in DELTAS.items():
            shown, given = attempt.shown_text(name), attempt.taken_text(kind)
            if len(shown) > 1 and not given.startswith(shown) and sorted(shown) == sorted(given[: len(shown)]):
                report.bad(f"{name} arrived out of order: {shown!r} of {given!r}", attempt.events[-1])


def buf_10(view: View, report: Report) -> None:
    """The outcome and the history hold what the provider returned, whatever was streamed."""
    for run in view.runs:
        last = run.attempts[-1] if run.attempts else None
        if last is None or not last.good:
            continue
        differs = last.taken_text("delta") != last.response_text
        if differs:
            report.opportunity()
        outcome = run.ended_ok
        if outcome is None or last.response_calls or run.severed:
            continue
        text = outcome.get("text")
        if text is not None:
            message = f"the outcome says {text!r}, the provider returned {last.response_text!r}"
            report.ok_or_bad(text == last.response_text, message, run.end_step, run.name)
        history = final_history(view, run)
        if history:
            texts = [m.text(x) for x in history if m.kind(x) == "assistant"]
            report.ok_or_bad(last.response_text in texts, f"the history holds {texts[-1:]}", run.end_step, run.name)
        if differs:
            report.episode(run.end_step, bool(last.taken_text("delta")))


RULES: Rules = {
    "RHO-BUF-1": buf_1,
    "RHO-BUF-2": buf_2,
    "RHO-BUF-3": buf_3,
    "RHO-BUF-4": buf_4,
    "RHO-BUF-5": buf_5,
    "RHO-BUF-6": buf_6,
    "RHO-BUF-10": buf_10,
}
