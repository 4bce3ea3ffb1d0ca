"""What the tests of MCP tools share: contexts without a runtime, a journal of what a server did, an HTTP server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

from rho_adapters.token import CancellationToken
from rho_adapters.tool import Answers, HostInputRequest, ToolCall
from rho_adapters.tools.mcp import McpOptions, McpServer, McpTool

HERE = Path(__file__).parent
SERVER, RAW = HERE / "mcp_server.py", HERE / "mcp_raw_server.py"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
MODES = {MODERN: "auto", LEGACY: "legacy"}
SECONDS = 20.0
"""No test waits longer for anything."""

Ask = Callable[[HostInputRequest], Awaitable[Answers]]


async def nobody(request: HostInputRequest) -> Answers:
    """A host that never answers."""
    await anyio.sleep_forever()
    raise AssertionError


class Context:
    """`ToolContext` whose host is a function; `said` is the progress, `asked` the questions."""

    detachable = False

    def __init__(self, name: str, ask: Ask = nobody, gate: anyio.Event | None = None, **arguments: object) -> None:
        self.call = ToolCall("c1", name, json.dumps(arguments))
        self.token = CancellationToken()
        self.said: list[str] = []
        self.asked: list[HostInputRequest] = []
        self.asking, self.withdrawn = anyio.Event(), anyio.Event()
        self._ask, self._gate = ask, gate

    async def progress(self, text: str) -> None:
        self.said.append(text)
        if self._gate is not None:
            await self._gate.wait()

    async def ask(self, request: HostInputRequest) -> Answers:
        self.asked.append(request)
        self.asking.set()
        try:
            return await self._ask(request)
        except anyio.get_cancelled_exc_class():
            self.withdrawn.set()
            raise


def answers(**given: str | tuple[str, ...]) -> Answers:
    """Answers by question; `action` stands for the question of that name."""
    named = {("@action" if key == "action" else key): value for key, value in given.items()}
    return tuple((key, (value,) if isinstance(value, str) else value) for key, value in named.items())


def saying(*turns: Answers) -> Ask:
    """A host that gives these answers, one a question."""
    left = list(turns)

    async def ask(request: HostInputRequest) -> Answers:
        return left.pop(0)

    return ask


class Journal:
    """Lines that servers send to `port` as things happen to them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._send, self._lines = anyio.create_memory_object_stream[str](100)

    async def next(self) -> str:
        """The next line."""
        with anyio.fail_after(SECONDS):
            return await self._lines.receive()

    def nothing(self) -> bool:
        """Has nothing else been written?"""
        return self._lines.statistics().current_buffer_used == 0

    async def read(self, peer: ByteReceiveStream) -> None:
        """Serve one writer."""
        line = await BufferedByteReceiveStream(peer).receive_until(b"\n", 10_000)
        self._send.send_nowait(line.decode())
        await peer.aclose()


@asynccontextmanager
async def journalling() -> AsyncIterator[Journal]:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        journal = Journal(listener.extra(SocketAttribute.local_port))
        tasks.start_soon(listener.serve, journal.read)
        yield journal
        tasks.cancel_scope.cancel()
        journal._send.close()
        journal._lines.close()


@contextmanager
def http_server(port: int = 0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Its address and its process, which is ended with the context."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)
        command = [sys.executable, str(SERVER), "http", str(listener.getsockname()[1]), str(port)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            peer, _ = listener.accept()
            with peer, peer.makefile() as lines:
                yield f"http://127.0.0.1:{int(lines.readline())}/mcp", process
        finally:
            process.kill()
            process.communicate()


def stdio(mode: str = "auto", *, script: Path = SERVER, args: tuple[str, ...] = (), **options: object) -> McpServer:
    """A server of this folder as a child process."""
    settings = McpOptions(mode=mode, **options)  # type: ignore[arg-type]
    return McpServer.stdio(sys.executable, [str(script), *args], name="t", options=settings)


def over_http(address: str, era: str, **options: object) -> McpServer:
    """The server at this address, spoken to as of that era."""
    return McpServer.http(address, name="t", options=McpOptions(mode=MODES[era], **options))  # type: ignore[arg-type]


def raw(mode: str, what: str = "tools", **options: object) -> McpServer:
    """The badly behaved one."""
    return stdio(mode, script=RAW, args=(what,), **options)


async def by_name(server: McpServer) -> dict[str, McpTool]:
    """Its tools by the server's names."""
    return {tool.remote.name: tool for tool in await server.tools()}


def running(pid: int) -> bool:
    """Is there such a process, dead or alive? A zombie counts: somebody has to reap it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
