"""Tools without a model: the same preparation, authorisation, questions and cancellation, one call at a time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rho_adapters.host import Authorizer
from rho_adapters.provider import BaseProvider, ModelRequest
from rho_adapters.runtime.rho import Rho
from rho_adapters.runtime.run import Run
from rho_adapters.tool import Answers, HostInputRequest, Tool, ToolFailure
from rho_core import inputs as inp
from rho_core.events import Success, ToolFinished, ToolHostInputRequested, ToolUpdated
from rho_core.messages import Identity, Text, ToolCall

Ask = Callable[[HostInputRequest], Awaitable[Mapping[str, Sequence[str]]]]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Host:
    """Who answers questions of a tool and hears of its progress."""

    ask: Ask | None = None
    progress: Progress | None = None


class _Silent(BaseProvider):
    """A model that ends the turn: the machine of a run needs one after the host's call."""

    identity = Identity("none", "none", "none")

    async def stream(self, request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        yield request.returned((Text("-"),))


class ToolHost:
    """An async context in which tools can be called. Calls are concurrent: each has a session of its own."""

    def __init__(self, tools: Sequence[Tool], *, authorizer: Authorizer | None = None, host: Host = Host()) -> None:
        self._rho = Rho(_Silent(), tools, authorizer=authorizer)
        self._host = host
        self._stack = AsyncExitStack()

    async def call(self, name: str, arguments: Mapping[str, Any] | str = "{}", *, host: Host | None = None) -> str:
        """The result of one call. Raises ToolFailure when it failed or was denied, RunCancelled, RunInterrupted."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        session = self._rho.session()
        call = ToolCall("call-1", name, text)
        try:
            async with session.start_with_tool_call(call) as run:
                return await self._watch(run, host or self._host)
        finally:
            if not session.busy:
                self._rho.forget(session)

    async def _watch(self, run: Run, host: Host) -> str:
        result: ToolFinished | None = None
        async for event in run:
            if isinstance(event, ToolFinished):
                result = event
            elif isinstance(event, ToolUpdated) and host.progress is not None:
                host.progress(event.progress)
            elif isinstance(event, ToolHostInputRequested):
                await self._answer(run, host, event.request)
        await run.outcome()
        assert result is not None
        if isinstance(result.completion, Success):
            return result.completion.text
        raise ToolFailure(result.completion.text)

    async def _answer(self, run: Run, host: Host, request: HostInputRequest) -> None:
        if host.ask is None:
            run.cancel()
        else:
            run.respond(request.id, await host.ask(request))

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._rho)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, fault, trace)


__all__ = ["Answers", "Host", "ToolHost"]
