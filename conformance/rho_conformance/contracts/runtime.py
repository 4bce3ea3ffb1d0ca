"""Contracts of `rho_core.runtime`: shut once, and nothing admitted afterwards (RHO-SHUT-*)."""

from __future__ import annotations

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import effects as fx
from rho_core import runtime
from rho_core.inputs import Admit, Released, Shutdown
from rho_core.runtime import Runtime

OPEN = f"two operations registered; {IDS}"


@contract(runtime.step, bounds=OPEN)
def nothing_is_admitted_once_shut(shut: bool, operation: Id) -> bool:
    """
    post: __return__
    """
    before = Runtime(shut, ("a", "b"))
    after = runtime.step(before, Admit(operation))
    if shut:
        return after.state == before and after.effects == (fx.Refused(operation),)
    return after.state.operations == ("a", "b", operation) and after.effects == (fx.Admitted(operation),)


@contract(runtime.step, bounds=OPEN)
def a_shutdown_cancels_and_counts_once(shut: bool, one: Id, two: Id) -> bool:
    """
    post: __return__
    """
    after = runtime.step(Runtime(shut, (one, two)), Shutdown("c"))
    cancels = () if shut else (fx.CancelOperation(one), fx.CancelOperation(two))
    return after.state.shut and after.effects == (*cancels, fx.Reply("c", len(cancels)))


@contract(runtime.step, bounds=OPEN)
def a_release_takes_out_that_operation(shut: bool, one: Id, two: Id, which: Id) -> bool:
    """
    post: __return__
    """
    after = runtime.step(Runtime(shut, (one, two)), Released(which)).state
    return after.shut == shut and after.operations == tuple(o for o in (one, two) if o != which)
