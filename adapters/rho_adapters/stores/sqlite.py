"""Snapshots in one SQLite database: WAL, synchronous=FULL, one table.

A save is one IMMEDIATE transaction that reads the old row, compares its revision and replaces it: an
acknowledged one survives a crash, one cut short leaves the old row. Several processes may use the file at once.
A save is bounded: it waits `busy_seconds` for another writer at most; the rest takes what the disk takes.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from rho_core.snapshot import Snapshot

from ..store import StoreError
from .document import Worker, check_revision, dump, load

T = TypeVar("T")

_TABLE = """CREATE TABLE IF NOT EXISTS snapshots (
    session_id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, document TEXT NOT NULL) STRICT"""
_UPSERT = """INSERT INTO snapshots VALUES (?, ?, ?) ON CONFLICT (session_id)
    DO UPDATE SET revision = excluded.revision, document = excluded.document"""
_POLL_SECONDS = 0.01


class SQLiteStore:
    """A `SessionStore` over a database file, opened at the first use. After `aclose` the next use opens it again."""

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 10.0) -> None:
        self._path = os.fspath(path)
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None
        self._worker = Worker()

    async def load(self, session_id: str) -> Snapshot | None:
        """The newest snapshot, or None. Raises StoreError, also for a row or file that cannot be read."""
        return await self._run(f"session {session_id!r}", lambda db: self._found(db, session_id))

    async def save(self, snapshot: Snapshot, *, expected: int | None) -> None:
        """Replace the snapshot of revision `expected`. Raises StaleRevision, StoreError.

        A row that cannot be read is not overwritten: the save is refused.
        """
        await self._run(f"session {snapshot.session_id!r}", partial(self._save, snapshot, expected))

    async def delete(self, session_id: str) -> None:
        """Remove the row of a session, if there is one, readable or not. Raises StoreError."""
        await self._run(
            f"session {session_id!r}",
            lambda db: db.execute("DELETE FROM snapshots WHERE session_id = ?", (session_id,)),
        )

    async def sessions(self) -> list[str]:
        """Ids of all saved sessions, sorted. Raises StoreError."""
        rows = await self._run("the sessions", lambda db: db.execute("SELECT session_id FROM snapshots").fetchall())
        return sorted(session_id for (session_id,) in rows)

    async def aclose(self) -> None:
        """Close the database. Raises StoreError."""
        await self._worker.run(self._close)

    async def _run(self, what: str, call: Callable[[sqlite3.Connection], T]) -> T:
        def work() -> T:
            # UnicodeEncodeError: SQLite has no text with a lone surrogate.
            try:
                return call(self._open())
            except (sqlite3.Error, UnicodeError) as error:
                raise StoreError(f"{what} in {self._path}: {error}") from error

        return await self._worker.run(work)

    def _save(self, snapshot: Snapshot, expected: int | None, db: sqlite3.Connection) -> None:
        document = dump(snapshot)
        with _transaction(db):
            found = self._found(db, snapshot.session_id)
            check_revision(snapshot.session_id, expected, None if found is None else found.revision)
            db.execute(_UPSERT, (snapshot.session_id, snapshot.revision, document))

    def _found(self, db: sqlite3.Connection, session_id: str) -> Snapshot | None:
        row = db.execute("SELECT revision, document FROM snapshots WHERE session_id = ?", (session_id,)).fetchone()
        if row is None:
            return None
        snapshot = load(row[1], session_id, self._path)
        if snapshot.revision != row[0]:
            raise StoreError(
                f"session {session_id!r} in {self._path} cannot be read: revision {snapshot.revision} lies under"
                f" {row[0]} (a row has the revision of its document)"
            )
        return snapshot

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            # Calls come from whichever worker thread is free, but never two at once.
            db = sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
            self._connection = db
        return self._connection

    def _prepare(self, db: sqlite3.Connection) -> None:
        """WAL and the table. The change to WAL does not wait for other openers by itself, so it is tried again."""
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_SECONDS)
        db.execute("PRAGMA synchronous = FULL")
        db.execute(_TABLE)

    def _close(self) -> None:
        db, self._connection = self._connection, None
        if db is not None:
            try:
                db.close()
            except sqlite3.Error as error:
                raise StoreError(f"{self._path} cannot be closed: {error}") from error


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; the write lock is taken at once, so that what is read stays true until the write."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk may have rolled it back already
            db.execute("ROLLBACK")
        raise
