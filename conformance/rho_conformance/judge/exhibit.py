"""One piece of evidence: something was played on a target, and this is what each rule says of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rho_conformance.driver import DriverFactory
from rho_conformance.errors import DriverError
from rho_conformance.generate.script import Script, play
from rho_conformance.judge.standing_contexts import CONTEXTS, standing_findings
from rho_conformance.monitors import judge
from rho_conformance.monitors.base import Finding
from rho_conformance.scenario import Scenario, run_scenario, standing_violations
from rho_conformance.scenario.play import FAIL, NOT_APPLICABLE, PASS
from rho_conformance.trace import Trace

ERROR = "error"


@dataclass
class Exhibit:
    """`broken`: rule -> how it was broken here. `missing`: the capability a scenario was not played for."""

    name: str
    source: Scenario | Script
    verdict: str
    detail: str
    trace: Trace | None
    origin: str = "scenario"
    broken: dict[str, str] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules a scenario demonstrates; a script demonstrates none by itself."""
        return self.source.rules if isinstance(self.source, Scenario) else ()


def same(a: Trace | None, b: Trace | None) -> bool:
    """Did two plays show exactly the same? Then a rule that is quiet on one is quiet on the other."""
    if a is None or b is None:
        return False
    return a.open_error == b.open_error and [s.to_json() for s in a.steps] == [s.to_json() for s in b.steps]


def examine(
    name: str,
    source: Scenario | Script,
    factory: DriverFactory,
    rules: Collection[str] | None = None,
    variants: Mapping[str, str] | None = None,
    known: Trace | None = None,
    origin: str = "directed",
) -> Exhibit:
    """Play a scenario or a script and let every rule of `rules` (None: all) judge the trace.

    `known`: a trace already judged; one that is equal to it is not judged again.
    """
    shown = _scenario(name, source, factory) if isinstance(source, Scenario) else _script(name, source, factory, origin)
    if shown.trace is None or shown.verdict == NOT_APPLICABLE or same(shown.trace, known):
        return shown
    _judge(shown, shown.trace, rules, variants)
    return shown


def examine_trace(name: str, trace: Trace, rules: Collection[str] | None = None, origin: str = "generated") -> Exhibit:
    """Judge a trace that was recorded already."""
    shown = Exhibit(name, Script.from_trace(trace), PASS, "", trace, origin)
    _stand(shown, trace)
    _judge(shown, trace, rules, None)
    return shown


def _judge(shown: Exhibit, trace: Trace, rules: Collection[str] | None, variants: Mapping[str, str] | None) -> None:
    wanted = None if rules is None else [r for r in rules if r not in CONTEXTS]
    shown.findings = judge(trace, wanted, variants=variants or {}) | standing_findings(trace)
    for rule, finding in shown.findings.items():
        if finding.violations:
            first = finding.violations[0]
            shown.broken.setdefault(rule, f"step {first.step}: {first.message}")


def _stand(shown: Exhibit, trace: Trace) -> None:
    for violation in standing_violations(trace):
        shown.broken.setdefault(violation.rule, f"step {violation.step}: {violation.message}")
    if shown.broken:
        shown.verdict = FAIL


def _scenario(name: str, scenario: Scenario, factory: DriverFactory) -> Exhibit:
    result = run_scenario(scenario, factory, repeat=1)
    shown = Exhibit(name, scenario, result.verdict, result.detail, result.trace)
    standing = {v.rule: f"step {v.step}: {v.message}" for v in reversed(result.violations)}
    shown.broken.update(standing)
    if result.expectation_failed:
        for rule in scenario.rules:
            shown.broken.setdefault(rule, f"{scenario.id}: {result.detail}")
    return shown


def _script(name: str, script: Script, factory: DriverFactory, origin: str) -> Exhibit:
    try:
        trace = play(factory, script)
    except DriverError as fault:
        return Exhibit(name, script, ERROR, f"driver: {fault}", None, origin)
    shown = Exhibit(name, script, PASS, "", trace, origin)
    _stand(shown, trace)
    return shown
