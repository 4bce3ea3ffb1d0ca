"""Blocks, usage and the malformed check (rho.md 1.5, D14)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_core.messages import (
    NO_USAGE,
    Block,
    Image,
    Text,
    ToolCall,
    Usage,
    calls_of,
    interrupted,
    is_object,
    malformed,
    text_of,
)

OK = ToolCall("A", "read", "{}")


@pytest.mark.parametrize(
    ("content", "issue"),
    [
        ((), "no content"),
        ((Text(""),), None),
        ((Image("", "image/png"),), None),
        ((OK, ToolCall("B", "read", '{"a": [1, {"b": null}]}')), None),
        ((ToolCall("", "read", "{}"),), "has no id"),
        ((ToolCall("A", "", "{}"),), "'A' has no name"),
        ((OK, Text("x"), OK), "'A' is used twice"),
        ((ToolCall("open", "read", "{}"),), "'open' is still open"),
        ((ToolCall("A", "read", ""),), "'A' are not a JSON object"),
        ((OK, ToolCall("B", "read", "[]")), "'B' are not a JSON object"),
    ],
)
def test_malformed(content: tuple[Block, ...], issue: str | None) -> None:
    found = malformed(content, frozenset({"open"}))
    assert found is None if issue is None else found is not None and issue in found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{}", True),
        (' {"a": 1}\n', True),
        ('{"a": "\ud800"}', True),
        ("", False),
        ("null", False),
        ("[]", False),
        ('"{}"', False),
        ("{", False),
        ("{} {}", False),
        ('{"a": NaN}', False),
        ('{"a": -Infinity}', False),
        ("\ufeff{}", False),
        ('{"a": ' + "9" * 5_000 + "}", False),
        ('{"a":' * 200_000, False),
        ("[" * 200_000, False),
    ],
)
def test_an_object(arguments: str, expected: bool) -> None:
    assert is_object(arguments) is expected


@given(st.text())
@settings(derandomize=True, max_examples=100)
def test_the_check_is_total(arguments: str) -> None:
    issue = malformed((ToolCall("A", "read", arguments),))
    assert (issue is None) is is_object(arguments)


USAGES = st.builds(Usage, *[st.none() | st.integers(0, 100)] * 7)


@given(USAGES, USAGES, USAGES)
@settings(derandomize=True, max_examples=100)
def test_usage_adds_up(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + NO_USAGE == a == NO_USAGE + a
    total = a + b
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "total_tokens", "cost_usd_micros"):
        parts = [p for p in (getattr(a, name), getattr(b, name)) if p is not None]
        assert getattr(total, name) == (sum(parts) if parts else None)
    assert total.context_window == (a.context_window if b.context_window is None else b.context_window)


def test_an_empty_usage_reports_nothing_and_zero_is_something() -> None:
    assert NO_USAGE.is_empty()
    assert not Usage(output_tokens=0).is_empty()
    assert not Usage(context_window=8).is_empty()


def test_parts_of_a_content() -> None:
    content = (Text("a"), OK, Image("", "x"), Text("b"))
    assert text_of(content) == "ab"
    assert calls_of(content) == (OK,)


def test_the_interrupted_text_is_the_one_of_the_contract() -> None:
    result = interrupted("A")
    assert (result.id, result.ok, result.content) == ("A", False, "tool call interrupted before completion")
