"""What a host may lend a session: authorisation, compaction, boundary input, a ledger of usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rho_core.effects import BoundaryKind, RecordUsage
from rho_core.errors import Error
from rho_core.events import Trigger
from rho_core.messages import NO_USAGE, History, ToolCall, Usage

from .token import CancellationToken


class Authorizer(Protocol):
    """Who decides whether a call may use a capability."""

    async def authorize(self, call: ToolCall, capability: str) -> str | None:
        """None: it may. A text: it may not, and this is why. An exception is a panic: the run is interrupted (D30)."""


class DenyAll:
    """The default: nothing that needs a capability runs (RHO-HOST-*)."""

    async def authorize(self, call: ToolCall, capability: str) -> str | None:
        return "no policy allows it"


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What is to be made shorter, why, and the token that says when it is no longer wanted."""

    messages: History
    trigger: Trigger
    token: CancellationToken


@dataclass(frozen=True, slots=True)
class Compacted:
    """The replacement, never empty, and what it cost."""

    messages: History
    usage: Usage = NO_USAGE


class CompactionFailure(Exception):
    """The compactor failed; Cancelled and Interrupted have flows of their own (D11). Others are panics."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


class Compactor(Protocol):
    """Makes a history shorter. `cooperative`: on a cancel it is only told, and may still answer."""

    @property
    def cooperative(self) -> bool: ...

    async def compact(self, request: CompactionRequest) -> Compacted:
        """The replacement. Raises CompactionFailure."""


class CollectorGone(Exception):
    """The collector will never answer again."""


class BoundaryCollector(Protocol):
    """Asked at every boundary whether the host has something to say (RHO-BND-*)."""

    async def collect(self, boundary: BoundaryKind) -> str | None:
        """The input, or None. Raises CollectorGone."""

    def acknowledge(self, accepted: bool) -> None:
        """Was the input taken into the history?"""


class UsageRecorder(Protocol):
    """A ledger of physical requests; the run waits for each record, and a failure changes nothing (RHO-RET-11)."""

    async def record(self, record: RecordUsage) -> None: ...
