"""Contracts of `rho_core.capture`: what was streamed is kept, once, and nothing else is (RHO-CAN-9)."""

from __future__ import annotations

from typing import Literal

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import capture
from rho_core.capture import NOTHING, Capture, Rest, Scan
from rho_core.inputs import ASYNC_CALL, CallDelta, ContextBlock
from rho_core.messages import NO_USAGE, Identity, Text, ToolCall, Usage

TEXTS = "texts of at most 2 characters"


@contract(capture.text_delta, capture.seal, capture.aborted, bounds=TEXTS)
def captured_text_does_not_depend_on_its_chunks(one: str, two: str) -> bool:
    """
    pre: len(one) <= 2 and len(two) <= 2
    post: __return__
    """
    parts = capture.text_delta(capture.text_delta(NOTHING, one), two)
    return capture.aborted(parts) == capture.aborted(capture.text_delta(NOTHING, one + two))


@contract(capture.text_delta, capture.aborted, bounds=TEXTS)
def captured_text_is_all_of_it(one: str) -> bool:
    """
    pre: 1 <= len(one) <= 2
    post: __return__
    """
    kept = capture.aborted(capture.text_delta(NOTHING, one))
    return kept is not None and kept.content == (Text(one),)


@contract(capture.seal, bounds=TEXTS)
def sealing_twice_is_sealing_once(text: str, opened: bool) -> bool:
    """
    pre: len(text) <= 2
    post: __return__
    """
    once = capture.seal(Capture(text if opened else None))
    return capture.seal(once) == once and once.tail is None


@contract(capture.usage_reported)
def usage_of_an_attempt_adds_up(a: int | None, b: int | None) -> bool:
    """
    post: __return__
    """
    reported = capture.usage_reported(capture.usage_reported(NOTHING, Usage(a)), Usage(b))
    return reported.rest.usage == Usage(a) + Usage(b)


@contract(capture.physical_retry)
def a_failed_physical_request_takes_its_usage_along(a: int | None, text: bool) -> bool:
    """
    post: __return__
    """
    before = capture.usage_reported(Capture("shown" if text else None), Usage(a))
    after = capture.physical_retry(before)
    return after.rest.usage == NO_USAGE and after.tail == before.tail and after.rest.generation is None


@contract(capture.summary_delta, capture.aborted, bounds=TEXTS)
def a_summary_is_kept_and_parts_the_text(text: str, summary: str) -> bool:
    """
    pre: len(text) <= 2 and 1 <= len(summary) <= 2
    post: __return__
    """
    kept = capture.aborted(capture.summary_delta(capture.text_delta(NOTHING, text), summary))
    content = (Text(text),) if text else ()
    return kept is not None and kept.reasoning_summary == summary and kept.content == content


@contract(capture.context_block, bounds=f"one block; {IDS} for the marked call")
def a_mark_names_its_call(marked: bool, which: Id, position: int | None) -> bool:
    """
    post: __return__
    """
    block = ContextBlock(1, 1, ASYNC_CALL if marked else "other", which, position)
    after = capture.context_block(Capture("t"), block, Identity())
    parted = after.tail is None
    return capture.marked(after) == (frozenset({which}) if marked else frozenset()) and parted == (position is not None)


@contract(capture.aborted)
def nothing_captured_is_nothing_durable(a: int | None, b: int | None) -> bool:
    """
    post: __return__
    """
    empty = a is None and b is None
    return (capture.aborted(Capture(rest=Rest(usage=Usage(a, b)))) is None) == empty


@contract(capture.call_delta, capture.known, bounds="two fragments of one slot; the id in either, the name in either")
def a_call_is_placed_when_it_is_whole_and_named(early_id: bool, early_name: bool, split: int, slot: int) -> bool:
    """
    pre: 0 <= split <= 2
    post: __return__
    """
    text = "{}"
    first = CallDelta(1, 1, slot, "a" if early_id else None, "t" if early_name else None, text[:split])
    second = CallDelta(1, 1, slot, None if early_id else "a", None if early_name else "t", text[split:])
    after = capture.call_delta(capture.call_delta(NOTHING, first), second)
    kept = capture.aborted(after)
    return kept is not None and kept.content == (ToolCall("a", "t", "{}"),) and capture.known(after, slot) == ("a", "t")


Piece = Literal["{", "}", "[", "]", '"', "\\", "x"]


@contract(capture.scan, bounds="two pieces of JSON, of one character each; any depth from 0 to 3")
def scanning_does_not_depend_on_its_chunks(
    depth: int, mode: Literal["value", "string", "escape"], one: Piece, two: Piece
) -> bool:
    """
    pre: 0 <= depth <= 3
    post: __return__
    """
    start = Scan(depth, mode)
    first, closed = capture.scan(start, one)
    second, again = capture.scan(first, two)
    return capture.scan(start, one + two) == (second, closed or again)


@contract(capture.scan, bounds="one piece of JSON, of one character; any depth")
def a_depth_is_never_negative(depth: int, mode: Literal["value", "string", "escape"], piece: Piece) -> Scan:
    """
    pre: depth >= 0
    post: __return__.depth >= 0 and abs(__return__.depth - depth) <= 1
    """
    return capture.scan(Scan(depth, mode), piece)[0]
