"""Small shapes to check a scenario file with: each looks at a value and raises with file, line and key.

A shape returns None, or what the value shall become: an unquoted `3` where a text stands is the text "3".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from rho_conformance.scenario.tree import Map, ScenarioFileError, Seq, plain_text, shorten
from rho_spec.names import MOST

_DURATION = re.compile(r"([0-9]{1,25}(?:\.[0-9]{1,25})?)(ms|s|m)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}
_FEW, _NEAREST = 8, 6
"""How many names an error lists in full, and how many of more: the nearest."""
_NEAR = 0.6


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a scenario file: its line, what the value there is, and the profile of the scenario."""

    path: str
    line: int
    what: str
    profile: str = "rho"

    def fail(self, message: str) -> NoReturn:
        raise ScenarioFileError(self.path, self.line, f"{self.what}: {message}" if self.what else message)

    def key(self, owner: Map, key: str) -> Where:
        """The place of a key's value."""
        what = f"{self.what}.{key}" if self.what else key
        return replace(self, line=owner.lines.get(key, self.line), what=what)

    def item(self, owner: Seq, index: int, what: str | None = None) -> Where:
        """The place of a list element."""
        line = owner.lines[index] if index < len(owner.lines) else self.line
        return replace(self, line=line, what=what or f"{self.what}[{index}]")


Shape: TypeAlias = Callable[[Any, Where], Any]


def text(value: Any, where: Where) -> str:
    """A text; a number or true/false that stands here was meant as one."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):
        where.fail(f"expected a text, got {said(value)}")
    return plain_text(value)


def name(value: Any, where: Where) -> None:
    """A name that the file gives and may use elsewhere: no number, and not empty."""
    if not isinstance(value, str):
        where.fail(f"expected a name, which is a text, got {said(value)}")
    if not value.strip():
        where.fail("the name is empty")


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def integer(value: Any, where: Where) -> None:
    if not is_integer(value):
        where.fail(f"expected an integer, got {said(value)}")


def natural(value: Any, where: Where) -> None:
    """A number of things: 0 to 2^64-1."""
    integer(value, where)
    _within_bounds(value, where)


def _within_bounds(value: int, where: Where) -> None:
    if not 0 <= value <= MOST:
        where.fail(f"expected an integer from 0 to 2^64-1, got {said(value)}")


def natural_or(*words: str) -> Shape:
    """A number of things, or one of some words in its place."""

    def check(value: Any, where: Where) -> None:
        if value in words and isinstance(value, str):
            return
        if not is_integer(value):
            where.fail(f"expected an integer or {' or '.join(words)}, got {said(value)}")
        _within_bounds(value, where)

    return check


def flag(value: Any, where: Where) -> None:
    if not isinstance(value, bool):
        where.fail(f"expected true or false, got {said(value)}")


def true(value: Any, where: Where) -> None:
    """Only `true`: the value says nothing, the key does."""
    if value is not True:
        where.fail(f"expected true, got {said(value)}")


def anything(value: Any, where: Where) -> None:
    """Any JSON value."""


def empty(value: Any, where: Where) -> None:
    """A map without keys."""
    record()(value, where)


def duration(value: Any, where: Where) -> None:
    """`500ms`, `1.5s`, `2m`: whole milliseconds."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        where.fail(f"expected a duration such as 500ms, 1.5s or 2m, got {said(value)}")
    if (Fraction(found[1]) * _MILLISECONDS[found[2]]).denominator != 1:
        where.fail(f"a duration is whole milliseconds, got {said(value)}")


def one_of(*choices: Any) -> Shape:
    """One of some scalars; a bool is not an integer here."""

    def check(value: Any, where: Where) -> None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            names = [str(choice) for choice in choices]
            expected = f"expected {names[0]}" if len(names) == 1 else f"expected one of {', '.join(names)}"
            where.fail(f"{expected}, got {said(value)}{_meant(value, names)}")

    return check


def list_of(shape: Shape) -> Shape:
    def check(value: Any, where: Where) -> None:
        for index, item in enumerate(as_list(value, where)):
            put(value, index, shape(item, where.item(value, index)))

    return check


def filled_list_of(shape: Shape) -> Shape:
    """A list with at least one element."""

    def check(value: Any, where: Where) -> None:
        if not as_list(value, where):
            where.fail("the list is empty")
        list_of(shape)(value, where)

    return check


def map_of(shape: Shape) -> Shape:
    """Any keys, all values of one shape."""

    def check(value: Any, where: Where) -> None:
        for key, item in as_map(value, where).items():
            put(value, key, shape(item, where.key(value, key)))

    return check


def record(optional: Mapping[str, Shape] | None = None, /, **required: Shape) -> Shape:
    """A map with these keys and no others."""
    known = {**required, **(optional or {})}

    def check(value: Any, where: Where) -> None:
        known_keys(as_map(value, where), where, known)
        for key in required:
            if key not in value:
                where.fail(f"the key {key!r} is missing")
        for key, item in value.items():
            put(value, key, known[key](item, where.key(value, key)))

    return check


def when(test: Callable[[Any], bool], shape: Shape, otherwise: Shape) -> Shape:
    """`shape` for the values that pass the test, else `otherwise`."""

    def check(value: Any, where: Where) -> Any:
        return (shape if test(value) else otherwise)(value, where)

    return check


def put(owner: Any, place: Any, changed: Any) -> None:
    """Put what a shape made of a value in its place, if it made anything of it."""
    if changed is not None:
        owner[place] = changed


def is_map(value: Any) -> bool:
    return isinstance(value, dict)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def as_map(value: Any, where: Where) -> Map:
    if not isinstance(value, Map):
        where.fail(f"expected a map, got {said(value)}")
    return value


def as_list(value: Any, where: Where) -> Seq:
    if not isinstance(value, Seq):
        where.fail(f"expected a list, got {said(value)}")
    return value


def known_keys(value: Map, where: Where, known: Iterable[str]) -> None:
    """Raise for the first unknown key, at its line."""
    allowed = sorted(known)
    for key in (*value, *value.nulls):
        if key not in allowed:
            hint = among(key, allowed) if allowed else "no keys are known here"
            line = value.lines.get(key, value.nulls.get(key, where.line))
            replace(where, line=line).fail(f"unknown key {shorten(repr(key))}; {hint}")


def said(value: Any) -> str:
    """A value of the file in an error, cut when it is long."""
    return "nothing" if value is None else shorten(repr(value))


def among(given: str, known: Iterable[str]) -> str:
    """What may stand in the place of an unknown name: all names when they are few, else the nearest."""
    ranked = _ranked(given, known)
    names = [name for _, name in ranked]
    meant = f"did you mean {names[0]}? " if ranked and ranked[0][0] >= _NEAR else ""
    if len(names) <= _FEW:
        return f"{meant}known here: {', '.join(sorted(names))}"
    return f"{meant}nearest of the {len(names)} known here: {', '.join(names[:_NEAREST])}"


def _meant(given: Any, known: Iterable[str]) -> str:
    ranked = _ranked(given, known) if isinstance(given, str) else []
    return f"; did you mean {ranked[0][1]}?" if ranked and ranked[0][0] >= _NEAR else ""


def _ranked(given: str, known: Iterable[str]) -> list[tuple[float, str]]:
    """The names with their likeness to the one that was given, the most alike first."""
    matcher = SequenceMatcher(b=shorten(given).lower(), autojunk=False)
    ranked = []
    for name in known:
        matcher.set_seq1(name.lower())
        ranked.append((matcher.ratio(), name))
    return sorted(ranked, key=lambda pair: (-pair[0], pair[1]))
