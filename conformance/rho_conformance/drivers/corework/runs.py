"""A run as its host holds it: the channel with its reader, the outcome, the shared token."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from rho_core.effects import RunEnd
from rho_core.events import Event


@dataclass(eq=False, slots=True)
class Run:
    """`channel` holds what was sent and not yet taken; how much fits is the core's knowledge, not ours.

    `ended`: the stream is at its end; `seen_end`: its reader saw that. `gone`: no one will read (reader
    closed, process lost). `wanted`: events that the reader still takes in this step; `draining`: commands
    that wait for the outcome, for which events are thrown away.
    """

    name: str
    session: str
    channel: deque[Event] = field(default_factory=deque)
    ended: bool = False
    seen_end: bool = False
    gone: bool = False
    dropped: bool = False
    lost: bool = False
    token_cancelled: bool = False
    resolved: bool = False
    outcome: RunEnd | None = None
    wanted: int = 0
    draining: list[str] = field(default_factory=list)

    def leave(self) -> None:
        """No one will read any more."""
        self.gone = True
        self.channel.clear()

    def facts(self) -> str:
        """State of the run's shared token."""
        return "cancelled" if self.token_cancelled else "live"


@dataclass(frozen=True, slots=True)
class Command:
    """A host command that awaits its answer; the reply is filed under `name`."""

    stimulus: str
    name: str
    session: str
    run: Run | None = None


@dataclass(slots=True)
class Names:
    """Ids of the core <-> names of the scenario, which may use a name twice where an id is unique."""

    steers: dict[str, str] = field(default_factory=dict)
    steer_ids: dict[str, str] = field(default_factory=dict)

    def new_steer(self, name: str) -> str:
        """A fresh steering id, which is shown as `name`."""
        steering_id, k = name, 1
        while steering_id in self.steers:
            k += 1
            steering_id = f"{name}#{k}"
        self.steers[steering_id] = name
        self.steer_ids[name] = steering_id
        return steering_id

    def steer_id(self, name: str) -> str:
        """The newest steering id of that name; for an unknown name an id that no steer has."""
        return self.steer_ids.get(name, f"unknown:{name}")

    def steer(self, steering_id: str) -> str:
        """The name shown for an id."""
        return self.steers.get(steering_id, steering_id)

    def ask_id(self, name: str) -> str:
        """The id of a question: the same name is a clone of the same request."""
        return f"ask:{name}"

    def ask(self, request_id: str) -> str:
        """The name shown for a question."""
        return request_id.removeprefix("ask:")


Fields = dict[str, Any]
