"""Snapshots: what they hold, what they refuse, and their document (rho.md 1.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_core import inputs as inp
from rho_core import wire
from rho_core.config import MAX_REVISION, Policy
from rho_core.errors import ErrorName
from rho_core.ledger import CompactionState, Ledger
from rho_core.messages import (
    AbortedAssistant,
    Assistant,
    Identity,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    user,
)
from rho_core.session import new_session, step
from rho_core.snapshot import SCHEMA_VERSION, Snapshot, SnapshotError, check, restore, take

GOOD = Snapshot("s", 3, (user("hi"),), Identity(), CompactionState(last_revision=2), (("k", "v"),), "cache")


def test_a_good_one_comes_back_from_a_session() -> None:
    assert check(GOOD) is None
    assert take(restore(GOOD, Policy())) == GOOD


def test_a_restored_session_is_idle_and_has_no_second_system_prompt() -> None:
    session = restore(GOOD, Policy())
    assert not session.busy
    assert session.id == "s"
    assert session.ledger == Ledger(GOOD.history, 3, GOOD.compaction)


def test_the_provider_is_the_one_the_host_names() -> None:
    other = Identity("p", "a", "m")
    assert take(restore(GOOD, Policy(identity=other))).provider == other


def test_a_new_session_can_be_taken() -> None:
    taken = take(new_session("s", Policy(), system="be kind"))
    assert (taken.schema_version, taken.revision, len(taken.history)) == (SCHEMA_VERSION, 0, 1)
    assert check(taken) is None


def test_a_snapshot_in_the_middle_of_a_run_shows_committed_state_only() -> None:
    session = restore(GOOD, Policy())
    before = take(session)
    for item in (
        inp.Start("c", "r", (Text("SECRET"),)),
        inp.Admitted("r"),
        inp.Taken(2),
        inp.TextDelta(1, 1, "SECRET"),
    ):
        session = step(session, item).state
    assert session.busy
    assert take(session) == before
    assert "SECRET" not in wire.dump_snapshot(take(session))
    assert "SECRET" in wire.dump_state(session)


@pytest.mark.parametrize(
    ("snapshot", "what"),
    [
        (Snapshot("", 3, (), Identity()), "session_id is blank"),
        (Snapshot(" \t", 3, (), Identity()), "session_id is blank"),
        (Snapshot("s", -1, (), Identity()), "revision -1"),
        (Snapshot("s", MAX_REVISION + 1, (), Identity()), "revision 18446744073709551616"),
        (Snapshot("s", 3, (), Identity(), schema_version=0), "schema_version 0 is unknown"),
        (Snapshot("s", 3, (), Identity(), schema_version=-2), "schema_version -2 is unknown"),
        (Snapshot("s", 3, (), Identity(), schema_version=3), "schema_version 3 is newer"),
        (
            Snapshot("s", 3, (), Identity(), CompactionState(removed_messages=-1)),
            "removed_messages is negative",
        ),
        (Snapshot("s", 3, (), Identity(), CompactionState(last_revision=4)), "last_revision 4"),
        (Snapshot("s", 3, (), Identity(), metadata=(("a", "1"), ("a", "2"))), "'a' is used twice"),
    ],
)
def test_a_bad_one_is_a_persistence_error(snapshot: Snapshot, what: str) -> None:
    fault = check(snapshot)
    assert fault is not None
    assert fault.name is ErrorName.PERSISTENCE and what in fault.message and not fault.retryable
    with pytest.raises(SnapshotError) as caught:
        restore(snapshot, Policy())
    assert caught.value.error == fault
    with pytest.raises(wire.WireError, match="can be restored"):
        wire.dump_snapshot(snapshot)


@pytest.mark.parametrize("version", [1, 2])
def test_known_schemas_and_the_last_revision_are_good(version: int) -> None:
    snapshot = Snapshot("s", MAX_REVISION, (), Identity(), schema_version=version)
    assert check(snapshot) is None
    assert json.loads(wire.dump_snapshot(snapshot))["schema_version"] == SCHEMA_VERSION


# --- the document -------------------------------------------------------------------------------------------

HISTORIES: st.SearchStrategy[tuple[Message, ...]] = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=5)),
        st.builds(lambda t: Assistant((Text(t), ToolCall("A", "n", "{}")), Identity()), st.text(max_size=5)),
        st.builds(lambda t, n: AbortedAssistant((), t, usage=Usage(n)), st.text(max_size=5), st.integers()),
        st.builds(ToolResult, st.text(max_size=3), st.booleans(), st.text(max_size=5)),
    ),
    max_size=4,
).map(tuple)
PAIRS = st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3).map(lambda d: tuple(d.items()))
SNAPSHOTS = st.builds(
    Snapshot,
    session_id=st.text(max_size=5),
    revision=st.integers(-1, 2**64),
    history=HISTORIES,
    provider=st.builds(Identity, st.text(max_size=3)),
    metadata=PAIRS,
    prompt_cache_key=st.none() | st.text(max_size=3),
)


@given(SNAPSHOTS)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_a_snapshot_round_trips_or_is_refused_on_both_sides(snapshot: Snapshot) -> None:
    if check(snapshot) is not None:
        with pytest.raises(wire.WireError, match="can be restored"):
            wire.dump_snapshot(snapshot)
    else:
        assert wire.load_snapshot(wire.dump_snapshot(snapshot)) == snapshot


def document(**change: Any) -> dict[str, Any]:
    """The least a snapshot can be, changed."""
    least = {
        "schema_version": 2,
        "session_id": "s",
        "revision": 3,
        "history": [],
        "provider": {"provider": "p", "api": "a", "model": "m"},
    }
    return least | change


def test_omitted_fields_are_empty() -> None:
    snapshot = wire.load_snapshot(json.dumps(document()))
    assert snapshot == Snapshot("s", 3, (), Identity("p", "a", "m"))
    written = json.loads(wire.dump_snapshot(snapshot))
    assert "metadata" not in written and "prompt_cache_key" not in written
    assert written["schema_version"] == 2


def test_metadata_is_an_object_and_the_cache_key_text() -> None:
    snapshot = Snapshot("s", 3, (), Identity(), metadata=(("b", "1"), ("a", "2")), prompt_cache_key="")
    written = json.loads(wire.dump_snapshot(snapshot))
    assert written["metadata"] == {"b": "1", "a": "2"}
    assert written["prompt_cache_key"] == ""


@pytest.mark.parametrize("name", ["schema_version", "session_id", "revision", "history", "provider"])
def test_a_missing_field_is_refused(name: str) -> None:
    text = json.dumps({k: v for k, v in document().items() if k != name})
    with pytest.raises(wire.WireError) as caught:
        wire.load_snapshot(text)
    assert caught.value.where == f"snapshot.{name}"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"schema_version": 3}, "newer than 2"),
        ({"schema_version": 0}, "unknown"),
        ({"schema_version": -1}, "unknown"),
        ({"schema_version": "2"}, "no schema_version"),
        ({"schema_version": 2.0}, "no schema_version"),
        ({"schema_version": True}, "no schema_version"),
        ({"session_id": ""}, "pattern"),
        ({"session_id": " "}, "pattern"),
        ({"revision": -1}, "greater than or equal to 0"),
        ({"revision": 2**64}, "is not within 0 and 18446744073709551615"),
        ({"metadata": [["a", "b"]]}, "object"),
        ({"metadata": {"a": 1}}, "string"),
        ({"extra": 1}, "keyword"),
        ({"compaction": {"removed_tokens": -1}}, "removed_tokens is negative"),
        ({"compaction": {"last_revision": 4}}, "last_revision 4"),
        ({"history": [{"kind": "aborted_assistant", "content": [], "reasoning": "raw"}]}, "keyword"),
    ],
)
def test_a_bad_snapshot_is_refused(change: dict[str, Any], what: str) -> None:
    with pytest.raises(wire.WireError, match=what):
        wire.load_snapshot(json.dumps(document(**change)))


def test_the_older_schema_is_read_and_its_raw_reasoning_blanked() -> None:
    history = [
        {"kind": "user", "content": [{"kind": "text", "text": "hi"}]},
        {"kind": "aborted_assistant", "content": [], "reasoning": "CANARY", "reasoning_summary": "kept"},
    ]
    snapshot = wire.load_snapshot(json.dumps(document(schema_version=1, history=history)))
    assert snapshot.history == (user("hi"), AbortedAssistant((), "kept"))
    assert snapshot.schema_version == 2
    assert "CANARY" not in wire.dump_snapshot(snapshot)


@pytest.mark.parametrize("history", [7, [7], [[]], [{"kind": "aborted_assistant", "reasoning": "x"}]])
def test_the_older_schema_is_read_as_strictly(history: Any) -> None:
    with pytest.raises(wire.WireError, match=r"snapshot\.history"):
        wire.load_snapshot(json.dumps(document(schema_version=1, history=history)))


def test_a_text_that_no_file_can_hold_is_refused() -> None:
    """A lone surrogate is no character: the caller gets the error that is promised, and not another one."""
    with pytest.raises(wire.WireError, match="surrogates"):
        wire.dump_snapshot(Snapshot("s", 1, (user("\ud800"),), Identity()))
