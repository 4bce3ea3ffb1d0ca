"""One call of a synchronous batch: a small pure machine that never emits (RHO-ORD-5, RHO-ORD-6, RHO-CAN-12).

A slot's `stage` says how far the call has come and what the reader knows of it:

    preparing -> prepared -> (ToolStarted) -> authorizing -> ready -> running -> returned -> (ToolFinished) -> done
              -> refused  -> (ToolStarted) ------------------------------------> returned -> (ToolFinished) -> done
    unavailable ---------------------------------------------------------------------------> (ToolFinished) -> done
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .errors import ToolErrorKind
from .events import Failure, Success, ToolCompletion, Unavailable
from .inputs import Plan
from .messages import INTERRUPTED, ToolCall, ToolResult
from .record import record

Stage = Literal[
    "preparing",
    "prepared",
    "refused",
    "unavailable",
    "authorizing",
    "ready",
    "running",
    "returned",
    "panicked",
    "done",
]

WORKING: frozenset[Stage] = frozenset({"preparing", "authorizing", "running"})
"""Stages in which something outside is at work for the call, and must be stopped."""

STARTED: frozenset[Stage] = frozenset({"authorizing", "ready", "running", "returned", "panicked", "done"})
"""Stages after the delivery of ToolStarted (an unavailable call passes from its stage to done directly)."""

INTERRUPTED_COMPLETION = Failure(ToolErrorKind.CANCELLED, INTERRUPTED)


def unavailable_text(name: str) -> str:
    """The fixed text for a tool nobody registered (RHO-ORD-6)."""
    return f"tool '{name}' is unavailable"


def denied_text(capability: str, reason: str) -> str:
    """The fixed text of a denied authorisation (rho.md 1.6)."""
    return f"{capability} capability denied: {reason}"


@record
class Slot:
    """`completion` is stored before its ToolFinished is sent, so that a finished call is never lost."""

    call: ToolCall
    stage: Stage
    plan: Plan = Plan()
    completion: ToolCompletion | None = None

    def at(self, stage: Stage) -> Slot:
        """The same call, further on."""
        return Slot(self.call, stage, self.plan, self.completion)

    def ending(self, stage: Stage, completion: ToolCompletion) -> Slot:
        """The same call with its completion."""
        return Slot(self.call, stage, self.plan, completion)


def opened(call: ToolCall, available: bool) -> Slot:
    """A slot for a proposed call."""
    return Slot(call, "preparing" if available else "unavailable")


def prepared(slot: Slot, plan: Plan) -> Slot:
    return Slot(slot.call, "prepared", plan)


def refused(slot: Slot, message: str) -> Slot:
    """Preparation failed: the call is announced with default metadata and fails (RHO-ORD-5)."""
    return slot.ending("refused", Failure(ToolErrorKind.EXECUTION, message))


def started(slot: Slot) -> Slot:
    """ToolStarted was delivered."""
    if slot.stage == "refused":
        return slot.at("returned")
    return slot.at("authorizing" if slot.plan.capability is not None else "ready")


def denied(slot: Slot, reason: str) -> Slot:
    text = denied_text(slot.plan.capability or "", reason)
    return slot.ending("returned", Failure(ToolErrorKind.POLICY_DENIED, text))


def announced(slot: Slot) -> bool:
    """Was ToolStarted delivered and ToolFinished not: the tail of a cancelled run owes one (D2)."""
    return slot.stage in STARTED and slot.stage != "done"


def result(slot: Slot) -> ToolResult:
    """What history says of the call: its completion, else the interrupted text."""
    return result_of(slot.call.id, slot.completion or INTERRUPTED_COMPLETION)


def result_of(call_id: str, completion: ToolCompletion) -> ToolResult:
    """Success(text) is ok; Failure and Unavailable are not."""
    return ToolResult(call_id, isinstance(completion, Success), completion.text)


def find(slots: tuple[Slot, ...], call_id: str, stages: Iterable[Stage]) -> int:
    """Index of the slot of that id at one of those stages; -1 for none (a late or stray input)."""
    for index, slot in enumerate(slots):
        if slot.call.id == call_id and slot.stage in stages:
            return index
    return -1


def put(slots: tuple[Slot, ...], index: int, slot: Slot) -> tuple[Slot, ...]:
    """The batch with one slot replaced."""
    return (*slots[:index], slot, *slots[index + 1 :])


def unavailable(slot: Slot) -> Slot:
    """Store the fixed completion; the slot stays where it is until ToolFinished is delivered."""
    return slot.ending("unavailable", Unavailable(unavailable_text(slot.call.name)))
