"""What of a session outlives the process: its committed state (rho.md 1.5; design §3.7).

A snapshot taken while a run is active holds what was committed before: the run adds only a candidate suffix.
There is no field for raw reasoning anywhere in it (RHO-CAN-10).
"""

from __future__ import annotations

from .config import MAX_REVISION, Policy
from .errors import Error, ErrorName
from .ledger import CompactionState, Ledger
from .messages import History, Identity
from .record import record
from .session import Session, new_session

SCHEMA_VERSION = 2
OLDEST_SCHEMA = 1

Metadata = tuple[tuple[str, str], ...]


@record
class Snapshot:
    """A session at rest. `provider`: who it talked to last; `metadata`: the host's own pairs, one a key."""

    session_id: str
    revision: int
    history: History
    provider: Identity
    compaction: CompactionState = CompactionState()
    metadata: Metadata = ()
    prompt_cache_key: str | None = None
    schema_version: int = SCHEMA_VERSION


class SnapshotError(ValueError):
    """A snapshot that cannot be restored; `error` is the typed Persistence error."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


def take(session: Session) -> Snapshot:
    """The committed state of a session, busy or not."""
    ledger = session.ledger
    return Snapshot(
        session.id,
        ledger.revision,
        ledger.history,
        session.policy.identity,
        ledger.compaction,
        session.metadata,
        session.cache_key,
    )


def restore(snapshot: Snapshot, policy: Policy, system: str | None = None) -> Session:
    """An idle session with that committed state.

    `system` is not inserted again: it is what a later reset begins with. The provider is the one that
    `policy` names: a snapshot cannot bring a provider, only tell which one it was. Raises SnapshotError when
    `check` finds a fault.
    """
    fault = check(snapshot)
    if fault is not None:
        raise SnapshotError(fault)
    ledger = Ledger(snapshot.history, snapshot.revision, snapshot.compaction)
    return new_session(
        snapshot.session_id,
        policy,
        ledger,
        system,
        metadata=snapshot.metadata,
        cache_key=snapshot.prompt_cache_key,
    )


def check(snapshot: Snapshot) -> Error | None:
    """Why a snapshot cannot be restored, as a Persistence error, or None."""
    issue = check_schema(snapshot.schema_version) or _issue(snapshot)
    return None if issue is None else Error(ErrorName.PERSISTENCE, f"snapshot: {issue}")


def check_schema(version: int) -> str | None:
    """Why a schema version cannot be read, or None."""
    if version > SCHEMA_VERSION:
        return f"schema_version {version} is newer than {SCHEMA_VERSION}, the newest known"
    if version < OLDEST_SCHEMA:
        return f"schema_version {version} is unknown; known are {OLDEST_SCHEMA} to {SCHEMA_VERSION}"
    return None


_COUNTERS = ("completed_compactions", "removed_messages", "removed_tokens", "removed_cost_usd_micros")


def _issue(snapshot: Snapshot) -> str | None:
    if not snapshot.session_id.strip():
        return "session_id is blank"
    if not 0 <= snapshot.revision <= MAX_REVISION:
        return f"revision {snapshot.revision} is not within 0 and {MAX_REVISION}"
    for name in _COUNTERS:
        if getattr(snapshot.compaction, name) < 0:
            return f"compaction.{name} is negative"
    last = snapshot.compaction.last_revision
    if last is not None and not 0 <= last <= snapshot.revision:
        return f"compaction.last_revision {last} is not within 0 and the revision, {snapshot.revision}"
    keys = [key for key, _ in snapshot.metadata]
    doubled = next((key for key in keys if keys.count(key) > 1), None)
    return None if doubled is None else f"metadata key {doubled!r} is used twice"
