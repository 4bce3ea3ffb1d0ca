"""One connection to an MCP server: what is read off it in passing, and its end.

The SDK starts a task for every notification, and the order in which a scheduler runs tasks is not the order on the
wire; nor does it tell when a server is gone. So the stream that it reads from is wrapped: progress and the end of
the stream are seen as they arrive.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import anyio
from mcp import Client, MCPError
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage
from mcp_types import METHOD_NOT_FOUND, JSONRPCNotification
from mcp_types import Tool as RemoteTool

from .mcp_call import OpenCall
from .mcp_result import clipped
from .mcp_transport import Streams

PROGRESS_CHARACTERS = 2_000

PAGES = 100
"""Pages of a tool list that are read; a longer list is an error."""

MOST = 10**15
"""Nobody counts further; and floats are whole numbers up to here."""

Item = SessionMessage | Exception


@dataclass(eq=False)
class Link:
    """`ready`: the handshake is over, one way or the other. `ended`: no more messages will come, or none are wanted.

    `gone`: everything of it is cleaned up. `calls`: open calls by progress token. `reason`: why it ended.
    """

    calls: Mapping[str, OpenCall]
    client: Client | None = None
    reason: str = "it closed the connection"
    ready: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    gone: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def tapped(self, transport: AbstractAsyncContextManager[Streams]) -> AsyncIterator[Streams]:
        """The transport, read through by this link."""
        async with transport as (read, write):
            yield Tapped(read, self), write

    def saw(self, item: Item) -> None:
        """Something arrived."""
        message = item.message if isinstance(item, SessionMessage) else None
        if not isinstance(message, JSONRPCNotification) or message.method != "notifications/progress":
            return
        params = message.params or {}
        token = params.get("progressToken")
        call = self.calls.get(token) if isinstance(token, str) else None
        if call is not None:
            call.report(clipped(progress_text(params), PROGRESS_CHARACTERS))


def progress_text(params: Mapping[str, object]) -> str:
    """`done/total message`, as far as the server says."""
    done, total, message = (params.get(key) for key in ("progress", "total", "message"))
    figures = "/".join(figure for figure in (_figure(done), _figure(total)) if figure)
    return " ".join(part for part in (figures, message if isinstance(message, str) else "") if part)


def _figure(value: object) -> str:
    """A number as people write it. The server's word: nothing here may fail, or the connection would."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST:
        return ""
    return str(int(value)) if value == int(value) else f"{value:g}"


class Tapped:
    """A stream of the SDK, read through; `last_context` is what the SDK looks for on its own HTTP streams."""

    def __init__(self, inner: ReadStream[Item], link: Link) -> None:
        self._inner, self._link = inner, link

    @property
    def last_context(self) -> object:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Item:
        try:
            item = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._link.ended.set()
            raise
        self._link.saw(item)
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def listed(client: Client) -> list[RemoteTool]:
    """All its tools, page by page. Raises MCPError, and ValueError for a list without end."""
    tools: list[RemoteTool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as fault:
            if fault.code == METHOD_NOT_FOUND:
                return []  # a server of prompts or resources alone
            raise
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools
    raise ValueError(f"its tool list has more than {PAGES} pages")


def describe(fault: BaseException) -> str:
    """The cause in one line; of a group, the first one."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    text = str(fault)
    return text if isinstance(fault, MCPError) and text else f"{type(fault).__name__}: {text}".rstrip(": ")
