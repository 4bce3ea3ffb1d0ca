"""Give each scenario its verdict (scenario format §7)."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rho_conformance.driver import Driver, DriverFactory, Hello, connect
from rho_conformance.errors import DriverError, UsageError
from rho_conformance.scenario.features import features, not_yet
from rho_conformance.scenario.model import Scenario
from rho_conformance.scenario.normalise import show_observation
from rho_conformance.scenario.play import ERROR, FAIL, NOT_APPLICABLE, PASS, VARIANT, End, Play
from rho_conformance.scenario.standing import (
    CAPABILITY,
    Violation,
    first_per_rule,
    is_breach,
    standing_violations,
)
from rho_conformance.trace import Trace


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The verdict on one scenario. `violations` are those of the standing checks and of `CORE-CAP`."""

    id: str
    verdict: str
    detail: str
    rules: tuple[str, ...]
    trace: Trace | None
    violations: tuple[Violation, ...] = ()
    expectation_failed: bool = False
    """The scenario itself failed, not only a standing check over its trace."""

    @property
    def passed(self) -> bool:
        """Whether the scenario counts as passed: `pass` or `variant`."""
        return self.verdict in (PASS, VARIANT)


def run_scenarios(scenarios: Iterable[Scenario], factory: DriverFactory, *, repeat: int = 1) -> list[ScenarioResult]:
    """Run scenarios one after the other, each on a driver of its own."""
    return [run_scenario(scenario, factory, repeat=repeat) for scenario in scenarios]


def run_scenario(scenario: Scenario, factory: DriverFactory, *, repeat: int = 1) -> ScenarioResult:
    """The verdict on one scenario (§7).

    `repeat` counts only on a driver that is not deterministic: there, any failed run is a failure.
    """
    results = [_run_once(scenario, factory)]
    hello = results[0].trace.hello if results[0].trace is not None else {"deterministic": True}
    if not hello["deterministic"] and results[0].verdict != NOT_APPLICABLE:
        results += [_run_once(scenario, factory) for _ in range(repeat - 1)]
    return _worst(results)


def _worst(results: list[ScenarioResult]) -> ScenarioResult:
    if len(results) == 1:
        return results[0]
    for verdict in (FAIL, ERROR, VARIANT):
        found = [result for result in results if result.verdict == verdict]
        if found:
            first = found[0]
            detail = f"{len(found)} of {len(results)} runs: {first.detail}"
            return replace(first, verdict=verdict, detail=detail)
    return results[0]


def _run_once(scenario: Scenario, factory: DriverFactory) -> ScenarioResult:
    trace: Trace | None = None
    implicit: set[int] = set()
    try:
        with connect(_made(factory)) as driver:
            hello = driver.hello()
            trace = Trace(hello.raw, scenario.config, scenario.profile, source=f"{scenario.path}: {scenario.id}")
            missing = not_applicable(scenario, hello)
            if missing is not None:
                return ScenarioResult(scenario.id, NOT_APPLICABLE, missing, scenario.rules, trace)
            verdict, detail = _played(Play(scenario, driver, hello, trace, implicit))
    except UsageError:
        raise
    except DriverError as fault:
        verdict, detail = ERROR, f"driver: {fault}"
    except Exception as fault:
        # A fault of ours must neither end the other scenarios nor pass for a verdict on the target.
        place = traceback.extract_tb(fault.__traceback__)[-1]
        verdict, detail = (
            ERROR,
            f"harness: {type(fault).__name__}: {fault} ({place.name}, line {place.lineno})",
        )
    failed = verdict == FAIL
    violations = _violations(trace, implicit) if trace is not None and trace.steps else []
    if violations:
        standing = "; ".join(f"{v.rule} at step {v.step}: {v.message}" for v in first_per_rule(violations).values())
        # What is proven stands, whatever the driver or the harness did afterwards.
        detail = standing if verdict in (PASS, VARIANT) else f"{standing}; {detail}"
        verdict = FAIL
    return ScenarioResult(scenario.id, verdict, detail, scenario.rules, trace, tuple(violations), failed)


def _made(factory: DriverFactory) -> Driver:
    try:
        return factory()
    except ImportError as missing:
        # The target's own package is not installed: nothing about the target, and no scenario can be run.
        raise UsageError(str(missing)) from missing


def _played(play: Play) -> tuple[str, str]:
    try:
        play.run()
    except End as end:
        return end.verdict, end.detail
    return (VARIANT, f"variant: {play.variant}") if play.variant is not None else (PASS, "")


def _violations(trace: Trace, implicit: set[int]) -> list[Violation]:
    refused = [
        Violation(CAPABILITY, f"declared but refused: {show_observation(seen)}", seen.step)
        for seen in trace.named("Refused")
        if is_breach(seen, trace.hello)
    ]
    return refused + standing_violations(trace, frozenset(implicit))


def not_applicable(scenario: Scenario, hello: Hello) -> str | None:
    """Why a driver cannot be asked this scenario (§7), or None."""
    unbuilt = not_yet(scenario)
    if unbuilt:
        return f"not yet: {', '.join(unbuilt)}"
    # Scenarios of the common profile ask only what any runtime can be asked.
    if scenario.profile != "common" and scenario.profile not in hello.profiles:
        return f"profile {scenario.profile}: {hello.name} declares {', '.join(hello.profiles)}"
    missing = [feature for feature in features(scenario) if not hello.supports(feature)]
    return f"{hello.name} does not declare {', '.join(missing)}" if missing else None
