"""Functions as tools: schema, strict arguments, threads, results, failures, plans."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Annotated, Any, Literal

import anyio
import pytest
from anyio import to_thread
from pydantic import BaseModel, Field

from rho_adapters import Rho, RunInterrupted, ToolHost
from rho_adapters.runtime.toolhost import Host
from rho_adapters.tool import AskRefused, PrepareFailure, Tool, ToolCancelled, ToolContext, ToolFailure
from rho_adapters.tools import BlockingToolContext, FunctionTool, reads, tool, writes
from rho_core.asks import Choice, HostInputRequest, Question
from rho_core.inputs import Plan
from rho_core.messages import ToolCall, ToolResult
from tests.adapters.scripted import Scripted, asks, says
from tests.adapters.toolkit import FakeContext, call_of

pytestmark = pytest.mark.anyio

QUESTION = HostInputRequest("q1", "Sure?", (Question("q", "Go on?", (Choice("yes"), Choice("no"))),))


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Row:
    day: date
    tags: list[str]


@tool
async def weather(
    city: Annotated[str, Field(description="a city's name", min_length=1)],
    days: int = 3,
    unit: Literal["C", "F"] = "C",
) -> str:
    """The weather in a city.

    Ask for one city at a time.
    """
    return f"{city} {days} {unit}"


@tool
def area(points: list[Point], scale: float = 1.0, label: str | None = None) -> dict[str, Any]:
    """Area."""
    return {"n": len(points), "x": [p.x for p in points], "scale": scale, "label": label}


async def run(t: Tool, **arguments: object) -> str:
    context = FakeContext(t, arguments)
    await t.prepare(context.call)
    return await t.execute(context)


def test_the_schema_comes_from_the_signature() -> None:
    assert weather.spec.name == "weather"
    assert weather.spec.description == "The weather in a city.\n\nAsk for one city at a time."
    assert weather.spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "minLength": 1, "description": "a city's name"},
            "days": {"type": "integer", "default": 3},
            "unit": {"enum": ["C", "F"], "type": "string", "default": "C"},
        },
    }


def test_a_function_without_parameters_has_an_object_schema() -> None:
    @tool(name="now", description="The time.")
    def clock() -> str:
        return "12:00"

    assert clock.spec.parameters == {"type": "object", "additionalProperties": False, "properties": {}}
    assert (clock.spec.name, clock.spec.description) == ("now", "The time.")
    assert clock.function() == "12:00"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"city":"Oslo","days":"3"}', "days: Input should be a valid integer"),
        ('{"city":7}', "city: Input should be a valid string"),
        ('{"days":2}', "city: Field required"),
        ('{"city":"Oslo","hours":2}', "hours: Extra inputs are not permitted"),
        ('{"city":"","unit":"K"}', "city: String should have at least 1 character; unit: Input should be 'C' or 'F'"),
        ('{"city":"Oslo","days":true}', "days: Input should be a valid integer"),
        ('["Oslo"]', "Input should be an object"),
        ('{"city":', "Invalid JSON"),
    ],
)
async def test_wrong_arguments_fail_the_preparation(text: str, wanted: str) -> None:
    with pytest.raises(PrepareFailure, match=r"^invalid arguments: ") as failed:
        await weather.prepare(ToolCall("c", "weather", text))
    assert wanted in str(failed.value)


async def test_nested_values_are_strict_and_located() -> None:
    with pytest.raises(PrepareFailure) as failed:
        await area.prepare(call_of(area, points=[{"x": 1}, {"x": "2"}], scale="1"))
    assert str(failed.value) == (
        "invalid arguments: points.1.x: Input should be a valid integer; scale: Input should be a valid number"
    )


async def test_a_wrong_value_is_not_repeated() -> None:
    with pytest.raises(PrepareFailure) as failed:
        await weather.prepare(call_of(weather, city=["hunter2"]))
    assert "hunter2" not in str(failed.value)


async def test_many_errors_are_bounded() -> None:
    with pytest.raises(PrepareFailure, match=r"and 90 more$"):
        await area.prepare(call_of(area, points=[{"x": None}] * 100))


async def test_coercion_is_an_option() -> None:
    @tool(strict=False)
    async def double(n: int) -> int:
        return 2 * n

    assert await run(double, n="21") == "42"


async def test_parameters_may_be_called_like_methods_of_a_model() -> None:
    @tool
    async def odd(schema: str, copy: int, model_name: str, json: list[int]) -> str:
        return f"{schema} {copy} {model_name} {json}"

    assert await run(odd, schema="s", copy=1, model_name="m", json=[2]) == "s 1 m [2]"


async def test_results_become_text() -> None:
    @tool
    async def give(which: int) -> Any:
        return [
            "as it is",
            None,
            Point(x=1),
            Row(date(2020, 1, 2), ["a"]),
            {"ü": [1, 2.5, True, None]},
            [Point(x=2)],
            7,
            float("nan"),
            "lone \udc80",
        ][which]

    assert [await run(give, which=i) for i in range(9)] == [
        "as it is",
        "",
        '{"x":1,"y":0}',
        '{"day":"2020-01-02","tags":["a"]}',
        '{"ü":[1,2.5,true,null]}',
        '[{"x":2,"y":0}]',
        "7",
        '"NaN"',
        "lone ?",
    ]


async def test_a_mutable_default_is_not_shared_between_calls() -> None:
    @tool
    async def collect(into: list[int] = []) -> list[int]:  # noqa: B006 - that is the point
        into.append(1)
        return into

    assert [await run(collect), await run(collect)] == ["[1]", "[1]"]


# --- threads -----------------------------------------------------------------------------------------------


async def test_a_synchronous_function_runs_in_a_worker_thread() -> None:
    @tool
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await run(where) == "false"


async def test_the_context_is_injected_and_not_in_the_schema() -> None:
    @tool
    async def report(context: ToolContext, n: int) -> str:
        await context.progress(f"{n} %")
        return str(dict(await context.ask(QUESTION)))

    context = FakeContext(report, {"n": 5}, answers=(("q", ("yes",)),))
    assert list(report.spec.parameters["properties"]) == ["n"]
    assert await report.execute(context) == "{'q': ('yes',)}"
    assert (context.said, context.asked) == (["5 %"], [QUESTION])


async def test_a_thread_has_the_same_context_in_blocking_form() -> None:
    @tool
    def report(n: int, *, context: BlockingToolContext) -> str:
        assert (context.call.id, context.detachable, context.cancelled) == ("c1", False, False)
        context.raise_if_cancelled()
        context.progress(f"{n} %")
        answers = dict(context.ask(QUESTION))
        assert context.wait_cancelled(0) is False
        context.cancel()
        assert context.cancelled and context.wait_cancelled(60)
        with pytest.raises(ToolCancelled):
            context.raise_if_cancelled()
        return str(answers)

    context = FakeContext(report, {"n": 5}, answers=(("q", ("no",)),))
    assert await report.execute(context) == "{'q': ('no',)}"
    assert (context.said, context.token.cancelled) == (["5 %"], True)


async def test_a_refused_question_is_an_ordinary_failure() -> None:
    class Refusing(FakeContext):
        async def ask(self, request: HostInputRequest) -> Any:
            raise AskRefused("used up")

    @tool
    def ask(context: BlockingToolContext) -> None:
        context.ask(QUESTION)

    with pytest.raises(ToolFailure, match=r"raised AskRefused$"):
        await ask.execute(Refusing(ask))


async def test_a_cancelled_thread_is_left_behind_and_its_late_words_are_dropped() -> None:
    entered, release, heard = threading.Event(), threading.Event(), threading.Event()
    seen: list[object] = []

    @tool
    def slow(context: BlockingToolContext) -> str:
        entered.set()
        release.wait(10)
        seen.append(context.cancelled)
        try:
            context.progress("late")
        except ToolCancelled:
            seen.append("refused")
        heard.set()
        return "late"

    context = FakeContext(slow)
    results: list[str] = []

    async def execute() -> None:
        results.append(await slow.execute(context))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(execute)
        await to_thread.run_sync(entered.wait, 10)
        tasks.cancel_scope.cancel()
    release.set()  # the group is over, the thread is not
    assert await to_thread.run_sync(heard.wait, 10)
    assert (seen, context.said, results) == ([True, "refused"], [], [])


async def test_a_thread_that_waits_in_its_context_is_told_of_the_cancellation() -> None:
    waiting, told = anyio.Event(), threading.Event()

    async def full(_: str) -> None:
        waiting.set()
        await anyio.sleep_forever()

    @tool
    def chatty(context: BlockingToolContext) -> None:
        try:
            context.progress("1")
        except ToolCancelled:
            told.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(chatty.execute, FakeContext(chatty, on_progress=full))
        await waiting.wait()
        tasks.cancel_scope.cancel()
    assert await to_thread.run_sync(told.wait, 10)


async def test_a_function_that_makes_a_coroutine_is_awaited() -> None:
    async def later(n: int) -> int:
        return n + 1

    def make(n: int) -> Any:
        return later(n)

    assert await run(FunctionTool(make), n=1) == "2"


async def test_partials_methods_and_callable_objects() -> None:
    class Adder:
        def add(self, a: int) -> int:
            return a + 1

        async def __call__(self, a: int) -> int:
            return a + 2

    def both(base: int, a: int) -> int:
        return base + a

    adder = Adder()
    assert await run(FunctionTool(adder.add), a=1) == "2"
    assert await run(FunctionTool(adder, name="adder"), a=1) == "3"
    assert await run(FunctionTool(partial(both, 10), name="ten"), a=1) == "11"


# --- failures ----------------------------------------------------------------------------------------------


def failing(error: Callable[[], Exception], **options: Any) -> FunctionTool:
    def fail() -> None:
        raise error()

    return FunctionTool(fail, **options)


async def test_a_tool_failure_is_the_text_itself() -> None:
    with pytest.raises(ToolFailure, match=r"^no such city$"):
        await run(failing(lambda: ToolFailure("no such city")))
    with pytest.raises(ToolCancelled):
        await run(failing(lambda: ToolCancelled("told")))


async def test_another_exception_is_a_failure_that_names_its_class_alone() -> None:
    with pytest.raises(ToolFailure) as failed:
        await run(failing(lambda: ValueError("password=hunter2")))
    assert str(failed.value) == "tool 'fail' raised ValueError"
    assert isinstance(failed.value.__cause__, ValueError)


async def test_messages_are_an_option_and_one_bounded_line() -> None:
    with pytest.raises(ToolFailure) as failed:
        await run(failing(lambda: ValueError("x" * 600 + "\nsecond"), error_messages=True))
    assert str(failed.value) == f"tool 'fail' raised ValueError: {'x' * 500}"


async def test_panics_are_an_option() -> None:
    with pytest.raises(ZeroDivisionError):
        await run(failing(lambda: ZeroDivisionError(), panics=True))


async def test_a_failure_inside_a_task_group_is_found() -> None:
    @tool
    async def grouped(error: Literal["failure", "value"]) -> None:
        async with anyio.create_task_group():
            raise ToolFailure("inner") if error == "failure" else ValueError("inner")

    with pytest.raises(ToolFailure, match=r"^inner$"):
        await run(grouped, error="failure")
    with pytest.raises(ToolFailure, match=r"raised ValueError$"):
        await run(grouped, error="value")


async def test_an_unserialisable_result_is_a_failure() -> None:
    @tool
    async def odd() -> object:
        return object()

    with pytest.raises(ToolFailure, match="PydanticSerializationError"):
        await run(odd)


async def test_cancellation_is_no_failure() -> None:
    @tool
    async def forever() -> None:
        await anyio.sleep_forever()

    with anyio.move_on_after(0) as scope:
        await forever.execute(FakeContext(forever))
    assert scope.cancelled_caught


# --- plans -------------------------------------------------------------------------------------------------


async def plan_of(t: FunctionTool, **arguments: object) -> Plan:
    return await t.prepare(call_of(t, **arguments))


async def test_a_tool_that_says_nothing_runs_alone() -> None:
    assert await plan_of(weather, city="Oslo") == Plan(exclusive=True)

    @tool(accesses=())
    async def pure() -> None: ...

    @tool(asynchronous=True, complete_within_ms=500)
    async def background() -> None: ...

    assert await plan_of(pure) == Plan()
    assert await plan_of(background) == Plan(complete_within_ms=500)
    assert background.spec.asynchronous and not pure.spec.asynchronous


async def test_needs_may_depend_on_the_arguments() -> None:
    @tool(
        accesses=lambda a: reads("index") + writes(f"file:{a['path']}"),
        capability=lambda a: None if a["path"] == "tmp" else f"fs.write:{a['path']}",
        exclusive=False,
    )
    async def write(path: str) -> None: ...

    assert await plan_of(write, path="a") == Plan(False, reads("index") + writes("file:a"), "fs.write:a")
    assert (await plan_of(write, path="tmp")).capability is None


async def test_needs_that_fail_fail_the_preparation() -> None:
    async def f(path: str) -> None: ...

    with pytest.raises(PrepareFailure, match=r"^tool 'f' raised KeyError$"):
        await plan_of(FunctionTool(f, capability=lambda a: str(a["nope"])), path="x")
    with pytest.raises(KeyError):
        await plan_of(FunctionTool(f, capability=lambda a: str(a["nope"]), panics=True), path="x")

    def refuse(_: Any) -> str:
        raise ToolFailure("outside the folder")

    with pytest.raises(PrepareFailure, match=r"^outside the folder$"):
        await plan_of(FunctionTool(f, capability=refuse), path="x")


async def _coroutine(context: BlockingToolContext) -> None: ...
def _synchronous(context: ToolContext) -> None: ...
def _two(a: BlockingToolContext, b: BlockingToolContext) -> None: ...
def _untyped(a) -> None: ...  # type: ignore[no-untyped-def]
def _many(*a: int) -> None: ...
def _hidden(_a: int) -> None: ...
def _alias(a: Annotated[int, Field(alias="b")]) -> None: ...
def _generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_coroutine, "takes ToolContext"),
        (_synchronous, "takes BlockingToolContext"),
        (_two, "more than one"),
        (_untyped, "no annotation"),
        (_many, "by name"),
        (_hidden, "cannot be called"),
        (_alias, "alias"),
        (_generator, "generator"),
    ],
)
def test_a_signature_that_does_not_do_is_refused_at_once(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        FunctionTool(function)


@pytest.mark.parametrize(
    "options",
    [
        {"name": "no good"},
        {"name": ""},
        {"name": "x" * 65},
        {"asynchronous": True, "exclusive": True},
        {"asynchronous": True, "accesses": writes("db")},
        {"complete_within_ms": 0},
    ],
)
def test_options_that_contradict_are_refused(options: dict[str, Any]) -> None:
    def f() -> None: ...

    with pytest.raises(ValueError):
        FunctionTool(f, **options)


# --- through the runtime -----------------------------------------------------------------------------------


async def test_through_the_runtime() -> None:
    said: list[str] = []

    @tool
    def count(n: int, context: BlockingToolContext) -> int:
        for i in range(n):
            context.progress(str(i))
        return n

    async with ToolHost([weather, count]) as host:
        assert await host.call("weather", {"city": "Oslo"}) == "Oslo 3 C"
        assert await host.call("count", {"n": 3}, host=Host(progress=said.append)) == "3"
        with pytest.raises(ToolFailure, match="city: Field required"):
            await host.call("weather", {})
    assert said == ["0", "1", "2"]


async def test_a_failed_function_goes_back_to_the_model_and_a_panic_ends_the_run() -> None:
    provider = Scripted(asks(ToolCall("c1", "fail", "{}")), says("I see."))
    async with Rho(provider, [failing(lambda: ValueError("hunter2"))]) as rho:
        session = rho.session()
        outcome = await session.complete("go")
        assert outcome.text == "I see."
        results = [m for m in session.history if isinstance(m, ToolResult)]
    assert results == [ToolResult("c1", False, "tool 'fail' raised ValueError")]

    async with ToolHost([failing(lambda: ValueError(), panics=True)]) as host:
        with pytest.raises(RunInterrupted):
            await host.call("fail")


async def test_cancelling_a_run_does_not_wait_for_a_thread() -> None:
    entered, release = threading.Event(), threading.Event()

    @tool
    def stuck() -> None:
        entered.set()
        release.wait(30)

    provider = Scripted(asks(ToolCall("c1", "stuck", "{}")))
    try:
        with anyio.fail_after(10):
            async with Rho(provider, [stuck]) as rho:
                session = rho.session()
                async with session.start("go") as run:
                    await to_thread.run_sync(entered.wait, 10)
                    run.cancel()
                    kinds = [e.kind async for e in run]
        assert not release.is_set()
        assert (kinds[-1], kinds.count("tool_finished")) == ("cancelled", 1)
    finally:
        release.set()
