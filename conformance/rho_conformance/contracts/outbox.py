"""Contracts of `rho_core.run.outbox`: a bounded channel that loses nothing (RHO-BUF-3…6)."""

from __future__ import annotations

from rho_conformance.contracts.base import contract
from rho_core.config import Policy
from rho_core.effects import Deliver, Effect
from rho_core.events import ToolDetached
from rho_core.ledger import Ledger
from rho_core.run import outbox
from rho_core.run import state as s

MANY = "at most 3 events in one send; any capacity, any room, any number taken"
EVENTS = (ToolDetached("a"), ToolDetached("b"), ToolDetached("c"))


def _run(capacity: int, free: int, blocked: int = 0, gone: bool = False) -> s.Run:
    core = s.Core("s", "r", Policy(capacity), Ledger(), reader="gone" if gone else "open")
    waits = s.Blocked(EVENTS[:blocked], True, s.Top()) if blocked else None
    return s.Run(s.Between(), free, waits, core)


@contract(outbox.emit, outbox._send, bounds=MANY)
def a_send_delivers_what_has_room_and_keeps_the_rest(capacity: int, free: int, n: int) -> bool:
    """
    pre: 1 <= n <= 3 and 0 <= free <= capacity and capacity >= 1
    post: __return__
    """
    fx: list[Effect] = []
    run, then = outbox.emit(_run(capacity, free), fx, EVENTS[:n], s.Top())
    kept = () if run.blocked is None else run.blocked.sends
    delivered = tuple(e.event for e in fx if isinstance(e, Deliver))
    return (*delivered, *kept) == EVENTS[:n] and run.free == max(0, free - n) and (then is None) == (n > free)


@contract(outbox.emit, bounds=MANY)
def a_send_without_a_reader_ends_the_run(capacity: int, free: int, n: int) -> bool:
    """
    pre: 1 <= n <= 3 and 0 <= free <= capacity and capacity >= 1
    post: __return__
    """
    fx: list[Effect] = []
    before = _run(capacity, free, gone=True)
    run, then = outbox.emit(before, fx, EVENTS[:n], s.Top())
    return run is before and isinstance(then, s.Abandon) and not fx


@contract(outbox.send_tail, bounds=MANY)
def a_tail_without_a_reader_is_skipped(capacity: int, free: int, n: int) -> bool:
    """
    pre: 1 <= n <= 3 and 0 <= free <= capacity and capacity >= 1
    post: __return__
    """
    fx: list[Effect] = []
    run, then = outbox.send_tail(_run(capacity, free, gone=True), fx, EVENTS[:n], s.Top())
    return isinstance(then, s.Top) and not fx and run.free == free


@contract(outbox.pump, bounds=MANY)
def room_never_exceeds_the_capacity(capacity: int, free: int, taken: int) -> int:
    """
    pre: 0 <= free <= capacity and capacity >= 1 and taken >= 0
    post: free <= __return__ <= capacity and __return__ == min(capacity, free + taken)
    """
    return outbox.pump(_run(capacity, free), [], taken)[0].free


@contract(outbox.pump, bounds=MANY)
def room_goes_to_what_was_blocked_in_its_order(capacity: int, taken: int, n: int) -> bool:
    """
    pre: 1 <= n <= 3 and capacity >= 1 and taken >= 0
    post: __return__
    """
    fx: list[Effect] = []
    run, then = outbox.pump(_run(capacity, 0, n), fx, taken)
    left = () if run.blocked is None else run.blocked.sends
    delivered = tuple(e.event for e in fx if isinstance(e, Deliver))
    return (*delivered, *left) == EVENTS[:n] and (then is None) == bool(left) and len(delivered) <= taken
