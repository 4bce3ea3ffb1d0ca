"""Reads one streamed response of the Responses API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rho_core import inputs as inp
from rho_core.errors import ProviderErrorKind
from rho_core.messages import (
    Block,
    Text,
    Usage,
    freeze_json,
)

from ..provider import ModelRequest, ProviderFailure, failure
from ._classify import Redactor, said
from ._mapping import (
    Call,
    Joints,
    Malformed,
    Meter,
    Pieces,
    detachments,
    dispatched,
    generated,
    get,
    items,
    number,
    string,
)
from .openai_chat import tier_fallback

REASONING = "openai.reasoning"
"""Context kind: a reasoning item with its encrypted content. Its raw text, if any came, is not in it (RHO-CAN-10)."""


class ResponsesReader:
    """Reads one streamed response. Output items are kept in the order of their places."""

    def __init__(self, request: ModelRequest, redact: Redactor, tier: Any = None) -> None:
        self.ended = False
        self.last = False
        self._request = request
        self._redact = redact
        self._tier = tier
        self._output: dict[int, Pieces | Call] = {}
        self._places: dict[str, int] = {}
        self._reasoning = Joints()
        self._summary = Joints()
        self._summarised = self._shown = False
        self._calls = 0
        self._meter = Meter()
        self._withheld: ProviderFailure | None = None
        self._on: dict[str, Callable[[Any], Iterable[inp.ModelInput]]] = {
            "response.output_text.delta": self._text_delta,
            "response.refusal.delta": self._text_delta,
            "response.function_call_arguments.delta": self._arguments,
            "response.reasoning_text.delta": self._raw,
            "response.reasoning_summary_part.added": self._summary_part,
            "response.reasoning_summary_text.delta": self._summary_delta,
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.completed": self._completed,
            "response.incomplete": self._completed,
            "response.failed": self._failed,
            "error": self._error,
        }

    def feed(self, event: Any) -> Iterable[inp.ModelInput]:
        return dispatched(self._on, event)

    def _place(self, event: Any) -> int:
        """Of an item, by its index; servers that give none are followed by its ids, in the order of arrival."""
        index = get(event, "output_index")
        if type(index) is int:
            return index
        named = (get(event, "item_id"), get(event, "item", "id"), get(event, "item", "call_id"))
        ids = [n for n in named if isinstance(n, str) and n]
        if index is not None or not ids:
            raise Malformed("an event without a place")
        place = next((self._places[i] for i in ids if i in self._places), len(self._output))
        self._places.update(dict.fromkeys(ids, place))
        return place

    def _text(self, place: int) -> Pieces:
        found = self._output.setdefault(place, Pieces())
        if not isinstance(found, Pieces):
            raise Malformed("text in the place of a call")
        return found

    def _call(self, place: int) -> Call:
        found = self._output.get(place)
        if found is None:
            found = self._output[place] = Call(self._calls)
            self._calls += 1
        if not isinstance(found, Call):
            raise Malformed("a call in the place of text")
        return found

    def _text_delta(self, event: Any) -> Iterator[inp.ModelInput]:
        if shown := self._text(self._place(event)).add(string(get(event, "delta"))):
            yield self._request.text(shown)

    def _arguments(self, event: Any) -> Iterator[inp.ModelInput]:
        told = self._call(self._place(event)).grow(self._request, "", "", string(get(event, "delta")))
        if told is not None:
            yield told

    def _raw(self, event: Any) -> Iterator[inp.ModelInput]:
        self._shown = True
        if shown := self._reasoning.add(string(get(event, "delta"))):
            yield self._request.raw_reasoning(shown)

    def _summary_part(self, event: Any) -> Iterator[inp.ModelInput]:
        if self._summarised:
            yield self._request.summary("\n\n")

    def _summary_delta(self, event: Any) -> Iterator[inp.ModelInput]:
        self._summarised = True
        if shown := self._summary.add(string(get(event, "delta"))):
            yield self._request.summary(shown)

    def _added(self, event: Any) -> Iterator[inp.ModelInput]:
        item = get(event, "item")
        if get(item, "type") == "function_call":
            yield from self._named(event, item)
        elif get(item, "type") == "message":
            self._text(self._place(event))

    def _named(self, event: Any, item: Any) -> Iterator[inp.ModelInput]:
        told = self._call(self._place(event)).grow(
            self._request, string(get(item, "call_id")), string(get(item, "name")), ""
        )
        if told is not None:
            yield told

    def _done(self, event: Any) -> Iterator[inp.ModelInput]:
        """An item as it finally is: its text and arguments win over what was streamed."""
        item = get(event, "item")
        kind = string(get(item, "type"))
        if kind == "function_call":
            yield from self._named(event, item)
            yield from self._whole_call(self._call(self._place(event)), string(get(item, "arguments")))
        elif kind == "message":
            yield from self._whole_text(self._text(self._place(event)), item)
        elif kind == "reasoning":
            yield from self._reasoned(item)
        elif kind == "web_search_call":
            yield self._request.web_search(_query(item))
        elif kind.endswith("_call"):
            yield self._request.hosted_tool(kind.removesuffix("_call"), string(get(item, "status")))

    def _whole_call(self, call: Call, arguments: str) -> Iterator[inp.ModelInput]:
        if arguments and not call.arguments.text():
            told = call.grow(self._request, "", "", arguments)
            if told is not None:
                yield told
        elif arguments:
            call.arguments.become(arguments)

    def _whole_text(self, text: Pieces, item: Any) -> Iterator[inp.ModelInput]:
        parts = items(get(item, "content"))
        whole = "".join(string(get(p, "text")) or string(get(p, "refusal")) for p in parts)
        if whole and not text.text():
            yield self._request.text(text.add(whole))
        elif whole:
            text.become(whole)

    def _reasoned(self, item: Any) -> Iterator[inp.ModelInput]:
        encrypted, item_id = get(item, "encrypted_content"), get(item, "id")
        if not (isinstance(encrypted, str) and isinstance(item_id, str)):
            return  # nothing in it that the server could use again
        summary = [{"type": "summary_text", "text": string(get(s, "text"))} for s in items(get(item, "summary"))]
        data = {"id": item_id, "summary": summary, "encrypted_content": encrypted}
        yield self._request.context(REASONING, freeze_json(data), len(self._content()))

    def _completed(self, event: Any) -> Iterator[inp.ModelInput]:
        response = get(event, "response")
        yield from self._usage(response)
        yield from tier_fallback(self, self._request, get(response, "service_tier"))
        if get(response, "incomplete_details", "reason") == "content_filter":
            self._withheld = failure(
                ProviderErrorKind.OTHER, "the provider's content filter cut the answer", retryable=False
            )
        self.ended = self.last = True

    def _failed(self, event: Any) -> Iterator[inp.ModelInput]:
        response = get(event, "response")
        yield from self._usage(response)
        raise self._failure(get(response, "error"))

    def _error(self, event: Any) -> Iterator[inp.ModelInput]:
        raise self._failure(event)

    def _failure(self, error: Any) -> ProviderFailure:
        """`type` of a bare error event is just "error", which says nothing."""
        told = {name: get(error, name) for name in ("code", "message")}
        return ProviderFailure(said(told, self._redact))

    def _usage(self, response: Any) -> Iterator[inp.ModelInput]:
        usage = get(response, "usage")
        output = number(get(usage, "output_tokens"))
        total = Usage(
            number(get(usage, "input_tokens")),
            output,
            number(get(usage, "input_tokens_details", "cached_tokens")),
            number(get(usage, "input_tokens_details", "cache_write_tokens")),
            number(get(usage, "total_tokens")),
        )
        if (more := self._meter.growth(total)) is not None:
            yield self._request.usage(more)
        reasoning = number(get(usage, "output_tokens_details", "reasoning_tokens"))
        if self._summarised:  # its window holds an unknown part of the time of reasoning
            reasoning = None
        if not self._shown and (tokens := generated(output, reasoning, self._summarised)) is not None:
            yield self._request.generation_tokens(tokens)

    def _content(self) -> tuple[Block, ...]:
        blocks: list[Block] = []
        for place in sorted(self._output):
            item = self._output[place]
            if isinstance(item, Call):
                blocks.append(item.block())
            elif text := item.text():
                blocks.append(Text(text))
        return tuple(blocks)

    def finish(self) -> Iterator[inp.ModelInput]:
        if self._withheld is not None:
            raise self._withheld
        content = self._content()
        yield from detachments(self._request, content)
        yield self._request.returned(content)


def _query(item: Any) -> str:
    action = get(item, "action")
    for name in ("query", "url", "pattern"):
        if isinstance(found := get(action, name), str):
            return found
    return ""
