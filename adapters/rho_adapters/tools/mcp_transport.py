"""The ways to reach an MCP server: a child process on stdio, or streamable HTTP.

The SDK ends a child with its owner: it closes the child's input, waits, then terminates and at last kills the
child's process group, all of it bounded and shielded from cancellation.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import httpx2
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

STDERR_BYTES = 16 * 1024
"""How much of a child's standard error is kept: the last bytes."""

HTTP_SECONDS = 30.0
"""To connect, and to write. Reading has no limit of its own: a call has one."""


class Tail:
    """The last bytes that child processes wrote to their standard error."""

    def __init__(self) -> None:
        self._kept = bytearray()

    @property
    def text(self) -> str:
        return self._kept.decode(errors="replace")

    async def follow(self, descriptor: int) -> None:
        """Read until nobody holds the other end."""
        while True:
            await anyio.wait_readable(descriptor)
            if not self._read(descriptor):
                return

    def rest(self, descriptor: int) -> None:
        """Read what the pipe still holds; bounded, for a process that left the group may go on writing."""
        for _ in range(64):
            try:
                if not self._read(descriptor):
                    return
            except BlockingIOError:
                return

    def _read(self, descriptor: int) -> int:
        piece = os.read(descriptor, STDERR_BYTES)
        self._kept += piece
        del self._kept[:-STDERR_BYTES]
        return len(piece)


@asynccontextmanager
async def over_stdio(parameters: StdioServerParameters, stderr: Tail) -> AsyncIterator[Streams]:
    """A child process, its standard error read into `stderr`. Raises OSError when it cannot be started."""
    source, sink = os.pipe()
    os.set_blocking(source, False)
    async with AsyncExitStack() as stack:
        stack.callback(os.close, source)
        with os.fdopen(sink, "w") as errlog:  # ours is closed once the child has its own
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            stack.callback(stderr.rest, source)
            streams = await stack.enter_async_context(stdio_client(parameters, errlog))
        tasks.start_soon(stderr.follow, source)
        yield streams


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], _stderr: Tail) -> AsyncIterator[Streams]:
    """A client of its own for one endpoint; `headers` go with every request."""
    timeout = httpx2.Timeout(HTTP_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=timeout) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
