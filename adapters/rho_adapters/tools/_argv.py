"""An argument vector from a template: values fill places, and never become options or further arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..tool import PrepareFailure
from ._schema import Arguments

Template = Sequence[str] | Callable[[Arguments], Sequence[str]]
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Argv:
    """A template of elements with "{field}" in them, or a function that makes the vector itself.

    An element that is one place alone takes a list as several elements and None as no element. A text that begins with
    "-" may not begin an element: the program would take it for an option. It may after an element "--".
    """

    def __init__(self, template: Template, names: Sequence[str]) -> None:
        if isinstance(template, str):
            raise ValueError("argv is a sequence of elements, not one text")
        self._template = template if callable(template) else tuple(template)
        if not callable(self._template):
            _check(self._template, names)

    def fill(self, arguments: Arguments) -> tuple[str, ...]:
        """The vector. Raises PrepareFailure for a value that cannot stand in one."""
        vector = self._vector(arguments)
        if any("\0" in element for element in vector):
            raise PrepareFailure("invalid arguments: a NUL character cannot be passed to a program")
        return vector

    def _vector(self, arguments: Arguments) -> tuple[str, ...]:
        if callable(self._template):
            return tuple(self._template(arguments))
        vector: list[str] = []
        for element in self._template:
            vector += _elements(element, arguments, guarded="--" not in vector)
        return tuple(vector)


def _check(template: Sequence[str], names: Sequence[str]) -> None:
    if not template or _PLACE.search(template[0]):
        raise ValueError("argv begins with a program, which no argument may choose")
    for element in template:
        for place in _PLACE.finditer(element):
            if place[1] not in names:
                raise ValueError(f"argv: there is no argument {place[1]!r}")


def _elements(element: str, arguments: Arguments, guarded: bool) -> list[str]:
    alone = _PLACE.fullmatch(element)
    if alone is not None:
        value = arguments[alone[1]]
        values = [] if value is None else value if isinstance(value, (list, tuple)) else [value]
        return [_first(alone[1], v, guarded) for v in values]
    leading = _PLACE.match(element)
    if leading is not None:
        _first(leading[1], arguments[leading[1]], guarded)
    return [_PLACE.sub(lambda place: _text(arguments[place[1]]), element)]


def _first(name: str, value: Any, guarded: bool) -> str:
    text = _text(value)
    if guarded and isinstance(value, str) and text.startswith("-"):
        raise PrepareFailure(f"invalid arguments: {name}: must not begin with '-'")
    return text


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
