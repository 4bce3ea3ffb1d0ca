"""The search is complete and finds nothing; mixtures of permitted variants are not called failures."""

from __future__ import annotations

from functools import cache

import pytest

from rho_conformance.explore import Report as Exploration
from rho_conformance.explore import explore
from rho_conformance.judge.exhibit import examine
from rho_conformance.judge.library import directed, library
from rho_conformance.targets import resolve

SEEDS = range(5)


@cache
def explored() -> Exploration:
    return explore("small")


@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_variants_are_not_called_failures_either(seed: int) -> None:
    """A fifth of the library for each seed; `rho-core conform chaos:SEED` plays all of it."""
    items = [*library("rho"), *directed()][seed :: len(SEEDS)]
    target = resolve(f"chaos:{seed}")
    shown = [examine(item.name, item.source, target) for item in items]
    assert {e.name: e.broken for e in shown if e.broken} == {}
    assert {e.name: e.detail for e in shown if e.verdict == "error"} == {}


def test_the_search_is_complete_and_finds_nothing() -> None:
    found = explored()
    assert found.complete and found.violations == () and found.deadlocks == ()
    assert found.transitions > 200_000
    assert found.coverage.declared_missing == () and found.coverage.undeclared == ()
