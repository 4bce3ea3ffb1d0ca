"""Reported failures as patches of the core: of a session as a whole, its saves and its second operation (I–K, N)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.runtime
import rho_core.session
import rho_core.snapshot
from rho_conformance.mutants.base import Patch, attr, entry, row
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.messages import ToolResult, User
from rho_core.run import state as s
from rho_core.run import top
from rho_core.run.outbox import Fx, Next, change
from rho_core.run.table import COMMON, WAIT
from rho_core.session import Active, CompactingByHand
from rho_core.step import Step
from tests.conformance.reportedending import DEAF_TOOLS


def _other_ids(restore: Any) -> Any:
    def wrapped(snapshot: Any, *rest: Any) -> Any:
        history = tuple(
            ToolResult(f"call_{n}", m.ok, m.content) if isinstance(m, ToolResult) else m
            for n, m in enumerate(snapshot.history)
        )
        return restore(replace(snapshot, history=history), *rest)

    return wrapped


def _half_a_run_is_saved(take: Any) -> Any:
    def wrapped(session: Any) -> Any:
        snapshot = take(session)
        run = session.run
        return snapshot if run is None else replace(snapshot, history=top.candidate(run.core))

    return wrapped


def _late_cancel_is_told(without_run: Any) -> Any:
    def wrapped(session: Any, i: Any) -> Any:
        step: Step[Any] = without_run(session, i)
        if not isinstance(i, inp.Cancel):
            return step
        return Step(step.state, (*step.effects, out.Deliver(ev.Cancelled(session.ledger.revision))))

    return wrapped


def _goes_on(_: Any) -> Any:
    def handler(run: s.Run, i: Any, fx: Fx) -> Next:
        return run, None

    return handler


def _busy_is_ignored(step: Any) -> Any:
    """A second run writes into the first; a compaction aborts the run; two compactions work at a time."""

    def wrapped(session: Any, i: Any) -> Any:
        phase = session.phase
        if isinstance(i, inp.Start) and isinstance(phase, Active):
            run = change(phase.run, suffix=(*phase.run.core.suffix, User(i.content)))
            return Step(rho_core.session.Session(session.identity, Active(run)), (out.Reply(i.command_id),))
        if isinstance(i, inp.Compact) and isinstance(phase, Active):
            return step(session, inp.Cancel(i.command_id))
        if isinstance(i, inp.Compact) and isinstance(phase, CompactingByHand):
            again = (out.CallCompactor(phase.ledger.history, "manual"), out.Reply(i.command_id))
            return Step(session, again)
        return step(session, i)

    return wrapped


def _compactions_unknown(admit: Any) -> Any:
    def wrapped(state: Any, i: inp.Admit) -> Any:
        known: Step[Any] = admit[0](state, i)
        if not i.operation.startswith("compact") or known.state == state:
            return known
        return Step(state, known.effects)

    return wrapped, admit[1]


def _first_run_again(begin: Any) -> Any:
    def handler(run: s.Run, i: inp.Begin, fx: Fx) -> Next:
        old = tuple(m for m in run.core.ledger.history if not isinstance(m, ToolResult))
        run, then = begin(run, i, fx)
        return change(run, suffix=(*run.core.suffix, *old)), then

    return handler


BUGS: dict[str, tuple[Patch, ...]] = {
    "a restored session has other result ids": (attr(rho_core.snapshot, "restore", _other_ids),),
    "a save holds half a run": (attr(rho_core.snapshot, "take", _half_a_run_is_saved),),
    "a cancel that comes too late is told": (
        attr(rho_core.session, "_without_run", _late_cancel_is_told),
        DEAF_TOOLS,
    ),
    "a dropped run goes on": (row(COMMON, inp.Drop, _goes_on),),
    "a run without a reader goes on": (row(COMMON, inp.ReaderClosed, _goes_on),),
    "a busy session takes a second operation": (attr(rho_core.session, "step", _busy_is_ignored),),
    "the runtime does not know of compactions": (entry(rho_core.runtime.ROWS, inp.Admit, _compactions_unknown),),
    "a run begins with the one before it": (row(WAIT, (s.Fresh, inp.Begin), _first_run_again),),
}
"""What is wrong -> the patches that make the core do it."""
