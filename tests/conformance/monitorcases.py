"""How a case of a monitor is judged: a conforming trace, and the same trace broken in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rho_conformance.monitors import Finding, judge
from tests.conformance.tracebuilder import Sim


@dataclass(frozen=True)
class Case:
    """``build`` makes a conforming trace that shows the rule, ``spoil`` breaks it there."""

    rule: str
    build: Callable[[], Sim]
    spoil: Callable[[Sim], object]
    note: str = ""

    def __str__(self) -> str:
        return f"{self.rule}{'-' if self.note else ''}{self.note}"


def violated(findings: dict[str, Finding]) -> dict[str, list[str]]:
    """Rules with their complaints."""
    return {r: [v.message for v in f.violations] for r, f in findings.items() if f.violations}


def check_conforming(case: Case) -> None:
    """No rule of the profile complains, and this one has seen its antecedent."""
    findings = judge(case.build().done())
    assert violated(findings) == {}
    found = findings.get(case.rule) or judge(case.build().done(), [case.rule])[case.rule]
    assert found.untestable is None
    assert found.episodes, "the rule did not see its antecedent"
    assert found.opportunities > 0, "the stimuli gave no opportunity"


def check_violating(case: Case) -> None:
    """The rule reports the broken trace, and says where."""
    sim = case.build()
    case.spoil(sim)
    found = judge(sim.done(), [case.rule])[case.rule]
    assert found.untestable is None
    assert found.violations, "the broken trace was not reported"
    assert all(v.rule == case.rule and v.message for v in found.violations)
