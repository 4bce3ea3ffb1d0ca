"""Wrong about cooperative failure and about the loss of the reader (RHO-FAIL-*)."""

from __future__ import annotations

from typing import Any

from rho_conformance.mutants.base import Mutant, row
from rho_core.errors import Error, ErrorName
from rho_core.run import state as s
from rho_core.run import table
from rho_core.run.outbox import change


def _nothing_achieved(old: Any) -> Any:
    def commit(run: s.Run, k: s.Commit, fx: Any) -> Any:
        if isinstance(k.plan.ending, s.Fail):
            run, k = change(run, suffix=()), s.Commit(s.Conclude(k.plan.ending, (), k.plan.tail))
        return old(run, k, fx)

    return commit


def _uncommitted(old: Any) -> Any:
    def commit(run: s.Run, k: s.Commit, fx: Any) -> Any:
        if isinstance(k.plan.ending, s.Fail):
            return run, s.Abandon(k.plan.ending.error)
        return old(run, k, fx)

    return commit


def _rescued(old: Any) -> Any:
    """What there is gets saved when the reader leaves."""

    def abandon(run: s.Run, k: s.Abandon, fx: Any) -> Any:
        if k.error is not None and k.error.name is ErrorName.INTERRUPTED and run.core.reader == "gone":
            ledger = run.core.ledger.commit(run.core.suffix)
            if not isinstance(ledger, Error):
                run = change(run, ledger=ledger)
        return old(run, k, fx)

    return abandon


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "failure-drops-candidate",
        "RHO-FAIL-1",
        "a failed run commits none of its candidate history",
        (row(table.FLOW, s.Commit, _nothing_achieved),),
    ),
    Mutant(
        "failure-uncommitted",
        "RHO-FAIL-1",
        "a failed run ends without a commit and without Failed",
        (row(table.FLOW, s.Commit, _uncommitted),),
    ),
    Mutant(
        "reader-loss-commits",
        "RHO-FAIL-2",
        "a run that lost its reader installs its candidate history",
        (row(table.FLOW, s.Abandon, _rescued),),
    ),
)
