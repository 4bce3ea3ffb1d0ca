"""OpenAI's Chat Completions, and every server that speaks it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import openai

from rho_core import inputs as inp
from rho_core.errors import ProviderErrorKind
from rho_core.messages import (
    AbortedAssistant,
    Assistant,
    Block,
    History,
    Identity,
    Image,
    Message,
    System,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    calls_of,
    text_of,
)

from ..provider import ModelRequest, ProviderFailure, failure
from ..tool import ToolSpec
from ._classify import Sdk
from ._http import CONNECT_S, READ_S, HttpProvider, misconfigured, timeouts
from ._mapping import (
    Call,
    Joints,
    Malformed,
    Meter,
    Pieces,
    adjacent,
    detachments,
    generated,
    get,
    items,
    number,
    string,
)

SDK = Sdk(openai.OpenAIError, openai.APIConnectionError, openai.APITimeoutError)


class OpenAIBase(HttpProvider):
    """What both APIs of OpenAI share: the client. `client`: one of the caller's, with its own timeouts."""

    SDK = SDK
    API: str

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        provider: str = "openai",
        connect_timeout_s: float = CONNECT_S,
        read_timeout_s: float = READ_S,
        max_tokens: int | None = None,
        settings: Mapping[str, Any] | None = None,
        cache_key: bool = True,
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        """`cache_key`: send the session's cache key. `settings`: members of the request's body.

        Raises InvalidConfiguration without an API key, neither given nor in OPENAI_API_KEY.
        """
        key = api_key or os.environ.get("OPENAI_API_KEY")
        if client is None and not key:
            raise misconfigured("no API key: give one, or set OPENAI_API_KEY")
        self._max_tokens = max_tokens
        self._cache_key = cache_key
        self._own = client is None
        self._client = (
            openai.AsyncOpenAI(
                api_key=key, base_url=base_url, max_retries=0, timeout=timeouts(connect_timeout_s, read_timeout_s)
            )
            if client is None
            else client.with_options(max_retries=0)
        )
        super().__init__(Identity(provider, self.API, model), settings, self._client)

    async def _close_client(self) -> None:
        if self._own:
            await self._client.close()


class OpenAIChat(OpenAIBase):
    """A model behind `/chat/completions`.

    A response is whole once its `finish_reason` was seen, whether `[DONE]` follows or not; `[DONE]` alone is no
    end. Raw reasoning (`reasoning_content`, `reasoning`) is shown, and never sent back.
    """

    API = "chat_completions"
    MAX_TOKENS = "max_completion_tokens"
    STREAM_USAGE = True

    def body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._identity.model, "messages": chat_messages(request.messages)}
        if request.tools:
            body["tools"] = [_tool(t) for t in request.tools]
        if self._max_tokens is not None:
            body[self.MAX_TOKENS] = self._max_tokens
        if self.STREAM_USAGE:
            body["stream_options"] = {"include_usage": True}
        if self._cache_key and request.cache_key:
            body["prompt_cache_key"] = request.cache_key
        return body

    async def _send(self, body: dict[str, Any]) -> Any:
        return await self._client.chat.completions.create(**body, stream=True, extra_body=self._settings or None)

    def _reader(self, request: ModelRequest) -> ChatReader:
        return ChatReader(request, self._settings.get("service_tier"))


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


def chat_messages(history: History) -> list[dict[str, Any]]:
    """The conversation on the wire; messages that have nothing to say there are left out."""
    return [m for message in adjacent(history) if (m := _message(message)) is not None]


def _message(message: Message) -> dict[str, Any] | None:
    match message:
        case System():
            return {"role": "system", "content": message.text}
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.id, "content": message.content}
        case AbortedAssistant():
            prose = text_of(message.content)
            return {"role": "assistant", "content": prose} if prose else None
        case Assistant():
            return _assistant(message)
        case _:
            return {"role": "user", "content": _parts(message.content)}


def _assistant(message: Assistant) -> dict[str, Any] | None:
    prose, calls = text_of(message.content), calls_of(message.content)
    if not (prose or calls):
        return None
    said: dict[str, Any] = {"role": "assistant", "content": prose or None}
    if calls:
        said["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
        ]
    return said


def _parts(content: tuple[Block, ...]) -> str | list[dict[str, Any]]:
    if not any(isinstance(b, Image) for b in content):
        return text_of(content)  # some servers take nothing but a string
    parts: list[dict[str, Any]] = []
    for block in content:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            url = f"data:{block.mime_type};base64,{block.data}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


