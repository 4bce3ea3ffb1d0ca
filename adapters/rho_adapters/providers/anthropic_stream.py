"""Reads one streamed response of the Messages API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rho_core import inputs as inp
from rho_core.errors import ProviderErrorKind
from rho_core.messages import Block, Text, Usage, freeze_json

from ..provider import ModelRequest, failure
from ._mapping import Call, Joints, Malformed, Meter, Pieces, detachments, dispatched, generated, get, number, string
from .anthropic_history import REDACTED, THINKING


@dataclass(slots=True)
class Thought:
    """A thinking block. Its text is not kept: only that there was some."""

    joints: Joints = field(default_factory=Joints)
    shown: bool = False
    signature: str = ""


@dataclass(slots=True)
class Hosted:
    """A call of a tool that the provider runs itself."""

    name: str
    input: Pieces = field(default_factory=Pieces)


Part = Pieces | Call | Thought | Hosted


class AnthropicReader:
    """Content blocks in the order of their index."""

    def __init__(self, request: ModelRequest) -> None:
        self.ended = False
        self.last = False
        self._request = request
        self._parts: dict[int, Part] = {}
        self._calls = 0
        self._shown = self._concealed = False
        self._reason = ""
        self._total = Usage()
        self._meter = Meter()
        self._on: dict[str, Callable[[Any], Iterable[inp.ModelInput]]] = {
            "message_start": self._start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._stop,
        }
        self._delta: dict[str, Callable[[Any, Any], Iterable[inp.ModelInput]]] = {
            "text_delta": self._text,
            "input_json_delta": self._json,
            "thinking_delta": self._thinking,
            "signature_delta": self._signature,
        }

    def feed(self, event: Any) -> Iterable[inp.ModelInput]:
        return dispatched(self._on, event)

    def _start(self, event: Any) -> Iterator[inp.ModelInput]:
        yield from self._usage(get(event, "message", "usage"))

    def _block_start(self, event: Any) -> Iterator[inp.ModelInput]:
        block, index = get(event, "content_block"), _index(event)
        match get(block, "type"):
            case "text":
                self._parts[index] = Pieces()
                yield from self._text(self._parts[index], block)
            case "tool_use":
                yield from self._tool(index, block)
            case "thinking":
                self._parts[index] = Thought(signature=string(get(block, "signature")))
                yield from self._thinking(self._parts[index], block)
            case "redacted_thinking":
                self._concealed = True
                yield self._request.context(REDACTED, string(get(block, "data")), len(self._content()))
            case "server_tool_use":
                self._parts[index] = Hosted(string(get(block, "name")))

    def _tool(self, index: int, block: Any) -> Iterator[inp.ModelInput]:
        call = self._parts[index] = Call(self._calls)
        self._calls += 1
        given = get(block, "input")  # whole at once, from servers that do not stream it
        arguments = freeze_json(dict(given)) if isinstance(given, Mapping) and given else ""
        told = call.grow(self._request, string(get(block, "id")), string(get(block, "name")), arguments)
        if told is not None:
            yield told

    def _block_delta(self, event: Any) -> Iterable[inp.ModelInput]:
        delta, part = get(event, "delta"), self._parts.get(_index(event))
        kind = get(delta, "type")
        if not isinstance(kind, str):
            raise Malformed("a delta without a type")
        handler = self._delta.get(kind)
        return () if handler is None else handler(part, delta)

    def _text(self, part: Part | None, delta: Any) -> Iterator[inp.ModelInput]:
        if not isinstance(part, Pieces):
            raise Malformed("text outside of a text block")
        if shown := part.add(string(get(delta, "text"))):
            yield self._request.text(shown)

    def _json(self, part: Part | None, delta: Any) -> Iterator[inp.ModelInput]:
        fragment = string(get(delta, "partial_json"))
        if isinstance(part, Hosted):
            part.input.add(fragment)
            return
        if not isinstance(part, Call):
            raise Malformed("arguments outside of a call")
        told = part.grow(self._request, "", "", fragment)
        if told is not None:
            yield told

    def _thinking(self, part: Part | None, delta: Any) -> Iterator[inp.ModelInput]:
        if not isinstance(part, Thought):
            raise Malformed("thinking outside of a thinking block")
        if shown := part.joints.add(string(get(delta, "thinking"))):
            part.shown = self._shown = True
            yield self._request.raw_reasoning(shown)

    def _signature(self, part: Part | None, delta: Any) -> Iterable[inp.ModelInput]:
        if not isinstance(part, Thought):
            raise Malformed("a signature outside of a thinking block")
        part.signature += string(get(delta, "signature"))
        return ()

    def _block_stop(self, event: Any) -> Iterator[inp.ModelInput]:
        part = self._parts.get(_index(event))
        if isinstance(part, Thought):
            if not part.shown:
                self._concealed = True
                if part.signature:
                    yield self._request.context(THINKING, part.signature, len(self._content()))
        elif isinstance(part, Hosted):
            if part.name == "web_search":
                yield self._request.web_search(part.input.text())
            else:
                yield self._request.hosted_tool(part.name, part.input.text())

    def _message_delta(self, event: Any) -> Iterator[inp.ModelInput]:
        usage = get(event, "usage")
        yield from self._usage(usage)
        self._reason = string(get(event, "delta", "stop_reason")) or self._reason
        if not self._reason:
            return
        self.ended = True
        hidden = number(get(usage, "output_tokens_details", "thinking_tokens"))
        concealed = self._concealed and not self._shown
        tokens = generated(self._total.output_tokens, hidden if concealed else None, concealed)
        if tokens is not None:
            yield self._request.generation_tokens(tokens)

    def _stop(self, event: Any) -> Iterable[inp.ModelInput]:
        self.last = self.ended
        return ()

    def _usage(self, usage: Any) -> Iterator[inp.ModelInput]:
        """The start and the end each give totals so far; the end may leave out what has not changed."""
        old = self._total
        self._total = Usage(
            _newer(get(usage, "input_tokens"), old.input_tokens),
            _newer(get(usage, "output_tokens"), old.output_tokens),
            _newer(get(usage, "cache_read_input_tokens"), old.cache_read_tokens),
            _newer(get(usage, "cache_creation_input_tokens"), old.cache_write_tokens),
        )
        if (more := self._meter.growth(_whole(self._total))) is not None:
            yield self._request.usage(more)

    def _content(self) -> tuple[Block, ...]:
        blocks: list[Block] = []
        for index in sorted(self._parts):
            part = self._parts[index]
            if isinstance(part, Call):
                blocks.append(part.block())
            elif isinstance(part, Pieces) and (text := part.text()):
                blocks.append(Text(text))
        return tuple(blocks)

    def finish(self) -> Iterator[inp.ModelInput]:
        if self._reason == "refusal":
            raise failure(ProviderErrorKind.OTHER, "the provider refused to go on with the answer", retryable=False)
        if self._reason == "pause_turn":
            raise failure(
                ProviderErrorKind.OTHER,
                "the provider paused the turn, which cannot be resumed",
                retryable=False,
            )
        content = self._content()
        yield from detachments(self._request, content)
        yield self._request.returned(content)


def _index(event: Any) -> int:
    index = get(event, "index")
    if type(index) is not int:
        raise Malformed("an event without a place")
    return index


def _newer(value: Any, old: int | None) -> int | None:
    now = number(value)
    return old if now is None else now


def _whole(usage: Usage) -> Usage:
    """The API counts cached tokens beside the input; we count them in it, as every other provider does."""
    inputs = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    prompt = None if usage.input_tokens is None else sum(n or 0 for n in inputs)
    total = None if prompt is None or usage.output_tokens is None else prompt + usage.output_tokens
    return Usage(prompt, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens, total)
