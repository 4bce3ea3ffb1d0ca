"""Doubles for tests of tools: the context of one call, without a runtime around it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from rho_adapters.token import CancellationToken
from rho_adapters.tool import Answers, HostInputRequest, Tool, ToolCall


def call_of(tool: Tool, **arguments: object) -> ToolCall:
    """A call of the tool."""
    return ToolCall("c1", tool.spec.name, json.dumps(arguments))


class FakeContext:
    """`ToolContext` that remembers progress; `on_progress` may wait, as a full channel does."""

    detachable = False

    def __init__(
        self,
        tool: Tool,
        arguments: Mapping[str, object] = MappingProxyType({}),
        *,
        answers: Answers = (),
        on_progress: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.call = call_of(tool, **arguments)
        self.token = CancellationToken()
        self.said: list[str] = []
        self.asked: list[HostInputRequest] = []
        self._answers = answers
        self._on_progress = on_progress

    async def progress(self, text: str) -> None:
        self.said.append(text)
        if self._on_progress is not None:
            await self._on_progress(text)

    async def ask(self, request: HostInputRequest) -> Answers:
        self.asked.append(request)
        return self._answers
