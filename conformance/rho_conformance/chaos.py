"""The target `chaos:SEED`: a core that is never wrong and hardly ever the same.

A seed stands for one implementation: the permitted variants that are a matter of its make (decisions of the design,
and what a page leaves open) are drawn once for it. How its races fall out is drawn anew for each world. A rule that
calls the result a failure is a false alarm (design §6).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from rho_conformance.driver import DriverFactory
from rho_conformance.drivers.core import CoreDriver
from rho_conformance.mutants import benign
from rho_conformance.mutants.base import Benign, applied

MADE_SO, FELL_SO = 1 / 3, 1 / 4
"""How likely a variant of make is in an implementation, and a race alternative in a world."""

RIVALS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "hosts-last",
            "hosts-first",
            "tools-first",
            "shutdown-first",
            "last-tool-first",
            "cancelled-before-the-first-step",
            "cancelled-between-steps",
        }
    ),
    frozenset({"never-cancelling", "cancelling-late"}),
    frozenset({"commands-wait-for-the-send", "commands-wait-for-the-run"}),
    frozenset({"steering-before-compaction", "boundary-before-compaction"}),
    frozenset({"async-proposed-first", "sync-proposed-when-scheduled"}),
    frozenset({"jobs-finish-first", "jobs-finish-before-commit"}),
)
"""Variants that answer the same question differently: of each set at most one is taken."""


def is_race(variant: Benign) -> bool:
    """Does it differ from world to world, or is it how the implementation is made?"""
    return variant.permitted_by.startswith("R") and variant.permitted_by[1:].isdigit()


def drawn(
    variants: Iterable[Benign], draw: random.Random, likely: float, beside: tuple[Benign, ...] = ()
) -> tuple[Benign, ...]:
    """Some of the variants, no two of them rivals, nor of those `beside` them; which, `draw` decides alone."""
    wanted = [v for v in variants if draw.random() < likely]
    draw.shuffle(wanted)
    kept: list[Benign] = []
    for variant in wanted:
        names = {k.name for k in (*beside, *kept)}
        if not any(variant.name in rivals and names & rivals for rivals in RIVALS):
            kept.append(variant)
    return tuple(kept)


class Chaos(CoreDriver):
    """A core driver under a mixture of permitted variants. `mixed`: those of the world that is open.

    What is drawn for a world follows from the seed, the configuration and how many worlds this driver has opened
    before; so that a script played again on a fresh driver shows the same.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(self._applied, f"chaos:{seed}")
        self._seed = seed
        self._worlds = 0
        made_so = [v for v in benign() if not is_race(v)]
        self.made: tuple[Benign, ...] = drawn(made_so, random.Random(f"make {seed}"), MADE_SO)
        self.mixed = self.made

    def open(self, config: dict[str, Any]) -> dict[str, Any]:
        """As the core, with other races."""
        self._worlds += 1
        world = f"world {self._seed} {self._worlds} {json.dumps(config, sort_keys=True)}"
        races = [v for v in benign() if is_race(v)]
        self.mixed = (*self.made, *drawn(races, random.Random(world), FELL_SO, self.made))
        return super().open(config)

    def _applied(self) -> AbstractContextManager[None]:
        return applied(tuple(patch for one in self.mixed for patch in one.patches))


def factory(seed: int) -> DriverFactory:
    """The target `chaos:SEED`: each call of what it gives builds a fresh driver of the same implementation."""
    return lambda: Chaos(seed)
