"""Which calls of one batch may overlap (rho.md 3.6, PLAN)."""

from __future__ import annotations

from collections.abc import Sequence

from .inputs import Plan


def conflict(a: Plan, b: Plan) -> bool:
    """Must the two run one after the other: one is exclusive, or they share a resource not both only read?"""
    if a.exclusive or b.exclusive:
        return True
    return any(x.resource == y.resource and not (x.shared and y.shared) for x in a.accesses for y in b.accesses)


def blockers(plans: Sequence[Plan], index: int) -> tuple[int, ...]:
    """Earlier calls that call `index` waits for: model order decides who goes first."""
    return tuple(i for i in range(index) if conflict(plans[i], plans[index]))


def detachable(plan: Plan) -> bool:
    """A call may run on by itself only when nothing it does can get in another's way."""
    return not plan.exclusive and all(a.shared for a in plan.accesses)
