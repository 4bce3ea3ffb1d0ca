"""What an exploration found, as data."""

from __future__ import annotations

from typing import Any

from rho_core.record import record

from .coverage import Pair
from .search import Result, Violation


@record
class Covered:
    """Rows of the core's tables: pairs of row and exit. `declared_missing`: declared and never taken.

    `undeclared`: taken and not declared. `defaults`: inputs that met a state without a row and were ignored.
    `judged`: were all configurations of the scope searched, so that a missing exit means something?
    """

    witnessed: int
    declared_missing: tuple[Pair, ...]
    undeclared: tuple[Pair, ...]
    defaults: tuple[str, ...]
    judged: bool


@record
class Report:
    """The whole. `complete`: no configuration hit its bound."""

    scope: str
    states: int
    transitions: int
    complete: bool
    deadlocks: tuple[Violation, ...]
    violations: tuple[Violation, ...]
    seconds: float
    configurations: tuple[Result, ...]
    coverage: Covered

    @property
    def clean(self) -> bool:
        """Nothing went against a rule. Says nothing about what a bound has hidden: see `complete`."""
        return not (self.violations or self.deadlocks)

    def to_json(self) -> dict[str, Any]:
        """JSON values only."""
        return {
            "scope": self.scope,
            "states": self.states,
            "transitions": self.transitions,
            "complete": self.complete,
            "deadlocks": len(self.deadlocks),
            "violations": len(self.violations),
            "found": [_violation(v) for v in (*self.violations, *self.deadlocks)],
            "seconds": round(self.seconds, 1),
            "configurations": [_result(r) for r in self.configurations],
            "coverage": {
                "witnessed": self.coverage.witnessed,
                "declared_missing": [list(p) for p in self.coverage.declared_missing],
                "undeclared": [list(p) for p in self.coverage.undeclared],
                "defaults": list(self.coverage.defaults),
                "judged": self.coverage.judged,
            },
        }


def _violation(v: Violation) -> dict[str, Any]:
    return {"rule": v.rule, "message": v.message, "configuration": v.configuration, "trace": list(v.trace)}


def _result(r: Result) -> dict[str, Any]:
    return {
        "name": r.name,
        "states": r.states,
        "transitions": r.transitions,
        "depth": r.depth,
        "complete": r.complete,
        "deadlocks": len(r.deadlocks),
        "violations": len(r.violations),
    }
