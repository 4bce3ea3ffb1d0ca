"""Sample arguments for a JSON Schema: plausible values, the required ones only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DEPTH = 4
"""How deep objects are followed; a schema may contain itself."""

_TEXTS: tuple[tuple[tuple[str, ...], tuple[str, str]], ...] = (
    (("city", "place", "town", "location", "where"), ("Rome", "Oslo")),
    (("country",), ("Italy", "Norway")),
    (("path", "file", "folder", "directory"), ("/tmp/notes.txt", "/tmp/list.txt")),
    (("url", "link", "address"), ("http://localhost/a", "http://localhost/b")),
    (("command", "cmd", "shell"), ("ls", "pwd")),
    (("date", "day"), ("2025-03-01", "2025-07-14")),
    (("time", "hour"), ("08:30", "17:15")),
    (("mail",), ("ann@example.org", "ben@example.org")),
    (("name", "user", "person", "who"), ("Ann", "Ben")),
    (("query", "question", "search", "topic", "term"), ("blue whales", "old maps")),
    (("expression", "formula"), ("3 * 5", "20 - 14")),
)
_OTHER = ("apple", "pear")
_INTEGERS = ((3, 20), (5, 14), (8, 2))
_NUMBERS = ((2.5, 0.5), (1.5, 4.5))

Schema = Mapping[str, Any]


def arguments_of(schema: Schema, variant: int = 0) -> dict[str, Any]:
    """One object that the schema allows, as far as it is understood. `variant`: 0 or 1."""
    return _object(schema, schema, variant, DEPTH)


def spoken(arguments: Mapping[str, Any]) -> str:
    """The values as a person would say them: `3 and 5`."""
    said = [_said(v) for v in arguments.values()]
    return " and ".join([", ".join(said[:-1]), said[-1]]) if len(said) > 1 else "".join(said)


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return spoken(value)
    if isinstance(value, list):
        return ", ".join(_said(v) for v in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _object(schema: Schema, root: Schema, variant: int, depth: int) -> dict[str, Any]:
    properties = _mapping(schema.get("properties"))
    required = [n for n in schema.get("required", ()) if n in properties]
    names = required or list(properties)[:1]  # a call that sets nothing would show nothing
    return {n: _value(n, _mapping(properties[n]), root, variant, place, depth) for place, n in enumerate(names)}


def _value(name: str, given: Schema, root: Schema, variant: int, place: int, depth: int) -> Any:
    """A value for the property `name`, which is the `place`th."""
    schema = _resolved(given, root)
    for key in ("examples", "enum"):
        listed = schema.get(key)
        if isinstance(listed, Sequence) and listed:
            return listed[variant % len(listed)]
    if "const" in schema:
        return schema["const"]
    match schema.get("type"):
        case "integer":
            return _INTEGERS[place % len(_INTEGERS)][variant % 2]
        case "number":
            return _NUMBERS[place % len(_NUMBERS)][variant % 2]
        case "boolean":
            return variant % 2 == 0
        case "array":
            item = _mapping(schema.get("items"))
            return [_value(name, item, root, variant, place, depth - 1)] if depth > 0 else []
        case "object":
            return _object(schema, root, variant, depth - 1) if depth > 0 else {}
        case "null":
            return None
        case _:
            return _text(name, variant, place)


def _text(name: str, variant: int, place: int) -> str:
    for hints, values in _TEXTS:
        if any(hint in name.lower() for hint in hints):
            return values[variant % 2]
    return _OTHER[(variant + place) % 2]


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Follow references into `$defs`, and take the first of several shapes."""
    for _ in range(DEPTH):
        reference, shapes = schema.get("$ref"), schema.get("anyOf") or schema.get("oneOf")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            schema = _mapping(_mapping(root.get("$defs")).get(reference.removeprefix("#/$defs/")))
        elif isinstance(shapes, Sequence) and shapes:
            schema = _mapping(shapes[0])
        else:
            break
    return schema


def _mapping(value: Any) -> Schema:
    return value if isinstance(value, Mapping) else {}
