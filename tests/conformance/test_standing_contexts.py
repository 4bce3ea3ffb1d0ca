"""The contexts of the standing checks: enough of them are live, and none is claimed where nothing could be seen."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.drivers.core import CoreDriver, factory
from rho_conformance.judge.standing_contexts import CONTEXTS, standing_findings
from rho_conformance.monitors.base import Finding
from rho_conformance.mutants.base import applied
from rho_conformance.mutants.standing import MUTANTS
from rho_conformance.scenario import Scenario, load_scenarios, run_scenario
from rho_conformance.trace import StepRecord, Trace
from rho_spec.catalogue import load

ROOT = Path(__file__).parents[2] / "spec" / "scenarios"
RULES = {rule.id: rule for rule in load() if rule.id.startswith("CORE-") and rule.testable == "yes"}


@cache
def scenarios(folder: str) -> tuple[Scenario, ...]:
    return tuple(load_scenarios([ROOT / folder]))


@cache
def on_the_core(folder: str) -> tuple[dict[str, Finding], ...]:
    traces = [run_scenario(scenario, factory).trace for scenario in scenarios(folder)]
    return tuple(standing_findings(trace) for trace in traces if trace is not None)


def live(rule: str, folder: str) -> set[tuple[object, ...]]:
    """Contexts of the scenarios in which some mutant of the rule is caught by it."""
    found: set[tuple[object, ...]] = set()
    for scenario, findings in zip(scenarios(folder), on_the_core(folder), strict=True):
        signatures = {episode.signature for episode in findings[rule].episodes}
        if signatures <= found:
            continue
        for mutant in (m for m in MUTANTS if m.intended == rule):
            result = run_scenario(scenario, partial(CoreDriver, partial(applied, mutant.patches)))
            if rule in {violation.rule for violation in result.violations}:
                found |= signatures
        if len(found) >= RULES[rule].threshold:
            break
    return found


def test_every_standing_rule_has_its_contexts() -> None:
    assert set(CONTEXTS) == set(RULES)
    assert {mutant.intended for mutant in MUTANTS} == set(RULES)


@pytest.mark.parametrize("folder", ["rho/CORE", "common"])
@pytest.mark.parametrize("rule", sorted(RULES))
def test_enough_contexts_are_live(rule: str, folder: str) -> None:
    assert len(live(rule, folder)) >= RULES[rule].threshold


def trace(*steps: StepRecord, **hello: object) -> Trace:
    return Trace({"name": "x", "profiles": ["rho"], **hello}, {}, "rho", list(steps))


def test_nothing_done_is_nothing_seen() -> None:
    for rule, finding in standing_findings(trace()).items():
        assert (finding.episodes, finding.violations, finding.untestable) == ([], [], None), rule
        assert finding.opportunities == 0, rule


def test_one_outcome_is_no_context_of_one_outcome_for_good() -> None:
    driver = factory()
    driver.open({})
    performed: list[list[dict[str, Any]]] = [[{"start": "go"}], [{"provider": {"text": "fine"}}], [{"outcome": {}}]]
    answers = [driver.perform(stimuli) for stimuli in performed]
    steps = [
        StepRecord(p, a["observations"], a["waiting_on"], a["facts"]) for p, a in zip(performed, answers, strict=True)
    ]
    finding = standing_findings(trace(*steps))["CORE-S7"]
    assert (finding.opportunities, finding.episodes) == (1, [])


@pytest.mark.parametrize(("capabilities", "breaches"), [(["*"], 1), (["start", "cancel"], 0)])
def test_a_refusal_outside_a_scenario_is_a_breach_too(capabilities: list[str], breaches: int) -> None:
    refused = {"session": "s1", "stimulus": "append", "feature": "append"}
    seen = {"seq": 1, "step": 1, "at_ms": 0, "Refused": refused}
    stimulus = {"append": {"message": {"user": "note"}}}
    finding = standing_findings(trace(StepRecord([stimulus], [seen], [], {}), capabilities=capabilities))["CORE-CAP"]
    assert len(finding.violations) == breaches


def test_a_trace_that_cannot_be_read_is_no_verdict() -> None:
    broken = trace(StepRecord([{"start": "go"}], [], [], {}))
    broken.steps[0].waiting_on = None  # type: ignore[assignment]
    found = standing_findings(broken)
    assert all(finding.untestable and not finding.violations for finding in found.values())
