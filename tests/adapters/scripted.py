"""Doubles for tests of the runtime: a provider that plays turns, tools that do as told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import anyio

from rho_adapters import BaseProvider, BaseTool, ModelRequest, ToolContext, ToolSpec
from rho_core import inputs as inp
from rho_core.messages import Identity, Text, ToolCall

Turn = Callable[[ModelRequest], AsyncIterator[inp.ModelInput]]


def says(*pieces: str) -> Turn:
    """A turn that streams these pieces and returns them as one text."""

    async def turn(request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        for piece in pieces:
            yield request.text(piece)
        yield request.returned((Text("".join(pieces)),))

    return turn


def asks(*calls: ToolCall, detached: bool = False) -> Turn:
    """A turn that asks for calls."""

    async def turn(request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        for index, call in enumerate(calls):
            yield request.call(index, call.id, call.name, call.arguments)
            if detached:
                yield request.detachable(call.id)
        yield request.returned(calls)

    return turn


def fails(fault: Exception, *pieces: str) -> Turn:
    """A turn that streams these pieces and then raises."""

    async def turn(request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        for piece in pieces:
            yield request.text(piece)
        raise fault

    return turn


def hangs(started: anyio.Event, *pieces: str) -> Turn:
    """A turn that streams these pieces and never ends."""

    async def turn(request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        for piece in pieces:
            yield request.text(piece)
        started.set()
        await anyio.sleep_forever()

    return turn


class Scripted(BaseProvider):
    """Plays one turn a request, in order. `requests`: what it was asked."""

    identity = Identity("scripted", "scripted", "scripted")

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.requests: list[ModelRequest] = []

    def stream(self, request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        self.requests.append(request)
        return self.turns.pop(0)(request)


class Does(BaseTool):
    """A tool that runs a function of its context."""

    def __init__(self, name: str, body: Callable[[ToolContext], Awaitable[str]], asynchronous: bool = False) -> None:
        self.spec = ToolSpec(name, asynchronous=asynchronous)
        self.body = body
        self.ran: list[str] = []

    async def execute(self, context: ToolContext) -> str:
        self.ran.append(context.call.id)
        return await self.body(context)


def call(id: str, name: str = "t", arguments: str = "{}") -> ToolCall:
    """A call."""
    return ToolCall(id, name, arguments)


def kinds(events: Sequence[object]) -> list[str]:
    """The kinds of events."""
    return [type(e).__name__ for e in events]
