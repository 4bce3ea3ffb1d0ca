"""Wrong about how often, when and with what announcement a model is asked again (RHO-RET-1 to 10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.budget
import rho_core.retry_after
from rho_conformance.mutants import retry_usage
from rho_conformance.mutants.base import Mutant, attr, entry, row
from rho_core import events as ev
from rho_core.run import end, table
from rho_core.run import state as s
from rho_core.run.outbox import emit, to

# --- the budget and the delays ------------------------------------------------------------------------------------


def _three_malformed(old: Any) -> Any:
    return lambda budget, policy: old(budget, replace(policy, malformed_budget=policy.malformed_budget + 1))


def _counts_attempts(old: Any) -> Any:
    def after_failure(budget: Any, policy: Any, retryable: bool, hint: int | None) -> Any:
        after, wait = old(budget, policy, retryable, hint)
        if wait is None:
            return after, None
        return after, rho_core.budget.delay_ms(after.requests, hint, policy.base_delay_ms, policy.retry_after_cap_ms)

    return after_failure


def _uncapped(old: Any) -> Any:
    return lambda failed, hint, base, cap: old(failed, hint, base, max(cap, hint or 0))


def _hint_alone(old: Any) -> Any:
    return lambda failed, hint, base, cap: min(hint, cap) if hint else old(failed, hint, base, cap)


def _no_dates(old: Any) -> Any:
    return lambda text, now: None if "GMT" in text else old(text, now)


def _five_requests(old: Any) -> Any:
    def after(budget: Any, policy: Any, *rest: Any) -> Any:
        return old(budget, replace(policy, request_budget=policy.request_budget + 1), *rest)

    return after


def _all_retryable(old: Any) -> Any:
    return lambda budget, policy, retryable, hint: old(budget, policy, True, hint)


# --- cancellation -------------------------------------------------------------------------------------------------


def _awaited(_: Any) -> Any:
    """Every provider is taken for a cooperative one."""

    def cancel_stream(run: s.Run, fx: Any) -> Any:
        phase = run.phase
        assert isinstance(phase, s.Streaming)
        return to(run, s.Draining(phase.turn, phase.attempt, phase.capture)), None

    return cancel_stream


def _unheard(_: Any) -> Any:
    """The cancel is noted on the token, and whoever waits goes on waiting."""
    return lambda run, fx: (run, None)


# --- resets --------------------------------------------------------------------------------------------------


def _silent(_: Any) -> Any:
    return lambda run, k, fx: (run, s.Delay(k.turn, k.delay_ms))


def _reset_too_many(old: Any) -> Any:
    """The attempt is announced as abandoned before the budget is asked."""

    def record_next(run: s.Run, k: s.Record, fx: Any) -> Any:
        assert isinstance(run.phase, s.Recording)
        after, then = old(run, k, fx)
        if not isinstance(then, s.Conclude) or not isinstance(then.ending, s.Fail):
            return after, then
        error = then.ending.error
        reset = ev.ProviderStreamReset(ev.RetryableFailure(str(error.provider_kind)), error.message, run.phase.attempt)
        return emit(to(after, s.Between()), fx, (reset,), then)

    return record_next


def _reports_delay(old: Any) -> Any:
    def reset(run: s.Run, k: s.Reset, fx: Any) -> Any:
        if isinstance(k.reason, ev.RetryableFailure):
            k = s.Reset(k.turn, ev.RetryableFailure(k.reason.error_kind, k.delay_ms), k.detail, k.delay_ms)
        return old(run, k, fx)

    return reset


def _flushed_late(old: Any) -> Any:
    """What a writer had buffered of the failed attempt is flushed after the reset."""

    def record_next(run: s.Run, k: s.Record, fx: Any) -> Any:
        assert isinstance(run.phase, s.Recording)
        after, then = old(run, k, fx)
        shown, attempt = run.phase.capture.tail, run.phase.attempt
        if not isinstance(then, s.Reset) or not shown:
            return after, then
        reset = ev.ProviderStreamReset(then.reason, then.detail, attempt)
        late = ev.AssistantTextDelta(shown, attempt)
        return emit(to(after, s.Between()), fx, (reset, late), s.Delay(then.turn, then.delay_ms))

    return record_next


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "third-malformed-allowed",
        "RHO-RET-1",
        "a second malformed response is asked again",
        (attr(rho_core.budget, "after_malformed", _three_malformed),),
    ),
    Mutant(
        "delay-counts-attempts",
        "RHO-RET-2",
        "malformed responses make the next delay longer",
        (attr(rho_core.budget, "after_failure", _counts_attempts),),
    ),
    Mutant(
        "retry-after-uncapped",
        "RHO-RET-3",
        "a hint of two hours is waited for",
        (attr(rho_core.budget, "delay_ms", _uncapped),),
    ),
    Mutant(
        "retry-after-shortens",
        "RHO-RET-3",
        "a short hint replaces the longer exponential delay",
        (attr(rho_core.budget, "delay_ms", _hint_alone),),
    ),
    Mutant(
        "retry-after-dates-unread",
        "RHO-RET-3",
        "a Retry-After that is a date counts as none",
        (attr(rho_core.retry_after, "parse", _no_dates),),
    ),
    Mutant(
        "fifth-request",
        "RHO-RET-4",
        "a turn makes five requests",
        (
            attr(rho_core.budget, "after_failure", _five_requests),
            attr(rho_core.budget, "after_malformed", _five_requests),
        ),
    ),
    Mutant(
        "permanent-failure-retried",
        "RHO-RET-5",
        "every failure is taken for a retryable one",
        (attr(rho_core.budget, "after_failure", _all_retryable),),
    ),
    Mutant(
        "external-provider-awaited",
        "RHO-RET-6",
        "a cancel waits for the answer of an external provider",
        (entry(end.CANCEL, s.Streaming, _awaited),),
    ),
    Mutant(
        "delay-not-raced",
        "RHO-RET-7",
        "a cancel in the delay is not heard",
        (entry(end.CANCEL, s.BackingOff, _unheard),),
    ),
    Mutant("no-reset", "RHO-RET-8", "an attempt is abandoned in silence", (row(table.FLOW, s.Reset, _silent),)),
    Mutant(
        "reset-after-the-last-failure",
        "RHO-RET-8",
        "the attempt that ends the run is reset as well",
        (row(table.FLOW, s.Record, _reset_too_many),),
    ),
    Mutant(
        "reset-reports-the-delay",
        "RHO-RET-9",
        "the reset gives the runtime's delay as the provider's hint",
        (row(table.FLOW, s.Reset, _reports_delay),),
    ),
    Mutant(
        "flushed-after-the-reset",
        "RHO-RET-10",
        "buffered text of a failed attempt is sent after its reset",
        (row(table.FLOW, s.Record, _flushed_late),),
    ),
    *retry_usage.MUTANTS,
)
