"""The attempt budget, over every sequence it allows (RHO-RET-1…5, D12, D13)."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rho_core.budget import Budget, after_failure, after_malformed, delay_ms, sent
from rho_core.config import Policy

POLICY = Policy()


def play(outcomes: str) -> tuple[int, list[int], str]:
    """Requests sent, delays waited, how it ended: M(alformed), F(ailed), P(ermanent), S(uccess)."""
    budget, delays = Budget(), list[int]()
    for outcome in outcomes:
        budget = sent(budget)
        if outcome == "S":
            return budget.requests, delays, "success"
        if outcome == "M":
            budget, again = after_malformed(budget, POLICY)
            if not again:
                return budget.requests, delays, "InvalidResponse"
            delays.append(0)
            continue
        budget, delay = after_failure(budget, POLICY, outcome == "F", None)
        if delay is None:
            return budget.requests, delays, "failure"
        delays.append(delay)
    return budget.requests, delays, "open"


@pytest.mark.parametrize(
    ("outcomes", "delays", "end"),
    [
        ("FFFF", [1000, 2000, 4000], "failure"),
        ("MFFF", [0, 1000, 2000], "failure"),
        ("FMFF", [1000, 0, 2000], "failure"),
        ("FFMF", [1000, 2000, 0], "failure"),
        ("FFFM", [1000, 2000, 4000], "InvalidResponse"),
        ("MM", [0], "InvalidResponse"),
        ("FMFM", [1000, 0, 2000], "InvalidResponse"),
        ("MFM", [0, 1000], "InvalidResponse"),
        ("P", [], "failure"),
        ("FP", [1000], "failure"),
    ],
)
def test_the_sequences_of_the_contract(outcomes: str, delays: list[int], end: str) -> None:
    assert play(outcomes) == (len(outcomes), delays, end)


@pytest.mark.parametrize("outcomes", ["".join(p) for p in product("MFPS", repeat=5)])
def test_no_sequence_sends_a_fifth_request_or_accepts_a_third_malformed_one(outcomes: str) -> None:
    requests, delays, end = play(outcomes)
    used = outcomes[:requests]
    assert requests <= 4 and used.count("M") <= 2
    assert len(delays) == requests - 1, "one wait between two requests"
    assert end != "open", "five outcomes always decide"
    # Two-sided: it never gives up early either.
    if end == "failure" and used[-1] == "F":
        assert requests == 4
    if end == "InvalidResponse":
        assert requests == 4 or used.count("M") == 2


@given(st.integers(1, 3), st.one_of(st.none(), st.integers(-5, 10_000_000)))
def test_the_delay_is_between_its_bounds(failed: int, hint: int | None) -> None:
    delay = delay_ms(failed, hint, 1000, 60_000)
    exponential = 1000 * 2 ** (failed - 1)
    assert exponential <= delay <= 60_000
    if hint is not None and exponential < hint <= 60_000:
        assert delay == hint


@pytest.mark.parametrize(("hint", "wait"), [(None, 1000), (0, 1000), (500, 1000), (3000, 3000), (90_000, 60_000)])
def test_the_hints_of_the_contract(hint: int | None, wait: int) -> None:
    assert delay_ms(1, hint, 1000, 60_000) == wait
