"""An MCP server for tests, run as a child process.

`python mcp_server.py` speaks on stdio, `python mcp_server.py http JOURNAL [PORT]` on loopback: it writes its own
port to the journal, once it listens. Tools that are to be observed take the port of a journal, to which each line
is sent as it happens.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress
from typing import Annotated, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.server.request_state import RequestStateSecurity
from mcp.types import ListRootsResult
from mcp_types import (
    CreateMessageResult,
    ImageContent,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

server = MCPServer(
    "tests", request_state_security=RequestStateSecurity(keys=[b"k" * 32], ttl=600), log_level="CRITICAL"
)
READS = ToolAnnotations(read_only_hint=True)
HARMLESS = ToolAnnotations(destructive_hint=False)


def note(port: int, line: str) -> None:
    """Send a line to a journal."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
        peer.sendall(line.encode() + b"\n")


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=READS)
def pid() -> int:
    """The server's process id."""
    return os.getpid()


@server.tool(annotations=HARMLESS)
async def count(n: int, context: Context) -> str:
    """Report progress n times, at once."""
    for i in range(n):
        await context.report_progress(i + 1, n, f"step {i + 1}")
    return "counted"


@server.tool()
async def wait(journal: int) -> str:
    """Wait for ever."""
    note(journal, "started")
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        note(journal, "cancelled")
        raise
    return "never"


@server.tool(annotations=READS)
async def echo(journal: int, text: str, gate: int) -> str:
    """Say so, wait until the gate port accepts a connection and closes it, and return the text."""
    note(journal, f"echo {text}")
    async with await anyio.connect_tcp("127.0.0.1", gate) as stream:
        with suppress(anyio.EndOfStream):
            await stream.receive()
    return text


@server.tool()
def boom() -> str:
    """Fail."""
    raise ValueError("kaput")


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def die() -> str:
    """End the process."""
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def shout(size: int) -> str:
    """Write to standard error."""
    sys.stderr.write("x" * size + "THE END\n")
    sys.stderr.flush()
    return "done"


@server.tool(structured_output=False)
def picture() -> list[TextContent | ImageContent]:
    """A text and a picture."""
    return [TextContent(text="look"), ImageContent(data="AAAA", mime_type="image/png")]


class Report(BaseModel):
    city: str
    degrees: float


@server.tool(name="weather.report", title="Weather")
def weather() -> Report:
    return Report(city="Paris", degrees=7.5)


class Sure(BaseModel):
    confirm: bool
    note: str = ""


async def ask_sure(path: str) -> Elicit[Sure]:
    return Elicit(f"Delete {path}?", Sure)


@server.tool()
async def delete(path: str, journal: int, sure: Annotated[ElicitationResult[Sure], Resolve(ask_sure)]) -> str:
    """Delete a file, if the user is sure. In both eras."""
    answer = sure.model_dump(mode="json")
    note(journal, f"delete {answer}")
    return f"{sure.action} {getattr(sure, 'data', None)!r}"


class Order(BaseModel):
    size: Literal["small", "large"]
    amount: int = Field(ge=1, le=9)
    price: float | None = None
    name: str = Field(min_length=2)
    toppings: list[Literal["ham", "corn"]] = []


async def ask_order() -> Elicit[Order]:
    return Elicit("What shall it be?", Order)


@server.tool()
async def order(order: Annotated[Order, Resolve(ask_order)]) -> str:
    """Order something."""
    return order.model_dump_json()


async def ask_model() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="hi"))], max_tokens=5)


@server.tool()
async def sampled(answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Needs the host's model."""
    return str(answer)


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def rooted(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Needs the host's folders."""
    return str(roots)


@server.tool()
async def impatient(journal: int, seconds: float, context: Context) -> str:
    """Ask while running (older protocols only), and wait so long for an answer."""
    try:
        with anyio.move_on_after(seconds):
            await context.elicit("Anyone there?", Sure)
    finally:
        note(journal, "gave up")
    return "went on"


@server.tool(annotations=READS)
def token(context: Context) -> str:
    """The bearer of the request, over HTTP."""
    return (context.headers or {}).get("authorization", "none")


def end_with_parent() -> None:
    """The other end of standard input is the test's: it closes however the test ends."""
    sys.stdin.read()
    os._exit(0)


def main(argv: list[str]) -> None:
    if argv[:1] != ["http"]:
        server.run("stdio")
        return
    import uvicorn  # here, for on stdio the time to start counts

    threading.Thread(target=end_with_parent, daemon=True).start()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", int(argv[2]) if argv[2:] else 0))
        listener.listen()
        app = server.streamable_http_app()
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
        note(int(argv[1]), str(listener.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
