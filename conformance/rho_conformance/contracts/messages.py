"""Contracts of `rho_core.messages`: the sum of usages, and when a response is malformed (RHO-RET-1, D14)."""

from __future__ import annotations

from typing import Literal

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import messages
from rho_core.messages import Block, Text, ToolCall, Usage

Count = int | None


@contract(Usage.__add__)
def usage_sums_what_was_reported(a: Count, b: Count, x: Count, y: Count) -> bool:
    """
    post: __return__
    """
    both = Usage(input_tokens=a, total_tokens=x) + Usage(input_tokens=b, total_tokens=y)
    return both.input_tokens == _sum(a, b) and both.total_tokens == _sum(x, y)


def _sum(a: Count, b: Count) -> Count:
    return None if a is None and b is None else (a or 0) + (b or 0)


@contract(Usage.__add__)
def usage_sums_the_other_fields_too(a: Count, b: Count, c: int, d: int) -> bool:
    """
    post: __return__
    """
    one = Usage(output_tokens=a, cache_read_tokens=c, cache_write_tokens=d, cost_usd_micros=c)
    both = one + Usage(output_tokens=b, cache_read_tokens=d, cache_write_tokens=None, cost_usd_micros=d)
    cached = (both.cache_read_tokens, both.cache_write_tokens, both.cost_usd_micros)
    return both.output_tokens == _sum(a, b) and cached == (c + d, d, c + d)


@contract(Usage.__add__)
def the_newest_context_window_wins(a: Count, b: Count) -> int | None:
    """
    post: __return__ == (a if b is None else b)
    """
    return (Usage(context_window=a) + Usage(context_window=b)).context_window


@contract(Usage.__add__, Usage.is_empty)
def no_usage_is_neutral(a: Count, b: Count, c: Count) -> bool:
    """
    post: __return__
    """
    usage = Usage(a, b, context_window=c)
    return usage + messages.NO_USAGE == usage == messages.NO_USAGE + usage


@contract(Usage.__add__)
def usage_adds_in_any_grouping(a: Count, b: Count, c: Count, x: Count, y: Count, z: Count) -> bool:
    """
    post: __return__
    """
    p, q, r = Usage(a, context_window=x), Usage(b, context_window=y), Usage(c, context_window=z)
    return (p + q) + r == p + (q + r)


@contract(Usage.is_empty)
def empty_means_nothing_was_reported(a: Count, b: Count, c: Count) -> bool:
    """
    post: __return__ == (a is None and b is None and c is None)
    """
    return Usage(a, total_tokens=b, cost_usd_micros=c).is_empty()


@contract(messages.interrupted, bounds="ids of at most 3 characters")
def an_interrupted_call_is_answered_in_its_name(call_id: str) -> messages.ToolResult:
    """
    pre: len(call_id) <= 3
    post: __return__.id == call_id and not __return__.ok and __return__.content == messages.INTERRUPTED
    """
    return messages.interrupted(call_id)


@contract(messages.text_of, messages.calls_of, bounds="at most 3 blocks of text (at most 2 characters) and calls")
def blocks_part_into_text_and_calls(kinds: tuple[bool, bool, bool], n: int, text: str) -> bool:
    """
    pre: 0 <= n <= 3 and len(text) <= 2
    post: __return__
    """
    content: tuple[Block, ...] = tuple(Text(text) if kinds[k] else ToolCall("a", "t", "{}") for k in range(n))
    calls = messages.calls_of(content)
    return messages.text_of(content) == text * (n - len(calls)) and all(c in content for c in calls)


def _proper(one: str, two: str, name: str, arguments: str, open_id: str) -> bool:
    """Both named, with ids of their own that no open call has, and the arguments an object."""
    ids = one not in ("", two, open_id) and two not in ("", open_id)
    return ids and name == "t" and arguments == "{}"


Arguments = Literal["{}", "[]", "", "{", "NaN"]


@contract(messages.malformed, bounds=f"two calls, {IDS} or empty; arguments of five texts; any open id")
def malformed_exactly_when_a_call_cannot_be_made(
    one: Literal["", "a", "b"], two: Literal["", "a", "b"], name: Literal["", "t"], arguments: Arguments, open_id: Id
) -> str | None:
    """
    post: (__return__ is None) == _proper(one, two, name, arguments, open_id)
    """
    content = (ToolCall(one, "t", "{}"), ToolCall(two, name, arguments))
    return messages.malformed(content, frozenset({open_id}))


@contract(messages.malformed, bounds="at most 2 text blocks of at most 2 characters")
def text_alone_is_well_formed_unless_empty(texts: tuple[str, str], n: int) -> str | None:
    """
    pre: 0 <= n <= 2 and len(texts[0]) <= 2 and len(texts[1]) <= 2
    post: (__return__ is None) == (n > 0)
    """
    return messages.malformed(tuple(Text(t) for t in texts[:n]))


@contract(messages.is_object, bounds="text of at most 2 characters, any of Unicode", limit=30)
def short_text_is_an_object_only_as_braces(text: str) -> bool:
    """
    pre: len(text) <= 2
    post: __return__ == (text == "{}")
    """
    return messages.is_object(text)
