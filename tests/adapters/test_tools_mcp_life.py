"""The life of an MCP server: start, death, restart and end of real child processes and a real HTTP server."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import anyio
import mcp.client.stdio
import pytest

from rho_adapters.tool import Answers, HostInputRequest, ToolFailure
from rho_adapters.tools.mcp import McpError, McpServer
from rho_adapters.tools.mcp_transport import STDERR_BYTES, Tail
from tests.adapters.mcp_kit import (
    SECONDS,
    Context,
    answers,
    http_server,
    journalling,
    raw,
    running,
    saying,
    stdio,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("restart", [False, True])
async def test_a_server_that_dies_in_a_call(restart: bool) -> None:
    async with stdio(restart=restart) as server:
        first = int(await server.call(Context("pid"), "pid", {}))
        with pytest.raises(ToolFailure, match="ended during the call, whose effects are unknown"):
            await server.call(Context("die"), "die", {})
        if restart:
            second = int(await server.call(Context("pid"), "pid", {}))
            assert second != first and not running(first)
            first = second
        else:
            assert not server.alive
            with pytest.raises(ToolFailure, match="has ended: it closed the connection"):
                await server.call(Context("add"), "add", {"a": 1, "b": 1})
            with pytest.raises(McpError, match="has ended"):
                await server.tools()
        assert "last words" in server.stderr
    assert not running(first)
    with pytest.raises(ToolFailure, match="has ended"):
        await server.call(Context("add"), "add", {"a": 1, "b": 1})


async def test_two_processes_never_run_side_by_side() -> None:
    async with raw("legacy", restart=True) as server:
        first = int(await server.call(Context("pid"), "pid", {}))
        with pytest.raises(ToolFailure, match="ended during the call"):
            await server.call(Context("close"), "close", {})
        await server.call(Context("pid"), "pid", {})
        assert not running(first)


async def test_a_call_that_restarted_the_server_is_not_asked_for_others() -> None:
    asking = Context("asks", saying(answers(ok="true")))
    async with raw("legacy", restart=True) as server:
        with pytest.raises(ToolFailure, match="ended during the call"):
            await server.call(Context("die"), "die", {})
        await server.call(Context("pid"), "pid", {})
        assert json.loads(await server.call(asking, "asks", {}))["action"] == "accept"


async def test_an_answer_reaches_a_server_that_was_restarted_meanwhile() -> None:
    """In the 2026 era a server keeps nothing while it waits: what it needs comes back with the answer."""
    async with stdio(restart=True) as server, journalling() as journal:
        first = int(await server.call(Context("pid"), "pid", {}))

        async def slow_host(request: HostInputRequest) -> Answers:
            os.kill(first, signal.SIGKILL)
            with anyio.fail_after(SECONDS):
                while server.alive:
                    await anyio.sleep(0.01)
            return answers(confirm="true")

        context = Context("delete", slow_host)
        result = await server.call(context, "delete", {"path": "/x", "journal": journal.port})
        assert result.startswith("accept") and len(context.asked) == 1
        assert (await journal.next()).startswith("delete") and journal.nothing()
        assert int(await server.call(Context("pid"), "pid", {})) != first


async def test_the_time_to_connect_is_no_time_to_live() -> None:
    async with raw("legacy", connect_timeout=1.0) as server:
        await anyio.sleep(1.1)
        assert server.alive and int(await server.call(Context("pid"), "pid", {})) > 0


async def test_a_lost_http_server_is_connected_to_again() -> None:
    with http_server() as (url, process):
        server = McpServer.http(url, name="t")
        async with server, journalling() as journal, anyio.create_task_group() as tasks:

            async def lost() -> None:
                with pytest.raises(ToolFailure, match="MCP server 't'"):
                    await server.call(Context("wait"), "wait", {"journal": journal.port})
                with pytest.raises(ToolFailure, match="MCP server 't'"):
                    await server.call(Context("add"), "add", {"a": 1, "b": 1})
                with http_server(int(url.split(":")[2].split("/")[0])):
                    assert await server.call(Context("add"), "add", {"a": 1, "b": 1}) == "2"

            tasks.start_soon(lost)
            assert await journal.next() == "started"
            process.kill()


async def test_leaving_ends_the_child_whatever_the_reason() -> None:
    async with raw("legacy") as server:
        pid = int(await server.call(Context("pid"), "pid", {}))
        assert running(pid)
    assert not running(pid)

    with pytest.raises(ZeroDivisionError):
        async with raw("legacy") as server:
            pid = int(await server.call(Context("pid"), "pid", {}))
            raise ZeroDivisionError
    assert not running(pid)

    with anyio.CancelScope() as scope:
        async with raw("legacy") as server:
            pid = int(await server.call(Context("pid"), "pid", {}))
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught and not running(pid)


async def test_a_child_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp.client.stdio, "PROCESS_TERMINATION_TIMEOUT", 0.1)
    monkeypatch.setattr(mcp.client.stdio, "FORCE_KILL_TIMEOUT", 0.1)
    async with raw("legacy", "deaf") as server:
        pid = int(await server.call(Context("pid"), "pid", {}))
    assert not running(pid)


async def test_a_server_that_never_answers_the_handshake() -> None:
    with pytest.raises(McpError, match=r"the handshake was not done within 0\.5 s; it wrote: pid \d+") as failed:
        async with raw("legacy", "silent", connect_timeout=0.5):
            raise AssertionError("it is not connected")
    assert not running(int(str(failed.value).rsplit(" ", 1)[1]))


async def test_a_server_that_does_not_start() -> None:
    with pytest.raises(McpError, match=r"(?s)Connection closed; it wrote: .*no configuration"):
        async with raw("legacy", "exits"):
            raise AssertionError("it is not connected")
    with pytest.raises(McpError, match="FileNotFoundError"):
        async with McpServer.stdio("/no/such/command"):
            raise AssertionError("it is not connected")
    with pytest.raises(McpError, match="ConnectError"):
        async with McpServer.http("http://127.0.0.1:9/mcp"):
            raise AssertionError("it is not connected")


async def test_standard_error_is_read_and_bounded() -> None:
    async with stdio() as server:
        assert await server.call(Context("shout"), "shout", {"size": 300_000}) == "done", "it does not block"
    assert server.stderr.endswith("THE END\n") and len(server.stderr) == STDERR_BYTES


def test_the_rest_of_a_pipe_is_read() -> None:
    source, sink = os.pipe()
    try:
        os.set_blocking(source, False)
        os.write(sink, b"x" * 40_000 + b"last")
        tail = Tail()
        tail.rest(source)  # the other end is still open
        assert tail.text == "x" * (STDERR_BYTES - 4) + "last"
    finally:
        os.close(source)
        os.close(sink)


async def test_rubbish_hurts_only_the_call_it_answers() -> None:
    async with raw("legacy") as server:
        with pytest.raises(ToolFailure, match="ValidationError"):
            await server.call(Context("rubbish"), "rubbish", {})
        assert int(await server.call(Context("pid"), "pid", {})) > 0


async def test_environment_and_folder(tmp_path: Any) -> None:
    program = "import os, sys; sys.stderr.write(os.getcwd() + ' ' + os.environ['COLOUR'])"
    server = McpServer.stdio(sys.executable, ["-c", program], env={"COLOUR": "red"}, cwd=tmp_path)
    with pytest.raises(McpError, match=f"{tmp_path} red"):
        async with server:
            raise AssertionError("it is not a server")
