"""What is true of every run, between any two inputs: an invariant that each input preserves (design §3.2, §3.3).

Clauses are joined by `&` where the parts are numbers: one question for the solver instead of one a part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_core import calls, jobs
from rho_core.budget import Budget
from rho_core.config import MAX_REVISION, Policy
from rho_core.messages import ToolCall, calls_of
from rho_core.run import state as s

TRANSIENT = (s.Between, s.Responding, s.Proposing, s.Cancelling, s.Settling)
"""Seen only while a send is blocked."""

RESUMES: dict[type, tuple[type, ...]] = {
    s.Between: (s.Top, s.CallTheCompactor, s.ConsiderBoundary, s.AfterInput, s.SteeringIn, s.StepBegun, s.Delay),
    s.Streaming: (s.Watch,),
    s.Responding: (s.Responded,),
    s.Recording: (s.WatchRecorder,),
    s.BackingOff: (s.WatchBackoff,),
    s.Proposing: (s.Propose, s.Dispatch),
    s.Spawning: (s.Spawn, s.JobStarted, s.JobDetached),
    s.Awaiting: (s.Await,),
    s.Batch: (s.Schedule, s.CallStarted, s.CallFinished, s.Asked),
    s.Draining: (s.Hold,),
    s.Cancelling: (s.Conclude,),
    s.Settling: (s.Exit,),
}
"""What a blocked send can go on with, by phase; a phase that is not here is never blocked."""

KEEPS = (s.ConsiderBoundary, s.AfterInput, s.Hold, s.Conclude, s.Exit)
"""Continuations of sends that no cancel drops."""


def channel(run: s.Run) -> bool:
    """Free places within the capacity (RHO-BUF-2); a blocked send has found none, and has a reader."""
    within = (run.free >= 0) & (run.free <= run.core.policy.event_capacity)
    if run.blocked is None:
        return bool(within)
    return bool(within & (run.free == 0)) and len(run.blocked.sends) > 0 and run.core.reader == "open"


def numbers(run: s.Run) -> bool:
    """Steps within the limit, revisions within theirs, the preserved tail within the candidate."""
    core = run.core
    steps = (core.step >= 0) & (core.step <= core.policy.max_steps)
    revision = (core.ledger.revision >= 0) & (core.ledger.revision <= MAX_REVISION)
    size = len(core.ledger.history) + len(core.suffix)
    tail = (core.preserve >= 0) & (core.preserve <= size) & (core.serial >= len(core.jobs))
    return bool(steps & revision & tail)


def spending(budget: Budget, policy: Policy) -> bool:
    """An attempt is open: every one before it was malformed or failed (RHO-RET-1…5)."""
    requests = (budget.requests >= 1) & (budget.requests <= policy.request_budget)
    malformed = (budget.malformed >= 0) & (budget.malformed < policy.malformed_budget) & (budget.failed >= 0)
    return bool(requests & malformed & (budget.malformed + budget.failed == budget.requests - 1))


def pausing(budget: Budget, policy: Policy) -> bool:
    """An attempt is over and another is owed: the budget has room for it."""
    requests = (budget.requests >= 1) & (budget.requests < policy.request_budget)
    malformed = (budget.malformed >= 0) & (budget.malformed < policy.malformed_budget) & (budget.failed >= 0)
    return bool(requests & malformed & (budget.malformed + budget.failed == budget.requests))


def turn(run: s.Run) -> bool:
    """The budget of the open turn, and the attempt's number."""
    phase, policy = run.phase, run.core.policy
    if isinstance(phase, (s.Streaming, s.Responding, s.Recording, s.Draining)):
        numbered = (phase.attempt == phase.turn.budget.requests) & (run.core.step >= 1) & (phase.turn.physical >= 1)
        if not (numbered and spending(phase.turn.budget, policy)):
            return False
        return not isinstance(phase, s.Recording) or _after_recording(phase.then, policy)
    if isinstance(phase, s.BackingOff):
        return bool((phase.turn.budget.failed >= 1) & _begun(run, phase.turn)) and pausing(phase.turn.budget, policy)
    if run.blocked is not None and isinstance(run.blocked.then, s.Delay):
        then = run.blocked.then
        return bool((then.delay_ms >= 0) & _begun(run, then.turn)) and pausing(then.turn.budget, policy)
    if run.blocked is not None and isinstance(run.blocked.then, s.StepBegun):
        return run.core.step >= 1
    return True


def _begun(run: s.Run, turn: s.Turn) -> bool:
    return (run.core.step >= 1) & (turn.physical >= 1)


def _after_recording(then: s.Judge | s.Reset | s.Conclude, policy: Policy) -> bool:
    if not isinstance(then, s.Reset):
        return True
    return bool((then.delay_ms >= 0) & (then.turn.physical >= 1)) and pausing(then.turn.budget, policy)


def pool(run: s.Run) -> bool:
    """Ids and serials of jobs unique; a completion exactly when there is one; never too many at once (RHO-ORD-7)."""
    members = run.core.jobs
    if not unique([j.call.id for j in members]) or not unique([j.serial for j in members]):
        return False
    if any(j.serial >= run.core.serial or j.serial < 0 for j in members):
        return False
    if not all(_job(j) for j in members) or jobs.running(members) > run.core.policy.max_parallel_tools:
        return False
    stages = {j.stage for j in members}
    if stages & jobs.OPENING and not isinstance(run.phase, s.Spawning):
        return False
    stopping = isinstance(run.phase, (s.Draining, s.Cancelling, s.Stopping))
    return stopping or not stages & {"stopping", "closed"}


