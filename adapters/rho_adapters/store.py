"""Where snapshots lie: one interface, and what a save may raise (design D21, contract PERS rows)."""

from __future__ import annotations

from typing import Protocol

from rho_core.errors import Error, ErrorName
from rho_core.snapshot import Snapshot

from .errors import RhoError


class StoreError(RhoError):
    """The store could not read or write; what was saved before is still there."""

    def __init__(self, message: str) -> None:
        super().__init__(Error(ErrorName.PERSISTENCE, message))


class StaleRevision(StoreError):
    """Someone else saved meanwhile. `expected` and `found`: revisions, None for no snapshot."""

    def __init__(self, session_id: str, expected: int | None, found: int | None) -> None:
        super().__init__(f"session {session_id!r} is at revision {found} in the store, not {expected}")
        self.session_id, self.expected, self.found = session_id, expected, found


class SessionStore(Protocol):
    """Snapshots by session id. A save is atomic: after a failed or killed one the earlier snapshot is intact."""

    async def load(self, session_id: str) -> Snapshot | None:
        """The newest snapshot, or None. Raises StoreError, also for a snapshot that cannot be read."""

    async def save(self, snapshot: Snapshot, *, expected: int | None) -> None:
        """Replace the snapshot whose revision is `expected` (None: there must be none).

        Raises StaleRevision when the store holds another one, StoreError when it cannot write.
        """

    async def delete(self, session_id: str) -> None:
        """Forget a session; nothing happens when there is none."""

    async def sessions(self) -> list[str]:
        """Ids of all saved sessions, sorted."""

    async def aclose(self) -> None:
        """Give back what the store holds open."""
