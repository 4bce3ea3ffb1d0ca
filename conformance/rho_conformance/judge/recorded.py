"""`check`: the verdicts a recorded trace supports by itself."""

from __future__ import annotations

import time

from rho_conformance.judge.conform import Ask, Report
from rho_conformance.judge.exhibit import Exhibit, examine_trace
from rho_conformance.judge.profiles import profile_for
from rho_conformance.judge.tally import Verdict, crash
from rho_conformance.trace import Trace, completed
from rho_spec.catalogue import Rule, load


def check(name: str, trace: Trace, profile: str | None) -> Report:
    """Judge one trace. What it does not show is vacuous: a recording proves faults, and only what it shows else."""
    begun = time.perf_counter()
    profile = profile_for([trace.profile], profile)
    rules = load(profile)
    shown = examine_trace(name, completed(trace), tuple(r.id for r in rules if r.testable != "no"))
    verdicts: dict[str, Verdict] = {}
    for rule in rules:
        verdicts[rule.id] = _verdict(rule, shown)
    ask = Ask(name, profile, (), 0, 0, 0)
    seconds = time.perf_counter() - begun
    hello = {"version": "0", **trace.hello}
    return Report(name, profile, hello, ask, seconds, verdicts, {r.id: r for r in rules}, {"recorded": 1})


def _verdict(rule: Rule, shown: Exhibit) -> Verdict:
    if rule.testable == "no":
        return Verdict("untestable", detail=rule.why)
    if rule.id in shown.broken:
        return Verdict("fail", 1, 1, shown.broken[rule.id], evidence=shown)
    fault = crash(shown, rule.id)
    if fault is not None:
        return Verdict("error", detail=fault)
    finding = shown.findings.get(rule.id)
    if finding is None:
        return Verdict("vacuous", detail="not shown by this trace")
    contexts = len({e.signature for e in finding.episodes})
    if finding.untestable is not None and not contexts:
        return Verdict("untestable", 0, finding.opportunities, finding.untestable)
    if not contexts:
        return Verdict("vacuous", 0, finding.opportunities, "not shown by this trace")
    if finding.variants:
        return Verdict("variant", contexts, finding.opportunities, variant=", ".join(sorted(finding.variants)))
    return Verdict("pass", contexts, finding.opportunities)
