"""Contracts of `rho_core.budget`: never more requests than the budget, never a wait out of bounds (RHO-RET-1…5)."""

from __future__ import annotations

from rho_conformance.contracts.base import contract
from rho_core import budget
from rho_core.budget import Budget
from rho_core.config import Policy


@contract(budget.delay_ms, bounds="1 to 8 failed requests (the exponent); hint, base and cap unbounded")
def delay_at_least_exponential(failed: int, hint_ms: int | None, base_ms: int, cap_ms: int) -> int:
    """
    pre: 1 <= failed <= 8 and base_ms >= 1 and cap_ms >= 1
    post: __return__ >= base_ms * 2 ** (failed - 1)
    """
    return budget.delay_ms(failed, hint_ms, base_ms, cap_ms)


@contract(budget.delay_ms, bounds="1 to 8 failed requests (the exponent); hint, base and cap unbounded")
def delay_at_most_cap_or_exponential(failed: int, hint_ms: int | None, base_ms: int, cap_ms: int) -> int:
    """
    pre: 1 <= failed <= 8 and base_ms >= 1 and cap_ms >= 1
    post: __return__ <= max(cap_ms, base_ms * 2 ** (failed - 1))
    """
    return budget.delay_ms(failed, hint_ms, base_ms, cap_ms)


@contract(budget.delay_ms, bounds="the first failure; hint, base and cap unbounded")
def delay_honours_a_hint_within_the_cap(hint_ms: int, base_ms: int, cap_ms: int) -> int:
    """
    pre: base_ms >= 1 and base_ms <= hint_ms <= cap_ms
    post: __return__ == hint_ms
    """
    return budget.delay_ms(1, hint_ms, base_ms, cap_ms)


@contract(budget.delay_ms, bounds="1 to 7 failed requests; hint, base and cap unbounded")
def delay_grows_with_failures(failed: int, hint_ms: int | None, base_ms: int, cap_ms: int) -> bool:
    """
    pre: 1 <= failed <= 7 and base_ms >= 1 and cap_ms >= 1
    post: __return__
    """
    first = budget.delay_ms(failed, hint_ms, base_ms, cap_ms)
    return first <= budget.delay_ms(failed + 1, hint_ms, base_ms, cap_ms)


@contract(budget.sent)
def sent_counts_one(b: Budget) -> Budget:
    """
    post: (__return__.requests, __return__.malformed, __return__.failed) == (b.requests + 1, b.malformed, b.failed)
    """
    return budget.sent(b)


@contract(budget.after_malformed)
def malformed_counts_one(b: Budget, policy: Policy) -> Budget:
    """
    post: (__return__.requests, __return__.malformed, __return__.failed) == (b.requests, b.malformed + 1, b.failed)
    """
    return budget.after_malformed(b, policy)[0]


@contract(budget.after_malformed)
def malformed_again_only_within_both_budgets(b: Budget, policy: Policy) -> bool:
    """
    post: __return__ == (b.malformed + 1 < policy.malformed_budget and b.requests < policy.request_budget)
    """
    return budget.after_malformed(b, policy)[1]


@contract(budget.after_failure, bounds="0 to 5 failed requests before; everything else unbounded")
def failure_again_only_within_the_budget(b: Budget, policy: Policy, retryable: bool, hint_ms: int | None) -> int | None:
    """
    pre: 0 <= b.failed <= 5
    post: (__return__ is not None) == (retryable and b.requests < policy.request_budget)
    """
    return budget.after_failure(b, policy, retryable, hint_ms)[1]


@contract(budget.after_failure, bounds="0 to 5 failed requests before; everything else unbounded")
def failure_counts_one(b: Budget, policy: Policy, retryable: bool, hint_ms: int | None) -> Budget:
    """
    pre: 0 <= b.failed <= 5
    post: (__return__.requests, __return__.malformed, __return__.failed) == (b.requests, b.malformed, b.failed + 1)
    """
    return budget.after_failure(b, policy, retryable, hint_ms)[0]


@contract(budget.after_failure, budget.delay_ms, bounds="0 to 5 failed requests before; everything else unbounded")
def failure_waits_at_least_the_base(b: Budget, policy: Policy, hint_ms: int | None) -> int | None:
    """
    pre: 0 <= b.failed <= 5 and policy.base_delay_ms >= 1
    post: __return__ is None or __return__ >= policy.base_delay_ms
    """
    return budget.after_failure(b, policy, True, hint_ms)[1]


@contract(budget.sent, budget.after_malformed, budget.after_failure, bounds="0 to 5 failed requests before")
def requests_never_exceed_the_budget(
    b: Budget, policy: Policy, malformed: bool, retryable: bool, hint: int | None
) -> bool:
    """The induction step: at most the budget before, an attempt that ends, and at most the budget after the next.

    pre: 0 <= b.failed <= 5 and 1 <= b.requests <= policy.request_budget
    post: __return__
    """
    if malformed:
        after, again = budget.after_malformed(b, policy)
    else:
        after, delay = budget.after_failure(b, policy, retryable, hint)
        again = delay is not None
    return not again or budget.sent(after).requests <= policy.request_budget
