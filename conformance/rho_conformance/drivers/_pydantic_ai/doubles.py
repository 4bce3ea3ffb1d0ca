"""The doubles that pydantic-ai drives: a stream function for `FunctionModel`, and async tool functions.

Each call that the runtime makes opens a gate; the script's items go through it one at a time, in order. A
gate knows whether the runtime stands at it (that is what `waiting_on` reports) and whether the call is over.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from pydantic_ai import ToolFailed
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall

from . import normal
from .normal import Json

Chunk = str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]
# FunctionModel keys every part of a response by one integer; calls use the indices of the script, 0 and up.
THINKING = -1
MODEL_NAME = "scripted"


class ScriptedPanic(RuntimeError):
    """The unexpected exception that a `panic` item stands for."""


class Gate:
    """The items for one upcall: a FIFO with one taker. `note` writes an observation."""

    def __init__(self, upcall: str, ident: Json, run: str, note: Callable[[str, Json], None]) -> None:
        self.upcall, self.ident, self.run = upcall, ident, run
        self._note = note
        self._items: deque[Json] = deque()
        self._wake: asyncio.Future[None] | None = None
        self.open = True
        self.said = Said()

    @property
    def waiting(self) -> bool:
        return self.open and self._wake is not None

    def put(self, item: Json) -> None:
        """Hand over an item; for a call that is over it is a late answer, which changes nothing."""
        if not self.open:
            return
        self._items += unfolded(item)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def take(self) -> Json:
        while not self._items:
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None
        item = self._items.popleft()
        self._note("Taken", {"upcall": self.upcall, **self.ident, "item": item})
        return item

    def told_to_stop(self, how: str) -> None:
        self._note("Abandoned", {"upcall": self.upcall, **self.ident, "how": how})


async def model_stream(gate: Gate) -> AsyncIterator[Chunk]:
    """The chunks of one model response. The stream is the response: a `return` can only extend it."""
    said = gate.said
    try:
        while True:
            item = await gate.take()
            for chunk in said.chunks(item):
                yield chunk
            if "fail" in item:
                gate.open = False
                raise normal.provider_error(item["fail"], MODEL_NAME)
            if "panic" in item:
                gate.open = False
                raise ScriptedPanic("the model double panicked")
            if is_last(item):
                return
    except (asyncio.CancelledError, GeneratorExit):
        if gate.open:
            gate.told_to_stop("dropped")
        raise
    finally:
        gate.open = False


def is_last(item: Json) -> bool:
    return bool({"return", "fail", "panic"} & item.keys())


def unfolded(item: Json) -> list[Json]:
    """The shorthand of a whole response as the single items it stands for: each is taken for itself."""
    if not {"text", "calls"} & item.keys():
        return [item]
    texts = _texts(item.get("text"))
    out: list[Json] = [{"reasoning": text} for text in _texts(item.get("reasoning"))]
    out += [{"delta": text} for text in texts]
    out += [{"call_delta": _whole(index, call)} for index, call in enumerate(item.get("calls") or ())]
    blocks = {"text": "".join(texts) if "text" in item else None, "calls": item.get("calls")}
    return [*out, {"return": {key: value for key, value in blocks.items() if value is not None}}]


def _whole(index: int, call: Json) -> Json:
    return {"index": index, "id": call["id"], "name": call["tool"], "arguments": _json(call.get("args", {}))}


def _json(args: Any) -> str:
    return args if isinstance(args, str) else json.dumps(args)


class Said:
    """What a response has streamed so far, to turn a `return` into the chunks still missing."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[int, str | None] = {}
        self.anything = False

    def chunks(self, item: Json) -> list[Chunk]:
        out = self._chunks(item)
        # FunctionModel refuses a stream without any item; an empty chunk says "a response of no parts".
        if is_last(item) and not ({"fail", "panic"} & item.keys()) and not out and not self.anything:
            out = [{}]
        self.anything = self.anything or bool(out)
        return out

    def contradicts(self, item: Json) -> bool:
        """Whether a returned text does not extend the streamed one: this model cannot say that."""
        blocks = item.get("return")
        text = blocks.get("text") if isinstance(blocks, dict) else None
        return text is not None and not str(text).startswith(self.text)

    def _chunks(self, item: Json) -> list[Chunk]:
        if "delta" in item:
            return [self._say(item["delta"])]
        if "reasoning" in item:
            return [_think(item["reasoning"])]
        if "call_delta" in item:
            return [self._call_delta(item["call_delta"])]
        return self._missing(item["return"]) if "return" in item else []

    def _missing(self, blocks: Json) -> list[Chunk]:
        """A `return` adds what was not streamed yet."""
        known = set(self.calls.values())
        out: list[Chunk] = []
        for text in _texts(blocks.get("text")):
            if rest := text.removeprefix(self.text):
                out.append(self._say(rest))
            elif not self.anything:
                out.append("")
        return out + [self._call(call) for call in blocks.get("calls") or () if call["id"] not in known]

    def _say(self, text: str) -> str:
        self.text += text
        return text

    def _call(self, call: Json) -> Chunk:
        index = max(self.calls, default=-1) + 1
        self.calls[index] = call["id"]
        return {index: DeltaToolCall(call["tool"], _json(call.get("args", {})), tool_call_id=call["id"])}

    def _call_delta(self, delta: Json) -> Chunk:
        index = delta["index"]
        # Names and ids are appended by the parts manager, so each is given once, as providers do.
        fresh = self.calls.get(index) is None
        self.calls[index] = self.calls.get(index) or delta.get("id")
        return {
            index: DeltaToolCall(
                name=delta.get("name") if fresh else None,
                json_args=delta.get("arguments") or None,
                tool_call_id=delta.get("id") if fresh else None,
            )
        }


def _texts(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _think(text: str) -> Chunk:
    return {THINKING: DeltaThinkingPart(content=text)}


async def tool_call(gate: Gate, on_cancel: str) -> Any:
    """The body of every tool. With `on_cancel: ignore` it hears the cancellation and stays."""
    try:
        while True:
            try:
                item = await gate.take()
            except asyncio.CancelledError:
                if on_cancel != "ignore":
                    gate.told_to_stop("dropped")
                    raise
                gate.told_to_stop("token")
                continue
            if "return" in item:
                return item["return"]
            if "fail" in item:
                raise ToolFailed(item["fail"])
            raise ScriptedPanic("the tool double panicked")
    finally:
        gate.open = False
