"""The estimate of a context: positive, and never less for more (RHO-ORD-2)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rho_core.estimate import context_tokens, message_tokens
from rho_core.messages import (
    AbortedAssistant,
    Assistant,
    Block,
    Image,
    Message,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)

TEXTS = st.text(max_size=40)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, TEXTS), st.builds(Image, TEXTS, TEXTS), st.builds(ToolCall, TEXTS, TEXTS, TEXTS)
)
CONTENT = st.lists(BLOCKS, max_size=3).map(tuple)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(System, TEXTS),
    st.builds(User, CONTENT),
    st.builds(Assistant, CONTENT, reasoning_summary=st.none() | TEXTS),
    st.builds(AbortedAssistant, CONTENT, reasoning_summary=st.none() | TEXTS),
    st.builds(ToolResult, TEXTS, st.booleans(), TEXTS),
)
HISTORIES = st.lists(MESSAGES, max_size=4).map(tuple)


@given(HISTORIES, MESSAGES, st.integers(0, 100))
@settings(derandomize=True, max_examples=100)
def test_positive_and_growing(history: tuple[Message, ...], more: Message, spec: int) -> None:
    before = context_tokens(history, spec)
    assert before > spec
    assert context_tokens((*history, more), spec) == before + message_tokens(more) > before


@given(CONTENT, BLOCKS)
@settings(derandomize=True, max_examples=100)
def test_a_block_more_is_not_less(content: tuple[Block, ...], block: Block) -> None:
    assert message_tokens(User((*content, block))) > message_tokens(User(content))
    assert message_tokens(Assistant((*content, block))) == message_tokens(AbortedAssistant((*content, block)))


@given(TEXTS, TEXTS)
@settings(derandomize=True, max_examples=100)
def test_longer_text_is_not_less(a: str, b: str) -> None:
    for make in (System, lambda t: User((Text(t),)), lambda t: User((ToolCall("A", "n", t),))):
        assert message_tokens(make(a + b)) >= message_tokens(make(a))
    assert message_tokens(ToolResult("A", True, a + b)) >= message_tokens(ToolResult("A", True, a))


def test_figures_of_the_formula() -> None:
    assert context_tokens(()) == 3
    assert message_tokens(User((Text("12345"),))) == 4 + 1 + 2
    assert message_tokens(User((Image("x" * 4097, "image/png"),))) == 4 + 1 + 85 + 2
    assert message_tokens(ToolResult("A", True, "12")) == 6 + 1  # its JSON text has quotes
    assert context_tokens((System("1234"),), 12) == 3 + 12 + 4 + 1 + 1
