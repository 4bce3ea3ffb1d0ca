"""The forms of scenario format §5, checked: values, operators, observation patterns, messages, sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rho_conformance.scenario.shapes import (
    Shape,
    Where,
    among,
    anything,
    as_map,
    flag,
    is_map,
    known_keys,
    list_of,
    map_of,
    put,
    record,
    said,
    text,
    true,
    when,
)
from rho_conformance.scenario.tree import Map, Seq
from rho_conformance.vocabulary import EVENTS, FIELDS

GAP = "..."
MAX = "max"

MESSAGE_FIELDS: dict[str, frozenset[str]] = {
    "assistant": frozenset({"text", "calls", "summary", "reasoning"}),
    "aborted": frozenset({"text", "calls", "tool_calls", "summary", "usage", "reasoning"}),
    "result": frozenset({"id", "ok", "text"}),
}
PLAIN_MESSAGES = ("system", "user")


def number(value: Any, where: Where) -> None:
    """What `$min` and `$max` compare with."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        where.fail(f"expected a number, got {said(value)}")


def part(value: Any, where: Where) -> None:
    """What `$prefix` and `$contains` look for: a text, for `3` may be part of 13 and of "3" alike."""
    if not isinstance(value, str):
        where.fail(f"expected a text, got {said(value)}; a number needs quotes here")


def value_pattern(value: Any, where: Where) -> None:
    """A scalar, a map (subset), a list (elementwise) or a one-key operator map."""
    if isinstance(value, Map) and any(key.startswith("$") for key in value):
        if len(value) != 1:
            where.fail(f"an operator stands alone in its map, got {', '.join(value)}")
        known_keys(value, where, OPERATORS)
        (operator,) = value
        OPERATORS[operator](value[operator], where.key(value, operator))
    elif isinstance(value, Map):
        map_of(value_pattern)(value, where)
    elif isinstance(value, Seq):
        list_of(value_pattern)(value, where)


OPERATORS: dict[str, Shape] = {
    "$any": true,
    "$absent": true,
    "$one_of": list_of(value_pattern),
    "$min": number,
    "$max": number,
    "$prefix": part,
    "$prefix_of": part,
    "$contains": part,
    "$lacks": part,
}


def is_operator(value: Any) -> bool:
    """Whether a value is an operator map."""
    return isinstance(value, dict) and any(key.startswith("$") for key in value)


def or_operator(shape: Shape) -> Shape:
    """A plain value of some shape, or an operator in its place."""
    return when(is_operator, value_pattern, shape)


operator_only: Shape = when(
    is_operator,
    value_pattern,
    lambda value, where: where.fail(f"expected an operator such as $contains, got {said(value)}"),
)


def observation_name(value: Any, where: Where) -> None:
    """A name that the protocol knows: a misspelt one would make `absent` hold for ever."""
    text(value, where)
    if value not in FIELDS:
        where.fail(f"there is no observation {said(value)}; {among(str(value), FIELDS)}")


def event_name(value: Any, where: Where) -> None:
    """A name that a reader can meet: `events` holds no other, and would wait for it in vain."""
    observation_name(value, where)
    if value not in EVENTS:
        where.fail(f"{value} is no event and never stands here; use order, count or absent")


def _named(naming: Shape) -> Shape:
    """`Name`, `{Name: {field: value}}` or `{event: Name, field: value}` with a name that `naming` takes."""

    def check(value: Any, where: Where) -> None:
        if isinstance(value, str):
            naming(value, where)
            return
        pattern = as_map(value, where)
        if "event" in pattern:
            naming(pattern["event"], where.key(pattern, "event"))
            _fields(pattern, where, pattern["event"], skip="event")
            return
        if len(pattern) != 1:
            got = ", ".join(pattern) or "none"
            where.fail(f"an observation pattern is one name with a map, got the keys {got}")
        (name,) = pattern
        naming(name, replace(where, line=pattern.lines[name]))
        place = where.key(pattern, name)
        _fields(as_map(pattern[name], place), place, name)

    return check


