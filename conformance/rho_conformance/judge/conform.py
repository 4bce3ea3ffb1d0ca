"""`conform`: play everything on a target, let every rule judge it, and report (design §6, §7)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.driver import DriverFactory, JsonMap, connect
from rho_conformance.errors import DriverError, UsageError
from rho_conformance.generate.capabilities import Allowed
from rho_conformance.generate.script import Script
from rho_conformance.generate.search import generate
from rho_conformance.generate.sweep import sweep
from rho_conformance.judge.coverage import Coverage, recording
from rho_conformance.judge.exhibit import ERROR, Exhibit, examine, examine_trace
from rho_conformance.judge.library import Item, library
from rho_conformance.judge.liveness import own_mutants
from rho_conformance.judge.profiles import profile_for
from rho_conformance.judge.reach import Reach
from rho_conformance.judge.tally import VERDICTS, Verdict, conformant, judge_rule
from rho_conformance.targets import resolve
from rho_conformance.trace import Trace
from rho_spec.catalogue import Rule, load

EXAMPLES, STEPS, SEED = 200, 30, 1
SWEEP_EVERY, SWEEP_POINTS = 4, 6
"""Every how many-th scenario is swept (cancel, drop, close the reader… somewhere in it), at how many points at most."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Ask:
    """What the command line asks for."""

    target: str
    profile: str | None = None
    rules: tuple[str, ...] = ()
    examples: int = EXAMPLES
    steps: int = STEPS
    seed: int = SEED


@dataclass
class Report:
    """All verdicts on one target. `hello`: what it said of itself; `played`: scripts by origin."""

    target: str
    profile: str
    hello: JsonMap
    ask: Ask
    seconds: float
    verdicts: dict[str, Verdict]
    rules: dict[str, Rule]
    played: dict[str, int]
    coverage: Coverage | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def conformant(self) -> bool:
        return conformant(self.verdicts)

    @property
    def summary(self) -> dict[str, int]:
        """Verdict -> number of rules, in the order of severity; verdicts that do not occur are left out."""
        found = [v.verdict for v in self.verdicts.values()]
        return {name: found.count(name) for name in VERDICTS if name in found}

    def to_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "target": self.target,
            "profile": self.profile,
            "seed": self.ask.seed,
            "examples": self.ask.examples,
            "steps": self.ask.steps,
            "seconds": round(self.seconds, 1),
            "verdicts": {rule: v.to_json() for rule, v in self.verdicts.items()},
            "summary": self.summary,
            "conformant": self.conformant,
            "implementation": {k: self.hello.get(k) for k in ("name", "version", "time", "deterministic")},
            "played": self.played,
        }
        if self.coverage is not None:
            answer["coverage"] = self.coverage.to_json()
        if self.notes:
            answer["notes"] = self.notes
        return answer


def conform(ask: Ask, progress: Progress | None = None) -> Report:
    """Judge a target. Raises `UsageError` for an unknown target, profile or rule."""
    begun = time.perf_counter()
    factory = resolve(ask.target)
    with connect(factory()) as driver:
        greeting = driver.hello()
    hello = greeting.raw
    profile = profile_for(list(hello["profiles"]), ask.profile)
    rules = _rules(profile, ask.rules)
    watched = recording() if hello["name"] == "core" else nullcontext(None)
    allowed = Allowed(greeting, profile)
    exhibits, coverage = _evidence(ask, allowed, profile, factory, rules, watched, progress or _silent)
    own = own_mutants()
    reach = Reach(exhibits, own) if hello["name"] != "core" else None
    verdicts: dict[str, Verdict] = {}
    for done, rule in enumerate(rules, 1):
        verdicts[rule.id] = judge_rule(rule, profile, hello, exhibits, own, reach)
        (progress or _silent)("judging", done, len(rules))
    seconds = time.perf_counter() - begun
    played = {origin: sum(e.origin == origin for e in exhibits) for origin in ORIGINS}
    return Report(ask.target, profile, hello, ask, seconds, verdicts, {r.id: r for r in rules}, played, coverage)


ORIGINS = ("scenario", "directed", "generated", "sweep")


def _silent(stage: str, done: int, total: int) -> None:
    return None


def _rules(profile: str, wanted: Sequence[str]) -> list[Rule]:
    rules = load(profile)
    unknown = sorted(set(wanted) - {r.id for r in rules})
    if unknown:
        raise UsageError(f"profile {profile} has no rule {', '.join(unknown)}; see: rho-core rules --profile {profile}")
    return [r for r in rules if not wanted or r.id in wanted]


def _evidence(
    ask: Ask,
    allowed: Allowed,
    profile: str,
    factory: DriverFactory,
    rules: Sequence[Rule],
    watched: AbstractContextManager[Coverage | None],
    progress: Progress,
) -> tuple[list[Exhibit], Coverage | None]:
    ids = tuple(r.id for r in rules if r.testable != "no")
    exhibits: list[Exhibit] = []
    with watched as coverage:
        items = _chosen(library(profile), ask.rules)
        for done, item in enumerate(items, 1):
            exhibits.append(examine(item.name, item.source, factory, ids))
            progress("scenarios", done, len(items))
        points = _swept(exhibits, allowed)
        for done, (name, script) in enumerate(points, 1):
            exhibits.append(examine(name, script, factory, ids, origin="sweep"))
            progress("sweep", done, len(points))
        _generated(ask, profile, factory, ids, exhibits, progress)
    return exhibits, coverage


def _chosen(items: Sequence[Item], rules: Sequence[str]) -> list[Item]:
    """With `--rule`, only the scenarios of those rules; directed scripts always."""
    return [i for i in items if not rules or isinstance(i.source, Script) or set(i.source.rules) & set(rules)]


def _swept(exhibits: Sequence[Exhibit], allowed: Allowed) -> list[tuple[str, Script]]:
    found: list[tuple[str, Script]] = []
    for exhibit in exhibits[::SWEEP_EVERY]:
        if exhibit.trace is not None and exhibit.trace.steps:
            points = sweep(exhibit.trace, SWEEP_POINTS, allowed=allowed)
            found += [(f"sweep:{exhibit.name}:{k}", point) for k, point in enumerate(points, 1)]
    return found


def _generated(
    ask: Ask,
    profile: str,
    factory: DriverFactory,
    ids: tuple[str, ...],
    exhibits: list[Exhibit],
    progress: Progress,
) -> None:
    played = 0

    def keep(trace: Trace) -> None:
        nonlocal played
        played += 1
        origin = "directed" if (trace.source or "").startswith("walk") else "generated"
        exhibits.append(examine_trace(trace.source or origin, trace, ids, origin))
        progress("walks and generated scripts", played, 0)

    try:
        generate(factory, profile, ask.examples, ask.steps, ask.seed, keep)
    except DriverError as fault:
        # What was proven before stands; the search goes no further with a driver that is off the protocol.
        nothing = Script({}, (), profile)
        exhibits.append(Exhibit("walks and generated scripts", nothing, ERROR, f"driver: {fault}", None, "generated"))
