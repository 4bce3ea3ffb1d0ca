"""The remembered view is the whole view, and remembering saves the work (design §3.6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rho_core.estimate import context_tokens
from rho_core.ledger import model_view
from rho_core.messages import AbortedAssistant, Assistant, History, Message, Text, ToolCall, ToolResult, user
from rho_core.shown import NOTHING_SHOWN, show


def call(call_id: str) -> Assistant:
    return Assistant((ToolCall(call_id, "t", "{}"),))


SEGMENTS = st.lists(
    st.sampled_from(["said", "answered", "half answered", "aborted", "pending"]),
    min_size=1,
    max_size=12,
)


def segment(kind: str, number: int) -> tuple[Message, ...]:
    call_id = f"c{number}"
    if kind == "answered":
        return (call(call_id), ToolResult(call_id, True, "done"))
    if kind == "half answered":  # as a host may have restored it
        calls = (ToolCall(call_id, "t", "{}"), ToolCall(f"{call_id}'", "t", "{}"))
        return (Assistant(calls), ToolResult(call_id, True, "done"), user("and then?"))
    if kind == "aborted":
        return (AbortedAssistant((Text("half"), ToolCall(call_id, "t", "{}"))),)
    if kind == "pending":
        return (call(call_id),)
    return (user(f"said {number}"), Assistant((Text("so"),)))


@given(SEGMENTS)
def test_what_is_remembered_changes_nothing(kinds: list[str]) -> None:
    shown = NOTHING_SHOWN
    history: History = ()
    pending: list[str] = []
    for number, kind in enumerate(kinds):
        history += segment(kind, number)
        if kind == "pending":
            pending.append(f"c{number}")
        shown, messages, size = show(shown, history, frozenset(pending), 7)
        assert messages == model_view(history, frozenset(pending))
        assert size == context_tokens(messages, 7)
        if len(pending) > 1:  # they finish, out of order
            history += tuple(ToolResult(c, True, "late") for c in reversed(pending))
            pending = []


def test_old_messages_are_not_looked_at_again() -> None:
    history = tuple(user(str(n)) for n in range(100))
    shown, _, _ = show(NOTHING_SHOWN, history, frozenset(), 0)
    assert shown.covered == 100
    after, messages, _ = show(shown, (*history, user("new")), frozenset(), 0)
    assert after.covered == 101 and messages[:100] is not None and len(messages) == 101
    held, _, _ = show(shown, (*history, call("a")), frozenset({"a"}), 0)
    assert held == shown, "a pending call's answer is still to come"
