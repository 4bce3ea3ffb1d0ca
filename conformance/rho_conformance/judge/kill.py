"""The kill matrix: is every deliberate fault seen by the rule that must see it, and no permitted variant called one?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.judge.exhibit import ERROR, Exhibit, examine
from rho_conformance.judge.library import Item, directed, library
from rho_conformance.mutants import benign, driver_of, find, mutants
from rho_conformance.mutants.base import Benign, Mutant, Target
from rho_conformance.mutants.probes import Passed, may_differ, probing
from rho_conformance.scenario import Scenario

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Kill:
    """What the rules said of one mutant. `by`: every rule that fired; `where`: the item that showed its own."""

    mutant: str
    intended: str
    by: tuple[str, ...]
    where: str | None

    @property
    def killed(self) -> bool:
        return self.where is not None


@dataclass(frozen=True)
class Matrix:
    """`benign`: permitted variant -> rules that called it a failure, each with the item and the complaint."""

    kills: tuple[Kill, ...]
    benign: dict[str, dict[str, str]]

    @property
    def score(self) -> float:
        """Killed by the intended rule, over all."""
        return sum(k.killed for k in self.kills) / len(self.kills) if self.kills else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "matrix": {
                k.mutant: {
                    "kills_by": list(k.by),
                    "intended": k.intended,
                    "killed": k.killed,
                    "where": k.where,
                }
                for k in self.kills
            },
            "benign": {
                name: {"fails": sorted(fails), "why": dict(sorted(fails.items()))}
                for name, fails in self.benign.items()
            },
            "score": self.score,
        }


MOST_JUDGED = 15
"""Differing traces of one mutant that every rule judges; on the others only the mutant's own rule is asked."""
BENIGN_PLAYED = 150
"""Items played on one permitted variant, spread over the library; `full` plays them all."""


class Lab:
    """Items, what the unmutated core shows on each, and which patched places each passes.

    So only what can differ is played, and only what does differ is judged.
    """

    def __init__(self, items: Sequence[Item], made: Sequence[Mutant | Benign]) -> None:
        self.items = items
        self.baseline: list[Exhibit] = []
        self.passed: list[set[Target]] = []
        self._broken: dict[int, dict[str, str]] = {}
        passed = Passed()
        with probing(made, passed):
            for item in items:
                passed.clear()
                self.baseline.append(examine(item.name, item.source, core_factory, ()))
                self.passed.append(passed.clear())

    def _broken_before(self, index: int) -> dict[str, str]:
        """What the core itself breaks on an item: asked only where a mutant was blamed."""
        if index not in self._broken:
            item = self.items[index]
            self._broken[index] = examine(item.name, item.source, core_factory).broken
        return self._broken[index]

    def candidates(self, made: Mutant | Benign) -> list[int]:
        """Items that can differ; those of the mutant's own rule first."""
        found = [n for n, passed in enumerate(self.passed) if may_differ(made, passed)]
        if isinstance(made, Benign):
            return found
        return sorted(found, key=lambda n: not self._meant(made, n))

    def _meant(self, made: Mutant, index: int) -> bool:
        source = self.items[index].source
        return isinstance(source, Scenario) and made.intended in source.rules

    def broken_by(self, made: Mutant | Benign, full: bool = False) -> dict[str, tuple[str, str]]:
        """Rule -> (item, complaint) for everything the mutant breaks and the core does not."""
        found: dict[str, tuple[str, str]] = {}
        harmless = isinstance(made, Benign)
        candidates, judged = self.candidates(made), 0
        share = 1 if full or not harmless else max(1, len(candidates) // BENIGN_PLAYED)
        for index in candidates[::share]:
            item, known = self.items[index], self.baseline[index].trace
            everything = full or harmless or judged < MOST_JUDGED
            rules = None if everything else (made.intended,) if isinstance(made, Mutant) else None
            if not everything and isinstance(made, Mutant) and made.intended in found:
                break
            shown = examine(item.name, item.source, partial(driver_of, made), rules, known=known)
            judged += bool(shown.findings)
            if harmless and shown.verdict == ERROR:
                # A variant that crashes shows nothing: its silence must not pass for tolerance.
                found.setdefault(ERROR, (item.name, shown.detail))
            for rule, why in shown.broken.items():
                if rule not in found and rule not in self._broken_before(index):
                    found[rule] = (item.name, why)
        return found


_lab: Lab | None = None


def _set_up() -> None:
    global _lab
    _lab = Lab([*library(), *directed()], [*mutants(), *benign()])


def _one(name: str, full: bool) -> tuple[str, dict[str, tuple[str, str]]]:
    assert _lab is not None
    return name, _lab.broken_by(find(name), full)


def kill_matrix(
    rules: Sequence[str] | None = None, progress: Progress | None = None, workers: int = 2, full: bool = False
) -> Matrix:
    """Play the library on every mutant and every benign mutant (`rules`: only mutants meant for these).

    `full`: without the bounds `MOST_JUDGED` and `BENIGN_PLAYED`, which keep it to a few minutes.
    """
    wanted = [m for m in mutants() if rules is None or m.intended in rules]
    harmless = list(benign()) if rules is None else []
    names = [*(m.name for m in wanted), *(b.name for b in harmless)]
    answers: dict[str, dict[str, tuple[str, str]]] = {}
    for done, (name, broken) in enumerate(_all(names, workers, full), 1):
        answers[name] = broken
        if progress is not None:
            progress("mutants", done, len(names))
    kills = tuple(_kill(m, answers[m.name]) for m in wanted)
    fails = {b.name: {r: f"{i}: {why}" for r, (i, why) in answers[b.name].items()} for b in harmless}
    return Matrix(kills, fails)


def _all(names: Sequence[str], workers: int, full: bool) -> Iterable[tuple[str, dict[str, tuple[str, str]]]]:
    if workers <= 1 or len(names) < 4:
        _set_up()
        yield from (_one(name, full) for name in names)
        return
    # "spawn": the patches of one process must never be seen by another.
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_set_up) as pool:
        yield from pool.map(partial(_one, full=full), names)


def _kill(mutant: Mutant, broken: dict[str, tuple[str, str]]) -> Kill:
    where = broken.get(mutant.intended)
    return Kill(mutant.name, mutant.intended, tuple(sorted(broken)), None if where is None else where[0])
