"""Every way a run ends (rho.md 3.9, RHO-CAN-*, RHO-FAIL-*, RHO-DROP-*, RHO-LIM-*).

A *cooperative* end commits first, then sends one uncancellable, best-effort tail. Every other end commits nothing:
the ledger goes back as it is and the candidate is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .. import calls, jobs
from .. import capture as cap
from .. import effects as out
from .. import events as ev
from .. import inputs as inp
from ..errors import CANCELLED, DIAGNOSTIC_BYTES, Error, ProviderErrorKind
from ..messages import ToolCall, ToolResult, interrupted
from . import state as s
from .outbox import Fx, Next, change, send_tail, to
from .top import install
from .turn import close_attempt, enter, is_current

# --- what must be stopped ---------------------------------------------------------------------------------------


def stop_work(run: s.Run, fx: Fx) -> None:
    """Abort whatever the phase has started. Jobs are stopped by `stop_jobs` or `abort_jobs`."""
    phase = run.phase
    if isinstance(phase, (s.Streaming, s.Draining)):
        fx.append(out.AbortModel(run.core.step, phase.attempt))
    elif isinstance(phase, s.BackingOff):
        if phase.stage == "armed":
            fx.append(out.CancelTimer(phase.timer_id))
    elif isinstance(phase, s.Batch):
        fx.extend(out.AbortTool(slot.call.id) for slot in phase.slots if slot.stage in calls.WORKING)
    elif isinstance(phase, (s.Compacting, s.Ebbing)):
        fx.append(out.AbortCompactor())
    elif isinstance(phase, s.Collecting):
        fx.append(out.AckBoundary(False))


def write_off(run: s.Run, fx: Fx, outcome: out.RecordOutcome, error_kind: str | None = None) -> None:
    """An attempt that is cut short is paid for: its records are written in their order, and nobody waits for them."""
    phase = run.phase
    if isinstance(phase, (s.Streaming, s.Draining)):
        fx.extend(close_attempt(run, phase, outcome, error_kind)[1])
    elif isinstance(phase, s.Responding):
        fx.extend(phase.records)
    elif isinstance(phase, s.Recording):
        fx.extend(phase.left)


def abort_jobs(run: s.Run, fx: Fx) -> None:
    """Stop every job at once, with its timer."""
    for job in run.core.jobs:
        if job.stage in jobs.WORKING and (job.completion is None or job.stage == "stopping"):
            fx.append(out.AbortTool(job.call.id))
        if job.stage == "stopping":
            fx.append(out.CancelTimer(stop_timer(job.call.id)))


def stop_timer(call_id: str) -> str:
    return f"stop:{call_id}"


def stop_jobs(run: s.Run, fx: Fx) -> s.Run:
    """Interrupt the jobs: those with time left may still finish, the others are over (RHO-CAN-14)."""
    pool = run.core.jobs
    for job in pool:
        if job.stage in jobs.LIVE and job.stage != "stopping":
            pool = jobs.put(pool, _stop(job, fx))
    return run if pool is run.core.jobs else change(run, jobs=pool)


def _stop(job: jobs.Job, fx: Fx) -> jobs.Job:
    if job.completion is not None or job.stage not in jobs.WORKING:
        return jobs.stopped(job)
    time = job.plan.complete_within_ms if job.stage in jobs.EXECUTING else None
    if time is None:
        fx.append(out.AbortTool(job.call.id))
        return jobs.stopped(job)
    fx.append(out.CancelJob(job.call.id))
    fx.append(out.StartTimer(stop_timer(job.call.id), time))
    return job.at("stopping")


# --- the cooperative end ------------------------------------------------------------------------------------------


def conclude(run: s.Run, k: s.Conclude, fx: Fx) -> Next:
    """Interrupt the jobs, then commit; wait for those that may still finish."""
    run = stop_jobs(run, fx)
    if any(j.stage == "stopping" for j in run.core.jobs):
        return to(run, s.Stopping(k)), None
    return run, s.Commit(k)


def commit(run: s.Run, k: s.Commit, fx: Fx) -> Next:
    """One commit for every end: candidate, answers to open calls, what was captured (RHO-CAN-8, RHO-FAIL-1)."""
    core, plan = run.core, k.plan
    suffix = (*core.suffix, *plan.results, *_job_results(core.jobs))
    ledger = core.ledger.commit(suffix if plan.aborted is None else (*suffix, plan.aborted))
    if isinstance(ledger, Error):
        return run, s.Abandon(ledger)
    tail = (*plan.tail, *_owed(core.jobs))
    settled = change(run, ledger=ledger, suffix=(), jobs=())
    end, label, last = _ending(settled.core, plan.ending)
    run = to(settled, s.Settling(end, label, isinstance(plan.ending, s.CancelRun)))
    return send_tail(run, fx, (*tail, *last), s.Exit(end, label))


def _job_results(pool: jobs.Pool) -> tuple[ToolResult, ...]:
    """Parked results in completion order, then the others in call order (D23)."""
    parked = tuple(jobs.result(j) for j in pool if j.stage == "parked")
    rest = sorted((j for j in pool if j.stage != "parked"), key=lambda j: j.serial)
    return (*parked, *(jobs.result(j) for j in rest))


def _owed(pool: jobs.Pool) -> tuple[ev.ToolFinished, ...]:
    """ToolFinished of every announced job that has had none (RHO-ORD-7b, D2)."""
    owing = sorted((j for j in pool if j.stage == "returned"), key=lambda j: j.serial)
    return tuple(ev.ToolFinished(j.call.id, j.completion or calls.INTERRUPTED_COMPLETION) for j in owing)


def _ending(core: s.Core, ending: s.Ending) -> tuple[out.RunEnd, s.Label, tuple[ev.Event, ...]]:
    unapplied, revision = core.steers.unapplied(), core.ledger.revision
    if isinstance(ending, s.Complete):
        outcome = ev.RunOutcome(core.answer, core.usage, ending.stop, revision, unapplied)
        return outcome, "Completed", (ev.Completed(outcome),)
    if isinstance(ending, s.CancelRun):
        return out.RunFailed(CANCELLED, unapplied), "Idle", (ev.Cancelled(revision),)
    error = ending.error
    failed = ev.Failed(error.message, error.retryable, revision)
    end = out.RunFailed(error, unapplied)
    if error.diagnostic is None:
        return end, "Failed", (failed,)
    detail = error.diagnostic.encode(errors="replace")[:DIAGNOSTIC_BYTES].decode(errors="ignore")
    return end, "Failed", (ev.ProviderDiagnostic(detail), failed)


def exit_run(run: s.Run, k: s.Exit, fx: Fx) -> Next:
    """The outcome is authoritative and comes after the last delivery; then the stream ends."""
    fx.append(out.ReportOutcome(k.end))
    fx.append(out.CloseEvents())
    return to(run, s.Settled(k.label)), None


def abandon(run: s.Run, k: s.Abandon, fx: Fx) -> Next:
    """Stop everything, install nothing (RHO-PERS-2, RHO-LIM-3)."""
    stop_work(run, fx)
    if k.error is not None:
        write_off(run, fx, "Failed", ProviderErrorKind.INTERRUPTED)
    abort_jobs(run, fx)
    end = None if k.error is None else out.RunFailed(k.error, run.core.steers.unapplied())
    run = s.Run(s.Between(), run.free, None, run.core)
    return change(run, suffix=(), jobs=()), s.Exit(end, "Idle")


def stopping_job_returned(run: s.Run, i: inp.ToolReturned, fx: Fx) -> Next:
    """In time: its own result is kept."""
    job = jobs.find(run.core.jobs, i.call_id, {"stopping"})
    if job is None:
        return run, None
    fx.append(out.CancelTimer(stop_timer(i.call_id)))
    run = change(run, jobs=jobs.put(run.core.jobs, job.ending("returned", i.completion)))
    return run, _all_stopped(run)


def stopping_job_panicked(run: s.Run, i: inp.ToolPanicked, fx: Fx) -> Next:
    job = jobs.find(run.core.jobs, i.call_id, {"stopping"})
    if job is None:
        return run, None
    fx.append(out.CancelTimer(stop_timer(i.call_id)))
    run = change(run, jobs=jobs.put(run.core.jobs, jobs.stopped(job)))
    return run, _all_stopped(run)


def stop_timer_fired(run: s.Run, i: inp.TimerFired, fx: Fx) -> Next:
    """Its time is over: abort it."""
    for job in run.core.jobs:
        if job.stage == "stopping" and stop_timer(job.call.id) == i.timer_id:
            fx.append(out.AbortTool(job.call.id))
            run = change(run, jobs=jobs.put(run.core.jobs, jobs.stopped(job)))
            return run, _all_stopped(run)
    return run, None


def _all_stopped(run: s.Run) -> s.Continuation | None:
    phase = run.phase
    if not isinstance(phase, s.Stopping) or any(j.stage == "stopping" for j in run.core.jobs):
        return None
    return s.Commit(phase.plan)


# --- cancel, phase by phase: what has to be stopped, and what the commit will hold ----------------------------------


def _cancel_plain(run: s.Run, fx: Fx) -> Next:
    stop_work(run, fx)
    return to(run, s.Between()), s.Conclude(s.CancelRun())


def _cancel_stream(run: s.Run, fx: Fx) -> Next:
    """External providers are dropped; a cooperative one is awaited (RHO-RET-6)."""
    phase = run.phase
    assert isinstance(phase, s.Streaming)
    if run.core.policy.cooperative_provider:
        return to(run, s.Draining(phase.turn, phase.attempt, phase.capture)), None
    stop_work(run, fx)
    write_off(run, fx, "Cancelled")
    return to(run, s.Between()), s.Conclude(s.CancelRun(), aborted=cap.aborted(phase.capture))


def _cancel_responding(run: s.Run, fx: Fx) -> Next:
    """The response is dropped with its ModelCallCompleted; what was captured of it remains."""
    assert isinstance(run.phase, s.Responding)
    write_off(run, fx, "Cancelled")
    aborted = cap.aborted(run.phase.capture)
    return to(run, s.Between()), s.Conclude(s.CancelRun(), aborted=aborted)


def _cancel_recording(run: s.Run, fx: Fx) -> Next:
    """The recorder is not waited for. A response that was announced stays, with its calls interrupted (RHO-CAN-13)."""
    phase = run.phase
    assert isinstance(phase, s.Recording)
    write_off(run, fx, "Cancelled")
    if not isinstance(phase.then, s.Judge):
        return to(run, s.Between()), s.Conclude(s.CancelRun(), aborted=cap.aborted(phase.capture))
    if phase.then.issue is not None:
        return _cancel_plain(run, fx)
    return _cancel_calls(enter(run, phase.then.content), fx)


def _cancel_calls(run: s.Run, fx: Fx) -> Next:
    """Calls that never entered a scheduler are answered too (RHO-CAN-13)."""
    phase = run.phase
    waiting: tuple[ToolCall, ...] = ()
    if isinstance(phase, s.Proposing):
        batch = tuple(c for c in phase.calls if c.id not in phase.detaching)
        waiting = (*batch, *(c for c in phase.calls if c.id in phase.detaching))
    elif isinstance(phase, s.Spawning):
        waiting = (*phase.batch, *phase.detaching)
    elif isinstance(phase, s.Awaiting):
        waiting = phase.batch
    results = tuple(interrupted(c.id) for c in waiting)
    return to(run, s.Between()), s.Conclude(s.CancelRun(), results)


def _cancel_batch(run: s.Run, fx: Fx) -> Next:
    stop_work(run, fx)
    return to(run, s.Between()), _conclude_batch(run, s.CancelRun())


def _conclude_batch(run: s.Run, ending: s.Ending) -> s.Conclude:
    """Completed slots are kept, the others interrupted; started calls get their one ToolFinished (D2)."""
    assert isinstance(run.phase, s.Batch)
    slots = run.phase.slots
    tail = tuple(
        ev.ToolFinished(slot.call.id, slot.completion or calls.INTERRUPTED_COMPLETION)
        for slot in slots
        if calls.announced(slot)
    )
    return s.Conclude(ending, tuple(calls.result(slot) for slot in slots), tail)


def fail_batch(run: s.Run, error: Error, fx: Fx) -> Next:
    """The whole batch ends for a reason of its own (RHO-COORD-3)."""
    stop_work(run, fx)
    return to(run, s.Between()), _conclude_batch(run, s.Fail(error))


def _cancel_compacting(run: s.Run, fx: Fx) -> Next:
    compaction = run.core.policy.compaction
    if compaction is not None and compaction.cooperative:
        return to(run, s.Ebbing()), None
    return _cancel_plain(run, fx)


CANCEL: dict[type, Callable[[s.Run, Fx], Next]] = {
    s.Between: _cancel_plain,
    s.Compacting: _cancel_compacting,
    s.Collecting: _cancel_plain,
    s.Streaming: _cancel_stream,
    s.Responding: _cancel_responding,
    s.Recording: _cancel_recording,
    s.BackingOff: _cancel_plain,
    s.Proposing: _cancel_calls,
    s.Spawning: _cancel_calls,
    s.Awaiting: _cancel_calls,
    s.Batch: _cancel_batch,
}


def cancel(run: s.Run, i: inp.Cancel, fx: Fx) -> Next:
    """Accepted once, in any phase before the end is decided (RHO-CAN-1, RHO-CAN-2, D5).

    Work is told to stop at once. A blocked cancellable send is dropped; a blocked uncancellable one keeps its
    place, and the cancel commit follows it.
    """
    if i.command_id is not None:
        fx.append(out.Reply(i.command_id))
    handler = CANCEL.get(type(run.phase))
    if handler is None:
        return _cancel_stopping(run, fx), None
    fx.append(out.SignalCancel())
    blocked = run.blocked
    run, then = handler(s.Run(run.phase, run.free, None, run.core), fx)
    run = stop_jobs(run, fx)
    if blocked is None or blocked.cancellable:
        return run, then
    waiting = s.Blocked(blocked.sends, False, s.Hold() if then is None else then)
    phase = run.phase if then is None else s.Cancelling()
    return s.Run(phase, run.free, waiting, run.core), None


def undecided(run: s.Run) -> bool:
    """May a cancel still decide the end? Until the commit, unless another cancel has (R9, R11)."""
    phase = run.phase
    if isinstance(phase, s.Stopping):
        return not isinstance(phase.plan.ending, s.CancelRun)
    return type(phase) not in s.ENDING


def _cancel_stopping(run: s.Run, fx: Fx) -> s.Run:
    """Jobs are still finishing in their time: the end becomes a cancelled one."""
    phase = run.phase
    if not isinstance(phase, s.Stopping) or not undecided(run):
        return run
    fx.append(out.SignalCancel())
    return to(run, s.Stopping(replace(phase.plan, ending=s.CancelRun())))


def model_stopped(run: s.Run, i: inp.ModelReturned | inp.ModelFailed, fx: Fx) -> Next:
    """The cooperative provider is through; its result is ignored, what it streamed is kept."""
    if not is_current(run, i):
        return run, None
    phase = run.phase
    assert isinstance(phase, s.Draining)
    write_off(run, fx, "Cancelled")
    return to(run, s.Between()), s.Conclude(s.CancelRun(), aborted=cap.aborted(phase.capture))


def compactor_stopped(run: s.Run, i: inp.CompactorReturned | inp.CompactorFailed, fx: Fx) -> Next:
    """The cooperative compactor is through: a replacement it gave is committed and announced, then the cancel."""
    if not isinstance(i, inp.CompactorReturned) or not i.messages:
        return to(run, s.Between()), s.Conclude(s.CancelRun())
    installed = install(to(run, s.Cancelling()), i)
    if isinstance(installed, Error):
        return to(run, s.Between()), s.Abandon(installed)
    run, event = installed
    return send_tail(run, fx, (event,), s.Conclude(s.CancelRun()))


def hold(run: s.Run, k: s.Hold, fx: Fx) -> Next:
    return run, None
