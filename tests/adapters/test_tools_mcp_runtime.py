"""MCP tools through the whole runtime: plans, policy, questions, progress and cancellation, with a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

import anyio
import pytest

from rho_adapters import Rho, RunCancelled, ToolHost
from rho_adapters.errors import CommandRejected
from rho_adapters.runtime.toolhost import Host
from rho_adapters.tool import HostInputRequest, ToolFailure
from rho_adapters.tools import AllowList
from rho_adapters.tools.mcp import McpOptions, McpServer
from rho_core.events import ToolDetached, ToolFinished, ToolHostInputRequested, ToolUpdated
from rho_core.messages import ToolCall, ToolResult
from tests.adapters.mcp_kit import LEGACY, MODERN, MODES, Journal, by_name, http_server, journalling, stdio
from tests.adapters.scripted import Scripted, asks, says

pytestmark = pytest.mark.anyio
eras = pytest.mark.parametrize("era", [MODERN, LEGACY])

ANYTHING = AllowList(["mcp:t:*"])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with http_server() as (url, _):
        yield url


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with journalling() as journal:
        yield journal


def over_http(address: str, era: str) -> McpServer:
    options = McpOptions(mode=MODES[era], asynchronous=frozenset({"echo"}))
    return McpServer.http(address, name="t", options=options)


def call(id: str, name: str, **arguments: object) -> ToolCall:
    return ToolCall(id, name, json.dumps(arguments))


def results(rho_history: Sequence[object]) -> dict[str, tuple[bool, str]]:
    return {m.id: (m.ok, m.content) for m in rho_history if isinstance(m, ToolResult)}


@eras
async def test_a_tool_host_authorises_asks_and_hears(address: str, journal: Journal, era: str) -> None:
    said: list[str] = []
    asked: list[HostInputRequest] = []

    async def ask(request: HostInputRequest) -> Mapping[str, Sequence[str]]:
        asked.append(request)
        return {"confirm": ["true"], "note": ["go"]}

    arguments = {"path": "/x", "journal": journal.port}
    async with over_http(address, era) as server:
        tools = await server.tools()
        async with ToolHost(tools, authorizer=ANYTHING, host=Host(ask, said.append)) as host:
            assert await host.call("add", {"a": 1, "b": 2}) == "3"
            assert await host.call("count", {"n": 3}) == "counted"
            assert (await host.call("delete", arguments)).startswith("accept Sure(confirm=True, note='go')")
            with pytest.raises(ToolFailure, match="not valid JSON"):
                await host.call("add", '{"a": "\\ud800", "b": 1}')
        async with ToolHost(tools) as host:
            assert await host.call("add", {"a": 1, "b": 2}) == "3", "reading needs no leave"
            with pytest.raises(ToolFailure, match="mcp:t:delete"):
                await host.call("delete", arguments)
    assert said == ["1/3 step 1", "2/3 step 2", "3/3 step 3"]
    assert len(asked) == 1 and (await journal.next()).startswith("delete") and journal.nothing()


@eras
async def test_a_run_asks_its_host(address: str, journal: Journal, era: str) -> None:
    calls = (call("a", "add", a=1, b=2), call("b", "delete", path="/x", journal=journal.port), call("c", "boom"))
    provider = Scripted(asks(*calls), says("done"))
    async with over_http(address, era) as server, Rho(provider, await server.tools(), authorizer=ANYTHING) as rho:
        session = rho.session()
        async with session.start("go") as run:
            async for event in run:
                if isinstance(event, ToolHostInputRequested):
                    with pytest.raises(CommandRejected):
                        run.respond(event.request.id, {"confirm": ["perhaps"]})
                    run.respond(event.request.id, {"@action": ["decline"]})
            assert (await run.outcome()).text == "done"
    assert results(session.history) == {
        "a": (True, "3"),
        "b": (True, "decline None"),
        "c": (False, "Error executing tool boom"),
    }


@eras
async def test_cancelling_a_run_cancels_at_the_server(address: str, journal: Journal, era: str) -> None:
    provider = Scripted(asks(call("a", "wait", journal=journal.port)))
    async with over_http(address, era) as server, Rho(provider, await server.tools(), authorizer=ANYTHING) as rho:
        session = rho.session()
        async with anyio.create_task_group() as tasks, session.start("go") as run:

            async def cancel() -> None:
                assert await journal.next() == "started"
                run.cancel()

            tasks.start_soon(cancel)
            with pytest.raises(RunCancelled):
                await run.outcome()
        assert await journal.next() == "cancelled"
    assert results(session.history)["a"][0] is False


async def test_dropping_a_run_withdraws_its_question(address: str, journal: Journal) -> None:
    provider = Scripted(asks(call("a", "impatient", seconds=60, journal=journal.port)))
    async with over_http(address, LEGACY) as server, Rho(provider, await server.tools(), authorizer=ANYTHING) as rho:
        async with rho.session().start("go") as run:
            async for event in run:
                if isinstance(event, ToolHostInputRequested):
                    break
        assert await journal.next() == "gave up"


async def test_a_read_only_call_can_be_detached(address: str, journal: Journal) -> None:
    async def hold(peer: anyio.abc.SocketStream) -> None:
        await gate.wait()
        await peer.aclose()

    gate = anyio.Event()
    async with (
        over_http(address, MODERN) as server,
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, hold)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        echo = call("a", "echo", text="late", journal=journal.port, gate=port)
        provider = Scripted(asks(echo, detached=True), says("meanwhile"), says("then"))
        async with Rho(provider, await server.tools()) as rho:
            session = rho.session()
            seen: list[type] = []
            async with session.start("go") as run:
                async for event in run:
                    seen.append(type(event))
                    if isinstance(event, ToolDetached):
                        gate.set()
                await run.outcome()
            assert seen.index(ToolDetached) < seen.index(ToolFinished)
            assert results(session.history) == {"a": (True, "late")}
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_dead_server_is_a_failed_call_that_the_model_reads(mode: str) -> None:
    provider = Scripted(asks(call("a", "die")), asks(call("b", "count", n=1)), says("I see."))
    async with stdio(mode) as server:
        tools = await by_name(server)
        async with Rho(provider, list(tools.values()), authorizer=ANYTHING) as rho:
            session = rho.session()
            assert (await session.complete("go")).text == "I see."
    found = results(session.history)
    assert not found["a"][0] and "ended during the call" in found["a"][1]
    assert not found["b"][0] and "has ended" in found["b"][1]


async def test_progress_of_a_call_comes_before_its_end(address: str) -> None:
    provider = Scripted(asks(call("a", "count", n=5)), says("done"))
    async with (
        over_http(address, MODERN) as server,
        Rho(provider, await server.tools()) as rho,
        rho.session().start("go") as run,
    ):
        events = [e async for e in run if isinstance(e, ToolUpdated | ToolFinished)]
        await run.outcome()
    assert [e.progress for e in events[:-1] if isinstance(e, ToolUpdated)] == [f"{i}/5 step {i}" for i in range(1, 6)]
    assert isinstance(events[-1], ToolFinished)
