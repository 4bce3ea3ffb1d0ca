"""Which triggers of a rule are *live*: would the rule have spoken, had the implementation been wrong there?

A context counts when the script that shows it makes the rule's own mutant of the core fail by that rule, while
the core is clean on it (design §6). Counting stops at the rule's threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.judge.exhibit import Exhibit, examine
from rho_conformance.mutants import driver_of, mutants
from rho_conformance.mutants.base import Mutant
from rho_spec.catalogue import Rule

MOST_SCRIPTS = 60
"""Scripts tried for one rule: a rule whose mutant survives so many is vacuous, and says so."""

Signature = tuple[object, ...]


@dataclass
class Triggers:
    """`live`: distinct contexts that count. `seen`: all distinct contexts."""

    live: set[Signature] = field(default_factory=set)
    seen: set[Signature] = field(default_factory=set)
    opportunities: int = 0


def own_mutants() -> Mapping[str, tuple[Mutant, ...]]:
    """Rule -> the mutants it must kill."""
    found: dict[str, tuple[Mutant, ...]] = {}
    for mutant in mutants():
        found[mutant.intended] = (*found.get(mutant.intended, ()), mutant)
    return found


def count(rule: Rule, exhibits: Iterable[Exhibit], against: tuple[Mutant, ...]) -> Triggers:
    """Count the live contexts of one rule over what was played."""
    triggers = Triggers()
    candidates: list[Exhibit] = []
    for exhibit in exhibits:
        finding = exhibit.findings.get(rule.id)
        if finding is None:
            continue
        triggers.opportunities += finding.opportunities
        if finding.episodes:
            triggers.seen.update(e.signature for e in finding.episodes)
            candidates.append(exhibit)
    # A rule's own scenarios first, short scripts before long ones: they are the likeliest to kill.
    candidates.sort(key=lambda e: (rule.id not in e.rules, len(e.trace.steps) if e.trace else 0))
    tried = 0
    for exhibit in candidates:
        fresh = {e.signature for e in exhibit.findings[rule.id].episodes} - triggers.live
        if not fresh:
            continue
        tried += 1
        if kills(rule.id, exhibit, against):
            triggers.live |= fresh
        if len(triggers.live) >= rule.threshold or tried >= MOST_SCRIPTS:
            break
    return triggers


def kills(rule: str, exhibit: Exhibit, against: tuple[Mutant, ...]) -> bool:
    """Does the rule catch one of its mutants on this script, and stay quiet on the core?"""
    before = examine(exhibit.name, exhibit.source, core_factory, (rule,))
    if rule in before.broken:
        return False
    factories = (partial(driver_of, m) for m in against)
    return any(
        rule in examine(exhibit.name, exhibit.source, wrong, (rule,), known=before.trace).broken for wrong in factories
    )
