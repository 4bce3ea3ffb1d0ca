"""A witness file for each broken rule: the shortest script that still breaks it, with its recorded trace."""

from __future__ import annotations

from pathlib import Path

from rho_conformance.driver import DriverFactory
from rho_conformance.errors import DriverError
from rho_conformance.generate.minimise import minimise
from rho_conformance.generate.script import Script
from rho_conformance.generate.witness import Witness, write_witness
from rho_conformance.judge.conform import Progress, Report
from rho_conformance.judge.exhibit import examine_trace
from rho_conformance.judge.tally import Verdict
from rho_conformance.targets import resolve
from rho_conformance.trace import Trace

PLAYS = 150
"""Most plays for one rule's minimisation."""


def broken_rules(trace: Trace) -> set[str]:
    """Every rule that a trace breaks: monitors and standing checks."""
    return set(examine_trace("trace", trace, None).broken)


def write_witnesses(report: Report, folder: Path, progress: Progress) -> None:
    """Minimise each failure by itself and write `RULE.jsonl`; the verdict then shows the short history."""
    failed = [rule for rule, v in report.verdicts.items() if v.verdict == "fail"]
    factory = resolve(report.target) if failed else None
    for done, rule in enumerate(failed, 1):
        verdict = report.verdicts[rule]
        if factory is not None and verdict.evidence is not None and verdict.evidence.trace is not None:
            _minimise(rule, verdict, verdict.evidence.trace, factory)
            _write(rule, verdict, report, folder)
        progress("witnesses", done, len(failed))


def _minimise(rule: str, verdict: Verdict, trace: Trace, factory: DriverFactory) -> None:
    """A failure that only a scenario's own expectation shows keeps its script: that *is* the history."""

    def judge(found: Trace) -> set[str]:
        return {rule} & set(examine_trace("minimising", found, (rule,)).broken)

    try:
        smallest = minimise(factory, Script.from_trace(trace), rule, judge=judge, max_plays=PLAYS)
    except DriverError:
        return
    if smallest is not None:
        verdict.evidence = examine_trace(f"minimised in {smallest.plays} plays", smallest.trace, (rule,))
        verdict.detail = verdict.evidence.broken[rule]


def _write(rule: str, verdict: Verdict, report: Report, folder: Path) -> None:
    assert verdict.evidence is not None and verdict.evidence.trace is not None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{rule}.jsonl"
    shown = Witness(rule, report.target, verdict.detail, verdict.evidence.trace, report.ask.seed)
    write_witness(shown, path)
    verdict.witness = str(path)
