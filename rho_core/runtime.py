"""The runtime: is it shut, and which operations are registered (RHO-SHUT-*).

It does not contain sessions; it talks with them by Admit, Admitted, Refused, Released and CancelOperation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import effects as fx
from .inputs import Admit, Released, RuntimeInput, Shutdown
from .record import record
from .step import Step


@record
class Runtime:
    """`operations`: ids of runs and manual compactions that are registered, in order of admission."""

    shut: bool = False
    operations: tuple[str, ...] = ()


def _admit(state: Runtime, i: Admit) -> Step[Runtime]:
    if state.shut:
        return Step(state, (fx.Refused(i.operation),))
    return Step(Runtime(False, (*state.operations, i.operation)), (fx.Admitted(i.operation),))


def _released(state: Runtime, i: Released) -> Step[Runtime]:
    return Step(Runtime(state.shut, tuple(o for o in state.operations if o != i.operation)), ())


def _shutdown(state: Runtime, i: Shutdown) -> Step[Runtime]:
    """The first call cancels and counts; later ones count nothing (RHO-SHUT-5)."""
    if state.shut:
        return Step(state, (fx.Reply(i.command_id, 0),))
    cancels = tuple(fx.CancelOperation(o) for o in state.operations)
    return Step(Runtime(True, state.operations), (*cancels, fx.Reply(i.command_id, len(cancels))))


ROWS: dict[type, tuple[Callable[[Runtime, Any], Step[Runtime]], tuple[str, ...]]] = {
    Admit: (_admit, ("RHO-SHUT-6",)),
    Released: (_released, ("RHO-DROP-2", "RHO-SHUT-4")),
    Shutdown: (
        _shutdown,
        ("RHO-SHUT-1", "RHO-SHUT-2", "RHO-SHUT-3", "RHO-SHUT-4", "RHO-SHUT-5", "RHO-SHUT-7"),
    ),
}


def step(state: Runtime, i: RuntimeInput) -> Step[Runtime]:
    """Total over `RuntimeInput`. Raises TypeError for anything else."""
    row = ROWS.get(type(i))
    if row is None:
        raise TypeError(f"not an input of the runtime: {i!r}")
    return row[0](state, i)
