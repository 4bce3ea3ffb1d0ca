"""The kill matrix: is every deliberate fault seen by the rule that must see it, and no permitted variant called one?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.judge.exhibit import Exhibit, examine
from rho_conformance.judge.library import Item, directed, library
from rho_conformance.mutants import benign, driver_of, find, mutants
from rho_conformance.mutants.base import Benign, Mutant, Target
from rho_conformance.mutants.probes import Passed, may_differ, probing

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


class Lab:
    """Items, what the unmutated core shows on each, and which patched places each passes.

    So only what can differ is played, and only what does differ is judged.
    """

    def __init__(self, items: Sequence[Item], made: Sequence[Mutant | Benign]) -> None:
        self.items = items
        self.baseline: list[Exhibit] = []
        self.passed: list[set[Target]] = []
        passed = Passed()
        with probing(made, passed):
            for item in items:
                passed.clear()
                self.baseline.append(examine(item.name, item.source, core_factory))
                self.passed.append(passed.clear())

    def broken_by(self, made: Mutant | Benign, share: int = 1) -> dict[str, tuple[str, str]]:
        """Rule -> (item, complaint) for everything the mutant breaks and the core does not.

        `share`: play every so-many-th of the items that can differ.
        """
        found: dict[str, tuple[str, str]] = {}
        candidates = [n for n, passed in enumerate(self.passed) if may_differ(made, passed)]
        for index in candidates[::share]:
            item, before = self.items[index], self.baseline[index]
            shown = examine(item.name, item.source, partial(driver_of, made), known=before.trace)
            for rule, why in shown.broken.items():
                if rule not in before.broken:
                    found.setdefault(rule, (item.name, why))
        return found


_lab: Lab | None = None


def _set_up() -> None:
    global _lab
    _lab = Lab([*library(), *directed()], [*mutants(), *benign()])


def _one(name: str) -> tuple[str, dict[str, tuple[str, str]]]:
    assert _lab is not None
    made = find(name)
    return name, _lab.broken_by(made)


def kill_matrix(rules: Sequence[str] | None = None, progress: Progress | None = None, workers: int = 2) -> Matrix:
    """Play the whole library on every mutant and every benign mutant (`rules`: only mutants meant for these)."""
    wanted = [m for m in mutants() if rules is None or m.intended in rules]
    harmless = list(benign()) if rules is None else []
    names = [*(m.name for m in wanted), *(b.name for b in harmless)]
    answers: dict[str, dict[str, tuple[str, str]]] = {}
    for done, (name, broken) in enumerate(_all(names, workers), 1):
        answers[name] = broken
        if progress is not None:
            progress("mutants", done, len(names))
    kills = tuple(_kill(m, answers[m.name]) for m in wanted)
    fails = {b.name: {r: f"{i}: {why}" for r, (i, why) in answers[b.name].items()} for b in harmless}
    return Matrix(kills, fails)


def _all(names: Sequence[str], workers: int) -> Iterable[tuple[str, dict[str, tuple[str, str]]]]:
    if workers <= 1 or len(names) < 4:
        _set_up()
        yield from map(_one, names)
        return
    # "spawn": the patches of one process must never be seen by another.
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_set_up) as pool:
        yield from pool.map(_one, names)


def _kill(mutant: Mutant, broken: dict[str, tuple[str, str]]) -> Kill:
    where = broken.get(mutant.intended)
    return Kill(mutant.name, mutant.intended, tuple(sorted(broken)), None if where is None else where[0])
