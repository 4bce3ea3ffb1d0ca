"""How often a turn may ask the model, and how long it waits (RHO-RET-1…5)."""

from __future__ import annotations

from .config import Policy
from .record import record


@record
class Budget:
    """Logical requests sent in this turn, malformed responses and failed requests among them."""

    requests: int = 0
    malformed: int = 0
    failed: int = 0


def sent(budget: Budget) -> Budget:
    """One more logical request goes out."""
    return Budget(budget.requests + 1, budget.malformed, budget.failed)


def after_malformed(budget: Budget, policy: Policy) -> tuple[Budget, bool]:
    """The response was malformed: may another request be sent? There is no delay before it (D12)."""
    after = Budget(budget.requests, budget.malformed + 1, budget.failed)
    may = after.malformed < policy.malformed_budget and after.requests < policy.request_budget
    return after, may


def after_failure(budget: Budget, policy: Policy, retryable: bool, hint_ms: int | None) -> tuple[Budget, int | None]:
    """The request failed: wait how many milliseconds before another, or None for no other."""
    after = Budget(budget.requests, budget.malformed, budget.failed + 1)
    if not retryable or after.requests >= policy.request_budget:
        return after, None
    return after, delay_ms(after.failed, hint_ms, policy.base_delay_ms, policy.retry_after_cap_ms)


def delay_ms(failed: int, hint_ms: int | None, base_ms: int, cap_ms: int) -> int:
    """max(min(hint, cap), base · 2^(failed-1)); `failed` >= 1. The exponent counts failed requests only (D13)."""
    exponential = base_ms << (failed - 1)
    if hint_ms is None or hint_ms <= 0:
        return exponential
    return max(min(hint_ms, cap_ms), exponential)
