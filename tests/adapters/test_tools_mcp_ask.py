"""Elicitation of real MCP servers as host questions, in both protocol eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest

from rho_adapters.tool import (
    Answers,
    AskRefused,
    HostInputRequest,
    ToolFailure,
)
from rho_adapters.tools.mcp import McpServer
from tests.adapters.mcp_kit import (
    LEGACY,
    MODERN,
    SECONDS,
    Context,
    Journal,
    answers,
    http_server,
    journalling,
    over_http,
    raw,
    saying,
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


@eras
@pytest.mark.parametrize(
    ("given", "result"),
    [
        (answers(action="accept", confirm="true", note="now"), "accept Sure(confirm=True, note='now')"),
        (answers(confirm="false"), "accept Sure(confirm=False, note='')"),
        (answers(action="decline", confirm="true"), "decline None"),
        (answers(action="cancel"), "cancel None"),
        (answers(), "cancel None"),
    ],
)
async def test_an_elicitation_is_a_host_question(
    address: str, journal: Journal, era: str, given: Answers, result: str
) -> None:
    context = Context("delete", saying(given))
    async with over_http(address, era) as server:
        assert await server.call(context, "delete", {"path": "/x", "journal": journal.port}) == result
    assert (await journal.next()).startswith("delete") and journal.nothing(), "the body ran once"
    [request] = context.asked
    assert request.id == "c1/1" and request.title == "t: Delete /x?"
    assert [(q.id, q.required, q.allow_other) for q in request.questions] == [
        ("@action", False, False),
        ("confirm", False, False),
        ("note", False, True),
    ]
    assert [c.value for c in request.questions[1].choices] == ["true", "false"]


FULL = answers(size="large", amount="3", price="1.5", name="Bo", toppings=("ham", "corn"))


@eras
async def test_answers_become_what_the_schema_says(address: str, era: str) -> None:
    context = Context("order", saying(FULL))
    async with over_http(address, era) as server:
        result = json.loads(await server.call(context, "order", {}))
    assert result == {"size": "large", "amount": 3, "price": 1.5, "name": "Bo", "toppings": ["ham", "corn"]}
    questions = {q.id: q for q in context.asked[0].questions}
    assert [c.value for c in questions["size"].choices] == ["small", "large"] and not questions["size"].allow_other
    assert questions["toppings"].many and questions["amount"].allow_other
    assert questions["amount"].help == "at least 1, at most 9; required"


@eras
async def test_an_answer_that_does_not_fit_is_asked_for_again(address: str, era: str) -> None:
    few = answers(size="large", amount="10", name="Bo")
    short = answers(size="large", amount="3", name="B")
    context = Context("order", saying(few, short, FULL))
    async with over_http(address, era) as server:
        assert json.loads(await server.call(context, "order", {}))["amount"] == 3
    prompts = [request.questions[0].prompt for request in context.asked]
    assert "amount is at most 9, not 10" in prompts[1] and "the length of name is at least 2" in prompts[2]
    assert [request.id for request in context.asked] == ["c1/1", "c1/2", "c1/3"]


@eras
async def test_no_valid_answer_fails_the_call(address: str, era: str) -> None:
    context = Context("order", saying(answers(size="large"), answers(amount="many")))
    async with over_http(address, era, attempts=2) as server:
        with pytest.raises(ToolFailure, match="no valid answer"):
            await server.call(context, "order", {})
    assert len(context.asked) == 2


async def test_a_call_that_may_not_ask(address: str, journal: Journal) -> None:
    async def refused(request: HostInputRequest) -> Answers:
        raise AskRefused("detached")

    arguments = {"path": "/x", "journal": journal.port}
    async with over_http(address, MODERN) as server:
        with pytest.raises(ToolFailure, match="may not ask: detached"):
            await server.call(Context("delete", refused), "delete", arguments)
    assert journal.nothing(), "the body did not run"
    async with over_http(address, LEGACY) as server:
        assert await server.call(Context("delete", refused), "delete", arguments) == "cancel None"


@eras
async def test_a_call_that_ends_withdraws_its_question(address: str, journal: Journal, era: str) -> None:
    name, arguments = "delete", {"path": "/x", "journal": journal.port}
    if era == LEGACY:
        name, arguments = "impatient", {"seconds": 60, "journal": journal.port}
    context = Context(name)
    async with over_http(address, era) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.call, context, name, arguments)
            with anyio.fail_after(SECONDS):
                await context.asking.wait()
            tasks.cancel_scope.cancel()
        assert context.withdrawn.is_set()
        if era == LEGACY:
            assert await journal.next() == "gave up", "the server waits for no answer"
        assert await server.call(Context("add"), "add", {"a": 1, "b": 1}) == "2"
    assert journal.nothing()


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_that_stops_waiting_withdraws_its_question(
    address: str, journal: Journal, transport: str
) -> None:
    context = Context("impatient")
    async with stdio("legacy") if transport == "stdio" else over_http(address, LEGACY) as server:
        assert await server.call(context, "impatient", {"seconds": 0.3, "journal": journal.port}) == "went on"
    assert context.withdrawn.is_set() and len(context.asked) == 1


async def test_a_question_is_withdrawn_while_its_call_goes_on() -> None:
    context = Context("regrets")
    async with raw("legacy") as server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.call, context, "regrets", {})
        with anyio.fail_after(SECONDS):
            await context.asking.wait()
            await server.call(Context("withdraw"), "withdraw", {})
            await context.withdrawn.wait()
        await server.call(Context("let_go"), "let_go", {})


async def test_over_http_a_question_is_asked_by_its_own_call(address: str, journal: Journal) -> None:
    """The older of two open calls does not ask."""
    older, younger = Context("wait"), Context("delete", saying(answers(confirm="true")))
    async with over_http(address, LEGACY) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.call, older, "wait", {"journal": journal.port})
        assert await journal.next() == "started"
        result = await server.call(younger, "delete", {"path": "/x", "journal": journal.port})
        tasks.cancel_scope.cancel()
    assert result.startswith("accept") and not older.asked


async def test_over_stdio_a_question_goes_to_the_next_call_when_one_ends(journal: Journal) -> None:
    """There a server does not say for which call it asks."""
    older, younger = Context("hold"), Context("asks", saying(answers(action="accept", ok="true")))
    async with raw("legacy") as server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.call, older, "hold", {"journal": journal.port})
        assert await journal.next() == "held"
        result = json.loads(await server.call(younger, "asks", {}))
    assert result == {"action": "accept", "content": {"ok": True}}
    assert len(younger.asked) == 1 and (not older.asked or older.withdrawn.is_set())


async def test_a_state_is_answered_at_most_once(journal: Journal) -> None:
    yes = answers(ok="true")
    async with raw(MODERN) as server:
        first = Context("same_state", saying(yes, yes))
        with pytest.raises(ToolFailure, match="put a question again that had been answered"):
            await server.call(first, "same_state", {"journal": journal.port})
        assert await journal.next() == "answered"
        second = Context("same_state", saying(yes))
        with pytest.raises(ToolFailure, match="put a question again that had been answered"):
            await server.call(second, "same_state", {"journal": journal.port})
    assert len(first.asked) == 1 and not second.asked, "the host is not bothered either"
    assert journal.nothing(), "in no call"


async def test_two_calls_do_not_answer_one_state(journal: Journal) -> None:
    both, asked = anyio.Event(), 0

    async def together(request: HostInputRequest) -> Answers:
        nonlocal asked
        asked += 1
        if asked == 2:
            both.set()
        await both.wait()
        return answers(ok="true")

    failures: list[str] = []

    async def call(server: McpServer) -> None:
        with pytest.raises(ToolFailure) as failed:
            await server.call(Context("same_state", together), "same_state", {"journal": journal.port})
        failures.append(str(failed.value))

    async with raw(MODERN) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(call, server)
        tasks.start_soon(call, server)
    assert await journal.next() == "answered" and journal.nothing()
    assert len(failures) == 2


async def test_a_state_without_a_question_is_sent_back() -> None:
    async with raw(MODERN) as server:
        assert await server.call(Context("polling"), "polling", {}) == "polled"
    async with raw(MODERN, rounds=1) as server:
        with pytest.raises(ToolFailure, match="more input than 1 times"):
            await server.call(Context("polling"), "polling", {})


async def test_a_form_that_no_question_can_stand_for() -> None:
    context = Context("nested")
    async with raw(MODERN) as server:
        with pytest.raises(ToolFailure, match="cannot be asked for: the property 'a'"):
            await server.call(context, "nested", {})
    assert not context.asked
