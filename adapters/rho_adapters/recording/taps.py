"""What stands between the runtime and what it calls, and writes down that it was called and how that ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio

from rho_adapters.host import Authorizer
from rho_adapters.provider import ModelRequest, Provider, Steering
from rho_adapters.token import CancellationToken
from rho_adapters.tool import Answers, AskRefused, HostInputRequest, Plan, Tool, ToolCall, ToolContext, ToolSpec
from rho_core import inputs as inp
from rho_core.messages import Identity
from rho_core.normal import encode

Json = dict[str, Any]


class Book(Protocol):
    """Where it is written."""

    def opened(self, kind: str, key: str, fields: Json) -> None:
        """An upcall began. `key`: the call, or the number of the request."""

    def left(self, kind: str, key: str) -> None:
        """It is over. Where the runtime did not get its answer, it was abandoned."""

    def saw(self, name: str, fields: Json) -> None:
        """Something else was observed."""

    def number(self) -> int:
        """The number of the next request."""

    def answered(self, request_id: str, answers: Answers) -> Json:
        """What a tool got, as it is written."""

    def steer_name(self, steering_id: str) -> str:
        """The name of a steer."""


class TappedProvider:
    """A provider; `inner` does the work."""

    def __init__(self, inner: Provider, book: Book) -> None:
        self.inner, self._book = inner, book

    @property
    def identity(self) -> Identity:
        return self.inner.identity

    @property
    def cooperative(self) -> bool:
        return self.inner.cooperative

    @property
    def steerable(self) -> bool:
        return self.inner.steerable

    async def stream(self, request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        """Raises what the provider raises."""
        n = self._book.number()
        shown = {
            "n": n,
            "step": request.step,
            "attempt": request.attempt,
            "messages": encode.messages(request.messages),
            "tools": [tool.name for tool in request.tools],
        }
        self._book.opened("ModelCall", str(n), shown)
        if request.steering is not None:
            request.steering = TappedSteering(request.steering, self._book, n)
        inner = self.inner.stream(request)
        try:
            async for item in inner:
                yield item
        finally:
            await _close(inner)
            self._book.left("ModelCall", str(n))


class TappedSteering:
    """The claims of a steerable provider."""

    def __init__(self, inner: Steering, book: Book, n: int) -> None:
        self._inner, self._book, self._n = inner, book, n

    def claim(self, steering_id: str) -> bool:
        granted = self._inner.claim(steering_id)
        self._saw("claim", steering_id, granted)
        return granted

    def release(self, steering_id: str) -> None:
        self._inner.release(steering_id)
        self._saw("release", steering_id, True)

    def _saw(self, item: str, steering_id: str, granted: bool) -> None:
        name = self._book.steer_name(steering_id)
        self._book.saw("SteerClaim", {"n": self._n, "item": item, "id": name, "granted": granted})


class TappedTool:
    """A tool; `inner` does the work."""

    def __init__(self, inner: Tool, book: Book) -> None:
        self.inner, self._book = inner, book

    @property
    def spec(self) -> ToolSpec:
        return self.inner.spec

    async def prepare(self, call: ToolCall) -> Plan:
        """Raises what the tool raises."""
        async with _upcall(self._book, "ToolPrepare", call):
            return await self.inner.prepare(call)

    async def execute(self, context: ToolContext) -> str:
        """Raises what the tool raises."""
        async with _upcall(self._book, "ToolExecute", context.call):
            return await self.inner.execute(TappedContext(context, self._book))


class TappedContext:
    """The context of an execution: what the tool is answered is written down."""

    def __init__(self, inner: ToolContext, book: Book) -> None:
        self._inner, self._book = inner, book

    @property
    def call(self) -> ToolCall:
        return self._inner.call

    @property
    def token(self) -> CancellationToken:
        return self._inner.token

    @property
    def detachable(self) -> bool:
        return self._inner.detachable

    async def progress(self, text: str) -> None:
        await self._inner.progress(text)

    async def ask(self, request: HostInputRequest) -> Answers:
        where = {"call_id": self.call.id, "ask": request.id}
        try:
            answers = await self._inner.ask(request)
        except AskRefused:
            self._book.saw("AskRefused", where)
            raise
        self._book.saw("HostAnswer", {**where, **self._book.answered(request.id, answers)})
        return answers


class TappedAuthorizer:
    """An authorizer; `inner` decides."""

    def __init__(self, inner: Authorizer, book: Book) -> None:
        self.inner, self._book = inner, book

    async def authorize(self, call: ToolCall, capability: str) -> str | None:
        async with _upcall(self._book, "ToolAuthorize", call):
            return await self.inner.authorize(call, capability)


@asynccontextmanager
async def _upcall(book: Book, kind: str, call: ToolCall) -> AsyncIterator[None]:
    shown = {"call_id": call.id, "name": call.name, "arguments": encode.arguments(call.arguments)}
    book.opened(kind, call.id, shown)
    try:
        yield
    except anyio.get_cancelled_exc_class():
        book.left(kind, call.id)
        raise


async def _close(stream: Any) -> None:
    close: Callable[[], Any] | None = getattr(stream, "aclose", None)
    if close is not None:
        with anyio.CancelScope(shield=True):
            await close()
