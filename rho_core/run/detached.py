"""Async calls: starting them one by one, waiting for them, hearing from them in any phase (rho.md 3.7)."""

from __future__ import annotations

from .. import effects as out
from .. import events as ev
from .. import inputs as inp
from .. import jobs
from ..errors import ToolErrorKind
from . import state as s
from .outbox import Fx, Next, change, emit, to
from .top import announce_job, drain


def spawn(run: s.Run, k: s.Spawn, fx: Fx) -> Next:
    """One act: a finished job, the job being opened, or the next call."""
    phase, core = run.phase, run.core
    assert isinstance(phase, s.Spawning)
    finished = jobs.first_returned(core.jobs)
    if finished is not None:
        return announce_job(run, fx, finished, k)
    opening = next((j for j in core.jobs if j.stage in jobs.OPENING), None)
    if opening is not None:
        return _open(run, fx, opening)
    if phase.detaching:
        call, rest = phase.detaching[0], phase.detaching[1:]
        fx.append(out.Prepare(call, True))
        run = change(run, jobs=jobs.opened(core.jobs, call, core.serial), serial=core.serial + 1)
        return to(run, s.Spawning(rest, phase.batch)), None
    if phase.batch:
        return to(run, s.Awaiting(phase.batch)), s.Await()
    return to(run, s.Between()), s.Top()


def _open(run: s.Run, fx: Fx, job: jobs.Job) -> Next:
    if job.stage == "prepared":
        if job.plan.capability is None:
            return change(run, jobs=jobs.put(run.core.jobs, job.at("ready"))), s.Spawn()
        fx.append(out.Authorize(job.call.id, job.plan.capability))
        return change(run, jobs=jobs.put(run.core.jobs, job.at("authorizing"))), None
    slot_free = jobs.running(run.core.jobs) < run.core.policy.max_parallel_tools
    if job.stage == "failed" or (job.stage == "ready" and slot_free):
        event = ev.ToolStarted(job.call.id, job.call.name, job.plan.metadata if job.stage == "ready" else "")
        return emit(run, fx, (event,), s.JobStarted(job.call.id))
    return run, None


def job_started(run: s.Run, k: s.JobStarted, fx: Fx) -> Next:
    """The reader knows of it: a failed one ends here, the other runs and is detached (RHO-ORD-7)."""
    pool = run.core.jobs
    failed = jobs.find(pool, k.call_id, {"failed"})
    if failed is not None:
        return change(run, jobs=jobs.move_last(pool, failed.at("returned"))), s.Spawn()
    job = jobs.find(pool, k.call_id, {"ready"})
    assert job is not None
    fx.append(out.Execute(k.call_id))
    run = change(run, jobs=jobs.put(pool, job.at("started")))
    return emit(run, fx, (ev.ToolDetached(k.call_id),), s.JobDetached(k.call_id))


def job_detached(run: s.Run, k: s.JobDetached, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, k.call_id, {"started"})
    assert job is not None
    return change(run, jobs=jobs.detached(run.core.jobs, job)), s.Spawn()


def wait_for_jobs(run: s.Run, k: s.Await, fx: Fx) -> Next:
    """All jobs before a batch; any job, or a steer, at an end turn (rho.md 3.3 j and n)."""
    phase = run.phase
    assert isinstance(phase, s.Awaiting)
    finished = jobs.first_returned(run.core.jobs)
    if finished is not None:
        return announce_job(run, fx, finished, k)
    if phase.batch:
        if jobs.any_live(run.core.jobs):
            return run, None
        return drain(run), s.OpenBatch(phase.batch)
    if run.core.steers.waiting or any(j.stage == "parked" for j in run.core.jobs):
        return to(run, s.Between()), s.Top()
    return run, None


# --- what jobs report -----------------------------------------------------------------------------------------------

LOOK_AGAIN: dict[type, s.Continuation] = {
    s.Streaming: s.Watch(),
    s.Recording: s.WatchRecorder(),
    s.BackingOff: s.WatchBackoff(),
    s.Spawning: s.Spawn(),
    s.Awaiting: s.Await(),
}
"""How a waiting run notices what a job has stored. Other phases find it at their next continuation."""


def _stored(run: s.Run, pool: jobs.Pool) -> Next:
    return change(run, jobs=pool), LOOK_AGAIN.get(type(run.phase))


def prepared(run: s.Run, i: inp.Prepared, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, i.call_id, {"preparing"})
    return _stored(run, jobs.put(run.core.jobs, jobs.prepared(job, i.plan))) if job else (run, None)


def prepare_failed(run: s.Run, i: inp.PrepareFailed, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, i.call_id, {"preparing"})
    return _stored(run, jobs.put(run.core.jobs, jobs.refused(job, i.message))) if job else (run, None)


def authorized(run: s.Run, i: inp.Authorized, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, i.call_id, {"authorizing"})
    return _stored(run, jobs.put(run.core.jobs, job.at("ready"))) if job else (run, None)


def denied(run: s.Run, i: inp.Denied, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, i.call_id, {"authorizing"})
    return _stored(run, jobs.put(run.core.jobs, jobs.denied(job, i.reason))) if job else (run, None)


def returned(run: s.Run, i: inp.ToolReturned, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, i.call_id, {"started", "running"})
    if job is None or job.completion is not None:
        return run, None
    return _stored(run, jobs.returned(run.core.jobs, job, i.completion))


def panicked(run: s.Run, i: inp.ToolPanicked, fx: Fx) -> Next:
    """A detached tool that dies fails its own call and nothing else (D6)."""
    pool = run.core.jobs
    failure = ev.Failure(ToolErrorKind.EXECUTION, "the tool panicked")
    job = jobs.find(pool, i.call_id, {"preparing", "authorizing", "started", "running"})
    if job is None or job.completion is not None:
        return run, None
    if job.stage in jobs.OPENING:
        return _stored(run, jobs.put(pool, job.ending("failed", failure)))
    return _stored(run, jobs.returned(pool, job, failure))


def progress(run: s.Run, i: inp.ToolProgress, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, i.call_id, {"started", "running"})
    then = LOOK_AGAIN.get(type(run.phase))
    if job is None or job.completion is not None or then is None:
        return run, None
    return emit(run, fx, (ev.ToolUpdated(i.call_id, i.progress),), then)


def asked(run: s.Run, i: inp.ToolAsked, fx: Fx) -> Next:
    """A detached call cannot ask: the run may be far from any coordinator (contract 2.7)."""
    job = jobs.find(run.core.jobs, i.call_id, jobs.EXECUTING)
    if job is not None and job.completion is None:
        fx.append(out.RefuseAsk(i.call_id, i.request.id))
    return run, None
