"""What a conversation is made of: blocks, messages, usage, and the check for a malformed response.

Source: Rho page, "Ordering rules", "Retry contract"; contract rows 1.5. Everything is hashable: tool
arguments stay JSON *text*, since a parsed object would be mutable.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NoReturn

from .record import record, tag


@record
class Text:
    """A block of prose."""

    text: str
    kind: Literal["text"] = tag("text")


@record
class Image:
    """A block of picture data (base64 text) with its media type."""

    data: str
    mime_type: str
    kind: Literal["image"] = tag("image")


@record
class ToolCall:
    """A complete call; `arguments` is the JSON text of one object."""

    id: str
    name: str
    arguments: str
    kind: Literal["tool_call"] = tag("tool_call")


Block = Text | Image | ToolCall


@record
class Identity:
    """Who produced provider material: material of another identity is not shown on handoff."""

    provider: str = "scripted"
    api: str = "scripted"
    model: str = "scripted"


@record
class ProviderContext:
    """Opaque material a provider wants back (never raw reasoning)."""

    identity: Identity
    context_kind: str
    data: str = ""
    position: int | None = None


@record
class Usage:
    """Tokens of one or more model calls; None = not reported. Source: rho.md 1.5."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    total_tokens: int | None = None
    context_window: int | None = None
    cost_usd_micros: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """Sum per field, None counting as nothing; the context window is the newest one reported."""
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cache_read_tokens, other.cache_read_tokens),
            _sum(self.cache_write_tokens, other.cache_write_tokens),
            _sum(self.total_tokens, other.total_tokens),
            self.context_window if other.context_window is None else other.context_window,
            _sum(self.cost_usd_micros, other.cost_usd_micros),
        )

    def is_empty(self) -> bool:
        """True when no field was reported."""
        return self == NO_USAGE


def _sum(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b


NO_USAGE = Usage()


@record
class System:
    """The host's system prompt."""

    text: str
    kind: Literal["system"] = tag("system")


@record
class User:
    """What a person, a steer or a boundary collector said."""

    content: tuple[Block, ...]
    kind: Literal["user"] = tag("user")


@record
class Assistant:
    """A completed answer, or the call a host asked for itself (`start_with_tool_call`)."""

    content: tuple[Block, ...]
    provenance: Identity | None = None
    reasoning_summary: str | None = None
    provider_context: tuple[ProviderContext, ...] = ()
    kind: Literal["assistant"] = tag("assistant")


@record
class PartialCall:
    """What was captured of a call of an abandoned response."""

    id: str | None
    name: str | None
    arguments: str


@record
class AbortedAssistant:
    """What was captured of a response that never completed; no field for raw reasoning (RHO-CAN-10)."""

    content: tuple[Block, ...]
    reasoning_summary: str | None = None
    provider_context: tuple[ProviderContext, ...] = ()
    tool_calls: tuple[PartialCall, ...] = ()
    usage: Usage = NO_USAGE
    kind: Literal["aborted_assistant"] = tag("aborted_assistant")


@record
class ToolResult:
    """The answer to one call."""

    id: str
    ok: bool
    content: str
    kind: Literal["tool_result"] = tag("tool_result")


Message = System | User | Assistant | AbortedAssistant | ToolResult
History = tuple[Message, ...]

INTERRUPTED = "tool call interrupted before completion"


def interrupted(call_id: str) -> ToolResult:
    """The deterministic result of a call that never finished (RHO-CAN-12)."""
    return ToolResult(call_id, False, INTERRUPTED)


def user(text: str) -> User:
    """A user message of one text block."""
    return User((Text(text),))


def text_of(content: tuple[Block, ...]) -> str:
    """All text blocks joined."""
    return "".join(b.text for b in content if isinstance(b, Text))


def calls_of(content: tuple[Block, ...]) -> tuple[ToolCall, ...]:
    """The calls, in model order."""
    return tuple(b for b in content if isinstance(b, ToolCall))


def is_object(arguments: str) -> bool:
    """Is this JSON text one object? Total: any text gives an answer."""
    try:
        return type(json.loads(arguments, parse_constant=_no_constant)) is dict
    except (ValueError, RecursionError):  # a deep nest or a 5,000-digit integer is bad input, not our fault
        return False


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity are not JSON


def malformed(content: tuple[Block, ...], open_ids: frozenset[str] = frozenset()) -> str | None:
    """Why a response is malformed, or None. `open_ids`: calls still open from earlier responses (D14)."""
    if not content:
        return "the response has no content"
    seen: set[str] = set()
    for call in calls_of(content):
        if not call.id:
            return "a tool call has no id"
        if not call.name:
            return f"tool call {call.id!r} has no name"
        if call.id in seen:
            return f"tool call id {call.id!r} is used twice"
        if call.id in open_ids:
            return f"tool call id {call.id!r} is still open"
        if not is_object(call.arguments):
            return f"the arguments of tool call {call.id!r} are not a JSON object"
        seen.add(call.id)
    return None


def freeze_json(value: Any) -> str:
    """Canonical JSON text of a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
