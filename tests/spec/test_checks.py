"""The vocabulary of checks: what is accepted, what is refused and why."""

from typing import Any

import pytest

from rho_spec.catalogue import load
from rho_spec.checks import PATTERNS, check_problem

OK = {"pattern": "absence", "scope": "run", "of": "Failed"}


@pytest.mark.parametrize(
    "check",
    [
        {"predicate": "ord_11a"},
        {"predicate": "core_s1"},
        {"predicate": "cp16"},
        OK,
        OK | {"predicate": "t_1", "when": [{"ToolFinished": {"result": "unavailable"}}], "per": "call_id"},
        {"pattern": "absence", "scope": "after", "after": ["Completed"], "of": "event"},
        {"pattern": "sequence", "scope": "call", "of": ["ToolStarted", "A|B*", "C?"]},
        {"pattern": "count", "scope": "run", "of": "ModelCall", "max": 4},
    ],
)
def test_accepted(check: dict[str, Any]) -> None:
    assert check_problem(check) is None


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({}, "neither"),
        ({"predicate": "Ord-1"}, "no function name"),
        ({"predicate": "t_1", "scope": "run"}, "neither"),
        (OK | {"pattern": "eventually"}, "unknown pattern"),
        (OK | {"scope": "planet"}, "unknown scope"),
        (OK | {"per": "colour"}, "unknown per"),
        (OK | {"first": "Started"}, "does not take first"),
        (OK | {"after": "Started"}, "does not take after"),
        (OK | {"of": {"A": {}, "B": {}}}, "no observation pattern"),
        (OK | {"of": ["Started*"]}, "no observation pattern"),
        ({"pattern": "absence", "scope": "run"}, "lacks of"),
        ({"pattern": "absence", "of": "X"}, "lacks scope"),
        ({"pattern": "absence", "scope": "after", "of": "X"}, "lacks after"),
        ({"pattern": "count", "scope": "run", "of": "X"}, "holds always"),
        ({"pattern": "sequence", "scope": "call", "of": ["A+"]}, "no sequence element"),
    ],
)
def test_refused(check: dict[str, Any], problem: str) -> None:
    found = check_problem(check)
    assert found is not None
    assert problem in found


def test_patterns_are_used_where_the_rule_is_one() -> None:
    used = {rule.pattern for rule in load() if rule.pattern}
    assert used <= set(PATTERNS)
    assert {"absence", "precedence", "response", "sequence", "count"} <= used
