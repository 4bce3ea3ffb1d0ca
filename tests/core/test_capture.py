"""What is kept of a stream: the same whatever its chunking, in time linear in its size (rho.md 3.5)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rho_core import capture as cap
from rho_core import inputs as inp
from rho_core.messages import AbortedAssistant, Identity, Text, ToolCall, Usage


def calls(texts: list[str], call_id: str | None = "a", name: str | None = "t") -> cap.Capture:
    at = cap.NOTHING
    for n, text in enumerate(texts):
        first = n == 0
        at = cap.call_delta(at, inp.CallDelta(1, 1, 0, call_id if first else None, name if first else None, text))
    return at


def kept(at: cap.Capture) -> AbortedAssistant:
    message = cap.aborted(at)
    assert message is not None
    return message


def split(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(c % (len(text) + 1) for c in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.lists(st.integers(0, 1000), max_size=8))
def test_a_call_is_placed_when_its_object_closes_however_it_was_cut(value: dict[str, object], cuts: list[int]) -> None:
    text = json.dumps(value)
    message = kept(calls(split(text, cuts)))
    assert message.content == (ToolCall("a", "t", text),)
    assert message.tool_calls[0].arguments == text


@given(st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=3), st.integers(0, 1000))
def test_no_proper_prefix_of_an_object_places_a_call(value: dict[str, object], cut: int) -> None:
    text = json.dumps(value)
    message = kept(calls([text[: cut % len(text)]]))
    assert message.content == ()


@given(st.text(max_size=900), st.lists(st.integers(0, 1000), max_size=12))
def test_text_does_not_depend_on_its_chunks(text: str, cuts: list[int]) -> None:
    at = cap.NOTHING
    for part in split(text, cuts):
        at = cap.text_delta(at, part)
    message = cap.aborted(at)
    assert message == (None if not text else AbortedAssistant((Text(text),)))


def test_what_parts_two_texts_and_what_does_not() -> None:
    at = cap.text_delta(cap.NOTHING, "a")
    at = cap.usage_reported(at, Usage(output_tokens=1))
    at = cap.text_delta(at, "b")
    at = cap.context_block(at, inp.ContextBlock(1, 1, "k"), Identity())
    at = cap.text_delta(at, "c")
    at = cap.context_block(at, inp.ContextBlock(1, 1, "k", position=1), Identity())
    at = cap.text_delta(at, "d")
    at = cap.summary_delta(at, "s")
    at = cap.text_delta(at, "e")
    at = cap.seal(at)  # as raw reasoning does
    at = cap.text_delta(at, "f")
    assert kept(at).content == (Text("abc"), Text("d"), Text("e"), Text("f"))
    assert kept(at).reasoning_summary == "s"


def test_nothing_durable_leaves_no_message() -> None:
    assert cap.aborted(cap.NOTHING) is None
    assert cap.aborted(cap.seal(cap.text_delta(cap.NOTHING, ""))) is None


def test_a_call_whose_name_comes_late_is_placed_then() -> None:
    at = calls(["{}"], call_id=None, name=None)
    assert kept(at).content == ()
    at = cap.call_delta(at, inp.CallDelta(1, 1, 0, "a", None, ""))
    at = cap.call_delta(at, inp.CallDelta(1, 1, 0, None, "t", ""))
    assert kept(at).content == (ToolCall("a", "t", "{}"),)


@pytest.mark.parametrize("text", ["}{", "[1]", "nul", '"x"'])
def test_what_is_no_object_is_never_a_call(text: str) -> None:
    message = kept(calls([text]))
    assert not any(isinstance(b, ToolCall) for b in message.content)
    assert message.tool_calls[0].arguments == text


def test_two_interleaved_calls_do_not_mix() -> None:
    at = cap.NOTHING
    for index, call_id, text in [(0, "a", '{"x"'), (1, "b", "{"), (0, None, ":1}"), (1, None, "}")]:
        at = cap.call_delta(at, inp.CallDelta(1, 1, index, call_id, "t" if call_id else None, text))
    assert kept(at).content == (ToolCall("a", "t", '{"x":1}'), ToolCall("b", "t", "{}"))


def test_scanning_looks_at_each_character_once() -> None:
    """Counted: the scan resumes where it stopped and never sees old fragments again."""
    state = cap.Scan()
    closings = 0
    for fragment in ["{", *['"k\\"":[1,{}],'] * 5_000, '"z":0}']:
        state, closed = cap.scan(state, fragment)
        closings += closed
    assert closings == 1 and state == cap.Scan()
