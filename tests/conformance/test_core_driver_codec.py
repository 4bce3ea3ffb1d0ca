"""Between protocol JSON and values of the core: messages, durations, items, configuration."""

from __future__ import annotations

from typing import Any

import pytest

from rho_conformance.drivers.corework import decode, items, settings
from rho_conformance.drivers.corework.runs import Names
from rho_conformance.drivers.corework.upcalls import ModelUpcall, ToolUpcall
from rho_conformance.errors import DriverError
from rho_core import inputs as i
from rho_core import messages as m
from rho_core.config import MAX_REVISION
from rho_core.errors import ErrorName
from rho_core.events import Failure, NotReported, Reported, Success, Timing
from rho_core.normal import encode

MESSAGES = [
    {"system": "be brief"},
    {"user": "hello"},
    {"assistant": {"text": "", "calls": ["A", "B"]}},
    {"assistant": {"text": "done", "calls": [], "summary": "thought"}},
    {
        "aborted": {
            "text": "par",
            "calls": ["C"],
            "tool_calls": [{"id": "C", "name": "t", "arguments": "{}"}, {"arguments": '{"x'}],
            "summary": "s",
            "usage": {"output_tokens": 3},
        }
    },
    {"result": {"id": "A", "ok": False, "text": "no"}},
]


@pytest.mark.parametrize("given", MESSAGES, ids=lambda v: next(iter(v)))
def test_a_message_comes_back_as_it_was_given(given: dict[str, Any]) -> None:
    assert encode.message(decode.message(given, "here")) == given


def test_an_assistant_without_text_has_no_text_block() -> None:
    assert decode.message({"assistant": {"calls": ["A"]}}, "here") == m.Assistant((m.ToolCall("A", "tool", "{}"),))
    assert decode.message({"assistant": {"text": ""}}, "here") == m.Assistant((m.Text(""),))


@pytest.mark.parametrize(
    ("given", "wanted"), [("0ms", 0), ("500ms", 500), ("1.5s", 1500), ("2m", 120_000), ("0.0005s", 1)]
)
def test_durations(given: str, wanted: int) -> None:
    assert decode.duration_ms(given, "here") == wanted


@pytest.mark.parametrize("given", ["5", "1h", "-1s", "1 s", 5, None, "\u0661s"])
def test_what_is_no_duration_is_refused_with_its_place(given: Any) -> None:
    with pytest.raises(DriverError, match=r"steps\.advance"):
        decode.duration_ms(given, "steps.advance")


@pytest.mark.parametrize(
    "given", [{"robot": "x"}, {}, {"user": "a", "system": "b"}, {"result": {"id": "A"}}, {"user": 3}]
)
def test_what_is_no_message_is_refused(given: Any) -> None:
    with pytest.raises(DriverError, match="here"):
        decode.message(given, "here")


def test_arguments_are_a_map_or_raw_text() -> None:
    assert decode.call({"id": "A", "tool": "t"}, "here").arguments == "{}"
    assert decode.call({"id": "A", "tool": "t", "args": {"b": 1, "a": "ü"}}, "here").arguments == '{"a":"ü","b":1}'
    assert decode.call({"id": "A", "tool": "t", "args": "[no"}, "here").arguments == "[no"
    assert encode.arguments('{"a":1}') == {"a": 1}
    assert encode.arguments("[no") == "[no"


def test_the_shorthand_emits_in_the_order_of_the_format_and_returns_the_same_blocks() -> None:
    call = {"id": "A", "tool": "t", "async": True}
    given = {"usage": {"input_tokens": 1}, "calls": [call], "text": "hi", "reasoning": "hm"}
    emitted = items.provider(given)
    assert [kind for kind, _ in emitted] == ["reasoning", "delta", "call_delta", "context", "usage", "return"]
    assert emitted[3] == ("context", {"kind": i.ASYNC_CALL, "data": "A"})
    assert emitted[-1] == ("return", {"text": "hi", "calls": [call]})


def test_text_in_pieces_is_a_delta_each_and_one_block() -> None:
    emitted = items.provider({"text": ["a", "b"]})
    assert emitted == [("delta", "a"), ("delta", "b"), ("return", {"text": ["a", "b"]})]
    assert decode.blocks(emitted[-1][1], "here") == (m.Text("ab"),)


def test_an_item_keeps_its_address_out() -> None:
    assert items.provider({"delta": "x", "session": "s1"}) == [("delta", "x")]
    with pytest.raises(DriverError, match="one item"):
        items.provider({"delta": "x", "summary": "y"})


def at(now_ms: int = 0) -> items.Surroundings:
    read = settings.read({"tools": {"t": {"access": {"write": ["f"]}, "authorize": "gated"}}})
    return items.Surroundings(now_ms, Names(), read.tools)


def model() -> ModelUpcall:
    upcall = ModelUpcall("ModelCall", None, 1)
    upcall.step, upcall.attempt = 2, 3
    return upcall


