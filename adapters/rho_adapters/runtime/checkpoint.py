"""Opt-in checkpoints: a run's end is shown only when it lies in the store (contract PERS-5, case PB-70).

The save is shielded, so that neither a reader who leaves nor the end of the runtime cuts it short, and bounded,
so that a store that hangs cannot hold the outcome for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from rho_adapters.runtime.work import RunState
from rho_adapters.store import SessionStore, StoreError
from rho_core import snapshot
from rho_core.errors import Error
from rho_core.events import RunOutcome

if TYPE_CHECKING:
    from rho_adapters.runtime.port import SessionPort


class CheckpointFailed(StoreError):
    """The run ended and its end could not be saved. `outcome`: what it was; `cause`: what the store said."""

    def __init__(self, outcome: RunOutcome | Error | None, cause: Exception) -> None:
        super().__init__(f"the run is over, but its checkpoint was not saved: {cause}")
        self.outcome = outcome
        self.cause = cause


async def save(port: SessionPort, store: SessionStore, grace_ms: int) -> None:
    """Save the session as it is now, after the saves before it. Raises StoreError."""
    async with port.save_lock:
        taken = snapshot.take(port.state)
        with anyio.move_on_after(grace_ms / 1_000, shield=True) as scope:
            await store.save(taken, expected=port.saved)
            port.saved = taken.revision
        if scope.cancelled_caught:
            raise StoreError(f"the store took longer than {grace_ms} ms")


def hold(port: SessionPort, run: RunState, store: SessionStore, grace_ms: int) -> None:
    """Hold back what is told of the run's end, and save. Once for each revision."""
    if run.held is not None or port.saved == port.state.ledger.revision:
        return
    run.held = []

    async def write() -> None:
        with anyio.CancelScope(shield=True):
            try:
                await save(port, store, grace_ms)
            except Exception as fault:
                run.save_error = fault
        held, run.held = run.held or [], None
        for act in held:
            act()

    port.rho.start_task(write, name=f"checkpoint of {run.id}")
