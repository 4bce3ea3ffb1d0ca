"""The verdict of each rule, from all the evidence (design §6, "Verdicts"; suite notes on the algebra of verdicts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rho_conformance.driver import JsonMap, declares
from rho_conformance.judge.exhibit import ERROR, Exhibit
from rho_conformance.judge.liveness import Triggers, count
from rho_conformance.judge.profiles import is_mandatory
from rho_conformance.judge.reach import Reach
from rho_conformance.mutants.base import Mutant
from rho_conformance.scenario.book import read_book
from rho_conformance.scenario.play import NOT_APPLICABLE, VARIANT
from rho_conformance.vocabulary import TERMINAL
from rho_spec.catalogue import Rule

VERDICTS = ("pass", "variant", "fail", "vacuous", "inconclusive", "error", "n/a", "untestable")
MONITOR_FAULT = "the monitor failed"
_ENDS = ("CP9", "RHO-TERM-2", "CORE-LIVE")
BAD = ("fail", "error", "inconclusive", "vacuous")


@dataclass
class Verdict:
    """`detail`: why, for a reader. `triggered`: live contexts, counted up to the rule's threshold.

    `baseline`: the entry that turned a failure into a variant.
    """

    verdict: str
    triggered: int = 0
    opportunities: int = 0
    detail: str = ""
    variant: str | None = None
    witness: str | None = None
    evidence: Exhibit | None = None
    baseline: dict[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "verdict": self.verdict,
            "triggered": self.triggered,
            "opportunities": self.opportunities,
        }
        optional: dict[str, Any] = {"detail": self.detail or None, "variant": self.variant, "witness": self.witness}
        optional["baseline"] = self.baseline
        return found | {key: value for key, value in optional.items() if value is not None}


def judge_rule(
    rule: Rule,
    profile: str,
    hello: JsonMap,
    exhibits: Sequence[Exhibit],
    own: Mapping[str, tuple[Mutant, ...]],
    reach: Reach | None = None,
) -> Verdict:
    """One rule's verdict: a proven failure first, then faults of ours, then whether it was tried at all.

    `reach`: says how many live contexts a target other than the core can be asked for.
    """
    if rule.testable == "no":
        return Verdict("untestable", detail=rule.why)
    broken = next((e for e in exhibits if rule.id in e.broken), None)
    if broken is not None:
        triggers = count(rule, exhibits, ())
        return Verdict(
            "fail",
            len(triggers.seen),
            triggers.opportunities,
            f"{broken.name}: {broken.broken[rule.id]}{unanswered(rule.id, broken)}",
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
    return _tried(rule, exhibits, triggers, reach)


def unanswered(rule: str, broken: Exhibit) -> str:
    """A word to the author of a driver, where an outcome has no reply though the end of its run was shown."""
    if rule not in _ENDS or broken.trace is None:
        return ""
    ended = {seen.run: seen.name for seen in broken.trace.observations() if seen.name in TERMINAL}
    for run in read_book(broken.trace).runs.values():
        if run.name in ended and run.asked and run.gone is None:
            names = [name for name in run.asked if name not in broken.trace.replies()]
            if names:
                return (
                    f" (hint: {ended[run.name]} of {run.name} was shown and {names[0]} has no Reply: is it the runtime "
                    "that hangs, or does the driver not report what `outcome` was waiting for?)"
                )
    return ""


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


def _tried(rule: Rule, exhibits: Sequence[Exhibit], triggers: Triggers, reach: Reach | None) -> Verdict:
    live, seen, chances = len(triggers.live), len(triggers.seen), triggers.opportunities
    own = [e for e in exhibits if rule.id in e.rules]
    wanted = rule.threshold if live >= rule.threshold or reach is None else reach.wanted(rule)
    unasked = next((e for e in own if e.verdict == NOT_APPLICABLE), None)
    if wanted == 0 and live == 0 and unasked is not None:
        # Whatever shows this rule needs what the target cannot do: not even the core could show it.
        return Verdict("n/a", live, chances, unasked.detail)
    if live < max(1, wanted):
        if own and all(e.verdict == NOT_APPLICABLE for e in own) and not seen:
            return Verdict("n/a", live, chances, own[0].detail)
        if not seen and chances:
            return Verdict("inconclusive", live, chances, f"never produced in {chances} opportunities")
        return Verdict(
            "vacuous",
            live,
            chances,
            f"{live} live contexts of {max(1, wanted)} wanted ({seen} contexts seen)",
        )
    variants = variants_of(rule.id, exhibits)
    live = min(live, rule.threshold)
    detail = "" if wanted == rule.threshold else f"what this target can play shows {wanted} live contexts on the core"
    if variants:
        return Verdict("variant", live, chances, detail, variant=", ".join(variants))
    return Verdict("pass", live, chances, detail)


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
