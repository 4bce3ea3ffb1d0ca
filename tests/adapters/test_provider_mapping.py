"""Requests as a real server receives them, and streams as the run is told of them."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from rho_adapters import InvalidConfiguration, Rho, ToolSpec
from rho_adapters.providers import AnthropicMessages, Compatible, OpenAIChat, OpenAIResponses
from rho_adapters.providers._mapping import Meter, Pieces, adjacent
from rho_core import inputs as inp
from rho_core.errors import ProviderErrorKind
from rho_core.events import NotReported, Reported
from rho_core.ledger import PENDING
from rho_core.messages import (
    AbortedAssistant,
    Assistant,
    History,
    Identity,
    Image,
    PartialCall,
    ProviderContext,
    System,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
    user,
)
from tests.adapters.scripted import Does
from tests.adapters.wire_kit import (
    ANTHROPIC,
    CHAT,
    COMPATIBLE,
    DIALECTS,
    END,
    HEAD,
    RESPONSES,
    STOP,
    Answer,
    Dialect,
    ask,
    block_delta,
    block_start,
    block_stop,
    calls,
    chat_chunk,
    chat_usage,
    cheap_tls,
    chunk,
    event,
    item_added,
    item_done,
    message_delta,
    message_start,
    peer,
    request_for,
    response_end,
    streaming,
    text_delta,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cheap_tls")]


__all__ = ["cheap_tls"]  # a fixture, by its import


dialects = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)

WEATHER = ToolSpec("weather", "Tells the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
SLOW = ToolSpec("slow", asynchronous=True)
OTHER = Identity("somebody", "else", "x")


async def sent(dialect: Dialect, messages: History, **more: Any) -> dict[str, Any]:
    """The body that the server of this dialect receives."""
    settings = more.pop("settings", None)
    tools, cache_key = more.pop("tools", ()), more.pop("cache_key", "")
    async with peer(streaming(dialect.whole)) as server:
        provider = dialect.provider(server.url, settings=settings, **more)
        answer = await ask(provider, request_for(provider, messages, tools, cache_key))
    assert answer.text == "Hello"
    return server.bodies[0]


async def told(dialect: Dialect, *events: str, tools: tuple[ToolSpec, ...] = (), **more: Any) -> Answer:
    """What is made of a stream of these events."""
    async with peer(streaming("".join(events))) as server:
        provider = dialect.provider(server.url, **more)
        return await ask(provider, request_for(provider, tools=tools))


CALLS = (ToolCall("a", "weather", '{"city":"Paris"}'), ToolCall("b", "slow", "{}"))
TALK: History = (
    System("Be brief."),
    user("hi"),
    Assistant((Text("Let me see."), *CALLS)),
    ToolResult("a", True, "7C"),
    ToolResult("b", False, "broke"),
    User((Text("and this?"), Image("QUJD", "image/png"))),
    AbortedAssistant((Text("I was"), CALLS[0]), "thinking", (), (PartialCall("z", "weather", "{"),)),
    user("go on"),
)


# --- requests ---------------------------------------------------------------------------------------------------


async def test_a_conversation_as_chat_completions() -> None:
    body = await sent(CHAT, TALK, tools=(WEATHER,), cache_key="k1", max_tokens=50, settings={"temperature": 0})
    arguments = [("a", "weather", '{"city":"Paris"}'), ("b", "slow", "{}")]
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in arguments
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "7C"},
        {"role": "tool", "tool_call_id": "b", "content": "broke"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            ],
        },
        {"role": "assistant", "content": "I was"},
        {"role": "user", "content": "go on"},
    ]
    function = {"name": "weather", "description": "Tells the weather.", "parameters": WEATHER.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]
    rest = {k: v for k, v in body.items() if k not in ("messages", "tools")}
    assert rest == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "prompt_cache_key": "k1",
        "max_completion_tokens": 50,
        "temperature": 0,
    }


async def test_a_compatible_server_gets_nothing_unusual() -> None:
    body = await sent(COMPATIBLE, (user("hi"),), cache_key="k1", max_tokens=50)
    assert set(body) == {"model", "messages", "stream", "stream_options", "max_tokens"}


def spoken(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


async def test_a_conversation_as_responses() -> None:
    body = await sent(RESPONSES, TALK, tools=(WEATHER,), cache_key="k1", max_tokens=50, settings={"top_p": 1})
    assert body["input"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        spoken("Let me see."),
        {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city":"Paris"}'},
        {"type": "function_call", "call_id": "b", "name": "slow", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "7C"},
        {"type": "function_call_output", "call_id": "b", "output": "broke"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "and this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
            ],
        },
        spoken("I was"),
        {"role": "user", "content": [{"type": "input_text", "text": "go on"}]},
    ]
    rest = {k: v for k, v in body.items() if k not in ("input", "tools")}
    assert rest == {
        "model": "m",
        "stream": True,
        "store": False,
        "prompt_cache_key": "k1",
        "max_output_tokens": 50,
        "top_p": 1,
    }
    assert body["tools"][0]["name"] == "weather" and body["tools"][0]["strict"] is False


async def test_a_conversation_as_messages() -> None:
    body = await sent(ANTHROPIC, TALK, tools=(WEATHER,), cache_key="k1", max_tokens=50, settings={"temperature": 0})
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "b", "name": "slow", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "is_error": False, "content": "7C"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": True, "content": "broke"},
                {"type": "text", "text": "and this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "I was"}]},
        {"role": "user", "content": [{"type": "text", "text": "go on"}]},
    ]
    schema = {"name": "weather", "description": "Tells the weather.", "input_schema": WEATHER.parameters}
    rest = {k: v for k, v in body.items() if k != "messages"}
    assert rest == {
        "model": "m",
        "stream": True,
        "max_tokens": 50,
        "system": "Be brief.",
        "tools": [schema],
        "temperature": 0,
    }


async def test_blank_text_and_foreign_ids_are_not_sent_to_anthropic() -> None:
    talk = (user("hi"), Assistant((Text(" "), ToolCall("fc|1.x", "t", "[]"))), ToolResult("fc|1.x", True, ""))
    body = await sent(ANTHROPIC, talk)
    assert body["messages"][1:] == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "fc_1_x", "name": "t", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "fc_1_x", "is_error": False}]},
    ]


@dialects
async def test_lone_surrogates_never_leave(dialect: Dialect) -> None:
    talk = (System("s\ud800"), user("a\udfffb"), Assistant((ToolCall("c", "t", '{"x":"\ud800"}'),)))
    body = await sent(dialect, (*talk, ToolResult("c", True, "r\ud83d")), tools=(ToolSpec("t", "d\ud800"),))
    assert "\ufffd" in json.dumps(body, ensure_ascii=False)
    json.dumps(body, ensure_ascii=False).encode()


def test_an_answer_stands_behind_its_call() -> None:
    """The result of a detached call comes as a user message; in its place is what the model read while it ran."""
    a, b = ToolCall("A", "slow", "{}"), ToolCall("B", "weather", "{}")
    talk = (user("q"), Assistant((a, b)), ToolResult("B", True, "7C"), Assistant((Text("so far"),)))
    view = list(adjacent((*talk, ToolResult("A", True, "done"))))
    assert view == [
        talk[0],
        talk[1],
        ToolResult("A", True, PENDING),
        ToolResult("B", True, "7C"),
        talk[3],
        user("Result of slow (call A):\ndone"),
    ]


def test_a_late_answer_among_others_comes_behind_them() -> None:
    a, b = ToolCall("A", "slow", "{}"), ToolCall("B", "weather", "{}")
    talk = (Assistant((a,)), user("more"), Assistant((b,)), ToolResult("A", False, "no"), ToolResult("B", True, "7C"))
    assert list(adjacent(talk)) == [
        Assistant((a,)),
        ToolResult("A", True, PENDING),
        user("more"),
        Assistant((b,)),
        ToolResult("B", True, "7C"),
        user("Failure of slow (call A):\nno"),
    ]


@dialects
def test_a_provider_says_who_it_is(dialect: Dialect) -> None:
    provider = dialect.make()
    assert provider.identity.model == "m"
    assert not provider.cooperative and not provider.steerable
    assert repr(provider) == f"{type(provider).__name__}({provider.identity.provider}, {provider.identity.api}, m)"


def test_what_cannot_be_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for make in (OpenAIChat, OpenAIResponses, AnthropicMessages):
        with pytest.raises(InvalidConfiguration, match="API key"):
            make("m")
        with pytest.raises(InvalidConfiguration, match="messages"):
            make("m", api_key="k" * 9, settings={"messages": []})
    assert Compatible("m", "http://127.0.0.1:1/v1").identity == Identity("compatible", "chat_completions", "m")


async def test_the_key_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    for dialect in DIALECTS:
        async with peer(streaming(dialect.whole)) as server:
            await ask(dialect.provider(server.url, api_key=None))
        assert "from-the-environment" in server.heads[0]


async def test_a_client_of_the_caller_keeps_its_retries_for_itself() -> None:
    async with peer([b"HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n"]) as server:
        theirs = openai.AsyncOpenAI(api_key="mine-and-mine", base_url=server.url, max_retries=2)
        other = anthropic.AsyncAnthropic(api_key="mine-and-mine", base_url=server.url, max_retries=2)
        for provider in (OpenAIChat("m", client=theirs), AnthropicMessages("m", client=other)):
            answer = await ask(provider)
            assert answer.error is not None
        assert len(server.bodies) == 2
        for client in (theirs, other):
            assert not client.is_closed()
            await client.close()


# --- streams: text and calls ------------------------------------------------------------------------------------


def fragment(index: int | None, id: str | None = None, name: str | None = None, arguments: str | None = None) -> str:
    function = {"name": name, "arguments": arguments}
    place = {} if index is None else {"index": index}
    return chat_chunk({"tool_calls": [{**place, "id": id, "type": "function", "function": function}]})


FINISH = chat_chunk(finish="tool_calls")


async def test_parallel_calls_of_chat_completions_interleave() -> None:
    answer = await told(
        CHAT,
        chat_chunk({"content": "Wait."}),
        fragment(0, "a", "weather", ""),
        fragment(1, "b", "slow", ""),
        fragment(0, arguments='{"city":'),
        fragment(1, arguments="{"),
        fragment(0, arguments='"Paris"}'),
        fragment(1, arguments="}"),
        FINISH,
        tools=(WEATHER, SLOW),
    )
    assert answer.content == (Text("Wait."), *CALLS)
    assert [(d.index, d.id, d.name, d.arguments) for d in answer.of(inp.CallDelta)] == [
        (0, "a", "weather", ""),
        (1, "b", "slow", ""),
        (0, None, None, '{"city":'),
        (1, None, None, "{"),
        (0, None, None, '"Paris"}'),
        (1, None, None, "}"),
    ]
    marks = [c.data for c in answer.of(inp.ContextBlock)]
    assert marks == ["b"] and isinstance(answer.items[-1], inp.ModelReturned)


async def test_calls_of_servers_that_count_badly() -> None:
    same = (fragment(0, "a", "weather", "{}"), fragment(0, "b", "slow", "{}"))
    none = (fragment(None, "a", "weather", "{}"), fragment(None, "b", "slow", "{"), fragment(None, None, None, "}"))
    again = (fragment(0, "a", "weather", "{"), fragment(0, "a", "weather", "}"), fragment(1, "b", "slow", "{}"))
    for events in (same, none, again):
        answer = await told(COMPATIBLE, *events, FINISH)
        assert calls(answer) == [("a", "weather", "{}"), ("b", "slow", "{}")]


@pytest.mark.parametrize("arguments", ["", '{"city": "Par', "not json", "[]"])
@dialects
async def test_arguments_pass_as_they_are(dialect: Dialect, arguments: str) -> None:
    """None at all are an empty object; what is no object is for the core to judge."""
    stream = {
        "chat": fragment(0, "a", "weather", arguments) + chat_chunk(finish="length"),
        "responses": item_added(0, type="function_call", call_id="a", name="weather", arguments="")
        + event("response.function_call_arguments.delta", output_index=0, item_id="i", delta=arguments)
        + response_end("response.incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "anthropic": message_start()
        + block_start(0, type="tool_use", id="a", name="weather", input={})
        + block_delta(0, type="input_json_delta", partial_json=arguments)
        + message_delta("max_tokens")
        + STOP,
    }[dialect.name]
    answer = await told(dialect, stream)
    assert calls(answer) == [("a", "weather", arguments or "{}")]


async def test_calls_of_the_messages_api() -> None:
    answer = await told(
        ANTHROPIC,
        message_start(),
        block_start(0, type="text", text="Wa"),
        block_delta(0, type="text_delta", text="it."),
        block_stop(0),
        block_start(1, type="tool_use", id="a", name="weather", input={}),
        block_delta(1, type="input_json_delta", partial_json='{"city":'),
        block_delta(1, type="input_json_delta", partial_json='"Paris"}'),
        block_stop(1),
        block_start(2, type="tool_use", id="b", name="slow", input={}),
        block_stop(2),
        message_delta("tool_use"),
        STOP,
        tools=(WEATHER, SLOW),
    )
    assert answer.content == (Text("Wait."), *CALLS)
    assert answer.of(inp.ContextBlock) == [request_for(ANTHROPIC.make()).detachable("b")]
    whole = block_start(0, type="tool_use", id="a", name="weather", input={"city": "Paris"})
    assert calls(await told(ANTHROPIC, message_start(), whole, block_stop(0), message_delta("tool_use"))) == [
        ("a", "weather", '{"city":"Paris"}')
    ]


async def test_calls_of_the_responses_api() -> None:
    answer = await told(
        RESPONSES,
        item_added(0, type="message", role="assistant", content=[]),
        text_delta(0, "Wait."),
        item_added(2, type="function_call", call_id="b", name="slow", arguments=""),
        item_added(1, type="function_call", call_id="a", name="weather", arguments=""),
        event("response.function_call_arguments.delta", output_index=1, item_id="i", delta='{"city":'),
        item_done(2, type="function_call", call_id="b", name="slow", arguments="{}"),
        event("response.function_call_arguments.delta", output_index=1, item_id="i", delta='"Paris"}'),
        item_done(1, type="function_call", call_id="a", name="weather", arguments='{"city":"Paris"}'),
        response_end(),
        tools=(WEATHER, SLOW),
    )
    assert answer.content == (Text("Wait."), *CALLS)
    assert [m.data for m in answer.of(inp.ContextBlock)] == ["b"]
    fragments = {d.index: "" for d in answer.of(inp.CallDelta)}
    for d in answer.of(inp.CallDelta):
        fragments[d.index] += d.arguments
    assert fragments == {0: "{}", 1: '{"city":"Paris"}'}


async def test_items_that_were_not_streamed_are_taken_from_their_end() -> None:
    done = item_done(0, type="message", role="assistant", content=[{"type": "output_text", "text": "Hello"}])
    answer = await told(RESPONSES, done, response_end())
    assert (answer.text, answer.streamed) == ("Hello", "Hello")


async def test_items_of_servers_that_do_not_count() -> None:
    def uncounted(kind: str, **fields: Any) -> str:
        return event(f"response.{kind}", **fields)

    call = {"type": "function_call", "call_id": "fc_1", "name": "weather"}
    answer = await told(
        RESPONSES,
        uncounted("output_item.added", item={"type": "message", "id": "msg_1", "content": []}),
        uncounted("output_text.delta", item_id="msg_1", delta="Let me "),
        uncounted("output_item.added", item={**call, "arguments": ""}),
        uncounted("function_call_arguments.delta", item_id="fc_1", delta='{"city":'),
        uncounted("output_text.delta", item_id="msg_1", delta="see."),
        uncounted("function_call_arguments.delta", item_id="fc_1", delta='"Paris"}'),
        uncounted("output_item.done", item={**call, "arguments": '{"city":"Paris"}'}),
        response_end(),
    )
    assert answer.content == (Text("Let me see."), ToolCall("fc_1", "weather", '{"city":"Paris"}'))
    assert answer.streamed == "Let me see."


async def test_items_are_what_their_end_says() -> None:
    answer = await told(
        RESPONSES,
        text_delta(0, "Hallo"),
        item_done(0, type="message", role="assistant", content=[{"type": "output_text", "text": "Hello"}]),
        item_added(1, type="function_call", call_id="a", name="weather", arguments=""),
        event("response.function_call_arguments.delta", output_index=1, item_id="i", delta='{"city":"Par'),
        item_done(1, type="function_call", call_id="a", name="weather", arguments='{"city":"Paris"}'),
        response_end(),
    )
    assert answer.content == (Text("Hello"), CALLS[0])


async def test_refusals() -> None:
    """A refusal in words is an answer; an answer that was cut by a filter is none."""
    spoken = await told(CHAT, chat_chunk({"refusal": "I can't"}), chat_chunk({"refusal": " help."}), FINISH)
    assert spoken.text == "I can't help."
    refused = event("response.refusal.delta", output_index=0, content_index=0, delta="I can't.")
    assert (await told(RESPONSES, refused, response_end())).text == "I can't."
    cut = [
        await told(CHAT, CHAT.begin, chat_chunk(finish="content_filter"), chat_usage(completion_tokens=4)),
        await told(
            RESPONSES,
            RESPONSES.begin,
            response_end(
                "response.incomplete",
                incomplete_details={"reason": "content_filter"},
                usage={"input_tokens": 1, "output_tokens": 4, "total_tokens": 5},
            ),
        ),
        await told(ANTHROPIC, ANTHROPIC.begin, message_delta("refusal", output_tokens=4), STOP),
    ]
    for answer in cut:
        assert answer.error is not None and answer.streamed == "Hel"
        assert (answer.error.error_kind, answer.error.retryable) == (ProviderErrorKind.OTHER, False)
        assert sum((u.usage for u in answer.of(inp.UsageReported)), Usage()).output_tokens == 4


async def test_a_paused_turn_is_no_answer() -> None:
    answer = await told(ANTHROPIC, ANTHROPIC.begin, message_delta("pause_turn"), STOP)
    assert answer.error is not None and not answer.error.retryable


async def test_only_the_first_choice_counts() -> None:
    other = CHAT.begin.replace('"index": 0', '"index": 1').replace("Hel", "Bye")
    assert (await told(CHAT, CHAT.begin, other, CHAT.marker)).text == "Hello"


@dialects
async def test_an_empty_response_has_no_content(dialect: Dialect) -> None:
    stream = {"chat": chat_chunk(finish="stop"), "responses": response_end(), "anthropic": message_delta() + STOP}
    answer = await told(dialect, stream[dialect.name])
    assert (answer.content, answer.error) == ((), None)


@dialects
async def test_characters_may_be_split_anywhere(dialect: Dialect) -> None:
    """UTF-8 by the network, surrogate pairs by the server."""
    stream = (
        dialect.whole.replace("Hello", "é€😀o").replace('"Hel"', '"é€\\ud83d"').replace('"lo"', '"\\ude00o"').encode()
    )
    async with peer([HEAD, *(chunk(stream[i : i + 1]) for i in range(len(stream))), END]) as server:
        answer = await ask(dialect.provider(server.url))
    assert (answer.text, answer.streamed) == ("é€😀o", "é€😀o")


@dialects
async def test_lone_surrogates_never_come_in(dialect: Dialect) -> None:
    stream = (
        dialect.whole.replace("Hello", "\\ud83dlo\\udfff").replace('"Hel"', '"\\ud83d"').replace('"lo"', '"lo\\udfff"')
    )
    answer = await told(dialect, stream)
    assert (answer.text, answer.streamed) == ("\ufffdlo\ufffd", "\ufffdlo\ufffd")


def test_half_a_pair_at_the_very_end_is_replaced() -> None:
    pieces = Pieces()
    assert [pieces.add("a\ud83d"), pieces.add(""), pieces.text()] == ["a", "", "a\ufffd"]


# --- streams: usage ---------------------------------------------------------------------------------------------


def reported(answer: Answer) -> Usage:
    return sum((u.usage for u in answer.of(inp.UsageReported)), Usage())


async def test_usage_of_chat_completions() -> None:
    usage = chat_usage(
        prompt_tokens=100,
        completion_tokens=30,
        total_tokens=130,
        prompt_tokens_details={"cached_tokens": 64},
        completion_tokens_details={"reasoning_tokens": 20},
    )
    answer = await told(CHAT, CHAT.begin, CHAT.marker, usage, usage)
    assert reported(answer) == Usage(100, 30, 64, None, 130)
    assert answer.of(inp.GenerationTokensReported)[-1].tokens == Reported(10)


async def test_usage_of_responses() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 130,
    }
    answer = await told(RESPONSES, RESPONSES.begin, response_end(usage=usage))
    assert reported(answer) == Usage(100, 30, 64, 8, 130)
    assert answer.of(inp.GenerationTokensReported)[-1].tokens == Reported(10)


async def test_usage_of_messages_is_not_counted_twice() -> None:
    """The start gives the prompt and the first output, the end repeats the totals."""
    cached = {"cache_creation_input_tokens": 20, "cache_read_input_tokens": 50}
    answer = await told(
        ANTHROPIC,
        message_start(input_tokens=30, output_tokens=1, **cached),
        ANTHROPIC.begin.removeprefix(message_start()),
        message_delta("end_turn", input_tokens=30, output_tokens=40, **cached),
        STOP,
    )
    assert reported(answer) == Usage(100, 40, 50, 20, 140)
    first = answer.of(inp.UsageReported)[0].usage
    assert first == Usage(100, 1, 50, 20, 101)  # billed even when nothing more comes


async def test_usage_of_messages_whose_end_leaves_out_the_prompt() -> None:
    begin = ANTHROPIC.begin.replace('"input_tokens": 1', '"input_tokens": 7')
    assert reported(await told(ANTHROPIC, begin, message_delta("end_turn", output_tokens=9))) == Usage(
        7, 9, None, None, 16
    )


def test_totals_become_differences() -> None:
    meter = Meter()
    assert meter.growth(Usage(5, 1)) == Usage(5, 1)
    assert meter.growth(Usage(5, 3)) == Usage(output_tokens=2)
    assert meter.growth(Usage(5, 2)) is None and meter.growth(Usage()) is None
    assert meter.growth(Usage(6, 4, 0)) == Usage(1, 1, 0)


async def test_another_service_tier() -> None:
    chat = chat_chunk({"content": "x"}, "stop", service_tier="default")
    asked = {"service_tier": "flex"}
    for answer in (
        await told(CHAT, chat, chat, settings=asked),
        await told(RESPONSES, RESPONSES.begin, response_end(service_tier="default"), settings=asked),
    ):
        assert [(t.requested, t.used) for t in answer.of(inp.TierFallback)] == [("flex", "default")]
    assert (await told(CHAT, chat, settings={"service_tier": "auto"})).of(inp.TierFallback) == []


# --- streams: reasoning and provider context --------------------------------------------------------------------


async def test_raw_reasoning_is_shown_and_kept_nowhere() -> None:
    pieces = chat_chunk({"reasoning_content": "hm, "}), chat_chunk({"reasoning": "so"})
    usage = chat_usage(completion_tokens=9, completion_tokens_details={"reasoning_tokens": 6})
    chat = await told(COMPATIBLE, *pieces, CHAT.marker, usage)
    responses = await told(
        RESPONSES,
        event("response.reasoning_text.delta", output_index=0, content_index=0, delta="hm, so"),
        item_done(0, type="reasoning", id="r", summary=[], content=[{"type": "reasoning_text", "text": "hm, so"}]),
        response_end(),
    )
    messages = await told(
        ANTHROPIC,
        message_start(),
        block_start(0, type="thinking", thinking="", signature=""),
        block_delta(0, type="thinking_delta", thinking="hm, "),
        block_delta(0, type="thinking_delta", thinking="so"),
        block_delta(0, type="signature_delta", signature="SIG"),
        block_stop(0),
        message_delta(output_tokens=9, output_tokens_details={"thinking_tokens": 6}),
        STOP,
    )
    for answer in (chat, responses, messages):
        assert "".join(r.text for r in answer.of(inp.RawReasoning)) == "hm, so"
        assert answer.of(inp.ContextBlock) == [] and "hm" not in answer.text
        assert answer.of(inp.GenerationTokensReported) == []  # it was seen, so the whole output is the window


async def test_summaries_and_encrypted_reasoning() -> None:
    answer = await told(
        RESPONSES,
        event("response.reasoning_summary_part.added", output_index=0, summary_index=0),
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta="First."),
        event("response.reasoning_summary_part.added", output_index=0, summary_index=1),
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Then."),
        item_done(
            0,
            type="reasoning",
            id="rs_1",
            summary=[{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
            content=[{"type": "reasoning_text", "text": "SECRET THOUGHT"}],
            encrypted_content="ENC",
        ),
        item_added(1, type="message", role="assistant", content=[]),
        text_delta(1, "Hello"),
        response_end(usage={"output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 6}}),
    )
    assert answer.of(inp.GenerationTokensReported)[-1].tokens == NotReported()  # its time is partly that of reasoning
    assert "".join(s.text for s in answer.of(inp.SummaryDelta)) == "First.\n\nThen."
    (block,) = answer.of(inp.ContextBlock)
    assert (block.context_kind, block.position) == ("openai.reasoning", 0)
    assert "SECRET" not in block.data
    assert json.loads(block.data)["encrypted_content"] == "ENC"


def thought(signature: str) -> str:
    return block_start(0, type="thinking", thinking="", signature="") + block_delta(
        0, type="signature_delta", signature=signature
    )


async def test_signatures_and_redacted_thinking() -> None:
    answer = await told(
        ANTHROPIC,
        message_start(),
        thought("SIG") + block_stop(0),
        block_start(1, type="redacted_thinking", data="RED"),
        block_stop(1),
        block_start(2, type="text", text="Hello"),
        block_stop(2),
        message_delta(output_tokens=9),
        STOP,
    )
    assert [(c.context_kind, c.data, c.position) for c in answer.of(inp.ContextBlock)] == [
        ("anthropic.thinking", "SIG", 0),
        ("anthropic.redacted_thinking", "RED", 0),
    ]
    assert answer.of(inp.GenerationTokensReported)[-1].tokens == NotReported()
    counted = message_delta(output_tokens=9, output_tokens_details={"thinking_tokens": 6})
    split = await told(ANTHROPIC, message_start(), thought("SIG"), block_stop(0), counted)
    assert split.of(inp.GenerationTokensReported)[-1].tokens == Reported(3)


async def test_hosted_tools_are_told_of() -> None:
    searched = await told(
        ANTHROPIC,
        message_start(),
        block_start(0, type="server_tool_use", id="s", name="web_search", input={}),
        block_delta(0, type="input_json_delta", partial_json='{"query":"x"}'),
        block_stop(0),
        block_start(1, type="server_tool_use", id="s", name="bash", input={}),
        block_stop(1),
        ANTHROPIC.begin.removeprefix(message_start()).replace('"index": 0', '"index": 2'),
        message_delta(),
    )
    assert [w.detail for w in searched.of(inp.WebSearched)] == ['{"query":"x"}']
    assert [h.name for h in searched.of(inp.HostedTool)] == ["bash"]
    asked = await told(
        RESPONSES,
        item_done(0, type="web_search_call", id="w", status="completed", action={"type": "search", "query": "x"}),
        item_done(1, type="code_interpreter_call", id="c", status="completed"),
        text_delta(2, "Hello"),
        response_end(),
    )
    assert [w.detail for w in asked.of(inp.WebSearched)] == ["x"]
    assert [(h.name, h.detail) for h in asked.of(inp.HostedTool)] == [("code_interpreter", "completed")]


def remembered(identity: Identity) -> History:
    context = (
        ProviderContext(identity, inp.ASYNC_CALL, "a"),
        ProviderContext(identity, "openai.reasoning", '{"encrypted_content":"ENC","id":"rs_1","summary":[]}', 1),
        ProviderContext(identity, "anthropic.thinking", "SIG", 0),
        ProviderContext(identity, "anthropic.redacted_thinking", "RED", 1),
    )
    said = Assistant((Text("Let me see."), CALLS[0]), identity, None, context)
    lost = AbortedAssistant((Text("I was"),), None, context)
    return (user("hi"), said, ToolResult("a", True, "7C"), lost, user("go on"))


@dialects
async def test_own_context_is_sent_back_in_its_place(dialect: Dialect) -> None:
    body = await sent(dialect, remembered(dialect.make().identity))
    if dialect is RESPONSES:
        assert body["input"][1:4] == [
            spoken("Let me see."),
            {"type": "reasoning", "encrypted_content": "ENC", "id": "rs_1", "summary": []},
            {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city":"Paris"}'},
        ]
    if dialect is ANTHROPIC:
        assert body["messages"][1]["content"] == [
            {"type": "thinking", "thinking": "", "signature": "SIG"},
            {"type": "text", "text": "Let me see."},
            {"type": "redacted_thinking", "data": "RED"},
            {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Paris"}},
        ]
    whole = json.dumps(body)
    # What was begun and abandoned is prose alone; marks of the runtime are nobody's business.
    assert [whole.count(word) for word in ("ENC", "SIG", "RED")] == {
        "chat": [0, 0, 0],
        "responses": [1, 0, 0],
        "anthropic": [0, 1, 1],
    }[dialect.name]
    assert inp.ASYNC_CALL not in whole


@dialects
async def test_context_of_somebody_else_is_not_shown(dialect: Dialect) -> None:
    own = dialect.make().identity
    for identity in (OTHER, Identity(own.provider, own.api, "another model")):
        whole = json.dumps(await sent(dialect, remembered(identity)))
        assert not any(word in whole for word in ("ENC", "SIG", "RED"))
        assert "Let me see." in whole


async def test_thinking_is_asked_for_without_its_text() -> None:
    for thinking, expected in (
        ({"type": "adaptive"}, {"type": "adaptive", "display": "omitted"}),
        ({"type": "enabled", "budget_tokens": 9, "display": "summarized"}, None),
        ({"type": "disabled"}, None),
    ):
        body = await sent(ANTHROPIC, (user("hi"),), settings={"thinking": thinking})
        assert body["thinking"] == (expected or thinking)


# --- a whole run ------------------------------------------------------------------------------------------------


async def test_a_tool_call_goes_round_on_the_wire() -> None:
    async def weather(context: Any) -> str:
        return f"7C in {json.loads(context.call.arguments)['city']}"

    called = {
        "chat": fragment(0, "a", "weather", '{"city":"Paris"}') + FINISH,
        "responses": item_done(0, type="function_call", call_id="a", name="weather", arguments='{"city":"Paris"}')
        + response_end(),
        "anthropic": message_start()
        + thought("SIG")
        + block_stop(0)
        + block_start(1, type="tool_use", id="a", name="weather", input={"city": "Paris"})
        + block_stop(1)
        + message_delta("tool_use"),
    }
    for dialect in DIALECTS:
        async with (
            peer(streaming(called[dialect.name]), streaming(dialect.whole)) as server,
            dialect.provider(server.url) as provider,
            Rho(provider, [Does("weather", weather)]) as rho,
        ):
            outcome = await rho.session("s", system="Be brief.").complete("weather?")
        assert outcome.text == "Hello"
        second = json.dumps(server.bodies[1])
        assert "7C in Paris" in second and ("SIG" in second) == (dialect is ANTHROPIC)
