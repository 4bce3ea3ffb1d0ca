"""What stays in the scrollback once it is certain, and what is only on the screen for now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rho_core.messages import Usage

CardState = Literal[
    "proposed", "running", "detached", "asking", "ok", "failed", "interrupted", "unavailable", "never ran"
]
LIVE: frozenset[CardState] = frozenset({"proposed", "running", "detached", "asking"})


@dataclass(slots=True)
class Card:
    """One tool call. It is live until its ToolFinished; `text` is the result."""

    call_id: str
    name: str
    arguments: str
    state: CardState = "proposed"
    progress: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def live(self) -> bool:
        """Is its end still to come?"""
        return self.state in LIVE


@dataclass(frozen=True, slots=True)
class Typed:
    """What the person said; `steer`: while a run went on."""

    text: str
    steer: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What the model said. `cut_off`: the response never came to its end."""

    text: str
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    """The summary of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """A call that is over."""

    card: Card


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and what was answered."""

    title: str
    answer: str


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of the program itself. `bad`: something went wrong."""

    text: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The last line of a run. `how`: the stop reason, or the name of the error."""

    how: str
    usage: Usage
    revision: int | None = None
    message: str = ""
    ok: bool = True


Entry = Typed | Said | Thought | Done | Answered | Note | Ended
