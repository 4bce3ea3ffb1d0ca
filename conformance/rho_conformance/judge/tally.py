"""The verdict of each rule, from all the evidence (design §6, "Verdicts"; suite notes on the algebra of verdicts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rho_conformance.driver import JsonMap, declares
from rho_conformance.judge.exhibit import ERROR, Exhibit
from rho_conformance.judge.liveness import Triggers, count
from rho_conformance.judge.profiles import is_mandatory
from rho_conformance.mutants.base import Mutant
from rho_conformance.scenario.play import NOT_APPLICABLE, VARIANT
from rho_spec.catalogue import Rule

VERDICTS = ("pass", "variant", "fail", "vacuous", "inconclusive", "error", "n/a", "untestable")
MONITOR_FAULT = "the monitor failed"
BAD = ("fail", "error", "inconclusive", "vacuous")


@dataclass
class Verdict:
    """`detail`: why, for a reader. `triggered`: live contexts, counted up to the rule's threshold."""

    verdict: str
    triggered: int = 0
    opportunities: int = 0
    detail: str = ""
    variant: str | None = None
    witness: str | None = None
    evidence: Exhibit | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "verdict": self.verdict,
            "triggered": self.triggered,
            "opportunities": self.opportunities,
        }
        optional = {"detail": self.detail or None, "variant": self.variant, "witness": self.witness}
        return found | {key: value for key, value in optional.items() if value is not None}


def judge_rule(
    rule: Rule,
    profile: str,
    hello: JsonMap,
    exhibits: Sequence[Exhibit],
    own: Mapping[str, tuple[Mutant, ...]],
) -> Verdict:
    """One rule's verdict: a proven failure first, then faults of ours, then whether it was tried at all."""
    if rule.testable == "no":
        return Verdict("untestable", detail=rule.why)
    broken = next((e for e in exhibits if rule.id in e.broken), None)
    if broken is not None:
        triggers = count(rule, exhibits, ())
        return Verdict(
            "fail",
            len(triggers.seen),
            triggers.opportunities,
            f"{broken.name}: {broken.broken[rule.id]}",
            evidence=broken,
        )
    faulty = next((e for e in exhibits if e.verdict == ERROR and (rule.id in e.rules or not e.rules)), None)
    if faulty is not None:
        return Verdict("error", detail=f"{faulty.name}: {faulty.detail}")
    crashed = next((e for e in exhibits if crash(e, rule.id) is not None), None)
    if crashed is not None:
        return Verdict("error", detail=f"{crashed.name}: {crash(crashed, rule.id)}")
    missing = [f for f in rule.needs if not declares(hello, f)]
    triggers = count(rule, exhibits, own.get(rule.id, ()))
    if missing and len(triggers.live) < rule.threshold:
        return _not_declared(profile, missing, triggers)
    if not triggers.seen and not triggers.opportunities and hello.get("name") != "core":
        # The same scripts give the core its contexts: here the subject of the rule was never to be seen.
        return Verdict("n/a", detail="the target shows nothing of what the rule speaks of")
    return _tried(rule, exhibits, triggers)


def crash(exhibit: Exhibit, rule: str) -> str | None:
    """The fault of a monitor on this trace, if one crashed: ours, and never a verdict on the target."""
    finding = exhibit.findings.get(rule)
    reason = finding.untestable if finding is not None else None
    return reason if reason is not None and MONITOR_FAULT in reason else None


def _not_declared(profile: str, missing: list[str], triggers: Triggers) -> Verdict:
    wanted = [f for f in missing if is_mandatory(profile, f)]
    verdict = "inconclusive" if wanted else "n/a"
    detail = f"the target does not declare {', '.join(wanted or missing)}"
    if wanted:
        detail += f", which the profile {profile} makes mandatory"
    return Verdict(verdict, len(triggers.live), triggers.opportunities, detail)


def _tried(rule: Rule, exhibits: Sequence[Exhibit], triggers: Triggers) -> Verdict:
    live, seen, chances = len(triggers.live), len(triggers.seen), triggers.opportunities
    own = [e for e in exhibits if rule.id in e.rules]
    if live < rule.threshold:
        if own and all(e.verdict == NOT_APPLICABLE for e in own) and not seen:
            return Verdict("n/a", live, chances, own[0].detail)
        if not seen and chances:
            return Verdict("inconclusive", live, chances, f"never produced in {chances} opportunities")
        return Verdict(
            "vacuous",
            live,
            chances,
            f"{live} live contexts of {rule.threshold} wanted ({seen} contexts seen)",
        )
    variants = variants_of(rule.id, exhibits)
    live = min(live, rule.threshold)
    if variants:
        return Verdict("variant", live, chances, variant=", ".join(variants))
    return Verdict("pass", live, chances)


def variants_of(rule: str, exhibits: Sequence[Exhibit]) -> list[str]:
    """The permitted deviations that were seen, by name."""
    found: set[str] = set()
    for exhibit in exhibits:
        finding = exhibit.findings.get(rule)
        if finding is not None:
            found |= finding.variants
        if exhibit.verdict == VARIANT and rule in exhibit.rules:
            found.add(exhibit.detail.removeprefix("variant: "))
    return sorted(found)


def conformant(verdicts: Mapping[str, Verdict]) -> bool:
    """No failure, no doubt, and at least one rule that was really tried and held."""
    found = [v.verdict for v in verdicts.values()]
    return "pass" in found and not any(v in BAD for v in found)
