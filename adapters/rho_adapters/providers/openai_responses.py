"""OpenAI's Responses API, without state on the server: every request carries the whole conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rho_core.messages import (
    AbortedAssistant,
    Assistant,
    Block,
    History,
    Identity,
    Image,
    Message,
    ProviderContext,
    System,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)

from ..provider import ModelRequest
from ..tool import ToolSpec
from ._mapping import (
    adjacent,
    own_context,
    woven,
)
from .openai_chat import OpenAIBase
from .openai_responses_stream import REASONING, ResponsesReader


class OpenAIResponses(OpenAIBase):
    """A model behind `/responses`.

    A response is whole with `response.completed` or `response.incomplete`; the latter may be content cut at the
    token limit, which is passed on. Encrypted reasoning items are sent back to the same identity.
    """

    API = "responses"

    def body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._identity.model,
            "input": response_input(request.messages, request.identity),
            "store": False,
        }
        if request.tools:
            body["tools"] = [_tool(t) for t in request.tools]
        if self._max_tokens is not None:
            body["max_output_tokens"] = self._max_tokens
        if self._cache_key and request.cache_key:
            body["prompt_cache_key"] = request.cache_key
        return body

    async def _send(self, body: dict[str, Any]) -> Any:
        return await self._client.responses.create(**body, stream=True, extra_body=self._settings or None)

    def _reader(self, request: ModelRequest) -> ResponsesReader:
        return ResponsesReader(request, self._redact, self._settings.get("service_tier"))


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
        "strict": False,
    }


# --- the conversation as input items --------------------------------------------------------------------------


def response_input(history: History, identity: Identity) -> list[dict[str, Any]]:
    """The conversation on the wire."""
    return [item for message in adjacent(history) for item in _items(message, identity)]


def _items(message: Message, identity: Identity) -> Iterator[dict[str, Any]]:
    match message:
        case System():
            yield {"role": "system", "content": message.text}
        case ToolResult():
            yield {"type": "function_call_output", "call_id": message.id, "output": message.content}
        case AbortedAssistant():
            if prose := text_of(message.content):
                yield _said(prose)
        case Assistant():
            yield from _assistant(message, identity)
        case _:
            yield {"role": "user", "content": [p for b in message.content for p in _part(b)]}


def _part(block: Block) -> Iterator[dict[str, Any]]:
    if isinstance(block, Text):
        yield {"type": "input_text", "text": block.text}
    elif isinstance(block, Image):
        url = f"data:{block.mime_type};base64,{block.data}"
        yield {"type": "input_image", "image_url": url, "detail": "auto"}


def _said(text: str) -> dict[str, Any]:
    """An output message without an id; the short form of a message is not taken by every server."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _assistant(message: Assistant, identity: Identity) -> Iterator[dict[str, Any]]:
    reasoning = [c for c in own_context(message, identity) if c.context_kind == REASONING]
    for part in woven(message.content, reasoning):
        match part:
            case ProviderContext():
                yield {"type": "reasoning", **json.loads(part.data)}
            case Text() if part.text:
                yield _said(part.text)
            case ToolCall():
                # Without an item id: nothing is stored over there that it could refer to.
                yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
