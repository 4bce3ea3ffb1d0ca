"""The one shape of every machine: `step(state, input) -> Step(state, effects)` (design §3.1)."""

from __future__ import annotations

from typing import Generic, TypeVar

from .effects import Effect
from .record import record

S = TypeVar("S")


@record
class Step(Generic[S]):
    """The state after an input, and what the interpreter is to do now, in order."""

    state: S
    effects: tuple[Effect, ...]
