"""MCP servers as tools: the tools of a child process on stdio or of a streamable HTTP endpoint.

```python
async with McpServer.stdio("python", ["server.py"], name="files") as files:
    async with Rho(provider, tools=await files.tools()) as rho: ...
```

A tool that the server says is read-only shares the server with other such calls; every other one has it to itself
within a batch. What the server asks the user for (elicitation) becomes a host question, in both protocol eras:
2026-07-28, where a call returns its questions and is repeated with the answers, and 2025-11-25 and before, where
the server asks while the call runs. Sampling and roots are not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    ElicitRequestParams,
    ErrorData,
    InputRequiredResult,
    InputResponses,
)

from ..tool import ToolContext, ToolFailure
from .mcp_call import CURRENT, OpenCall, Reply
from .mcp_link import Link, describe, listed
from .mcp_options import McpError, McpOptions
from .mcp_result import result_text
from .mcp_rounds import Answered, converse
from .mcp_tool import McpTool
from .mcp_transport import Streams, Tail, over_http, over_stdio

__all__ = ["McpError", "McpOptions", "McpServer", "McpTool"]

SAID = 1_000
"""Characters of a child's standard error in the exception for a failed start."""

REASON_SECONDS = 0.2
"""To learn why a connection was lost, before a call says that it was."""

Opener = Callable[[Tail], AbstractAsyncContextManager[Streams]]