def test_a_model_item_names_its_attempt() -> None:
    assert items.model_input(model(), ("delta", "x"), at()) == i.TextDelta(2, 3, "x")
    assert items.model_input(model(), ("return", {}), at()) == i.ModelReturned(2, 3, (), Timing(0))
    assert items.model_input(model(), ("panic", True), at()) == i.ModelPanicked(2, 3)
    reported = items.model_input(model(), ("generation_tokens", 4), at())
    assert reported == i.GenerationTokensReported(2, 3, Reported(4))
    unavailable = items.model_input(model(), ("generation_tokens", "unavailable"), at())
    assert unavailable == i.GenerationTokensReported(2, 3, NotReported())


def test_timing_runs_from_the_last_physical_request_to_the_last_thing_generated() -> None:
    upcall = model()
    for kind, now in (("delta", 5), ("physical_retry", 10), ("delta", 30), ("usage", 35), ("delta", 50)):
        upcall.saw(kind, now)
    returned = items.model_input(upcall, ("return", {"text": "x"}), at(90))
    assert isinstance(returned, i.ModelReturned)
    assert returned.timing == Timing(40, 20, 20)


@pytest.mark.parametrize(
    ("fail", "wait"),
    [
        ({"retry_after": "3s"}, 3000),
        ({"retry_after_header": "2"}, 2000),
        ({"retry_after_header": "Sat, 01 Jan 2000 00:00:10 GMT"}, 9000),
        ({"retry_after_header": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_of_a_failure(fail: dict[str, Any], wait: int | None) -> None:
    given = items.model_input(model(), ("fail", {"kind": "RateLimit", "retryable": True, **fail}), at(1000))
    assert isinstance(given, i.ModelFailed)
    assert (given.error.retry_after_ms, given.error.retryable) == (wait, True)


def test_tool_items() -> None:
    upcall = ToolUpcall("ToolExecute", None, 1, "A")
    upcall.name = "t"
    plan = i.Plan(False, (i.Access("f", shared=False),), settings.CAPABILITY)
    assert items.tool_input(upcall, ("prepared", True), at()) == i.Prepared("A", plan)
    assert items.tool_input(upcall, ("return", "ok"), at()) == i.ToolReturned("A", Success("ok"))
    failed = items.tool_input(upcall, ("cancelled", True), at())
    assert isinstance(failed, i.ToolReturned)
    assert isinstance(failed.completion, Failure)
    assert failed.completion.error_kind == "Cancelled"
    asked = items.tool_input(upcall, ("ask", "Q"), at())
    again = items.tool_input(upcall, ("ask", "Q"), at())
    assert asked == again, "the same name is a clone of the same request"


@pytest.mark.parametrize(
    ("fail", "name", "provider_kind"),
    [
        ({"kind": "Cancelled"}, ErrorName.CANCELLED, None),
        ({"kind": "Tool"}, ErrorName.TOOL, None),
        ({"kind": "Unavailable"}, ErrorName.PROVIDER, "Unavailable"),
    ],
)
def test_a_failing_compactor_names_an_error_or_a_provider_kind(
    fail: dict[str, Any], name: ErrorName, provider_kind: str | None
) -> None:
    given = items.compactor_input(("fail", fail))
    assert isinstance(given, i.CompactorFailed)
    assert (given.error.name, given.error.provider_kind) == (name, provider_kind)


def test_the_defaults_of_a_configuration() -> None:
    read = settings.read({})
    assert (read.policy.event_capacity, read.policy.max_steps, read.policy.max_parallel_tools) == (64, 32, 1)
    assert (read.eager, read.sessions, read.revision) == (True, ("s1",), 0)


def test_tools_of_a_configuration() -> None:
    tools = {
        "plain": {},
        "alone": {"access": "exclusive", "prepare": "gated"},
        "slow": {"mode": "async", "on_cancel": {"complete": "1.5s"}},
    }
    read = settings.read({"tools": tools, "revision": "max"})
    assert [(t.name, t.asynchronous) for t in read.policy.tools] == [
        ("plain", False),
        ("alone", False),
        ("slow", True),
    ]
    assert read.tools["plain"] == settings.ToolHabit("plain", i.Plan(), False)
    assert read.tools["alone"] == settings.ToolHabit("alone", i.Plan(exclusive=True), True)
    assert read.tools["slow"].plan.complete_within_ms == 1500
    assert read.revision == MAX_REVISION


@pytest.mark.parametrize(
    "config",
    [{"event_capacity": 0}, {"max_steps": 0}, {"max_parallel_tools": -1}, {"compaction": {"messages": 0}}],
)
def test_a_refused_value_is_invalid_configuration(config: dict[str, Any]) -> None:
    with pytest.raises(settings.RefusedConfig) as refused:
        settings.read(config)
    assert refused.value.name == "InvalidConfiguration"


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({"colour": 1}, "colour"),
        ({"deadline": "1s"}, "orca"),
        ({"reader": "lazy"}, "config.reader"),
        ({"tools": {"t": {"mode": "both"}}}, "config.tools.t.mode"),
        ({"tools": {"t": {"speed": 1}}}, "config.tools.t"),
        ({"event_capacity": True}, "event_capacity"),
    ],
)
def test_a_configuration_of_the_wrong_form_says_where(config: dict[str, Any], place: str) -> None:
    with pytest.raises(DriverError, match=place):
        settings.read(config)