def _job(job: jobs.Job) -> bool:
    if job.stage == "started":
        return True
    return (job.completion is not None) == (job.stage in ("failed", "returned", "closed", "parked"))


def proposals(run: s.Run) -> bool:
    """Calls that are still to be started have ids of their own, which no open job has (D14)."""
    ids = [call.id for call in _owed(run)]
    taken = jobs.open_ids(run.core.jobs)
    return unique(ids) and not any(i in taken for i in ids)


def _owed(run: s.Run) -> tuple[ToolCall, ...]:
    phase = run.phase
    if isinstance(phase, s.Proposing):
        return phase.calls
    if isinstance(phase, s.Spawning):
        return (*phase.detaching, *phase.batch)
    if isinstance(phase, s.Awaiting):
        return phase.batch
    then = phase.then if isinstance(phase, s.Recording) else run.blocked and run.blocked.then
    return calls_of(then.content) if isinstance(then, (s.Judge, s.Responded)) and then.issue is None else ()


def batch(run: s.Run) -> bool:
    """Results are stored once, in the stages that have one; never more at once than allowed (RHO-ORD-9, RHO-CAN-12)."""
    phase = run.phase
    if not isinstance(phase, s.Batch):
        return True
    slots = phase.slots
    if not slots or not unique([slot.call.id for slot in slots]) or not all(map(_slot, slots)):
        return False
    if sum(slot.stage == "running" for slot in slots) > run.core.policy.max_parallel_tools:
        return False
    asking = [a.request.id for a in phase.asks.open]
    alive = {slot.call.id for slot in slots if slot.stage in ("running", "panicked")}
    known = all(a in phase.asks.used for a in asking) and all(a.call_id in alive for a in phase.asks.open)
    return known and unique(asking)


def _slot(slot: calls.Slot) -> bool:
    if slot.stage == "unavailable":
        return True
    return (slot.completion is not None) == (slot.stage in ("refused", "returned", "done"))


def blocking(run: s.Run) -> bool:
    """A blocked send goes on with something its phase knows, and with something that is still there."""
    blocked, phase = run.blocked, run.phase
    if blocked is None:
        return not isinstance(phase, TRANSIENT)
    then = blocked.then
    if type(then) not in RESUMES.get(type(phase), ()) or (blocked.cancellable and isinstance(then, KEEPS)):
        return False
    if isinstance(then, s.SteeringIn):
        return len(then.ids) > 0 and all(i in run.core.steers.unapplied() for i in then.ids)
    if isinstance(then, (s.JobStarted, s.JobDetached)):
        at: tuple[jobs.Stage, ...] = ("started",) if isinstance(then, s.JobDetached) else ("ready", "failed")
        return jobs.find(run.core.jobs, then.call_id, at) is not None
    if isinstance(phase, s.Batch) and isinstance(then, (s.CallStarted, s.CallFinished)):
        wanted = ("prepared", "refused") if isinstance(then, s.CallStarted) else ("returned", "unavailable")
        if not 0 <= then.index < len(phase.slots) or phase.slots[then.index].stage not in wanted:
            return False
        return isinstance(then, s.CallStarted) or phase.slots[then.index].completion is not None
    if isinstance(then, s.Await):
        return core_jobs(run)
    return True


def core_jobs(run: s.Run) -> bool:
    """Something is there to wait for."""
    return len(run.core.jobs) > 0


def steers(run: s.Run) -> bool:
    """A steer waits or was applied, once (RHO-STEER-4)."""
    registry = run.core.steers
    return unique([*registry.unapplied(), *registry.applied])


def ending(run: s.Run) -> bool:
    """After the commit nothing is left of the candidate; a run that stops has something that still may finish."""
    core, phase = run.core, run.phase
    if isinstance(phase, (s.Settling, s.Settled)):
        return core.suffix == () and core.jobs == ()
    if isinstance(phase, s.Stopping):
        return any(j.stage == "stopping" for j in core.jobs)
    if isinstance(phase, (s.Compacting, s.Ebbing)):
        return core.jobs == () and core.policy.compaction is not None
    if isinstance(phase, s.Draining):
        return core.policy.cooperative_provider
    return True


def progress(run: s.Run) -> bool:
    """A run that waits waits for somebody: a batch or a spawn for a tool, an end turn for a job (no deadlock)."""
    phase, core = run.phase, run.core
    if run.blocked is not None:
        return True
    if isinstance(phase, s.Batch):
        return any(slot.stage in calls.WORKING for slot in phase.slots)
    if isinstance(phase, (s.Spawning, s.Awaiting)):
        return any(j.stage in jobs.WORKING and j.completion is None for j in core.jobs)
    if isinstance(phase, s.Recording):
        return phase.stage == "written"
    if isinstance(phase, s.BackingOff):
        return phase.stage == "armed"
    return True


def unique(values: list[Any]) -> bool:
    """Is none of them there twice?"""
    return all(values[i] != values[k] for i in range(len(values)) for k in range(i))


CLAUSES: tuple[Callable[[s.Run], bool], ...] = (
    channel,
    numbers,
    turn,
    pool,
    proposals,
    batch,
    blocking,
    steers,
    ending,
    progress,
)


def broken(run: s.Run) -> str | None:
    """The name of a clause that does not hold, or None."""
    return next((clause.__name__ for clause in CLAUSES if not clause(run)), None)


def holds(run: s.Run) -> bool:
    """The invariant."""
    return all(clause(run) for clause in CLAUSES)