class McpServer:
    """An MCP server; it is started or reached when the context is entered, and ended with it.

    Entering raises McpError. `name`: what it is called in resources, capabilities, questions and failures.
    """

    def __init__(self, name: str, opener: Opener, options: McpOptions) -> None:
        self.name, self.options = name, options
        self._opener = opener
        self._stderr = Tail()
        self._calls: dict[str, OpenCall] = {}
        self._answered = Answered()
        self._closed = False
        self._tasks: TaskGroup
        self._link: Link | None = None

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        name: str | None = None,
        options: McpOptions | None = None,
    ) -> McpServer:
        """A child process. `env`: added to the few variables that a child inherits (PATH, HOME and the like)."""
        child = StdioServerParameters(command=command, args=list(args), env=None if env is None else dict(env), cwd=cwd)
        return cls(name or Path(command).name, partial(over_stdio, child), options or McpOptions())

    @classmethod
    def http(
        cls,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        options: McpOptions | None = None,
    ) -> McpServer:
        """A streamable HTTP endpoint. Without options it is connected to again when the connection was lost."""
        opener = partial(over_http, url, dict(headers or {}))
        return cls(name or "http", opener, options or McpOptions(restart=True))

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._closed = False
        link = self._link = self._connect()
        try:
            await link.ready.wait()
            if link.client is None:
                said = f"; it wrote: {self.stderr[-SAID:].strip()}" if self.stderr.strip() else ""
                raise McpError(self._no_connection(link) + said)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        """End the connection, and wait until nothing of it is left. Not told of the fault: it would be wrapped."""
        self._closed = True
        if self._link is not None:
            self._link.ended.set()
        await self._tasks.__aexit__(None, None, None)

    @property
    def alive(self) -> bool:
        """Is it connected?"""
        return self._link is not None and self._link.client is not None and not self._link.ended.is_set()

    @property
    def protocol(self) -> str | None:
        """The protocol version that was agreed on."""
        return None if self._link is None or self._link.client is None else self._link.client.protocol_version

    @property
    def stderr(self) -> str:
        """The end of what its child processes wrote to their standard error: for people, not for models."""
        return self._stderr.text

    async def tools(self) -> list[McpTool]:
        """Its tools, as it lists them now. Raises McpError."""
        try:
            link = await self._linked()
            assert link.client is not None
            remotes = await listed(link.client)
        except ToolFailure as fault:
            raise McpError(str(fault)) from fault
        except (MCPError, ValueError) as fault:
            raise McpError(f"MCP server {self.name!r}: {fault}") from fault
        tools = [McpTool(self, remote) for remote in remotes]
        names = [tool.spec.name for tool in tools]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise McpError(f"MCP server {self.name!r} has several tools that would be called {doubled[0]!r}")
        return tools

    async def call(self, context: ToolContext, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool by the server's name for it. Raises ToolFailure and ToolCancelled."""
        call = OpenCall(self.name, context, self.options)
        self._calls[call.token] = call
        try:
            return await call.run(partial(self._body, call, name, arguments))
        finally:
            del self._calls[call.token]

    async def _body(self, call: OpenCall, name: str, arguments: dict[str, Any]) -> str:
        send = partial(self._send, call, name, arguments)
        result = await converse(self.name, call, send, self._answered, self.options.rounds)
        text = result_text(result, self.options.result_limit)
        if result.is_error:
            raise ToolFailure(text or f"MCP server {self.name!r}: {name} failed and did not say why")
        return text

    async def _send(
        self,
        call: OpenCall,
        name: str,
        arguments: dict[str, Any],
        responses: InputResponses | None,
        state: str | None,
    ) -> CallToolResult | InputRequiredResult:
        """One request; never repeated here, whatever becomes of it."""
        link = await self._linked()
        assert link.client is not None
        try:
            return await link.client.session.call_tool(
                name,
                arguments,
                input_responses=responses,
                request_state=state,
                meta={"progress_token": call.token},
                allow_input_required=True,
            )
        except Exception as fault:  # the SDK lets many kinds through: of the transport, of validation, its own
            raise await self._failed(link, fault) from fault

    async def _failed(self, link: Link, fault: Exception) -> ToolFailure:
        """What a model is told of a request that came to nothing."""
        if isinstance(fault, MCPError) and fault.code == CONNECTION_CLOSED and not link.ended.is_set():
            with anyio.move_on_after(REASON_SECONDS):  # over HTTP the waiting calls hear of it before we do
                await link.ended.wait()
        if link.ended.is_set():
            return ToolFailure(
                f"MCP server {self.name!r} ended during the call, whose effects are unknown: {link.reason}"
            )
        return ToolFailure(f"MCP server {self.name!r}: {describe(fault)}")

    async def _linked(self) -> Link:
        """The connection, made again when it was lost and may be. Raises ToolFailure."""
        link = self._link
        if link is None:
            raise ToolFailure(f"MCP server {self.name!r} is not entered")
        if link.ended.is_set() and self.options.restart and not self._closed:
            await link.gone.wait()  # never two of them at a time
            if self._link is link:
                self._link = self._connect()
            link = self._link or link
        await link.ready.wait()
        if link.client is None:
            raise ToolFailure(self._no_connection(link))
        if link.ended.is_set():
            raise ToolFailure(f"MCP server {self.name!r} has ended: {link.reason}")
        return link

    def _no_connection(self, link: Link) -> str:
        return f"MCP server {self.name!r} cannot be connected to: {link.reason}"

    def _connect(self) -> Link:
        link = Link(self._calls)
        # Not `start`, which would end the task natively, past all shields, if a call waiting for it were cancelled.
        self._tasks.start_soon(self._hold, link)
        return link

    async def _hold(self, link: Link) -> None:
        """The life of one connection, in a task of its own: the SDK's scopes must be left where they were entered."""
        CURRENT.set(None)  # a call may have started this task
        seconds = self.options.connect_timeout
        try:
            with anyio.move_on_after(seconds) as scope:
                transport = link.tapped(self._opener(self._stderr))
                async with Client(
                    transport, mode=self.options.mode, cache=None, elicitation_callback=self._elicited
                ) as client:
                    await listed(client)  # the SDK wants to know a tool before it is called
                    scope.deadline = inf
                    link.client = client
                    link.ready.set()
                    await link.ended.wait()
            if scope.cancelled_caught and link.client is None:
                link.reason = f"the handshake was not done within {seconds:g} s"
        except Exception as fault:
            link.reason = describe(fault)
        finally:
            link.ended.set()
            link.ready.set()
            link.gone.set()

    async def _elicited(self, context: ClientRequestContext, params: ElicitRequestParams) -> Reply:
        """A question that the server asks while a call runs (2025-11-25 and before).

        Over stdio it does not say for which call. It is asked through the oldest open call, and through the next
        one when that call ends before there was an answer.
        """
        own = CURRENT.get()
        asked: set[str] = set()
        while True:
            open_calls = [own] if own is not None else list(self._calls.values())
            call = next((c for c in open_calls if c.token in self._calls and c.token not in asked), None)
            if call is None:
                return ErrorData(code=INVALID_REQUEST, message="no call is open that could ask")
            asked.add(call.token)
            reply = await call.ask_live(params)
            if reply is not None:
                return reply
