"""Small shapes to check a scenario file with: each looks at a value and raises with file, line and key.

A shape returns None, or what the value shall become: an unquoted `3` where a text stands is the text "3".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from rho_conformance.scenario.tree import Map, ScenarioFileError, Seq, plain_text

_DURATION = re.compile(r"[0-9]+(\.[0-9]+)?(ms|s|m)")


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a scenario file: its line, and what the value there is."""

    path: str
    line: int
    what: str

    def fail(self, message: str) -> NoReturn:
        raise ScenarioFileError(self.path, self.line, f"{self.what}: {message}" if self.what else message)

    def key(self, owner: Map, key: str) -> Where:
        """The place of a key's value."""
        return Where(self.path, owner.lines.get(key, self.line), f"{self.what}.{key}" if self.what else key)

    def item(self, owner: Seq, index: int, what: str | None = None) -> Where:
        """The place of a list element."""
        line = owner.lines[index] if index < len(owner.lines) else self.line
        return Where(self.path, line, what or f"{self.what}[{index}]")


Shape: TypeAlias = Callable[[Any, Where], Any]


def text(value: Any, where: Where) -> str:
    """A text; a number or true/false that stands here was meant as one."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):
        where.fail(f"expected a text, got {value!r}")
    return plain_text(value)


def integer(value: Any, where: Where) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        where.fail(f"expected an integer, got {value!r}")


def flag(value: Any, where: Where) -> None:
    if not isinstance(value, bool):
        where.fail(f"expected true or false, got {value!r}")


def true(value: Any, where: Where) -> None:
    """Only `true`: the value says nothing, the key does."""
    if value is not True:
        where.fail(f"expected true, got {value!r}")


def anything(value: Any, where: Where) -> None:
    """Any JSON value."""


def empty(value: Any, where: Where) -> None:
    """A map without keys."""
    record()(value, where)


def duration(value: Any, where: Where) -> None:
    """`500ms`, `1.5s`, `2m`."""
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        where.fail(f"expected a duration such as 500ms, 1.5s or 2m, got {value!r}")


def one_of(*choices: Any) -> Shape:
    """One of some scalars; a bool is not an integer here."""

    def check(value: Any, where: Where) -> None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            where.fail(f"expected one of {', '.join(map(str, choices))}, got {value!r}")

    return check


def list_of(shape: Shape) -> Shape:
    def check(value: Any, where: Where) -> None:
        for index, item in enumerate(as_list(value, where)):
            _put(value, index, shape(item, where.item(value, index)))

    return check


def map_of(shape: Shape) -> Shape:
    """Any keys, all values of one shape."""

    def check(value: Any, where: Where) -> None:
        for key, item in as_map(value, where).items():
            _put(value, key, shape(item, where.key(value, key)))

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
            _put(value, key, known[key](item, where.key(value, key)))

    return check


def when(test: Callable[[Any], bool], shape: Shape, otherwise: Shape) -> Shape:
    """`shape` for the values that pass the test, else `otherwise`."""

    def check(value: Any, where: Where) -> Any:
        return (shape if test(value) else otherwise)(value, where)

    return check


def _put(owner: Any, place: Any, changed: Any) -> None:
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
        where.fail(f"expected a map, got {value!r}")
    return value


def as_list(value: Any, where: Where) -> Seq:
    if not isinstance(value, Seq):
        where.fail(f"expected a list, got {value!r}")
    return value


def known_keys(value: Map, where: Where, known: Iterable[str]) -> None:
    """Raise for the first unknown key, at its line."""
    allowed = sorted(known)
    for key in value:
        if key not in allowed:
            hint = f"known here: {', '.join(allowed)}" if allowed else "no keys are known here"
            Where(where.path, value.lines[key], where.what).fail(f"unknown key {key!r}; {hint}")
