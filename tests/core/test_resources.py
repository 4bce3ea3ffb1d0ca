"""Which calls may overlap (rho.md 3.6, PLAN)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rho_core.inputs import Access, Plan
from rho_core.resources import blockers, conflict, detachable

READ, WRITE, OTHER = Access("f"), Access("f", shared=False), Access("g", shared=False)
PLANS = st.builds(
    Plan,
    exclusive=st.booleans(),
    accesses=st.lists(st.sampled_from([READ, WRITE, OTHER]), max_size=2).map(tuple),
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Plan(), Plan(), False),
        (Plan(exclusive=True), Plan(), True),
        (Plan(accesses=(READ,)), Plan(accesses=(READ,)), False),
        (Plan(accesses=(READ,)), Plan(accesses=(WRITE,)), True),
        (Plan(accesses=(WRITE,)), Plan(accesses=(WRITE,)), True),
        (Plan(accesses=(WRITE,)), Plan(accesses=(OTHER,)), False),
    ],
)
def test_conflicts(a: Plan, b: Plan, expected: bool) -> None:
    assert conflict(a, b) is expected


@given(PLANS, PLANS)
def test_a_conflict_has_no_direction(a: Plan, b: Plan) -> None:
    assert conflict(a, b) == conflict(b, a)


@given(st.lists(PLANS, min_size=1, max_size=5))
def test_model_order_decides_so_no_batch_can_lock_itself(plans: list[Plan]) -> None:
    done: set[int] = set()
    for index in range(len(plans)):
        assert set(blockers(plans, index)) <= done, "whoever a call waits for came before it"
        done.add(index)


@pytest.mark.parametrize(
    ("plan", "may"),
    [
        (Plan(), True),
        (Plan(accesses=(READ,)), True),
        (Plan(accesses=(WRITE,)), False),
        (Plan(exclusive=True), False),
    ],
)
def test_who_may_run_on_by_itself(plan: Plan, may: bool) -> None:
    assert detachable(plan) is may
