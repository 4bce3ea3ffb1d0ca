"""Questions of the runtime to its environment, each with the FIFO of items that will answer it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.drivers.corework.runs import Run

Item = tuple[str, Any]
"""What is handed over: the name of the item and its value, as in the scenario."""

STOPPED = "stopped"
"""What a cooperative provider does by itself when its token is cancelled; no item of a scenario."""

TERMINAL = {
    "ModelCall": frozenset({"return", "fail", "panic", STOPPED}),
    "ToolPrepare": frozenset({"prepared", "prep_fail", "panic"}),
    "ToolAuthorize": frozenset({"authorize", "panic"}),
    "ToolExecute": frozenset({"return", "fail", "cancelled", "panic"}),
    "Compact": frozenset({"return", "fail", "interrupted", "panic"}),
}
"""The items that end an upcall."""


@dataclass(eq=False, slots=True)
class Upcall:
    """One upcall. It is over (`open` false) when it was answered or abandoned; what comes then is too late.

    `incarnation` tells sessions before and after a crash apart; `told`: its token was cancelled.
    `offered_to`: the state that last refused the head of the queue, so that it is not offered in vain.
    """

    kind: str
    run: Run | None
    incarnation: int
    call_id: str | None = None
    open: bool = True
    told: bool = False
    queue: deque[Item] = field(default_factory=deque)
    offered_to: object = None

    @property
    def fields(self) -> dict[str, Any]:
        """What says which upcall it is, in `Abandoned` and `Taken`."""
        return {} if self.call_id is None else {"call_id": self.call_id}

    def ends_with(self, kind: str) -> bool:
        """Whether this item is the answer."""
        return kind in TERMINAL[self.kind]

    def finish(self) -> None:
        """It is over; what still stood in the queue was never handed over."""
        self.open = False
        self.queue.clear()


@dataclass(eq=False, slots=True)
class ToolUpcall(Upcall):
    """Preparation, authorisation or executor of a call. `detachable`: its token is its own (RHO-CAN-3)."""

    name: str = ""
    arguments: str = "{}"
    detachable: bool = False


@dataclass(eq=False, slots=True)
class ModelUpcall(Upcall):
    """One logical request, and the clock readings of which the adapter makes the timing."""

    n: int = 0
    step: int = 0
    attempt: int = 0
    started_ms: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    granted: set[str] = field(default_factory=set)

    @property
    def fields(self) -> dict[str, Any]:
        return {"n": self.n}

    def saw(self, kind: str, now_ms: int) -> None:
        """Note when something was generated; a physical retry starts the measurement again."""
        if kind == "physical_retry":
            self.started_ms, self.first_ms, self.last_ms = now_ms, None, None
        elif kind in GENERATED:
            self.first_ms = now_ms if self.first_ms is None else self.first_ms
            self.last_ms = now_ms


GENERATED = frozenset({"delta", "reasoning", "summary", "call_delta"})
