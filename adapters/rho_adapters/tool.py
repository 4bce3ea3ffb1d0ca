"""What a tool is to the runtime: a declaration, a preparation that says what it needs, and an executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rho_core.asks import Answers, HostInputRequest
from rho_core.inputs import Plan
from rho_core.messages import ToolCall

from .token import CancellationToken

__all__ = [
    "Answers",
    "AskRefused",
    "BaseTool",
    "HostInputRequest",
    "Plan",
    "PrepareFailure",
    "Tool",
    "ToolCall",
    "ToolCancelled",
    "ToolContext",
    "ToolFailure",
    "ToolSpec",
    "unprepared",
]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool. `parameters`: the JSON Schema of one object.

    `asynchronous`: its calls may be detached and go on while the model continues (RHO-ORD-7).
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    asynchronous: bool = False


class PrepareFailure(Exception):
    """The arguments do not do; the call fails with this text and is never executed."""


class ToolFailure(Exception):
    """The call failed; its text is the result (ok false). Any other exception is a panic of the tool."""


class ToolCancelled(Exception):
    """The tool heeded its token: the call ends with `Failure(Cancelled)`."""


class AskRefused(Exception):
    """The tool may not ask: the id is used up in this batch, or the call is detached (RHO-COORD-3)."""


class ToolContext(Protocol):
    """What an executor may use while it runs. `token`: the run's, or the job's own when the call is detached."""

    @property
    def call(self) -> ToolCall: ...

    @property
    def token(self) -> CancellationToken: ...

    @property
    def detachable(self) -> bool: ...

    async def progress(self, text: str) -> None:
        """Say how far it is; waits while the reader is behind (RHO-BUF-4)."""

    async def ask(self, request: HostInputRequest) -> Answers:
        """Put a question to the host and wait for its answer. Raises AskRefused.

        Being cancelled while waiting withdraws the question (RHO-HOST-5).
        """


class Tool(Protocol):
    """A tool. Both methods run in tasks of their own, which are cancelled when the call is."""

    @property
    def spec(self) -> ToolSpec: ...

    async def prepare(self, call: ToolCall) -> Plan:
        """What the call needs: resources, a capability to be authorised. Raises PrepareFailure."""

    async def execute(self, context: ToolContext) -> str:
        """Do it, once. Raises ToolFailure or ToolCancelled."""


def unprepared(spec: ToolSpec) -> Plan:
    """The plan of a tool that says nothing of what it touches: it runs alone, unless it is to be detached (PLAN)."""
    return Plan(exclusive=not spec.asynchronous)


class BaseTool:
    """A tool that says nothing of what it touches."""

    spec: ToolSpec

    async def prepare(self, call: ToolCall) -> Plan:
        """Everything may be touched; nothing is to be authorised."""
        return unprepared(self.spec)
