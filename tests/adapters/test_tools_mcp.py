"""MCP servers as tools, against real servers: child processes on stdio, streamable HTTP on loopback, both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from mcp_types import ElicitRequestURLParams, ToolAnnotations
from mcp_types import Tool as RemoteTool

from rho_adapters.tool import (
    Answers,
    HostInputRequest,
    PrepareFailure,
    ToolCall,
    ToolCancelled,
    ToolFailure,
)
from rho_adapters.tools.mcp import McpOptions, McpServer, McpTool
from rho_adapters.tools.mcp_call import OpenCall
from rho_adapters.tools.mcp_link import progress_text
from rho_core.inputs import Access
from tests.adapters.mcp_kit import (
    LEGACY,
    MODERN,
    MODES,
    SECONDS,
    Context,
    Journal,
    answers,
    by_name,
    http_server,
    journalling,
    over_http,
    raw,
    stdio,
)

pytestmark = pytest.mark.anyio
eras = pytest.mark.parametrize("era", [MODERN, LEGACY])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with http_server() as (url, _):
        yield url


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with journalling() as journal:
        yield journal


class Named:
    """A caller that only has a name."""

    name = "t"

    def __init__(self, **options: Any) -> None:
        self.options = McpOptions(**options)

    async def call(self, context: object, name: str, arguments: dict[str, Any]) -> str:
        return json.dumps(arguments)


def tool_of(name: str = "x", annotations: ToolAnnotations | None = None, **options: Any) -> McpTool:
    return McpTool(Named(**options), RemoteTool(name=name, input_schema={"type": "object"}, annotations=annotations))


# Declarations


@eras
async def test_tools_are_declared_as_the_server_lists_them(address: str, era: str) -> None:
    async with over_http(address, era, prefix="t_", asynchronous=frozenset({"add", "boom"})) as server:
        tools = await by_name(server)
        assert server.protocol == era and server.alive
    add = tools["add"].spec
    assert (add.name, add.description, add.asynchronous) == ("t_add", "Add two numbers.", True)
    assert add.parameters["properties"]["a"]["type"] == "integer"
    assert not tools["boom"].spec.asynchronous, "only read-only calls can be detached"
    assert tools["weather.report"].spec.name == "t_weather_report"
    assert tools["weather.report"].spec.description == "Weather"


@pytest.mark.parametrize(
    ("hints", "shared", "leave"),
    [
        (None, False, {"destructive", "always"}),
        (ToolAnnotations(read_only_hint=True, destructive_hint=True), True, {"declared", "always"}),
        (ToolAnnotations(destructive_hint=False), False, {"always"}),
        (ToolAnnotations(destructive_hint=True), False, {"destructive", "declared", "always"}),
    ],
)
async def test_hints_say_what_a_call_needs(hints: ToolAnnotations | None, shared: bool, leave: set[str]) -> None:
    for authorise in ("destructive", "declared", "always", "never"):
        plan = await tool_of("a.b", hints, authorise=authorise).prepare(ToolCall("c", "a_b", "{}"))
        assert plan.accesses == (Access("mcp:t", shared=shared),) and not plan.exclusive
        assert plan.capability == ("mcp:t:a.b" if authorise in leave else None)


@pytest.mark.parametrize(
    "arguments", ["", "{", "[1]", '"x"', '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud800"}', "[" * 9999]
)
async def test_arguments_are_one_object_that_can_be_sent(arguments: str) -> None:
    with pytest.raises(PrepareFailure, match="arguments of x"):
        await tool_of().prepare(ToolCall("c", "x", arguments))


# Results


@eras
async def test_results_and_failures(address: str, era: str) -> None:
    async with over_http(address, era) as server:
        tools = await by_name(server)
        assert await tools["add"].execute(Context("add", a=1, b=2)) == "3"
        assert await tools["picture"].execute(Context("picture")) == "look\n[image, image/png, 3 bytes, not shown]"
        weather = await tools["weather.report"].execute(Context("weather"))
        assert json.loads(weather) == {"city": "Paris", "degrees": 7.5}, "said once"
        with pytest.raises(ToolFailure, match="Error executing tool boom"):
            await tools["boom"].execute(Context("boom"))
        with pytest.raises(ToolFailure, match="valid integer"):
            await tools["add"].execute(Context("add", a="one", b=2))
        with pytest.raises(ToolFailure, match="nope"):
            await server.call(Context("nope"), "nope", {})
        for name, what in (("sampled", "sampling"), ("rooted", "roots")):
            with pytest.raises(ToolFailure, match=what):
                await tools[name].execute(Context(name))
        assert await tools["add"].execute(Context("add", a=2, b=2)) == "4", "no failure hurts the next call"


async def test_a_long_result_is_cut(address: str) -> None:
    async with over_http(address, MODERN, result_limit=4) as server:
        text = await server.call(Context("picture"), "picture", {})
    assert text == "look\n[39 more characters left out]"


async def test_headers_go_with_every_request(address: str) -> None:
    async with McpServer.http(address, {"Authorization": "Bearer b"}) as server:
        assert await server.call(Context("token"), "token", {}) == "Bearer b"


# Progress


@pytest.mark.parametrize("transport", ["stdio", "http"])
@eras
async def test_progress_is_told_in_order_and_before_the_result(address: str, era: str, transport: str) -> None:
    async with stdio(MODES[era]) if transport == "stdio" else over_http(address, era) as server:
        context = Context("count")
        assert await server.call(context, "count", {"n": 60}) == "counted"
    assert context.said == [f"{i}/60 step {i}" for i in range(1, 61)]


async def test_a_slow_reader_costs_no_memory_and_holds_nobody_up() -> None:
    gate = anyio.Event()
    slow = Context("flood", gate=gate)
    async with raw("legacy", progress_backlog=10) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.call, slow, "flood", {"count": 5000})
        with anyio.fail_after(SECONDS):
            while not slow.said:
                await anyio.sleep(0)
            await server.call(Context("pid"), "pid", {})  # answered after the flood
        gate.set()
    numbers = [int(text.split("/")[0]) for text in slow.said]
    assert numbers == sorted(numbers) and numbers[-1] == 5000, "the newest are kept, in order"
    assert len(numbers) <= 1 + 10


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"progress": 1, "total": 4, "message": "one"}, "1/4 one"),
        ({"progress": 1234567.0}, "1234567"),
        ({"progress": 0.25, "total": None, "message": 3}, "0.25"),
        ({"progress": 10**400, "total": float("inf"), "message": "far"}, "far"),
        ({"progress": True, "total": float("nan")}, ""),
    ],
)
def test_progress_is_shown_whatever_a_server_sends(params: dict[str, object], text: str) -> None:
    assert progress_text(params) == text


# Ends


@pytest.mark.parametrize("transport", ["stdio", "http"])
@eras
async def test_a_cancelled_task_cancels_at_the_server(address: str, journal: Journal, era: str, transport: str) -> None:
    async with stdio(MODES[era]) if transport == "stdio" else over_http(address, era) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.call, Context("wait"), "wait", {"journal": journal.port})
            assert await journal.next() == "started"
            tasks.cancel_scope.cancel()
        assert await journal.next() == "cancelled"
        assert await server.call(Context("add"), "add", {"a": 1, "b": 1}) == "2", "the connection is still good"


@eras
async def test_a_set_token_cancels_at_the_server(address: str, journal: Journal, era: str) -> None:
    context = Context("wait")

    async def cancel() -> None:
        assert await journal.next() == "started"
        context.token.cancel()

    async with over_http(address, era) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        with pytest.raises(ToolCancelled):
            await server.call(context, "wait", {"journal": journal.port})
        assert await journal.next() == "cancelled"


@eras
async def test_a_call_has_a_time_limit(address: str, journal: Journal, era: str) -> None:
    async with over_http(address, era, call_timeout=0.5) as server:
        with pytest.raises(ToolFailure, match=r"did not answer within 0\.5 s"):
            await server.call(Context("wait"), "wait", {"journal": journal.port})
        assert [await journal.next(), await journal.next()] == ["started", "cancelled"]


async def test_the_time_of_the_host_is_not_the_servers() -> None:
    async def slowly(request: HostInputRequest) -> Answers:
        await anyio.sleep(0.4)
        return answers(action="accept")

    call = OpenCall("t", Context("x", slowly), McpOptions(call_timeout=0.2))

    async def asking() -> str:
        return (await call.ask(ElicitRequestURLParams(message="?", url="https://example.org"))).action

    assert await call.run(asking) == "accept"

    late = OpenCall("t", Context("x", slowly), McpOptions(call_timeout=0.2))

    async def dawdling() -> str:
        await late.ask(ElicitRequestURLParams(message="?", url="https://example.org"))
        await anyio.sleep_forever()
        return "never"

    with pytest.raises(ToolFailure, match="did not answer within"):
        await late.run(dawdling)


async def test_calls_run_side_by_side(address: str, journal: Journal) -> None:
    results: list[str] = []
    open_gate = anyio.Event()

    async def hold(peer: SocketStream) -> None:
        await open_gate.wait()
        await peer.aclose()

    async def echo(server: McpServer, text: str, gate: int) -> None:
        arguments = {"journal": journal.port, "text": text, "gate": gate}
        results.append(await server.call(Context("echo"), "echo", arguments))

    async with (
        over_http(address, MODERN) as server,
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as gate,
    ):
        gate.start_soon(listener.serve, hold)
        port = listener.extra(SocketAttribute.local_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(echo, server, "a", port)
            tasks.start_soon(echo, server, "b", port)
            assert {await journal.next(), await journal.next()} == {"echo a", "echo b"}
            open_gate.set()
        gate.cancel_scope.cancel()
    assert sorted(results) == ["a", "b"]
