"""What is played on every target: the scenario files; and, on variants of the core, what walks did on the core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.generate.script import Script
from rho_conformance.generate.walks import walks
from rho_conformance.scenario import Scenario, load_scenarios
from rho_spec.catalogue import load
from rho_spec.paths import data_root


@dataclass(frozen=True)
class Item:
    """Something to play, under a name that is unique in the library."""

    name: str
    source: Scenario | Script


@cache
def scenarios(profile: str | None = None) -> tuple[Scenario, ...]:
    """The project's own scenario files, in order of their paths; of one profile, or all.

    The common ones can be asked of any runtime, and so belong to the Rho profile as well.
    """
    known = {rule.id for rule in load()}
    found = load_scenarios([data_root() / "scenarios"], known_rules=known)
    return tuple(s for s in found if profile is None or s.profile in (profile, "common"))


@cache
def library(profile: str | None = None) -> tuple[Item, ...]:
    """The scenarios of a profile, as items."""
    return tuple(Item(s.id, s) for s in scenarios(profile))


@cache
def directed() -> tuple[Item, ...]:
    """The stimuli that each directed walk gave to the core: fixed scripts, the same for every variant of it."""
    return tuple(Item(f"walk:{w.name}", Script.from_trace(w.play(core_factory))) for w in walks())
