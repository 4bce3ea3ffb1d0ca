"""Wrong cores around automatic compaction: RHO-ORD-11a, 11b, 11c, 11f."""

from __future__ import annotations

from typing import Any

from rho_core import inputs as inp
from rho_core.events import CompactionCompleted, CompactionOutcome
from rho_core.run import state as s
from rho_core.run import top
from rho_core.run.outbox import Fx, Next, emit, to
from rho_core.run.table import FLOW, WAIT

from .base import Mutant, row

RETURNED = (s.Compacting, inp.CompactorReturned)


def _called_at_once(consider: Any) -> Any:
    def handler(run: s.Run, k: s.ConsiderCompaction, fx: Fx) -> Next:
        own: Fx = []
        after, then = consider(run, k, own)
        waiting = after.blocked.then if after.blocked is not None else then
        if isinstance(waiting, s.CallTheCompactor):
            called, _ = top.call_the_compactor(run, waiting, fx)
            fx.extend(own)
            blocked = after.blocked and s.Blocked(after.blocked.sends, True, s.Hold())
            return s.Run(called.phase, after.free, blocked, called.core), None
        fx.extend(own)
        return after, then

    return handler


def _until_small(returned: Any) -> Any:
    """Looks at the threshold again right after the compaction."""

    def handler(run: s.Run, i: inp.CompactorReturned, fx: Fx) -> Next:
        run, then = returned(run, i, fx)
        if isinstance(then, s.ConsiderBoundary):
            return run, s.ConsiderCompaction()
        blocked = run.blocked
        if blocked is not None and isinstance(blocked.then, s.ConsiderBoundary):
            blocked = s.Blocked(blocked.sends, blocked.cancellable, s.ConsiderCompaction())
            return s.Run(run.phase, run.free, blocked, run.core), then
        return run, then

    return handler


def _before_the_commit(returned: Any) -> Any:
    """Announces the compaction first; a commit that is refused comes too late."""

    def handler(run: s.Run, i: inp.CompactorReturned, fx: Fx) -> Next:
        after, then = returned(run, i, fx)
        if not isinstance(then, s.Abandon):
            return after, then
        history = top.candidate(run.core)
        before, now = top.tokens(run.core, history), top.tokens(run.core, i.messages)
        outcome = CompactionOutcome(
            len(history), len(i.messages), before, now, run.core.ledger.revision + 1, None, i.messages
        )
        return emit(to(run, s.Between()), fx, (CompactionCompleted("automatic", outcome),), then)

    return handler


def _cancellable(returned: Any) -> Any:
    def handler(run: s.Run, i: inp.CompactorReturned, fx: Fx) -> Next:
        run, then = returned(run, i, fx)
        blocked = run.blocked
        if blocked is None or not isinstance(blocked.sends[0], CompactionCompleted):
            return run, then
        return s.Run(run.phase, run.free, s.Blocked(blocked.sends, True, blocked.then), run.core), then

    return handler


def _late_and_silent(stopped: Any) -> Any:
    """What came after the cancel is committed, and its event is forgotten."""

    def handler(run: s.Run, i: inp.CompactorReturned, fx: Fx) -> Next:
        after, then = stopped(run, i, [])
        if isinstance(then, s.Abandon):
            return after, then
        return s.Run(s.Between(), run.free, None, after.core), s.Conclude(s.CancelRun())

    return handler


def _whatever_is_pending(boundary: Any) -> Any:
    def handler(run: s.Run, k: s.Top, fx: Fx) -> Next:
        run, then = boundary(run, k, fx)
        if isinstance(then, s.ConsiderSteering) and run.core.step < run.core.policy.max_steps:
            return run, s.ConsiderCompaction()
        return run, then

    return handler


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "compactor-called-at-once",
        "RHO-ORD-11a",
        "calls the compactor while CompactionStarted still waits for room",
        (row(FLOW, s.ConsiderCompaction, _called_at_once),),
    ),
    Mutant(
        "compacts-until-small",
        "RHO-ORD-11b",
        "compacts again at the same boundary when the result is still above the threshold",
        (row(WAIT, RETURNED, _until_small),),
    ),
    Mutant(
        "compaction-announced-before-commit",
        "RHO-ORD-11b",
        "sends CompactionCompleted and only then finds that the revision is exhausted",
        (row(WAIT, RETURNED, _before_the_commit),),
    ),
    Mutant(
        "compaction-event-cancelled",
        "RHO-ORD-11c",
        "lets a cancel drop the CompactionCompleted of a committed compaction",
        (row(WAIT, RETURNED, _cancellable),),
    ),
    Mutant(
        "late-compaction-unannounced",
        "RHO-ORD-11c",
        "commits what a cooperative compactor gave after the cancel, and does not say so",
        (row(WAIT, (s.Ebbing, inp.CompactorReturned), _late_and_silent),),
    ),
    Mutant(
        "compacts-over-pending-jobs",
        "RHO-ORD-11f",
        "compacts at a step boundary although detached calls are unanswered",
        (row(FLOW, s.Top, _whatever_is_pending),),
    ),
)
