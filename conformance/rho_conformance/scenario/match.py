"""Does a value match a pattern, and does a list match a sequence (scenario format §5)?

A sequence matches if some assignment does. It is judged by following the set of all places where the elements
so far can end: the same answer as full backtracking, in time linear in the list for each element.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rho_conformance.scenario.patterns import GAP, MAX, is_operator, pattern_fields, pattern_name
from rho_conformance.scenario.tree import plain_text

MISSING: Any = object()
"""Stands for a field that is not there."""

LARGEST_REVISION = 2**64 - 1

T = TypeVar("T")
Test = Callable[[Any, T], bool]
"""Whether a pattern matches an item."""


def matches(pattern: Any, value: Any, key: str = "") -> bool:
    """Whether `value` (or `MISSING`) matches; `key` is its field: `revision: max` is a number."""
    if is_operator(pattern):
        return all(_OPERATORS[name](operand, value, key) for name, operand in pattern.items())
    if value is MISSING:
        return False
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            matches(wanted, value.get(name, MISSING), name) for name, wanted in pattern.items()
        )
    if isinstance(pattern, list):
        return (
            isinstance(value, list)
            and len(pattern) == len(value)
            and all(matches(wanted, item) for wanted, item in zip(pattern, value, strict=True))
        )
    return _equal(LARGEST_REVISION if key == "revision" and pattern == MAX else pattern, value)


def _equal(wanted: Any, value: Any) -> bool:
    if isinstance(value, str) and isinstance(wanted, int | float):
        return plain_text(wanted) == value  # `text: 3` in a file, without quotes
    # In JSON `true` is not 1.
    return isinstance(wanted, bool) == isinstance(value, bool) and bool(wanted == value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def json_forms(value: Any) -> tuple[str, ...]:
    """The JSON text of a value, dense and spaced; a text stands for itself, as a snapshot does."""
    if isinstance(value, str):
        return (value,)
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        json.dumps(value, ensure_ascii=False),
    )


def _contains(part: str, value: Any) -> bool:
    return value is not MISSING and any(part in form for form in json_forms(value))


_OPERATORS: dict[str, Callable[[Any, Any, str], bool]] = {
    "$any": lambda _, value, key: value is not MISSING,
    "$absent": lambda _, value, key: value is MISSING or value is None,
    "$one_of": lambda choices, value, key: any(matches(choice, value, key) for choice in choices),
    "$min": lambda bound, value, key: _number(value) and value >= bound,
    "$max": lambda bound, value, key: _number(value) and value <= bound,
    "$prefix": lambda start, value, key: isinstance(value, str) and value.startswith(start),
    "$prefix_of": lambda whole, value, key: isinstance(value, str) and whole.startswith(value),
    "$contains": lambda part, value, key: _contains(part, value),
    "$lacks": lambda part, value, key: value is not MISSING and not _contains(part, value),
}


def matches_observation(pattern: Any, name: str, fields: Mapping[str, Any]) -> bool:
    """Whether an observation is the one a pattern speaks of, and its mentioned fields match."""
    return pattern_name(pattern) == name and matches(pattern_fields(pattern), fields)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a sequence stopped matching: no assignment gets past `element`, the best got to `position`."""

    element: int | None
    position: int


def match_sequence(elements: Sequence[Any], items: Sequence[T], test: Test[T]) -> Mismatch | None:
    """None when the whole of `items` matches the whole of `elements`; else where the best assignment stopped.

    `element` is None when every element was found and items are left over.
    """
    ends = {0}
    for number, element in enumerate(elements):
        reached = _advance(element, ends, items, test)
        if not reached:
            return Mismatch(number, max(ends))
        ends = reached
    return None if len(items) in ends else Mismatch(None, max(ends))


def _advance(element: Any, ends: set[int], items: Sequence[T], test: Test[T]) -> set[int]:
    if element == GAP:
        return set(range(min(ends), len(items) + 1))
    if isinstance(element, Mapping) and set(element) == {"set"}:
        patterns = element["set"]
        size = len(patterns)
        return {end + size for end in ends if is_permutation(patterns, items[end : end + size], test)}
    if isinstance(element, Mapping) and set(element) == {"opt"}:
        return ends | _advance(element["opt"], ends, items, test)
    return {end + 1 for end in ends if end < len(items) and test(element, items[end])}


def is_permutation(patterns: Sequence[Any], items: Sequence[T], test: Test[T]) -> bool:
    """Whether patterns and items can be paired one to one (bipartite matching by augmenting paths)."""
    if len(patterns) != len(items):
        return False
    owner: dict[int, int] = {}  # item -> the pattern that has it
    fits = [[index for index, item in enumerate(items) if test(pattern, item)] for pattern in patterns]

    def place(pattern: int, tried: set[int]) -> bool:
        for item in fits[pattern]:
            if item not in tried:
                tried.add(item)
                if item not in owner or place(owner[item], tried):
                    owner[item] = pattern
                    return True
        return False

    return all(place(pattern, set()) for pattern in range(len(patterns)))


def in_range(number: int, limits: Mapping[str, Any]) -> bool:
    """Whether a number is within `min` and `max`, each of which may be absent."""
    low, high = limits.get("min"), limits.get("max")
    return (low is None or number >= low) and (high is None or number <= high)
