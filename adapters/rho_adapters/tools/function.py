"""A Python function as a tool: `@tool` and `FunctionTool`.

    @tool(accesses=reads("weather"))
    async def weather(city: Annotated[str, Field(description="a city's name")], context: ToolContext) -> str:
        "The weather in a city."

The signature gives the JSON Schema and the docstring the description. Arguments are validated strictly: a wrong
type fails the call before it is executed, with a text that says what and where.

A coroutine function runs as it is. A synchronous one runs in a worker thread, and takes `BlockingToolContext` in
place of `ToolContext`. **A thread cannot be stopped**: when the call is cancelled the run goes on at once, the
function goes on behind it until it returns or next uses its context, and its late result is dropped. The
interpreter waits for such a thread when it exits.

Results: text as it is, None as empty text, anything else as JSON text. ToolFailure is a failed call with that
text, ToolCancelled a cancelled one. Any other exception is a failed call whose text names the exception's class
and nothing more; with `error_messages=True` also the first line of its message; with `panics=True` it is a panic
and interrupts the whole run (D30).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, overload

from anyio import to_thread
from pydantic_core import to_json

from rho_core.inputs import Plan
from rho_core.messages import ToolCall

from ..tool import PrepareFailure, ToolContext, ToolFailure, ToolSpec
from ._blocking import BlockingToolContext
from ._failing import Failing
from ._needs import Accesses, Capability, Needs
from ._schema import Arguments, from_parameters, signature

__all__ = ["FunctionTool", "tool"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every provider takes


class FunctionTool:
    """A function as a tool; `function` is the function itself.

    `accesses`, `capability`: values, or functions of the validated arguments (a mapping by parameter name).
    `exclusive`: None means that a tool which declares no accesses runs alone. `asynchronous`: its calls may be
    detached. `complete_within_ms`: how long a detached call may go on when it is interrupted; None aborts it
    at once. `strict`: no coercion of arguments. Raises TypeError for a signature that does not do, ValueError for a
    name or needs that do not.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        accesses: Accesses | None = None,
        exclusive: bool | None = None,
        capability: Capability | None = None,
        asynchronous: bool = False,
        complete_within_ms: int | None = None,
        strict: bool = True,
        panics: bool = False,
        error_messages: bool = False,
    ) -> None:
        self.function = function
        name = _named(getattr(function, "__name__", "") if name is None else name)
        self._is_async = _is_async(name, function)
        self._needs = Needs(accesses, exclusive, capability, complete_within_ms, asynchronous)
        self._needs.check(name)
        self._failing = Failing(panics, error_messages)
        parameters = dict(signature(function).parameters)
        self._context_name = _take_context(name, parameters, self._is_async)
        self._arguments = from_parameters(name, parameters, strict)
        text = description if description is not None else inspect.getdoc(function) or ""
        self.spec = ToolSpec(name, text, self._arguments.json_schema(), asynchronous)

    def __repr__(self) -> str:
        return f"<FunctionTool {self.spec.name}>"

    async def prepare(self, call: ToolCall) -> Plan:
        """Validate the arguments and say what the call needs. Raises PrepareFailure."""
        with self._failing.guard(self.spec.name, PrepareFailure):
            return self._needs.plan(self._arguments.parse(call.arguments))

    async def execute(self, context: ToolContext) -> str:
        """Call the function. Raises ToolFailure or ToolCancelled."""
        with self._failing.guard(self.spec.name, ToolFailure):
            arguments = self._arguments.parse(context.call.arguments)
            return to_text(await self._call(arguments, context))

    async def _call(self, arguments: Arguments, context: ToolContext) -> Any:
        if self._is_async:
            return await self.function(**self._with(arguments, context))
        blocking = BlockingToolContext(context)
        given = self._with(arguments, blocking)

        def work() -> tuple[Any]:  # in a tuple, for trio takes no coroutine from a thread
            return (self.function(**given),)

        try:
            (result,) = await to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            blocking.close()
        return await result if inspect.isawaitable(result) else result

    def _with(self, arguments: Arguments, context: Any) -> dict[str, Any]:
        extra = {} if self._context_name is None else {self._context_name: context}
        return {**arguments, **extra}


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    accesses: Accesses | None = None,
    exclusive: bool | None = None,
    capability: Capability | None = None,
    asynchronous: bool = False,
    complete_within_ms: int | None = None,
    strict: bool = True,
    panics: bool = False,
    error_messages: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a `FunctionTool` of a function: `@tool`, or `@tool(...)` with the options of `FunctionTool`."""
    return partial(FunctionTool, **options) if function is None else FunctionTool(function, **options)


def to_text(result: Any) -> str:
    """The result as the model reads it: text, or JSON text of models, dataclasses and containers."""
    if result is None:
        return ""
    if not isinstance(result, str):
        return to_json(result, inf_nan_mode="strings").decode()
    try:
        result.encode()
    except UnicodeEncodeError:  # a file name that was not UTF-8, say: no provider and no store takes such text
        return result.encode(errors="replace").decode()
    return result


def _named(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no tool name: 1 to 64 letters, digits, '_' and '-'")
    return name


def _is_async(name: str, function: Callable[..., Any]) -> bool:
    inner = function.func if isinstance(function, partial) else function
    candidates = (inner, getattr(inner, "__call__", None))  # noqa: B004 - an object's async __call__ counts
    if any(inspect.isgeneratorfunction(c) or inspect.isasyncgenfunction(c) for c in candidates):
        raise TypeError(f"tool {name!r}: a generator has no result; report with the context's progress")
    return any(inspect.iscoroutinefunction(c) for c in candidates)


def _take_context(name: str, parameters: dict[str, inspect.Parameter], is_async: bool) -> str | None:
    """The parameter that takes the context, removed from those that the model fills."""
    found = [key for key, p in parameters.items() if p.annotation in (ToolContext, BlockingToolContext)]
    if not found:
        return None
    if len(found) > 1:
        raise TypeError(f"tool {name!r}: more than one parameter takes the context")
    wanted = ToolContext if is_async else BlockingToolContext
    if parameters.pop(found[0]).annotation is not wanted:
        kind = "a coroutine" if is_async else "a synchronous"
        raise TypeError(f"tool {name!r}: {kind} function takes {wanted.__name__}")
    return found[0]
