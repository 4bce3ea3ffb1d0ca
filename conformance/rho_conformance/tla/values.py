"""TLA+ values as Python values: strings, numbers, booleans, tuples for sequences, frozen sets, records."""

from __future__ import annotations

import re
from collections.abc import Iterator

Value = str | int | bool | tuple["Value", ...] | frozenset["Value"]

_TOKEN = re.compile(r'\s*("[^"]*"|-?\d+|<<|>>|\|->|[\[\]{},]|\w+)')


class Record(tuple["Value", ...]):
    """Fields and values as pairs, in the order of the names: a tuple, and shown as a record."""

    __slots__ = ()


def record(**fields: Value) -> Value:
    """A TLA+ record."""
    return Record(sorted(fields.items()))


def parse(text: str) -> Value:
    """One value in the notation of TLC. ValueError for anything else."""
    tokens = _tokens(text)
    value = _value(next(tokens), tokens)
    if next(tokens) != "":
        raise ValueError(f"not one TLA+ value: {text!r}")
    return value


def _tokens(text: str) -> Iterator[str]:
    """The tokens, and then the empty one for ever."""
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"not a TLA+ value: {text!r}, at {at}")
        yield match[1]
        at = match.end()
    while True:
        yield ""


def _value(token: str, rest: Iterator[str]) -> Value:
    if token.startswith('"'):
        return token[1:-1]
    if token == "<<":
        return tuple(_items(">>", rest))
    if token == "{":
        return frozenset(_items("}", rest))
    if token == "[":
        return _record(rest)
    if token in ("TRUE", "FALSE"):
        return token == "TRUE"
    return int(token)


def _items(closing: str, rest: Iterator[str]) -> Iterator[Value]:
    token = next(rest)
    while token != closing:
        yield _value(token, rest)
        token = next(rest)
        if token == ",":
            token = next(rest)
        elif token != closing:
            raise ValueError(f"{token!r} where {closing!r} was to come")


def _record(rest: Iterator[str]) -> Value:
    fields: dict[str, Value] = {}
    token = next(rest)
    while token != "]":
        if next(rest) != "|->":
            raise ValueError(f"no value for the field {token!r}")
        fields[token] = _value(next(rest), rest)
        token = next(rest)
        if token == ",":
            token = next(rest)
        elif token != "]":
            raise ValueError(f"{token!r} in a record")
    return record(**fields)


def show(value: Value) -> str:
    """The value in the notation of TLA+."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(show, value))) + "}"
    if isinstance(value, Record):
        return "[" + ", ".join(f"{pair[0]} |-> {show(pair[1])}" for pair in value if isinstance(pair, tuple)) + "]"
    if isinstance(value, tuple):
        return "<<" + ", ".join(map(show, value)) + ">>"
    return str(value)
