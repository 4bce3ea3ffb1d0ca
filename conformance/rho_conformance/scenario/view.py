"""What a judgement looks at, and how it says where a sequence stopped matching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rho_conformance.scenario.book import Book
from rho_conformance.scenario.match import match_sequence
from rho_conformance.scenario.normalise import show, show_near
from rho_conformance.trace import Trace


@dataclass(frozen=True, slots=True)
class View:
    """What a judgement looks at. `snapshot` is the JSON text of one taken for it, when a key asks for one."""

    trace: Trace
    book: Book
    snapshot: str | None = None


def sequence_complaint(
    wanted: list[Any], items: Sequence[Any], fits: Callable[[Any, Any], bool], text: Callable[[Any], str]
) -> str | None:
    """Why `items` do not match the sequence `wanted`, with what was seen near; None when they do."""
    mismatch = match_sequence(wanted, items, fits)
    if mismatch is None:
        return None
    near = show_near([text(item) for item in items], mismatch.position)
    if mismatch.element is None:
        return f"left over after the last element: {near}"
    return f"element {mismatch.element + 1}, {show(wanted[mismatch.element])}, was not found; near it: {near}"
