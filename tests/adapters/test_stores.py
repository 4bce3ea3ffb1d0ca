"""The contract of a session store, over all stores and both event loops; then what only files can suffer."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from threading import Event

import anyio
import anyio.from_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rho_adapters.store import SessionStore, StaleRevision, StoreError
from rho_adapters.stores import DirectoryStore, MemoryStore, SQLiteStore
from rho_adapters.stores.directory import file_name
from rho_core.errors import ErrorName
from rho_core.ledger import CompactionState
from rho_core.messages import Assistant, Identity, Image, Message, System, Text, ToolCall, ToolResult, User, user
from rho_core.snapshot import Snapshot
from rho_core.wire import dump_snapshot
from tests.adapters import store_child

pytestmark = pytest.mark.anyio

Make = Callable[[Path], SessionStore]
MAKERS: dict[str, Make] = {
    "memory": lambda folder: MemoryStore(),
    "directory": lambda folder: DirectoryStore(folder / "sessions"),
    "sqlite": lambda folder: SQLiteStore(folder / "sessions.db"),
}
FILES = ["directory", "sqlite"]
ODD_IDS = [
    *("..", ".", "a/b", "/etc/passwd", "A", "a", "Ä", "é", "e\u0301", "con", "%41", "s-a.json", ".lock", "nul\0l"),
    *("x" * 400, "X" * 400, "ü" * 300, "line\nbreak", " a", "🦊"),
]


@pytest.fixture(params=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


def snap(session_id: str = "s1", revision: int = 0, *texts: str) -> Snapshot:
    return Snapshot(session_id, revision, tuple(user(t) for t in texts), Identity())


async def test_save_load_delete_list(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path)
    assert await store.load("s1") is None and await store.sessions() == []
    await store.save(snap("s1", 3, "a"), expected=None)
    await store.save(snap("s0", 0), expected=None)
    await store.save(snap("s1", 4, "a", "b"), expected=3)
    assert await store.load("s1") == snap("s1", 4, "a", "b")
    assert await store.sessions() == ["s0", "s1"]
    await store.delete("s1")
    await store.delete("s1")
    assert await store.load("s1") is None and await store.sessions() == ["s0"]
    await store.aclose()


async def test_a_stale_writer_is_refused(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path)
    with pytest.raises(StaleRevision) as none_there:
        await store.save(snap(revision=1), expected=0)
    assert (none_there.value.expected, none_there.value.found) == (0, None)
    await store.save(snap("s1", 1, "x"), expected=None)
    for expected in (None, 0, 2):
        with pytest.raises(StaleRevision) as stale:
            await store.save(snap(revision=9), expected=expected)
        assert (stale.value.session_id, stale.value.expected, stale.value.found) == ("s1", expected, 1)
        assert stale.value.name is ErrorName.PERSISTENCE
    assert await store.load("s1") == snap("s1", 1, "x")
    await store.aclose()


async def test_any_id_has_a_place_of_its_own(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path / "in")
    (tmp_path / "in").mkdir()
    for number, session_id in enumerate(ODD_IDS):
        await store.save(snap(session_id, number), expected=None)
    assert await store.sessions() == sorted(ODD_IDS)
    for number, session_id in enumerate(ODD_IDS):
        assert await store.load(session_id) == snap(session_id, number)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]
    names = [file_name(i).casefold() for i in ODD_IDS]
    assert len(set(names)) == len(names) and max(map(len, names)) < 255
    await store.aclose()


async def test_what_cannot_be_restored_is_not_saved(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path)
    for bad in (snap(" "), snap(revision=-1), snap("s1", 0, "\ud800")):
        with pytest.raises(StoreError, match="cannot be saved"):
            await store.save(bad, expected=None)
    assert await store.sessions() == []
    await store.aclose()


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_blocks = st.one_of(
    st.builds(Text, _texts), st.builds(Image, _texts, _texts), st.builds(ToolCall, _texts, _texts, st.just("{}"))
)
_content = st.lists(_blocks, max_size=3).map(tuple)
_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(System, _texts),
    st.builds(User, _content),
    st.builds(Assistant, _content, st.builds(Identity, _texts, _texts, _texts), st.none() | _texts),
    st.builds(ToolResult, _texts, st.booleans(), _texts),
)
_snapshots = st.builds(
    Snapshot,
    _texts.filter(lambda text: text.strip() != ""),
    st.integers(0, 2**63 - 1),
    st.lists(_messages, max_size=4).map(tuple),
    st.builds(Identity, _texts, _texts, _texts),
    st.builds(CompactionState, completed_compactions=st.integers(0, 9)),
    st.dictionaries(_texts, _texts, max_size=3).map(lambda pairs: tuple(pairs.items())),
    st.none() | _texts,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(snapshot=_snapshots)
async def test_round_trip(make: Make, snapshot: Snapshot) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = make(Path(folder))
        await store.save(snapshot, expected=None)
        assert await store.load(snapshot.session_id) == snapshot
        assert await store.sessions() == [snapshot.session_id]
        await store.aclose()


def _plant(kind: str, folder: Path, document: str) -> Callable[[], str]:
    """Put a document in the place of session s1; answers how to see it again."""
    if kind == "directory":
        path = folder / "sessions" / file_name("s1")
        path.parent.mkdir(exist_ok=True)
        path.write_text(document)
        return path.read_text
    with sqlite3.connect(folder / "sessions.db") as db:
        db.execute("UPDATE snapshots SET document = ?", (document,))
    db.close()

    def seen() -> str:
        with sqlite3.connect(folder / "sessions.db") as again:
            (text,) = again.execute("SELECT document FROM snapshots").fetchone()
        again.close()
        return str(text)

    return seen


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ("", "the text is JSON"),
        ('{"schema_version": 2, "session_id": "s1"', "the text is JSON"),
        ('{"schema_version": 2, "session_id": "s1"}', "the fields are those of the schema"),
        ('{"schema_version": 99}', "newer than"),
        (dump_snapshot(snap("other")), "under the id of its session"),
    ],
)
async def test_an_unreadable_document_is_reported_and_kept(kind: str, document: str, rule: str, tmp_path: Path) -> None:
    store = MAKERS[kind](tmp_path)
    await store.save(snap(), expected=None)
    seen = _plant(kind, tmp_path, document)
    calls: list[Callable[[], Awaitable[object]]] = [partial(store.load, "s1")]
    calls += [partial(store.save, snap(revision=1), expected=expected) for expected in (None, 0)]
    for call in calls:
        with pytest.raises(StoreError, match=rule) as error:
            await call()
        assert not isinstance(error.value, StaleRevision)
        assert "'s1'" in str(error.value) and "sessions" in str(error.value)
    assert seen() == document and await store.sessions() == ["s1"]
    await store.aclose()


async def test_a_file_that_is_no_database_is_reported_and_kept(tmp_path: Path) -> None:
    (tmp_path / "sessions.db").write_text("not a database" * 100)
    with pytest.raises(StoreError, match="not a database"):
        await MAKERS["sqlite"](tmp_path).save(snap(), expected=None)
    assert (tmp_path / "sessions.db").read_text() == "not a database" * 100


async def test_leftovers_of_killed_writers_go(tmp_path: Path) -> None:
    store = MAKERS["directory"](tmp_path)
    await store.save(snap(), expected=None)
    (tmp_path / "sessions" / "s-gone.tmp").write_text("half")
    assert await store.sessions() == ["s1"]
    await store.save(snap(revision=1), expected=0)
    assert sorted(os.listdir(tmp_path / "sessions")) == [".lock", "s-s1.json"]


@pytest.mark.parametrize("kind", FILES)
async def test_a_begun_save_ends_though_cancelled(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MAKERS[kind](tmp_path)
    begun, go_on = anyio.Event(), Event()
    inner = store._save  # type: ignore[attr-defined]

    def slow(*args: object) -> None:
        anyio.from_thread.run_sync(begun.set)
        go_on.wait(10)
        inner(*args)

    monkeypatch.setattr(store, "_save", slow)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: store.save(snap(), expected=None))
        await begun.wait()
        group.cancel_scope.cancel()
        go_on.set()
    assert await store.load("s1") == snap()
    await store.aclose()


async def test_a_full_database_keeps_the_earlier_snapshot(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "sessions.db")
    await store.save(snap("s1", 0, "small"), expected=None)
    assert store._connection is not None
    store._connection.execute("PRAGMA max_page_count = 8")
    with pytest.raises(StoreError, match="full"):
        await store.save(snap("s1", 1, "x" * 200_000), expected=0)
    assert await store.load("s1") == snap("s1", 0, "small")
    await store.save(snap("s1", 1, "small too"), expected=0)
    await store.aclose()


async def test_a_locked_store_gives_up_in_time(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "sessions.db", busy_seconds=0.05)
    await store.save(snap(), expected=None)
    other = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        await store.save(snap(revision=1), expected=0)
    other.close()
    await store.save(snap(revision=1), expected=0)
    await store.aclose()
    folder = DirectoryStore(tmp_path / "d", lock_seconds=0.05)
    await folder.save(snap(), expected=None)
    with folder._locked(), pytest.raises(StoreError, match="locked"):
        await folder.save(snap(revision=1), expected=0)
    assert await folder.load("s1") == snap()


def _in_child(order: str, folder: Path) -> str:
    code = f"from tests.adapters.test_stores import {order}; {order}({str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=store_child.ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _said(folder: str, text: str, limit: Callable[[], None]) -> None:
    """Save revision 1 over revision 0 under a limit, and say what came of it."""

    async def save() -> None:
        store = DirectoryStore(folder)
        assert await store.load("s1") == snap("s1", 0, "small")
        limit()
        try:
            await store.save(snap("s1", 1, text), expected=0)
        except StoreError as error:
            print(error)
        assert await store.load("s1") == snap("s1", 0, "small")

    anyio.run(save)


def save_read_only(folder: str) -> None:
    # The superuser may write anywhere, so it becomes nobody.
    _said(folder, "more", lambda: os.seteuid(65534) if os.geteuid() == 0 else None)


def save_without_room(folder: str) -> None:
    # Python ignores SIGXFSZ, so that the write raises EFBIG.
    _said(folder, "x" * 100_000, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))


def test_a_folder_without_room_or_leave_keeps_the_earlier_snapshot() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "sessions"
        anyio.run(lambda: DirectoryStore(folder).save(snap("s1", 0, "small"), expected=None))
        assert "File too large" in _in_child("save_without_room", folder)
        assert sorted(os.listdir(folder)) == [".lock", "s-s1.json"]
        os.chmod(name, 0o755)
        os.chmod(folder, 0o555)
        assert "Permission denied" in _in_child("save_read_only", folder)
        os.chmod(folder, 0o755)


@pytest.mark.parametrize("kind", FILES)
def test_two_processes_lose_no_update(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, store_child.__file__, "--count", kind, str(tmp_path), "40"]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
    said = [process.communicate(timeout=60)[0] for process in both]
    assert all(line.startswith("stale ") for line in said), said
    assert sum(int(line.split()[1]) for line in said) > 0  # else they never met
    found = anyio.run(store_child._load, kind, tmp_path)
    assert found is not None and found.revision == 79
    writers = [message.content for message in found.history if isinstance(message, User)]
    assert sorted(writers.count(w) for w in set(writers)) == [40, 40]
