"""Snapshots in a folder, one file a session (POSIX: it needs `flock` and the fsync of a folder).

A save writes a temporary file in the same folder, syncs it, renames it over the old one and syncs the folder:
at every instant the name holds the whole old document or the whole new one. Writers of all processes take
turns by an advisory lock on the file `.lock`, which the system frees when its holder dies. A temporary file
that is found by the holder of the lock was left by a killed writer, and goes.

A save is bounded: it waits `lock_seconds` for the lock at most; the writes after that take what the disk takes.
When the last sync (of the folder) fails, StoreError is raised though the new snapshot is already readable.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote_to_bytes

from rho_core.snapshot import Snapshot
from rho_core.wire import WireError, load_snapshot

from ..store import StoreError
from .document import Worker, check_revision, dump, load

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST = 200  # a name may have 255 bytes; the affixes need some
_POLL_SECONDS = 0.002


def file_name(session_id: str) -> str:
    """A safe name for any id: equal for equal ids alone, also where names are compared without case.

    `s-` and the id with every byte but a-z, 0-9, _ and - as %xx; an id too long for that, `h-` and its SHA-256.
    """
    raw = session_id.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in raw)
    return f"s-{name}.json" if len(name) <= _LONGEST else f"h-{sha256(raw).hexdigest()}.json"


class DirectoryStore:
    """A `SessionStore` over a folder, which is made when missing. Several processes may use it at once."""

    def __init__(self, folder: str | os.PathLike[str], *, lock_seconds: float = 10.0) -> None:
        self._folder = Path(folder)
        self._lock_seconds = lock_seconds
        self._worker = Worker()

    async def load(self, session_id: str) -> Snapshot | None:
        """The newest snapshot, or None. Raises StoreError, also for a file that cannot be read."""
        return await self._worker.run(partial(self._load, session_id))

    async def save(self, snapshot: Snapshot, *, expected: int | None) -> None:
        """Replace the snapshot of revision `expected`. Raises StaleRevision, StoreError.

        A file that cannot be read is not overwritten: the save is refused.
        """
        await self._worker.run(partial(self._save, snapshot, expected))

    async def delete(self, session_id: str) -> None:
        """Remove the file of a session, if there is one, readable or not. Raises StoreError."""
        await self._worker.run(partial(self._delete, session_id))

    async def sessions(self) -> list[str]:
        """Ids of all saved sessions, sorted. Raises StoreError when the id of a hashed name cannot be read."""
        return await self._worker.run(self._sessions)

    async def aclose(self) -> None:
        """Nothing is held open between calls."""

    def _load(self, session_id: str) -> Snapshot | None:
        path = self._folder / file_name(session_id)
        with _reported(session_id, path):
            try:
                text = path.read_bytes()
            except FileNotFoundError:
                return None
        return load(text, session_id, str(path))

    def _save(self, snapshot: Snapshot, expected: int | None) -> None:
        document = dump(snapshot).encode()
        path = self._folder / file_name(snapshot.session_id)
        with _reported(snapshot.session_id, path):
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._locked():
                found = self._load(snapshot.session_id)
                check_revision(snapshot.session_id, expected, None if found is None else found.revision)
                _replace(path, document)

    def _delete(self, session_id: str) -> None:
        path = self._folder / file_name(session_id)
        with _reported(session_id, path):
            if not path.exists():
                return
            with self._locked():
                path.unlink(missing_ok=True)
                _sync(self._folder)

    def _sessions(self) -> list[str]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"the sessions in {self._folder} cannot be listed: {error}") from error
        ids = (self._id_of(name) for name in names if name.endswith(".json") and name[:2] in ("s-", "h-"))
        return sorted(session_id for session_id in ids if session_id is not None)

    def _id_of(self, name: str) -> str | None:
        """The id of the session in a file, or None when the file has gone meanwhile."""
        if name.startswith("s-"):
            return unquote_to_bytes(name[2:-5]).decode("utf-8", "surrogatepass")
        path = self._folder / name
        try:
            return load_snapshot(path.read_bytes()).session_id
        except FileNotFoundError:
            return None
        except (OSError, WireError) as error:
            raise StoreError(f"the session in {path} cannot be read: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among the writers of the folder, without what killed ones left. Raises TimeoutError, OSError."""
        lock = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._wait_for(lock)
            for left in self._folder.glob("*.tmp"):
                left.unlink(missing_ok=True)
            yield
        finally:
            os.close(lock)  # which also unlocks

    def _wait_for(self, lock: int) -> None:
        deadline = time.monotonic() + self._lock_seconds
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(errno.ETIMEDOUT, f"locked for {self._lock_seconds} s by another") from None
                time.sleep(_POLL_SECONDS)


@contextmanager
def _reported(session_id: str, path: Path) -> Iterator[None]:
    """Faults of the system as StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"session {session_id!r} in {path}: {error}") from error


def _replace(path: Path, document: bytes) -> None:
    """Put the document in the place of the file, or leave the file as it is. Raises OSError."""
    temporary = path.with_suffix(".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(document)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make renames and removals in a folder last."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
