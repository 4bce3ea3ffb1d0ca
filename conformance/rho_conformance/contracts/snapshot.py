"""Contracts of `rho_core.snapshot`: which snapshots are restored (rho.md 1.5)."""

from __future__ import annotations

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import config, snapshot
from rho_core.config import Policy
from rho_core.errors import Error
from rho_core.ledger import CompactionState, Ledger
from rho_core.messages import Identity
from rho_core.session import new_session
from rho_core.snapshot import Snapshot


@contract(snapshot.check_schema, bounds="versions from -9 to 99 (a refusal writes it out)")
def a_schema_is_read_exactly_when_it_is_known(version: int) -> str | None:
    """
    pre: -9 <= version <= 99
    post: (__return__ is None) == (1 <= version <= 2)
    """
    return snapshot.check_schema(version)


@contract(snapshot.check, config, bounds="revisions within 2 of 0 and of the largest (a refusal writes it out)")
def a_snapshot_is_sound_exactly_within_its_bounds(
    high: bool, offset: int, a: int, b: int, c: int, d: int
) -> Error | None:
    """
    pre: -2 <= offset <= 2
    post: (__return__ is None) == ((offset <= 0 if high else offset >= 0) and min(a, b, c, d) >= 0)
    """
    revision = (config.MAX_REVISION if high else 0) + offset
    return snapshot.check(Snapshot("s", revision, (), Identity(), CompactionState(a, b, c, d)))


@contract(snapshot.check, config, bounds="revisions of at most 12, one of the last compaction from -3 to 15")
def the_last_compaction_is_not_of_a_later_revision(revision: int, last: int | None) -> Error | None:
    """
    pre: 0 <= revision <= 12 and (last is None or -3 <= last <= 15)
    post: (__return__ is None) == (last is None or 0 <= last <= revision)
    """
    return snapshot.check(Snapshot("s", revision, (), Identity(), CompactionState(last_revision=last)))


@contract(snapshot.check, bounds=f"three pairs; {IDS}")
def metadata_keys_occur_once(one: Id, two: Id, three: Id) -> Error | None:
    """
    post: (__return__ is None) == (one != two and two != three and one != three)
    """
    return snapshot.check(Snapshot("s", 0, (), Identity(), metadata=((one, ""), (two, ""), (three, ""))))


@contract(snapshot.take, snapshot.restore, config)
def what_was_taken_is_what_is_restored(revision: int, counters: CompactionState) -> bool:
    """
    pre: 0 <= revision <= config.MAX_REVISION and counters.last_revision is None
    post: __return__
    """
    session = new_session("s", Policy(), Ledger((), revision, counters), None)
    taken = snapshot.take(session)
    return snapshot.check(taken) is not None or snapshot.restore(taken, Policy()) == session