observation_pattern: Shape = _named(observation_name)
event_pattern: Shape = _named(event_name)


def _fields(pattern: Map, where: Where, name: str, skip: str = "") -> None:
    known_keys(pattern, where, FIELDS[name] | {skip} if skip else FIELDS[name])
    for key, value in pattern.items():
        if key != skip:
            value_pattern(value, where.key(pattern, key))


def message_pattern(value: Any, where: Where) -> None:
    """One message, fields as values with operators."""
    pattern = as_map(value, where)
    if len(pattern) != 1:
        where.fail(f"a message is one of {_MESSAGE_NAMES}, got the keys {', '.join(pattern) or 'none'}")
    known_keys(pattern, where, MESSAGE_SHAPES)
    (kind,) = pattern
    changed = or_operator(MESSAGE_SHAPES[kind])(pattern[kind], where.key(pattern, kind))
    if changed is not None:
        pattern[kind] = changed


def _message_fields(fields: frozenset[str]) -> Shape:
    return record(dict.fromkeys(sorted(fields), value_pattern))


MESSAGE_SHAPES: dict[str, Shape] = {
    **dict.fromkeys(PLAIN_MESSAGES, text),
    **{kind: _message_fields(fields) for kind, fields in MESSAGE_FIELDS.items()},
    "completions": list_of(text),
}
_MESSAGE_NAMES = ", ".join(MESSAGE_SHAPES)

_PLAIN_FIELDS: dict[str, Shape] = {
    "text": text,
    "calls": list_of(text),
    "summary": text,
    "ok": flag,
    "id": text,
    "usage": anything,
    "tool_calls": list_of(anything),
}


def message(value: Any, where: Where) -> None:
    """A message that the host hands over: all texts, no operators."""
    message_pattern(value, where)
    (kind,) = value
    place = where.key(value, kind)
    if kind in MESSAGE_FIELDS:
        known = {key: shape for key, shape in _PLAIN_FIELDS.items() if key in MESSAGE_FIELDS[kind]}
        record(known)(value[kind], place)
    else:
        MESSAGE_SHAPES[kind](value[kind], place)


def sequence_of(pattern: Shape) -> Shape:
    """A list of patterns, `...`, `{opt: P}` and `{set: [P…]}`."""

    def element(value: Any, where: Where) -> None:
        if value == GAP:
            return
        if isinstance(value, Map) and set(value) == {"opt"}:
            put(value, "opt", pattern(value["opt"], where.key(value, "opt")))
        elif isinstance(value, Map) and set(value) == {"set"}:
            list_of(pattern)(value["set"], where.key(value, "set"))
        else:
            pattern(value, where)

    return list_of(element)


def patterns_in(elements: Any) -> list[Any]:
    """All patterns of a sequence, those inside `opt` and `set` too."""
    found: list[Any] = []
    for element in as_list_or_empty(elements):
        if is_map(element) and set(element) == {"opt"}:
            found.append(element["opt"])
        elif is_map(element) and set(element) == {"set"}:
            found.extend(element["set"])
        elif element != GAP:
            found.append(element)
    return found


def as_list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def pattern_name(pattern: Any) -> str:
    """The observation that a checked pattern speaks of."""
    if isinstance(pattern, str):
        return pattern
    return str(pattern["event"]) if "event" in pattern else str(next(iter(pattern)))


def pattern_fields(pattern: Any) -> dict[str, Any]:
    """The fields that a checked pattern asks for."""
    if isinstance(pattern, str):
        return {}
    if "event" in pattern:
        return {key: value for key, value in pattern.items() if key != "event"}
    fields: dict[str, Any] = next(iter(pattern.values()))
    return fields


__all__ = [
    "GAP",
    "MAX",
    "OPERATORS",
    "event_pattern",
    "is_operator",
    "message",
    "message_pattern",
    "observation_pattern",
    "operator_only",
    "or_operator",
    "pattern_fields",
    "pattern_name",
    "patterns_in",
    "sequence_of",
    "value_pattern",
]
