"""A conversation as the Messages API wants it: turns that alternate, answers first in the turn after the calls."""

from __future__ import annotations

import json
import re
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
    is_object,
)

from ._mapping import adjacent, own_context, woven

THINKING = "anthropic.thinking"
"""Context kind: the signature of a thinking block that came without text."""
REDACTED = "anthropic.redacted_thinking"
"""Context kind: the data of a `redacted_thinking` block."""

_NOT_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")


def system_prompt(history: History) -> str:
    """All system messages: the API has one place for them, before the conversation."""
    return "\n\n".join(m.text for m in history if isinstance(m, System) and m.text.strip())


def anthropic_messages(history: History, identity: Identity) -> list[dict[str, Any]]:
    """The conversation on the wire. Neighbours of one side become one turn; blank text is refused, so left out."""
    turns: list[dict[str, Any]] = []
    for message in adjacent(history):
        if isinstance(message, System):
            continue
        role = "assistant" if isinstance(message, Assistant | AbortedAssistant) else "user"
        content = list(_content(message, identity))
        if not content:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(content)
        else:
            turns.append({"role": role, "content": content})
    return turns


def _content(message: Message, identity: Identity) -> Iterator[dict[str, Any]]:
    match message:
        case ToolResult():
            yield _result(message)
        case AbortedAssistant():
            for block in message.content:
                if isinstance(block, Text):
                    yield from _block(block)
        case Assistant():
            for part in woven(message.content, own_context(message, identity)):
                yield from _thinking(part) if isinstance(part, ProviderContext) else _block(part)
        case System():
            return
        case _:
            for block in message.content:
                yield from _block(block)


def _block(block: Block) -> Iterator[dict[str, Any]]:
    match block:
        case Text() if block.text.strip():
            yield {"type": "text", "text": block.text}
        case Image():
            source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
            yield {"type": "image", "source": source}
        case ToolCall():
            arguments = json.loads(block.arguments) if is_object(block.arguments) else {}
            yield {"type": "tool_use", "id": _id(block.id), "name": block.name, "input": arguments}


def _thinking(context: ProviderContext) -> Iterator[dict[str, Any]]:
    if context.context_kind == THINKING:
        yield {"type": "thinking", "thinking": "", "signature": context.data}
    elif context.context_kind == REDACTED:
        yield {"type": "redacted_thinking", "data": context.data}


def _result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(result.id), "is_error": not result.ok}
    if result.content.strip():
        block["content"] = result.content
    return block


def _id(call_id: str) -> str:
    """Ids that other providers made may hold characters that this API refuses."""
    return _NOT_IN_ID.sub("_", call_id)
