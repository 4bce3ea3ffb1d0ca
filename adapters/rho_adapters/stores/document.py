"""What the stores share: the document of a snapshot, the revision check, and the thread they work in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from rho_core.snapshot import Snapshot
from rho_core.wire import WireError, dump_snapshot, load_snapshot

from ..store import StaleRevision, StoreError

T = TypeVar("T")


def dump(snapshot: Snapshot) -> str:
    """The JSON text of a snapshot. Raises StoreError for one that could not be restored."""
    try:
        return dump_snapshot(snapshot)
    except ValueError as error:  # a WireError, or a text with a lone surrogate, which is no UTF-8
        raise StoreError(f"session {snapshot.session_id!r} cannot be saved: {error}") from error


def load(text: str | bytes, session_id: str, place: str) -> Snapshot:
    """The snapshot of a document found at `place`. Raises StoreError with session, place and broken rule."""
    try:
        snapshot = load_snapshot(text)
    except WireError as error:
        raise StoreError(f"session {session_id!r} in {place} cannot be read: {error}") from error
    if snapshot.session_id != session_id:
        raise StoreError(
            f"session {session_id!r} in {place} cannot be read: the document is of session"
            f" {snapshot.session_id!r} (a document lies under the id of its session)"
        )
    return snapshot


def check_revision(session_id: str, expected: int | None, found: int | None) -> None:
    """Raises StaleRevision when the store does not hold the revision that the writer built upon."""
    if found != expected:
        raise StaleRevision(session_id, expected, found)


class Worker:
    """Runs the blocking calls of one store in a thread, one at a time and in the order they were made.

    A call that waits for its turn can be cancelled and then does nothing. Once begun it is shielded: the
    caller learns of its cancellation when the call has ended. A store belongs to one event loop.
    """

    def __init__(self) -> None:
        self._turn = anyio.CapacityLimiter(1)

    async def run(self, call: Callable[[], T]) -> T:
        """The result of `call`, or what it raises."""
        return await anyio.to_thread.run_sync(call, limiter=self._turn)
