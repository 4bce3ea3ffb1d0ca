"""The retry budget, its delays and its resets: RHO-RET-1 to 10 (contract part 2.8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from . import messages as m
from .align import shown_tokens, taken_tokens
from .base import Report, Rules
from .commit import clean_cancel, deaf, final_history, forced
from .entities import NEVER, Attempt, Run
from .stimuli import hint_ms
from .view import View

Json = Any
CAP_MS = 60_000
SLACK_MS = 10
"""A timer is checked this far on either side of its deadline, unless the target is deterministic in virtual
time."""


def slack(view: View) -> int:
    """How far from its deadline a timer is checked. In virtual time a timer due at the end of a step fires
    in it."""
    hello = view.trace.hello
    return 0 if hello.get("time") == "virtual" and hello.get("deterministic") is True else SLACK_MS


def turns(view: View) -> Iterator[tuple[Run, list[Attempt]]]:
    """Attempts of each model step."""
    for run in view.runs:
        for attempts in run.steps_of().values():
            yield run, sorted(attempts, key=lambda a: a.opened.seq)


def failures(attempts: list[Attempt]) -> int:
    """Failed requests among them (malformed responses do not count: RET-2)."""
    return sum(1 for a in attempts if a.failure is not None)


def _lived(run: Run, attempt: Attempt) -> bool:
    """Whether nothing had asked the run to stop when this attempt ended."""
    end = attempt.end
    return end is not None and min(run.cancel_step, *run.closes, *run.panics, NEVER, run.crashed) > end.step


def ret_1(view: View, report: Report) -> None:
    """One malformed response is retried without delay, the second ends the run."""
    for run, attempts in turns(view):
        bad = [a for a in attempts if a.malformed and _lived(run, a)]
        if not bad:
            continue
        report.opportunity()
        first = attempts.index(bad[0])
        follower = attempts[first + 1] if first + 1 < len(attempts) else None
        if len(bad) > 1:
            for late in attempts[attempts.index(bad[1]) + 1 :]:
                report.bad("a request after the second malformed response", late.opened)
            report.ok_or_bad(bad[1].reset is None, "a reset after the second malformed response", bad[1].opened)
            _invalid_response(report, run, bad[1])
            report.episode(bad[1].opened, "second", len(attempts))
        elif follower is not None:
            _no_delay(view, report, bad[0], follower)
            report.episode(follower.opened, "first", first)
        elif first < 3:
            _must_retry(view, report, run, bad[0])


def _no_delay(view: View, report: Report, bad: Attempt, follower: Attempt) -> None:
    end = bad.end
    if end is not None and follower.opened.step > end.step and not _blocked(view, end.step, follower.opened.step):
        report.bad("the retry of a malformed response was delayed", follower.opened)


def _blocked(view: View, first: int, last: int) -> bool:
    return any(view.full(s) or view.waits_for(s, "recorder") for s in range(first, last))


def _must_retry(view: View, report: Report, run: Run, bad: Attempt) -> None:
    end = bad.end
    quiet = end is not None and view.single(end.step) and not _blocked(view, end.step, end.step + 1)
    if end is not None and quiet and not run.severed and run.cancel_step > end.step:
        report.bad("the first malformed response was not retried", end.step, run.name)


def _invalid_response(report: Report, run: Run, last: Attempt) -> None:
    outcome = run.outcome
    if not isinstance(outcome, Mapping) or run.severed or run.cancel_step < NEVER or run.error == "Persistence":
        return
    right = outcome.get("error") == "Provider" and outcome.get("kind", "InvalidResponse") == "InvalidResponse"
    right = right and outcome.get("retryable", False) is False
    message = f"the malformed budget is spent, and the outcome is {outcome!r}"
    report.ok_or_bad(right, message, last.opened)


def due_ms(attempts: list[Attempt], upto: int, hint: int) -> int:
    """The wait after failed attempt number ``upto`` (an index): the exponential one or the capped hint
    (D13)."""
    exponential: int = 1000 * 2 ** (failures(attempts[: upto + 1]) - 1)
    return max(exponential, min(hint, CAP_MS)) if hint else exponential


def _delays(view: View, report: Report, hinted: bool) -> None:
    if view.trace.hello.get("time") == "real":
        report.untestable("the target runs in real time")
        return
    for run, attempts in turns(view):
        for place, attempt in enumerate(attempts[:3]):
            end = attempt.end
            if not attempt.retryable or end is None or not _lived(run, attempt):
                continue
            started = end.at_ms if end.at_ms is not None else view.clock[end.step]
            hint = hint_ms(attempt.failure, started)
            if bool(hint) != hinted:
                continue
            report.opportunity()
            due = due_ms(attempts, place, hint)
            follower = attempts[place + 1] if place + 1 < len(attempts) else None
            _delay(view, report, run, (attempt, follower), started + due, due)


def _delay(view: View, report: Report, run: Run, pair: tuple[Attempt, Attempt | None], at: int, due: int) -> None:
    attempt, follower = pair
    end = attempt.end
    if end is None:
        return
    if follower is None:
        _overdue(view, report, run, end.step, at)
        return
    opened = follower.opened
    when = opened.at_ms if opened.at_ms is not None else view.clock[opened.step]
    blocked = _blocked(view, end.step, opened.step)
    if when < at - slack(view):
        report.bad(f"the retry came {at - when} ms before the {due} ms were over", opened)
    elif view.clock[opened.step - 1] > at - 1 + slack(view) and not blocked:
        report.bad(f"the retry came at {when} ms, due was {at} ms", opened)
    report.episode(opened, due)


def _overdue(view: View, report: Report, run: Run, step: int, at: int) -> None:
    """No retry at all although its time has passed with nothing in the way."""
    for later in range(step, view.length + 1):
        if view.full(later) or view.waits_for(later, "recorder") or later >= run.end_step:
            return
        if min(run.cancel_step, *run.closes, *run.panics, run.crashed, NEVER) <= later:
            return
        if view.clock[later] > at - 1 + slack(view):
            report.bad(f"no retry although it was due at {at} ms", later, run.name)
            return


def ret_2(view: View, report: Report) -> None:
    """Retryable failures wait 1, 2 and 4 seconds."""
    _delays(view, report, hinted=False)


def ret_3(view: View, report: Report) -> None:
    """With Retry-After: the greater of the hint (at most 60 s) and the exponential delay."""
    _delays(view, report, hinted=True)


def ret_4(view: View, report: Report) -> None:
    """At most four requests a turn; the fourth failure is final."""
    for run, attempts in turns(view):
        retried = [a for a in attempts if a.malformed or a.retryable]
        if retried:
            report.opportunity()
        for extra in attempts[4:]:
            report.bad(f"request {attempts.index(extra) + 1} of one turn", extra.opened)
        if len(attempts) >= 4 and attempts[3].end is not None:
            mix = "".join("M" if a.malformed else "F" if a.failure is not None else "S" for a in attempts[:4])
            report.episode(attempts[3].opened, mix)
            if not attempts[3].good and run.ended_ok is not None and attempts[-1] is run.attempts[-1]:
                report.bad("four requests failed and the run completed", run.end_step, run.name)


def ret_5(view: View, report: Report) -> None:
    """A permanent failure ends the run: no reset, no further request."""
    for run, attempts in turns(view):
        for place, attempt in enumerate(attempts):
            if attempt.failure is None or attempt.retryable:
                continue
            report.opportunity()
            for late in attempts[place + 1 :]:
                report.bad("a request after a permanent failure", late.opened)
            if attempt.reset is not None:
                report.bad("a reset after a permanent failure", attempt.reset)
            later = [a for a in run.attempts if a.opened.seq > attempt.opened.seq and a not in attempts]
            for other in later:
                report.bad("the run went on after a permanent failure", other.opened)
            report.ok_or_bad(run.ended_ok is None, "a permanent failure, and success", attempt.opened)
            if run.ending is not None:
                report.episode(attempt.end.step if attempt.end else attempt.opened, place)


def ret_6(view: View, report: Report) -> None:
    """Cancellation interrupts the active request."""
    for run in view.runs:
        step = clean_cancel(view, run)
        if step is None or not view.waits_for(step - 1, "model"):
            continue
        report.opportunity()
        provider = view.config.get("provider") or {}
        external = provider.get("mode", "external") == "external"
        if external and view.waits_for(step, "model") and view.live(step) in ([], [run]):
            report.bad("cancelled, and still waiting for the provider", step, run.name)
        if run.ending is not None and not forced(run) and not any(s > step for s in (*run.drops, *run.closes)):
            right = run.ending in ("Cancelled", "Persistence")
            report.ok_or_bad(right, f"cancelled in a request, it ended {run.ending}", step, run.name)
            report.episode(step, external)


def ret_7(view: View, report: Report) -> None:
    """Cancellation interrupts the delay: no further request, nothing kept of the abandoned attempt."""
    for run in view.runs:
        step = clean_cancel(view, run)
        if step is None or not view.waits_for(step - 1, "timer") or view.waits_for(step - 1, "model"):
            continue
        waiting = [a for a in run.attempts if a.opened.step < step]
        if not waiting or not waiting[-1].retryable:
            continue
        report.opportunity()
        for attempt in run.attempts:
            if attempt.opened.step >= step:
                report.bad("a request after the cancel in the delay", attempt.opened)
        if view.waits_for(step, "timer") and view.live(step) in ([], [run]) and not deaf(view, run, "timer"):
            report.bad("cancelled, and still waiting for the delay", step, run.name)
        if run.ending is not None:
            right = run.ending in ("Cancelled", "Persistence") or run.severed
            report.ok_or_bad(right, f"cancelled in a delay, it ended {run.ending}", step, run.name)
            _nothing_kept(view, report, run)
            report.episode(step, len(run.attempts))


def _nothing_kept(view: View, report: Report, run: Run) -> None:
    history = final_history(view, run) or []
    before = view.before(run.start_step, run.session).get("history") or []
    if sum(m.kind(x) == "aborted" for x in history) > sum(m.kind(x) == "aborted" for x in before):
        report.bad("an AbortedAssistant of the attempt that a reset had abandoned", run.end_step, run.name)


def ret_8(view: View, report: Report) -> None:
    """One reset between two attempts of a step, before the retry opens, none elsewhere."""
    for run, attempts in turns(view):
        for attempt, follower in pairwise(attempts):
            report.opportunity()
            if attempt.reset is None:
                if run.whole and run.cancel_step > follower.opened.step:
                    report.bad("a retry without ProviderStreamReset before it", follower.opened)
            elif view.unsent(run, attempt.reset, follower.opened.step):
                report.bad("the retry opened before its reset can have been sent", follower.opened)
            elif _after_the_delay(view, attempt):
                report.bad("the reset came after the delay, and not before it", attempt.reset)
            else:
                report.episode(attempt.reset, attempt.number, attempt.malformed)
    for run in view.runs:
        _stray_resets(report, run)


def _after_the_delay(view: View, attempt: Attempt) -> bool:
    """A reader that takes everything had to see the reset of a failure in the step of that failure."""
    end, reset = attempt.end, attempt.reset
    if end is None or reset is None or attempt.failure is None or not view.eager(end.step, attempt.run.session):
        return False
    return reset.step > end.step and not _blocked(view, end.step, end.step + 1)


def _stray_resets(report: Report, run: Run) -> None:
    """A reset after success, after a final failure, or with no attempt to abandon."""
    open_attempt = False
    for event in run.events:
        if event.name == "StepStarted":
            open_attempt = True
        elif event.name == "ProviderStreamReset":
            report.ok_or_bad(open_attempt or run.gap, "a reset outside a turn", event)
        elif event.name in ("ToolProposed", "SteeringApplied", "BoundaryInputApplied", "CompactionStarted"):
            open_attempt = False
    for attempt in run.attempts:
        if attempt.reset is not None and attempt.good:
            report.bad("a reset after a successful response", attempt.reset)
    last = run.attempts[-1] if run.attempts else None
    calm = run.ending == "Failed" and run.cancel_step == NEVER and not run.severed and not forced(run)
    if last is not None and last.reset is not None and calm:
        report.bad("a reset after the last attempt: nothing followed it", last.reset)


def ret_9(view: View, report: Report) -> None:
    """The reason of a reset is structured and tells what happened."""
    for run in view.runs:
        for attempt in run.attempts:
            if attempt.reset is None:
                continue
            report.opportunity()
            reason = attempt.reset.get("reason")
            if attempt.malformed:
                report.ok_or_bad(
                    reason == "InvalidResponse", f"malformed, and the reset says {reason!r}", attempt.reset
                )
            elif attempt.failure is not None:
                _failure_reason(view, report, attempt, reason)
            if attempt.end is not None:
                report.episode(attempt.reset, attempt.malformed, str(reason)[:60])


def _failure_reason(view: View, report: Report, attempt: Attempt, reason: Json) -> None:
    at, fail = attempt.reset, attempt.failure or {}
    inner = reason.get("RetryableFailure") if isinstance(reason, Mapping) else None
    if at is None or attempt.end is None:
        return
    if not isinstance(inner, Mapping):
        report.bad(f"a retryable failure, and the reset says {reason!r}", at)
        return
    kind = fail.get("kind")
    report.ok_or_bad(kind is None or inner.get("kind") == kind, f"the failure is {kind}, the reset {inner}", at)
    started = attempt.end.at_ms if attempt.end.at_ms is not None else view.clock[attempt.end.step]
    hint, told = hint_ms(fail, started), inner.get("retry_after_ms")
    if hint:
        report.ok_or_bad(told in (hint, min(hint, CAP_MS)), f"the provider asked {hint} ms, the reset says {told}", at)
        if told == CAP_MS < hint:
            report.variant("D28:capped")
    else:
        report.ok_or_bad(told is None, f"no wait was asked for, and the reset says {told} ms", at)


def ret_10(view: View, report: Report) -> None:
    """What follows a reset belongs to the new attempt alone."""
    for _, attempts in turns(view):
        if len(attempts) < 2:
            continue
        report.opportunity()
        for attempt in attempts[1:]:
            for event in attempt.events:
                number = event.get("attempt")
                if isinstance(number, int) and number != attempt.number:
                    report.bad(f"{event.name} of attempt {number} stands in attempt {attempt.number}", event)
            shown = [t for t in shown_tokens(attempt) if t[0] in ("delta", "reasoning", "summary", "call")]
            given = [t for t in taken_tokens(attempt) if t[0] in ("delta", "reasoning", "summary", "call")]
            for kind in ("delta", "reasoning", "summary"):
                seen = "".join(t[2] for t in shown if t[0] == kind)
                real = "".join(t[2] for t in given if t[0] == kind)
                if view.taken_known and not real.startswith(seen):
                    message = f"attempt {attempt.number} shows {seen!r}, its provider sent {real!r}"
                    report.bad(message, attempt.events[-1])
            if shown or attempt.end is not None:
                report.episode(attempt.opened, attempt.number, bool(shown), bool(attempts[0].events))


RULES: Rules = {
    "RHO-RET-1": ret_1,
    "RHO-RET-2": ret_2,
    "RHO-RET-3": ret_3,
    "RHO-RET-4": ret_4,
    "RHO-RET-5": ret_5,
    "RHO-RET-6": ret_6,
    "RHO-RET-7": ret_7,
    "RHO-RET-8": ret_8,
    "RHO-RET-9": ret_9,
    "RHO-RET-10": ret_10,
}
