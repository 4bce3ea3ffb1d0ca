"""Snapshots in memory, as documents: what could not be written to a disk is refused here too."""

from __future__ import annotations

import anyio.lowlevel

from rho_core.snapshot import Snapshot

from .document import check_revision, dump, load


class MemoryStore:
    """A `SessionStore` that ends with the process. Every method but `aclose` gives way once, then acts at once."""

    def __init__(self) -> None:
        self._documents: dict[str, str] = {}

    async def load(self, session_id: str) -> Snapshot | None:
        """The newest snapshot, or None. Raises StoreError for a document that cannot be read."""
        await anyio.lowlevel.checkpoint()
        return self._found(session_id)

    async def save(self, snapshot: Snapshot, *, expected: int | None) -> None:
        """Replace the snapshot of revision `expected`. Raises StaleRevision, StoreError."""
        await anyio.lowlevel.checkpoint()
        document = dump(snapshot)
        found = self._found(snapshot.session_id)
        check_revision(snapshot.session_id, expected, None if found is None else found.revision)
        self._documents[snapshot.session_id] = document

    async def delete(self, session_id: str) -> None:
        """Forget a session, if there is one."""
        await anyio.lowlevel.checkpoint()
        self._documents.pop(session_id, None)

    async def sessions(self) -> list[str]:
        """Ids of all saved sessions, sorted."""
        await anyio.lowlevel.checkpoint()
        return sorted(self._documents)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _found(self, session_id: str) -> Snapshot | None:
        document = self._documents.get(session_id)
        return None if document is None else load(document, session_id, "memory")
