"""Committed state: revisions, exhaustion, counters; and what a model may be shown (D9, D29)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_core.config import MAX_REVISION
from rho_core.errors import Error, ErrorName
from rho_core.ledger import PENDING, CompactionState, Ledger, model_view
from rho_core.messages import (
    INTERRUPTED,
    AbortedAssistant,
    Assistant,
    Block,
    History,
    Identity,
    Message,
    PartialCall,
    ProviderContext,
    System,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    calls_of,
    user,
)

OLD = Ledger((user("old"),), 4)


def installed(after: Ledger | Error) -> Ledger:
    assert isinstance(after, Ledger)
    return after


def test_a_commit_appends_and_counts_one() -> None:
    after = installed(OLD.commit((user("new"), System("x"))))
    assert after == Ledger((user("old"), user("new"), System("x")), 5)
    assert OLD.revision == 4


def test_an_empty_commit_is_a_revision_too() -> None:
    assert installed(OLD.commit(())).revision == 5


def test_a_replacement_keeps_the_counters() -> None:
    old = Ledger((), 1, CompactionState(completed_compactions=3))
    assert installed(old.replace((user("x"),))) == Ledger((user("x"),), 2, CompactionState(completed_compactions=3))


@pytest.mark.parametrize("revision", [MAX_REVISION, MAX_REVISION + 1])
def test_an_exhausted_revision_installs_nothing(revision: int) -> None:
    ledger = Ledger((), revision)
    for after in (ledger.commit((user("x"),)), ledger.replace(()), ledger.compact((), 0, 0, 0, Usage())):
        assert isinstance(after, Error)
        assert (after.name, after.retryable) == (ErrorName.PERSISTENCE, False)


def test_the_last_revision_can_be_reached() -> None:
    assert installed(Ledger((), MAX_REVISION - 1).commit(())).revision == MAX_REVISION


def test_compaction_counts() -> None:
    first = installed(OLD.compact((user("short"),), 7, 100, 40, Usage(cost_usd_micros=5)))
    assert first == Ledger((user("short"),), 5, CompactionState(1, 7, 60, 5, 100, 40, 5))
    grown = installed(first.compact((user("longer"),), -2, 40, 50, Usage()))  # a compactor may make things longer
    assert grown.compaction == CompactionState(2, 7, 60, 5, 40, 50, 6)


# --- model_view ---------------------------------------------------------------------------------------------

IDS = st.sampled_from(("A", "B", "C"))
CALLS = st.lists(IDS, unique=True, max_size=3).map(lambda ids: tuple(ToolCall(i, "read", "{}") for i in ids))
PROSE = st.lists(st.builds(Text, st.sampled_from(("a", "b"))), max_size=1).map(tuple)
CONTENT: st.SearchStrategy[tuple[Block, ...]] = st.builds(lambda a, b: (*a, *b), PROSE, CALLS)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(user, st.sampled_from(("x", "y"))),
    st.builds(Assistant, CONTENT),
    st.builds(AbortedAssistant, CONTENT, tool_calls=st.just((PartialCall("A", "read", "{"),))),
    st.builds(ToolResult, IDS, st.booleans(), st.sampled_from(("r1", "r2"))),
)
HISTORIES: st.SearchStrategy[History] = st.lists(MESSAGES, max_size=8).map(tuple)


@given(HISTORIES, st.frozensets(IDS))
@settings(derandomize=True, max_examples=400)
def test_every_call_in_the_view_is_answered_exactly_once(history: History, pending: frozenset[str]) -> None:
    view = model_view(history, pending)
    waiting: set[str] = set()
    for message in view:
        if isinstance(message, AbortedAssistant):
            assert not calls_of(message.content) and not message.tool_calls and message.usage.is_empty()
        if isinstance(message, Assistant):
            ids = {c.id for c in calls_of(message.content)}
            assert not ids & waiting
            waiting |= ids
        elif isinstance(message, ToolResult):
            assert message.id in waiting
            waiting.remove(message.id)
    assert not waiting


def said_by(message: Message) -> tuple[Message, ...]:
    """What the view keeps of a message, results apart."""
    if isinstance(message, AbortedAssistant):
        prose = tuple(b for b in message.content if isinstance(b, Text))
        return (AbortedAssistant(prose),) if prose else ()
    return () if isinstance(message, ToolResult) else (message,)


@given(HISTORIES, st.frozensets(IDS))
@settings(derandomize=True, max_examples=200)
def test_the_view_adds_nothing_but_stand_ins_and_keeps_what_was_said(history: History, pending: frozenset[str]) -> None:
    view = model_view(history, pending)
    assert [m for m in view if not isinstance(m, ToolResult)] == [s for m in history for s in said_by(m)]
    for result in (m for m in view if isinstance(m, ToolResult)):
        stand_in = (
            ToolResult(result.id, True, PENDING) if result.id in pending else ToolResult(result.id, False, INTERRUPTED)
        )
        assert result in history or result == stand_in
    assert model_view(view, pending) == view


CALL_A, CALL_B = ToolCall("A", "read", "{}"), ToolCall("B", "read", "{}")


def test_calls_of_an_aborted_message_are_stripped_and_its_prose_stays() -> None:
    context = (ProviderContext(Identity(), "k", "d"),)
    aborted = AbortedAssistant((Text("half"), CALL_A), "thought", context, (PartialCall("A", "read", "{"),), Usage(1))
    assert model_view((user("x"), aborted)) == (
        user("x"),
        AbortedAssistant((Text("half"),), "thought", context),
    )
    for wordless in ((CALL_A,), (Text(""), CALL_A), ()):
        assert model_view((user("x"), AbortedAssistant(wordless, "thought"))) == (user("x"),)


def test_stand_ins_stand_right_after_their_message_in_call_order() -> None:
    said = Assistant((CALL_A, CALL_B))
    assert model_view((said, user("x")), frozenset({"B"})) == (
        said,
        ToolResult("A", False, INTERRUPTED),
        ToolResult("B", True, PENDING),
        user("x"),
    )


CALL_C = ToolCall("C", "read", "{}")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a", "aBC"),
        ("b", "AbC"),
        ("c", "ABc"),
        ("ca", "Bca"),
        ("bc", "Abc"),
        ("cba", "cba"),
        ("", "ABC"),
    ],
)
def test_stand_ins_keep_model_order_among_the_results_beside_them(given: str, shown: str) -> None:
    said, end = Assistant((CALL_A, CALL_B, CALL_C)), user("x")
    view = model_view((said, *(ToolResult(i.upper(), True, "done") for i in given), end))
    assert view[0] == said and view[-1] == end
    results = [m for m in view if isinstance(m, ToolResult)]
    assert [m.id.lower() if m.ok else m.id for m in results] == list(shown)
    assert all(m.ok or m.content == INTERRUPTED for m in results)


def test_results_of_earlier_calls_do_not_move_stand_ins() -> None:
    job, said, late = Assistant((CALL_A,)), Assistant((CALL_B, CALL_C)), ToolResult("A", True, "late")
    view = model_view((job, user("x"), said, late, ToolResult("C", True, "c"), user("y")), frozenset({"B"}))
    assert [m.id for m in view if isinstance(m, ToolResult)] == ["A", "B", "C"]


def test_a_late_result_of_a_detached_call_stays_where_it_is() -> None:
    history = (Assistant((CALL_A,)), user("x"), ToolResult("A", True, "late"))
    assert model_view(history, frozenset({"A"})) == history


def test_an_id_used_again_is_another_call() -> None:
    said, result = Assistant((CALL_A,)), ToolResult("A", True, "first")
    assert model_view((said, result, said)) == (said, result, said, ToolResult("A", False, INTERRUPTED))


def test_a_result_that_answers_nothing_is_left_out() -> None:
    said, result = Assistant((CALL_A,)), ToolResult("A", True, "first")
    assert model_view((result, said, result, result)) == (said, result)
    assert model_view((AbortedAssistant((Text("x"), CALL_A)), result)) == (AbortedAssistant((Text("x"),)),)
