"""A model that says what a file tells it to: for demonstrations and tests, the same each time.

The file is a JSON list of turns, one for each request. A turn is a text, or a list of items with one key each:

    {"delta": "text"} {"reasoning": "text"} {"summary": "text"} {"usage": {"input_tokens": 3, …}}
    {"call": {"name": "add", "arguments": {"a": 1}, "id": "c1"}}    the id may be left out
    {"wait_ms": 20} {"wait_file": "path"} {"hold": true}            time; until the file is there; until cancelled
    {"fail": {"kind": "RateLimit", "message": "…", "retryable": true, "retry_after_ms": 100}}
    {"deaf": true}                                                  goes on for ever, whoever cancels
    {"malformed": true} {"panic": true}                             ends that are no response

A turn that ends without one of these returns what it said. A script that is at its end begins again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import anyio
from anyio.lowlevel import checkpoint
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from rho_adapters.provider import BaseProvider, ModelRequest, failure
from rho_core import inputs as inp
from rho_core.errors import ProviderErrorKind
from rho_core.messages import Block, Identity, Text, ToolCall, Usage, freeze_json

POLL_S = 0.005


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Call(_Part):
    """A tool call of the response."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    id: str | None = None


class Failing(_Part):
    """A failed request."""

    kind: str = "Unavailable"
    message: str = "scripted failure"
    retryable: bool = False
    retry_after_ms: int | None = None


class Counted(_Part):
    """Tokens."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    total_tokens: int | None = None


class Item(_Part):
    """One thing that the model does; exactly one field is set."""

    delta: str | None = None
    reasoning: str | None = None
    summary: str | None = None
    usage: Counted | None = None
    call: Call | None = None
    wait_ms: Annotated[int, Field(ge=0)] | None = None
    wait_file: str | None = None
    hold: bool | None = None
    deaf: bool | None = None
    fail: Failing | None = None
    malformed: bool | None = None
    panic: bool | None = None

    @model_validator(mode="after")
    def _one(self) -> Item:
        if len(self.model_fields_set) != 1:
            raise ValueError("an item has exactly one key")
        return self


def _items(turn: object) -> object:
    return [{"delta": turn}] if isinstance(turn, str) else turn


Script = list[list[Item]]
_SCRIPT = TypeAdapter(list[Annotated[list[Item], BeforeValidator(_items)]])


def read_script(path: Path) -> Script:
    """The turns in a file. Raises OSError, and ValueError with the place for what is no script."""
    try:
        turns = _SCRIPT.validate_json(path.read_bytes())
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from fault
    if not turns:
        raise ValueError("a script needs at least one turn")
    return turns


class ScriptedProvider(BaseProvider):
    """Plays a script, one turn for each request; after the last turn comes the first.

    One that is deaf somewhere is cooperative: the run only tells it to stop, and waits (RHO-CAN-5).
    """

    identity = Identity("scripted", "scripted", "scripted")

    def __init__(self, script: Script) -> None:
        self._script = script
        self.cooperative = any(item.deaf for turn in script for item in turn)
        self._turn = 0
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        """Raises ProviderFailure where the script says so."""
        turn = self._script[self._turn % len(self._script)]
        self._turn += 1
        texts: list[str] = []
        calls: list[ToolCall] = []
        for item in turn:
            await checkpoint()  # a model is never so fast that nobody else has a turn
            if item.malformed:
                yield request.returned(())
                return
            if item.call is not None:
                calls.append(self._call(item.call))
                last = calls[-1]
                yield request.call(len(calls) - 1, last.id, last.name, last.arguments)
            elif item.delta is not None:
                texts.append(item.delta)
                yield request.text(item.delta)
            else:
                said = await _other(item, request)
                if said is not None:
                    yield said
        await checkpoint()
        said_text: tuple[Block, ...] = (Text("".join(texts)),) if texts else ()
        yield request.returned((*said_text, *calls))

    def _call(self, call: Call) -> ToolCall:
        self._calls += 1
        return ToolCall(call.id or f"call-{self._calls}", call.name, freeze_json(call.arguments))


async def _other(item: Item, request: ModelRequest) -> inp.ModelInput | None:
    if item.reasoning is not None:
        return request.raw_reasoning(item.reasoning)
    if item.summary is not None:
        return request.summary(item.summary)
    if item.usage is not None:
        return request.usage(Usage(**item.usage.model_dump()))
    if item.fail is not None:
        told = item.fail
        kind = ProviderErrorKind(told.kind)
        raise failure(kind, told.message, retryable=told.retryable, retry_after_ms=told.retry_after_ms)
    if item.panic:
        raise RuntimeError("the script told the provider to panic")
    await _wait(item)
    return None


async def _wait(item: Item) -> None:
    if item.wait_ms is not None:
        await anyio.sleep(item.wait_ms / 1_000)
    elif item.wait_file is not None:
        while not await anyio.Path(item.wait_file).exists():
            await anyio.sleep(POLL_S)
    elif item.hold or item.deaf:
        await anyio.sleep_forever()
