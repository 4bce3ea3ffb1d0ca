"""Worked turns for declared tools: sample arguments that the tools take, and nothing that stays in a history."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from rho_adapters.embedded.examples import ID, TURNS, Example, made, with_examples
from rho_adapters.embedded.samples import arguments_of, spoken
from rho_adapters.tool import ToolSpec
from rho_adapters.tools import FunctionTool
from rho_core.messages import Assistant, History, System, Text, ToolCall, ToolResult, calls_of, malformed, user


class Unit(StrEnum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Point(BaseModel):
    x: float
    label: str | None
    next: Point | None = None


def nothing() -> None:
    """Do nothing."""


def weather(city: str, unit: Unit, days: int = 1) -> None:
    """The weather in a city. More words."""


def add(a: int, b: int) -> None: ...


def mixed(
    names: list[str], exact: bool, mode: Literal["fast"], level: Annotated[int, Field(examples=[70, 80])]
) -> None:
    """Mix
    several things."""


def place(point: Point, either: int | str, note: None, extra: dict[str, int]) -> None:
    """Put a point somewhere"""


def optional(path: str = "x") -> None:
    """List a folder."""


TOOLS = [FunctionTool(f) for f in (nothing, weather, add, mixed, place, optional)]
SPECS = {t.spec.name: t.spec for t in TOOLS}


@pytest.mark.parametrize("tool", TOOLS, ids=str)
@pytest.mark.parametrize("variant", [0, 1])
@pytest.mark.anyio
async def test_the_tool_takes_its_sample_arguments(tool: FunctionTool, variant: int) -> None:
    """The tool's own strict validation is the judge."""
    arguments = arguments_of(tool.spec.parameters, variant)
    await tool.prepare(ToolCall("1", tool.spec.name, json.dumps(arguments)))


def test_sample_arguments() -> None:
    assert arguments_of(SPECS["nothing"].parameters) == {}
    assert arguments_of(SPECS["weather"].parameters, 0) == {"city": "Rome", "unit": "c"}
    assert arguments_of(SPECS["weather"].parameters, 1) == {"city": "Oslo", "unit": "f"}
    assert arguments_of(SPECS["mixed"].parameters, 1)["level"] == 80
    assert arguments_of(SPECS["optional"].parameters) == {"path": "/tmp/notes.txt"}, "something is better than nothing"
    assert arguments_of({"properties": 7, "required": ["a"]}) == {}


def test_a_schema_that_contains_itself_ends() -> None:
    loop = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}}
    assert json.dumps(arguments_of({"type": "object", "properties": {"n": loop}, "$defs": loop["$defs"]}))
    assert arguments_of({"properties": {"n": {"$ref": "#/$defs/M"}}, "$defs": {"M": {"$ref": "#/$defs/M"}}})


def test_what_a_person_would_say() -> None:
    assert spoken({}) == ""
    assert spoken({"city": "Rome"}) == "Rome"
    assert spoken({"a": 3, "b": [1, 2], "c": {"d": True, "e": "x"}}) == "3, 1, 2 and true and x"


def test_an_example_is_made_of_the_declaration() -> None:
    example = made(SPECS["weather"], 0)
    assert example.request == "The weather in a city: Rome and c."
    assert example.result in example.answer
    assert made(SPECS["nothing"], 0).request == "Do nothing."
    assert made(ToolSpec("get_time"), 0).request == "get time."
    assert made(SPECS["weather"], 1) != example


HISTORY: History = (System("Be brief."), user("What is 1 plus 2?"), Assistant((Text("3"),)), user("And 12 plus 30?"))


def called(messages: History) -> list[str]:
    return [c.name for m in messages if isinstance(m, Assistant) for c in calls_of(m.content)]


def test_without_tools_nothing_is_added() -> None:
    assert with_examples(HISTORY, [], {}) is HISTORY


def test_worked_turns_stand_between_the_prompt_and_the_conversation() -> None:
    shown = with_examples(HISTORY, [SPECS["add"], SPECS["weather"]], {})
    assert shown[0] == HISTORY[0]
    assert shown[-3:] == HISTORY[1:]
    assert called(shown) == ["add", "weather"]


def test_each_worked_call_is_well_formed_and_answered() -> None:
    shown = with_examples(HISTORY, list(SPECS.values()), {})
    calls = [c for m in shown if isinstance(m, Assistant) for c in calls_of(m.content)]
    assert malformed(tuple(calls)) is None
    assert all(c.id.startswith(ID) for c in calls)
    assert [m.id for m in shown if isinstance(m, ToolResult)] == [c.id for c in calls]


def test_one_tool_is_worked_twice_with_other_arguments() -> None:
    shown = with_examples(HISTORY, [SPECS["weather"]], {})
    calls = [c.arguments for m in shown if isinstance(m, Assistant) for c in calls_of(m.content)]
    assert len(set(calls)) == 2


def test_of_many_tools_the_closest_to_the_users_words_are_worked() -> None:
    many = [ToolSpec(f"tool_{n}", f"Does number {n}.") for n in range(9)] + [
        ToolSpec("plus", "One number plus another.")
    ]
    names = called(with_examples(HISTORY, many, {}))
    assert len(names) == TURNS
    assert names[-1] == "plus"
    assert names[:-1] == ["tool_0", "tool_1"], "ties keep the order of declaration"


def test_the_hosts_own_examples_come_first() -> None:
    own = Example("What is 2 and 2?", {"a": 2, "b": 2}, "4", "4.")
    shown = with_examples(HISTORY, [SPECS["add"], SPECS["weather"]], {"add": [own]})
    assert user("What is 2 and 2?") in shown
    assert called(shown) == ["add", "weather"]
