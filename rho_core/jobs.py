"""Detached calls of a run: a pool of small pure machines that never emit (RHO-ORD-7, RHO-ORD-7b, RHO-CAN-14).

    preparing -> prepared -> authorizing -> ready -> (ToolStarted) -> started -> (ToolDetached) -> running
    prepare/authorise failures -> failed -> (ToolStarted) -> returned
    started | running -> returned -> (ToolFinished) -> parked -> drained into the history

Pool order is completion order for what has returned: a returning job moves to the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .calls import INTERRUPTED_COMPLETION, denied_text, result_of
from .errors import ToolErrorKind
from .events import Failure, ToolCompletion
from .inputs import Plan
from .messages import ToolCall, ToolResult
from .record import record
from .resources import detachable

Stage = Literal[
    "preparing",
    "prepared",
    "authorizing",
    "ready",
    "failed",
    "started",
    "running",
    "stopping",
    "returned",
    "closed",
    "parked",
]

OPENING: frozenset[Stage] = frozenset({"preparing", "prepared", "authorizing", "ready", "failed"})
"""Not announced yet: ToolStarted was not delivered."""
EXECUTING: frozenset[Stage] = frozenset({"started", "running", "stopping"})
LIVE: frozenset[Stage] = OPENING | EXECUTING
WORKING: frozenset[Stage] = EXECUTING | {"preparing", "authorizing"}
"""Stages in which something outside is at work for the job."""


@record
class Job:
    """`serial` counts the run's jobs in call order; `closed` = over without ever having been announced."""

    call: ToolCall
    serial: int
    stage: Stage = "preparing"
    plan: Plan = Plan()
    completion: ToolCompletion | None = None

    def at(self, stage: Stage) -> Job:
        return Job(self.call, self.serial, stage, self.plan, self.completion)

    def ending(self, stage: Stage, completion: ToolCompletion) -> Job:
        return Job(self.call, self.serial, stage, self.plan, completion)


Pool = tuple[Job, ...]


def opened(pool: Pool, call: ToolCall, serial: int) -> Pool:
    """One more job, in preparation."""
    return (*pool, Job(call, serial))


def find(pool: Pool, call_id: str, stages: Iterable[Stage]) -> Job | None:
    """The job of that id at one of those stages; None for a late or stray input."""
    return next((j for j in pool if j.call.id == call_id and j.stage in stages), None)


def put(pool: Pool, job: Job) -> Pool:
    """Replace in place."""
    return tuple(job if j.call.id == job.call.id else j for j in pool)


def move_last(pool: Pool, job: Job) -> Pool:
    """Replace and move to the end: completion order (RHO-ORD-10)."""
    return (*(j for j in pool if j.call.id != job.call.id), job)


def prepared(job: Job, plan: Plan) -> Job:
    """A job must not be able to get in another call's way; else it fails (rho.md 3.7)."""
    if not detachable(plan):
        text = "an async tool call must not need exclusive access"
        return Job(job.call, job.serial, "failed", plan, Failure(ToolErrorKind.EXECUTION, text))
    return Job(job.call, job.serial, "prepared", plan)


def refused(job: Job, message: str) -> Job:
    return job.ending("failed", Failure(ToolErrorKind.EXECUTION, message))


def denied(job: Job, reason: str) -> Job:
    text = denied_text(job.plan.capability or "", reason)
    return job.ending("failed", Failure(ToolErrorKind.POLICY_DENIED, text))


def returned(pool: Pool, job: Job, completion: ToolCompletion) -> Pool:
    """Store the completion. Before its ToolDetached is delivered the job keeps its stage (RHO-ORD-7)."""
    if job.stage == "started":
        return put(pool, job.ending("started", completion))
    return move_last(pool, job.ending("returned", completion))


def detached(pool: Pool, job: Job) -> Pool:
    """ToolDetached was delivered."""
    if job.completion is not None:
        return move_last(pool, job.at("returned"))
    return put(pool, job.at("running"))


def first_returned(pool: Pool) -> Job | None:
    """The next job whose ToolFinished is owed."""
    return next((j for j in pool if j.stage == "returned"), None)


def drain(pool: Pool) -> tuple[Pool, tuple[ToolResult, ...]]:
    """Take the parked results out, in completion order."""
    results = tuple(result(j) for j in pool if j.stage == "parked")
    return tuple(j for j in pool if j.stage != "parked"), results


def result(job: Job) -> ToolResult:
    """What history says of the call: its completion, else the interrupted text."""
    return result_of(job.call.id, job.completion or INTERRUPTED_COMPLETION)


def stopped(job: Job) -> Job:
    """The run ends now and this job had no more time: a stored completion is kept (RHO-CAN-14)."""
    completion = job.completion or INTERRUPTED_COMPLETION
    return job.ending("closed" if job.stage in OPENING else "returned", completion)


def any_live(pool: Pool) -> bool:
    """Is any call of the pool without a completion the reader knows of?"""
    return any(j.stage != "parked" for j in pool)


def running(pool: Pool) -> int:
    """Occupied slots of `max_parallel_tools`."""
    return sum(j.stage in EXECUTING for j in pool)


def open_ids(pool: Pool) -> frozenset[str]:
    """Ids that are not answered in the candidate history yet (D14)."""
    return frozenset(j.call.id for j in pool)
