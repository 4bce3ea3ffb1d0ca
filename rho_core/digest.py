"""A digest of any value of the core: equal values give equal bytes, in every process (design §3.7).

`hash()` is salted for text and recursive for records; this is neither. A stack of its own walks the value, so
that a long rope or a deep continuation cannot exhaust the interpreter's.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from functools import cache
from typing import Any

FLUSH = 1 << 16


def digest(value: Any) -> str:
    """SHA-256, in hex, over records, tuples, text, integers, booleans and None.

    Raises TypeError for anything else: what may differ between two processes, or change later, has no digest.
    """
    sha = hashlib.sha256()
    buffer = bytearray()
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):  # an enumeration of text equals its text, so it digests as its text
            _text(buffer, b"s", str.__str__(item))
        elif item is None:
            buffer += b"n"
        elif isinstance(item, bool):
            buffer += b"t" if item else b"f"
        elif isinstance(item, int):
            _text(buffer, b"i", hex(item))  # hex: decimal text is limited to 4,300 digits
        elif type(item) is tuple:
            buffer += b"(%d:" % len(item)
            todo.extend(reversed(item))
        else:
            cls: type = type(item)
            name, names = _shape(cls)
            _text(buffer, b"r", name)
            todo.extend(getattr(item, field) for field in reversed(names))
        if len(buffer) > FLUSH:
            sha.update(buffer)
            buffer.clear()
    sha.update(buffer)
    return sha.hexdigest()


def _text(buffer: bytearray, tag: bytes, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")  # streamed text may end between the halves of a pair
    buffer += b"%b%d:" % (tag, len(data))
    buffer += data


@cache
def _shape(cls: type) -> tuple[str, tuple[str, ...]]:
    """Qualified name and compared fields of a record class."""
    parameters = getattr(cls, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        raise TypeError(f"no digest of {cls.__module__}.{cls.__qualname__}: not a record, tuple, text, integer or None")
    return f"{cls.__module__}.{cls.__qualname__}", tuple(f.name for f in fields(cls) if f.compare)