class ChatReader:
    """Reads one streamed completion; only its first choice counts."""

    last = False  # usage comes behind the finish reason, then the client sees [DONE]

    def __init__(self, request: ModelRequest, tier: Any = None) -> None:
        self.ended = False
        self._request = request
        self._tier = tier
        self._text = Pieces()
        self._reasoning = Joints()
        self._shown = False
        self._calls: list[Call] = []
        self._slots: dict[Any, Call] = {}
        self._meter = Meter()
        self._withheld: ProviderFailure | None = None

    def feed(self, event: Any) -> Iterator[inp.ModelInput]:
        choices, usage = get(event, "choices"), get(event, "usage")
        if choices is None and usage is None:
            raise Malformed("a chunk without choices")
        yield from tier_fallback(self, self._request, get(event, "service_tier"))
        for choice in items(choices):
            if get(choice, "index") in (0, None):
                yield from self._choice(choice)
        if usage is not None:
            yield from self._usage(usage)

    def _choice(self, choice: Any) -> Iterator[inp.ModelInput]:
        delta = get(choice, "delta")
        reasoning = string(get(delta, "reasoning_content")) or string(get(delta, "reasoning"))
        if reasoning:
            self._shown = True
            if shown := self._reasoning.add(reasoning):
                yield self._request.raw_reasoning(shown)
        for said in (get(delta, "content"), get(delta, "refusal")):
            if shown := self._text.add(string(said)):
                yield self._request.text(shown)
        for fragment in items(get(delta, "tool_calls")):
            yield from self._fragment(fragment)
        self._end(string(get(choice, "finish_reason")))

    def _end(self, reason: str) -> None:
        if not reason:
            return
        self.ended = True
        if reason == "content_filter":
            self._withheld = failure(
                ProviderErrorKind.OTHER, "the provider's content filter cut the answer", retryable=False
            )
        elif reason == "error":  # gateways say so
            self._withheld = failure(ProviderErrorKind.UNAVAILABLE, "the provider gave up its answer", retryable=True)

    def _fragment(self, fragment: Any) -> Iterable[inp.ModelInput]:
        call_id, name = string(get(fragment, "id")), string(get(fragment, "function", "name"))
        call = self._slot(get(fragment, "index"), call_id, name)
        told = call.grow(self._request, call_id, name, string(get(fragment, "function", "arguments")))
        return () if told is None else (told,)

    def _slot(self, index: Any, call_id: str, name: str) -> Call:
        """By index; but some servers give none, or the same to every call: another id and name is another call."""
        if index is None:
            index = -1
        if type(index) is not int:
            raise Malformed("a call without a place")
        call = self._slots.get(index)
        if call is None or (call_id and name and call.id not in (None, call_id)):
            call = self._slots[index] = Call(len(self._calls))
            self._calls.append(call)
        return call

    def _usage(self, usage: Any) -> Iterator[inp.ModelInput]:
        output = number(get(usage, "completion_tokens"))
        total = Usage(
            number(get(usage, "prompt_tokens")),
            output,
            number(get(usage, "prompt_tokens_details", "cached_tokens")),
            number(get(usage, "prompt_tokens_details", "cache_write_tokens")),
            number(get(usage, "total_tokens")),
        )
        if (more := self._meter.growth(total)) is not None:
            yield self._request.usage(more)
        reasoning = number(get(usage, "completion_tokens_details", "reasoning_tokens"))
        if not self._shown and (tokens := generated(output, reasoning, concealed=False)) is not None:
            yield self._request.generation_tokens(tokens)

    def finish(self) -> Iterator[inp.ModelInput]:
        if self._withheld is not None:
            raise self._withheld
        text = self._text.text()
        blocks: list[Block] = [Text(text)] if text else []
        calls: list[ToolCall] = [c.block() for c in self._calls]
        content = (*blocks, *calls)
        yield from detachments(self._request, content)
        yield self._request.returned(content)


def tier_fallback(reader: Any, request: ModelRequest, used: Any) -> Iterator[inp.ModelInput]:
    """Says once that another service tier answered than the one asked for."""
    asked = reader._tier
    if isinstance(asked, str) and isinstance(used, str):
        reader._tier = None
        if asked not in ("auto", used):
            yield request.tier_fallback(asked, used)
