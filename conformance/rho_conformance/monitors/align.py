"""Comparing what a provider handed over with what its reader saw, blind to where deltas are cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .entities import DELTAS, Attempt, Obs
from .stimuli import Item

Json = Any
Token = tuple[str, str, str]
"""Kind, identity (index, name, …) and text; texts of neighbours with the same kind and identity are
joined."""

MARKER = "rho.sdk.async_tool_call"
_MERGED = frozenset({"delta", "reasoning", "summary", "call"})


def item_token(item: Item) -> Token | None:
    """The token of a provider item, ``None`` for one that shows nothing."""
    kind, value = item.kind, item.value
    args = value if isinstance(value, Mapping) else {}
    if kind in ("delta", "reasoning", "summary"):
        return (kind, "", str(value)) if value else None
    if kind == "call_delta":
        return ("call", str(args.get("index", 0)), str(args.get("arguments") or ""))
    if kind == "context":
        name = str(args.get("kind", value if isinstance(value, str) else ""))
        return None if name.startswith(MARKER) else ("context", name, "")
    if kind == "web_search":
        return ("search", _text(value, "detail"), "")
    if kind == "hosted":
        return ("hosted", str(args.get("name")), str(args.get("detail")))
    if kind in ("usage", "physical_retry"):
        return (kind, "", "")
    return None


def event_token(event: Obs) -> Token | None:
    """The token of a provider event."""
    if event.name in DELTAS:
        return (DELTAS[event.name], "", str(event.get("text"))) if event.get("text") else None
    if event.name == "ToolCallUpdated":
        return ("call", str(event.get("index", 0)), str(event.get("arguments_delta") or ""))
    if event.name == "ProviderContextUpdated":
        name = str(event.get("kind", ""))
        return None if name.startswith(MARKER) else ("context", name, "")
    if event.name == "WebSearch":
        return ("search", _text(event.get("detail"), "detail"), "")
    if event.name == "HostedToolActivity":
        return ("hosted", str(event.get("name")), str(event.get("detail")))
    if event.name == "ProviderRequestRetry":
        return ("physical_retry", "", "")
    return ("usage", "", "") if event.name == "UsageUpdated" else None


def _text(value: Json, key: str) -> str:
    return str(value.get(key)) if isinstance(value, Mapping) else str(value)


def merged(tokens: list[Token]) -> list[Token]:
    """Neighbours of one kind and identity joined; repeated usage folded, since totals may be sent
    together."""
    out: list[Token] = []
    for token in tokens:
        last = out[-1] if out else None
        if last is not None and last[:2] == token[:2] and token[0] in _MERGED:
            out[-1] = (*token[:2], last[2] + token[2])
        elif last is not None and last[0] == token[0] == "usage":
            continue
        else:
            out.append(token)
    return out


def taken_tokens(attempt: Attempt) -> list[Token]:
    """What the runtime took in this attempt."""
    return merged([t for i in attempt.items if (t := item_token(i)) is not None])


def shown_tokens(attempt: Attempt) -> list[Token]:
    """What the reader saw of this attempt."""
    return merged([t for e in attempt.events if (t := event_token(e)) is not None])


def mismatch(attempt: Attempt) -> tuple[int, Token | None, Token] | None:
    """First place where the events are no prefix of the items: (position, expected, seen); usage may be
    missing or extra."""
    expected = [t for t in taken_tokens(attempt) if t[0] != "usage"]
    seen = [t for t in shown_tokens(attempt) if t[0] != "usage"]
    expected, seen = merged(expected), merged(seen)
    for place, token in enumerate(seen):
        want = expected[place] if place < len(expected) else None
        if want == token:
            continue
        last = place == len(seen) - 1
        if last and want is not None and want[:2] == token[:2] and want[2].startswith(token[2]):
            return None
        return place, want, token
    return None


def usage_out_of_order(attempt: Attempt) -> bool:
    """Whether the first UsageUpdated came before something that the provider had sent earlier."""
    expected, seen = taken_tokens(attempt), shown_tokens(attempt)
    if not any(t[0] == "usage" for t in expected) or not any(t[0] == "usage" for t in seen):
        return False
    at = next(i for i, t in enumerate(expected) if t[0] == "usage")
    first = next(i for i, t in enumerate(seen) if t[0] == "usage")
    return merged(expected[:at]) != merged(seen[:first])


def missing(attempt: Attempt) -> list[Token]:
    """Tokens that the runtime took and a complete reader never saw (usage aside)."""
    expected = merged([t for t in taken_tokens(attempt) if t[0] != "usage"])
    seen = merged([t for t in shown_tokens(attempt) if t[0] != "usage"])
    left = list(seen)
    out = []
    for token in expected:
        if token in left:
            left.remove(token)
        else:
            out.append(token)
    return out
