"""Reading messages in the normal form of spec/protocol.md: one key (the kind) beside its content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = Any


def kind(message: Json) -> str:
    """``system``, ``user``, ``assistant``, ``aborted``, ``result``, … or ``""``."""
    return next(iter(message), "") if isinstance(message, Mapping) else ""


def body(message: Json) -> Json:
    """What stands under the kind."""
    return next(iter(message.values()), None) if isinstance(message, Mapping) else None


def text(message: Json) -> str:
    """All text of a message, joined."""
    content = body(message)
    if isinstance(content, Mapping):
        content = content.get("text", "")
    return content if isinstance(content, str) else ""


def calls(message: Json) -> list[str]:
    """Call ids of an assistant or aborted message in block order."""
    content = body(message)
    found = content.get("calls") if isinstance(content, Mapping) else None
    return [c if isinstance(c, str) else str(c.get("id")) for c in found or () if isinstance(c, str | Mapping)]


def result_id(message: Json) -> str | None:
    """The call that a result answers, ``None`` for other kinds."""
    content = body(message)
    return content.get("id") if kind(message) == "result" and isinstance(content, Mapping) else None


def result_ok(message: Json) -> bool | None:
    """Whether a result is a success, ``None`` where it does not say."""
    content = body(message)
    return content.get("ok") if isinstance(content, Mapping) else None


def results(messages: Iterable[Json]) -> list[tuple[int, str, bool | None, str]]:
    """All results as (position, call id, ok, text)."""
    return [(i, found, result_ok(m), text(m)) for i, m in enumerate(messages) if (found := result_id(m)) is not None]


def users(messages: Iterable[Json]) -> list[str]:
    """Texts of the user messages in order."""
    return [text(m) for m in messages if kind(m) == "user"]


def unanswered(messages: Sequence[Json]) -> list[str]:
    """Calls of completed assistants with no result anywhere later."""
    answered = [r[1] for r in results(messages)]
    out: list[str] = []
    for message in messages:
        if kind(message) == "assistant":
            for call in calls(message):
                if call in answered:
                    answered.remove(call)
                else:
                    out.append(call)
    return out


def dump(value: Json) -> str:
    """JSON text for searches."""
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)


def holds(value: Json, needle: str) -> bool:
    """Whether ``needle`` stands in any string, key or value, of a JSON value."""
    if isinstance(value, str):
        return needle in value
    if isinstance(value, Mapping):
        return any(holds(k, needle) or holds(v, needle) for k, v in value.items())
    if isinstance(value, list | tuple):
        return any(holds(v, needle) for v in value)
    return False
