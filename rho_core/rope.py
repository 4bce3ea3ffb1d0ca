"""Append-only text and lists whose cost per append does not depend on what came before.

A short tail on a spine of equal-rank chunks (a binary counter): amortised O(log n) copies, depth log n, so that
`==`, `hash`, `repr` and `pickle` are safe at 100,000 deltas, which a chain of cells is not.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from .record import record

T = TypeVar("T")
TAIL_TEXT = 256
TAIL_ITEMS = 32

Spine = tuple[int, str, "Spine | None"]
"""(rank, chunk, older chunks of higher rank)."""


def carry(spine: Spine | None, chunk: str) -> Spine:
    """Push a full chunk, merging with chunks of the same rank."""
    rank = 0
    while spine is not None and spine[0] == rank:
        chunk = spine[1] + chunk
        spine = spine[2]
        rank += 1
    return (rank, chunk, spine)


def join(tail: str, spine: Spine | None) -> str:
    """The whole text."""
    parts = [tail]
    while spine is not None:
        parts.append(spine[1])
        spine = spine[2]
    parts.reverse()
    return "".join(parts)


@record
class Rope:
    """A text under construction."""

    tail: str = ""
    spine: Spine | None = None

    def append(self, text: str) -> Rope:
        """The rope with `text` at its end."""
        tail = self.tail + text
        if len(tail) < TAIL_TEXT:
            return Rope(tail, self.spine)
        return Rope("", carry(self.spine, tail))

    def text(self) -> str:
        """All of it, joined."""
        return join(self.tail, self.spine)

    def __bool__(self) -> bool:
        return bool(self.tail) or self.spine is not None


EMPTY = Rope()

ItemSpine = tuple[int, tuple[T, ...], "ItemSpine[T] | None"]


@record
class Items(Generic[T]):
    """A list under construction."""

    tail: tuple[T, ...] = ()
    spine: ItemSpine[T] | None = None

    def append(self, item: T) -> Items[T]:
        """The list with `item` at its end."""
        tail = (*self.tail, item)
        if len(tail) < TAIL_ITEMS:
            return Items(tail, self.spine)
        spine, rank = self.spine, 0
        while spine is not None and spine[0] == rank:
            tail = spine[1] + tail
            spine = spine[2]
            rank += 1
        return Items((), (rank, tail, spine))

    def items(self) -> tuple[T, ...]:
        """All of them, in order."""
        parts = [self.tail]
        spine = self.spine
        while spine is not None:
            parts.append(spine[1])
            spine = spine[2]
        parts.reverse()
        return tuple(item for part in parts for item in part)
