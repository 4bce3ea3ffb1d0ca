"""What the conversation needs of a screen, be it a terminal or a pair of pipes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from rho_adapters.chat.asking import Asking
from rho_adapters.chat.entries import Entry
from rho_adapters.chat.view import View


@dataclass(frozen=True, slots=True)
class Line:
    """A line was typed, or came down the pipe."""

    text: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Ctrl-C."""


@dataclass(frozen=True, slots=True)
class End:
    """Ctrl-D, or the end of the pipe."""


Input = Line | Interrupt | End


class Screen(Protocol):
    """`live`: lines come while a run goes on as well, and those are steers."""

    @property
    def live(self) -> bool: ...

    def inputs(self) -> AsyncIterator[Input]:
        """What the person does. Where the screen is not live, the next line is read when it is asked for."""

    def add(self, entries: list[Entry]) -> None:
        """These stay."""

    def update(self, view: View | None, asking: Asking | None, status: str) -> None:
        """This is how it stands now: the run's view (None: no run), the open question, a word on the state."""
