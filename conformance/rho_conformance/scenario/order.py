"""`order` of scenario format §4: a sequence with `...` everywhere, over events and upcalls together.

Inside one channel (the events of a session, the upcalls) the order is the one observed. Between two channels
only the number of the step is known: an earlier step is before, one and the same step is unordered and so
satisfied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from rho_conformance.scenario.match import is_permutation, matches_observation
from rho_conformance.scenario.patterns import GAP, pattern_name
from rho_conformance.trace import Observation

Place: TypeAlias = tuple[int, int]
"""A channel and a position in it."""


@dataclass(frozen=True, slots=True)
class _Reached:
    """How far an assignment has got: the next position of each channel, the latest step."""

    positions: tuple[int, ...]
    step: int

    def covers(self, other: _Reached) -> bool:
        """Whether whatever may still follow `other` may follow this one too."""
        pairs = zip(self.positions, other.positions, strict=True)
        return self.step <= other.step and all(mine <= theirs for mine, theirs in pairs)


def first_out_of_order(elements: Sequence[Any], lanes: Sequence[Sequence[Observation]]) -> int | None:
    """None when the elements occur in this order, else the index of the first that no assignment reaches."""
    reached = [_Reached(tuple(0 for _ in lanes), 0)]
    for index, element in enumerate(elements):
        if element == GAP or (isinstance(element, Mapping) and set(element) == {"opt"}):
            continue  # a gap is everywhere, and an optional element may always be missing
        following = [after for before in reached for after in _place(element, before, lanes)]
        if not following:
            return index
        reached = _best(following)
    return None


def _best(states: list[_Reached]) -> list[_Reached]:
    kept: list[_Reached] = []
    for state in sorted(set(states), key=lambda s: (s.step, s.positions)):
        if not any(other.covers(state) for other in kept):
            kept.append(state)
    return kept


def _place(element: Any, before: _Reached, lanes: Sequence[Sequence[Observation]]) -> Iterator[_Reached]:
    if isinstance(element, Mapping) and set(element) == {"set"}:
        for places in _blocks(element["set"], before, lanes):
            yield _after(places, before, lanes)
        return
    for lane, items in enumerate(lanes):
        for position in range(before.positions[lane], len(items)):
            seen = items[position]
            if seen.last_step >= before.step and matches_observation(element, seen.name, seen.fields):
                yield _after([(lane, position)], before, lanes)


def _after(places: list[Place], before: _Reached, lanes: Sequence[Sequence[Observation]]) -> _Reached:
    positions = list(before.positions)
    step = before.step
    for lane, position in places:
        positions[lane] = max(positions[lane], position + 1)
        step = max(step, lanes[lane][position].step)
    return _Reached(tuple(positions), step)


def _blocks(patterns: list[Any], before: _Reached, lanes: Sequence[Sequence[Observation]]) -> Iterator[list[Place]]:
    """Where all patterns of a set stand: in each channel that has any of them, next to each other."""
    known = [{seen.name for seen in items} for items in lanes]
    homes = [[lane for lane, names in enumerate(known) if pattern_name(p) in names] for p in patterns]
    for choice in product(*homes):
        options = []
        for lane in sorted(set(choice)):
            mine = [pattern for pattern, home in zip(patterns, choice, strict=True) if home == lane]
            options.append(list(_runs_of(mine, lane, before, lanes[lane])))
        for combination in product(*options):
            yield [place for places in combination for place in places]


def _runs_of(patterns: list[Any], lane: int, before: _Reached, items: Sequence[Observation]) -> Iterator[list[Place]]:
    size = len(patterns)
    for start in range(before.positions[lane], len(items) - size + 1):
        block = items[start : start + size]
        if block[0].last_step >= before.step and is_permutation(
            patterns, block, lambda pattern, seen: matches_observation(pattern, seen.name, seen.fields)
        ):
            yield [(lane, start + offset) for offset in range(size)]
