"""The step boundary, in the order of D10: finished jobs, compaction, boundary input, steering, StepStarted."""

from __future__ import annotations

from .. import effects as out
from .. import inputs as inp
from .. import jobs
from ..calls import INTERRUPTED_COMPLETION
from ..errors import INTERRUPTED, STEP_LIMIT, Error, ErrorName
from ..estimate import context_tokens
from ..events import (
    BoundaryInputApplied,
    CompactionCompleted,
    CompactionOutcome,
    CompactionStarted,
    Started,
    SteeringApplied,
    StepStarted,
    ToolFinished,
)
from ..messages import Assistant, History, user
from ..shown import NOTHING_SHOWN, show
from . import state as s
from .outbox import Fx, Next, change, emit, to


def candidate(core: s.Core) -> History:
    """What the history would be if the run ended now."""
    return core.ledger.history + core.suffix


def tokens(core: s.Core, history: History) -> int:
    return context_tokens(history, core.policy.tool_spec_tokens)


def look(run: s.Run) -> tuple[s.Run, History, int]:
    """What the model may be shown of the candidate, and how many tokens that is."""
    core = run.core
    shown, messages, size = show(core.shown, candidate(core), jobs.open_ids(core.jobs), core.policy.tool_spec_tokens)
    return change(run, shown=shown), messages, size


def begin(run: s.Run, i: inp.Begin, fx: Fx) -> Next:
    """The first input: the user's message enters the candidate, Started is sent (RHO-ORD-1)."""
    suffix = i.messages if i.call is None else (*i.messages, Assistant((i.call,)))
    core = run.core
    run = change(to(run, s.Between() if i.call is None else s.Proposing((i.call,), ())), suffix=suffix)
    started = Started(core.run, core.ledger.revision)
    return emit(run, fx, (started,), s.Top() if i.call is None else s.Propose())


def announce_job(run: s.Run, fx: Fx, job: jobs.Job, then: s.Continuation) -> Next:
    """A job returned: it is parked, and its ToolFinished is sent whatever happens (RHO-ORD-7b)."""
    completion = job.completion or INTERRUPTED_COMPLETION
    run = change(run, jobs=jobs.move_last(run.core.jobs, job.at("parked")))
    return emit(run, fx, (ToolFinished(job.call.id, completion),), then, cancellable=False)


def drain(run: s.Run) -> s.Run:
    """Parked results enter the candidate in completion order (RHO-ORD-10)."""
    pool, results = jobs.drain(run.core.jobs)
    return change(run, jobs=pool, suffix=run.core.suffix + results) if results else run


def top(run: s.Run, k: s.Top, fx: Fx) -> Next:
    run = to(run, s.Between())
    job = jobs.first_returned(run.core.jobs)
    if job is not None:
        return announce_job(run, fx, job, k)
    run = drain(run)
    core = run.core
    # Compaction and boundary input need a candidate in which every call is answered (RHO-ORD-11f).
    if core.step >= core.policy.max_steps or core.jobs:
        return run, s.ConsiderSteering()
    return run, s.ConsiderCompaction()


def consider_compaction(run: s.Run, k: s.ConsiderCompaction, fx: Fx) -> Next:
    policy = run.core.policy.compaction
    if policy is None:
        return run, s.ConsiderBoundary()
    history = candidate(run.core)
    run, _, size = look(run)
    by_count = policy.messages is not None and len(history) >= policy.messages
    by_size = policy.tokens is not None and size >= policy.tokens
    if not (by_count or by_size):
        return change(run, preserve=0), s.ConsiderBoundary()
    started = CompactionStarted("automatic", len(history))
    return emit(run, fx, (started,), s.CallTheCompactor())


def _split(core: s.Core) -> tuple[History, History]:
    """What the compactor gets, and the fresh boundary input it must leave alone (RHO-BND-3)."""
    history = candidate(core)
    cut = len(history) - core.preserve
    return history[:cut], history[cut:]


def call_the_compactor(run: s.Run, k: s.CallTheCompactor, fx: Fx) -> Next:
    head, _ = _split(run.core)
    fx.append(out.CallCompactor(head, "automatic"))
    return to(run, s.Compacting(len(candidate(run.core)))), None


def compactor_returned(run: s.Run, i: inp.CompactorReturned, fx: Fx) -> Next:
    """Commit the replacement at once; its event follows, and no cancel suppresses it (RHO-ORD-11b, RHO-ORD-11c)."""
    if not i.messages:
        error = Error(ErrorName.INVALID_HOST_RESPONSE, "the compactor returned no messages")
        return to(run, s.Between()), s.Conclude(s.Fail(error))
    installed = install(to(run, s.Between()), i)
    if isinstance(installed, Error):
        return to(run, s.Between()), s.Abandon(installed)
    run, event = installed
    return emit(run, fx, (event,), s.ConsiderBoundary(), cancellable=False)


def install(run: s.Run, i: inp.CompactorReturned) -> tuple[s.Run, CompactionCompleted] | Error:
    """The run with the replacement committed, and the event that says so; an error when the revision is exhausted."""
    core = run.core
    history = candidate(core)
    replacement = i.messages + _split(core)[1]
    before, after = tokens(core, history), tokens(core, replacement)
    ledger = core.ledger.compact(replacement, len(history) - len(replacement), before, after, i.usage)
    if isinstance(ledger, Error):
        return ledger
    outcome = CompactionOutcome(
        len(history), len(replacement), before, after, ledger.revision, i.usage.cost_usd_micros, replacement
    )
    run = change(run, ledger=ledger, suffix=(), preserve=0, shown=NOTHING_SHOWN)
    return run, CompactionCompleted("automatic", outcome)


def compactor_failed(run: s.Run, i: inp.CompactorFailed, fx: Fx) -> Next:
    """Cancelled and Interrupted are ends of their own; any other error fails the run (D11)."""
    run = to(run, s.Between())
    if i.error.name is ErrorName.INTERRUPTED:
        return run, s.Abandon(i.error)
    ending = s.CancelRun() if i.error.name is ErrorName.CANCELLED else s.Fail(i.error)
    return run, s.Conclude(ending)


def consider_boundary(run: s.Run, k: s.ConsiderBoundary, fx: Fx) -> Next:
    if not run.core.policy.boundary:
        return run, s.ConsiderSteering()
    return run, s.AskCollector("before_provider")


def ask_collector(run: s.Run, k: s.AskCollector, fx: Fx) -> Next:
    """A boundary wait without a reader is over before it begins (D4)."""
    if run.core.reader == "gone":
        return run, s.Abandon(INTERRUPTED)
    fx.append(out.AskBoundary(k.boundary))
    return to(run, s.Collecting(k.boundary)), None


def boundary_replied(run: s.Run, i: inp.BoundaryReplied, fx: Fx) -> Next:
    """Accepted input is committed at once, acknowledged, then announced (RHO-BND-3)."""
    assert isinstance(run.phase, s.Collecting)
    boundary = run.phase.boundary
    run = to(run, s.Between())
    if i.input is None:
        return run, s.ConsiderSteering() if boundary == "before_provider" else s.EndTurn("asked")
    core = run.core
    ledger = core.ledger.commit((*core.suffix, user(i.input)))
    if isinstance(ledger, Error):
        fx.append(out.AckBoundary(False))
        return run, s.Abandon(ledger)
    fx.append(out.AckBoundary(True))
    preserve = 1 if boundary == "before_completion" else 0
    run = change(run, ledger=ledger, suffix=(), preserve=preserve)
    event = BoundaryInputApplied(core.session, core.run, i.input)
    return emit(run, fx, (event,), s.AfterInput(boundary), cancellable=False)


def boundary_gone(run: s.Run, i: inp.BoundaryGone, fx: Fx) -> Next:
    """The host's collector vanished: no commit, no event (contract 2.2)."""
    return to(run, s.Between()), s.Abandon(INTERRUPTED)


def after_input(run: s.Run, k: s.AfterInput, fx: Fx) -> Next:
    return run, s.ConsiderSteering() if k.boundary == "before_provider" else s.Top()


def consider_steering(run: s.Run, k: s.ConsiderSteering, fx: Fx) -> Next:
    ids = run.core.steers.next_group()
    if ids:
        return emit(run, fx, (SteeringApplied(ids),), s.SteeringIn(ids))
    at_limit = run.core.step >= run.core.policy.max_steps
    return run, s.Limit() if at_limit else s.BeginStep()


def steering_in(run: s.Run, k: s.SteeringIn, fx: Fx) -> Next:
    """Delivered, so the steers enter the history now; the rest follows in a group of its own."""
    steers, messages = run.core.steers.apply(k.ids)
    return change(run, steers=steers, suffix=run.core.suffix + messages), s.ConsiderSteering()


def begin_step(run: s.Run, k: s.BeginStep, fx: Fx) -> Next:
    core = run.core
    run, request, size = look(run)
    step = core.step + 1
    run = change(run, step=step, preserve=0)
    return emit(run, fx, (StepStarted(step, size),), s.StepBegun(request))


def step_begun(run: s.Run, k: s.StepBegun, fx: Fx) -> Next:
    return run, s.Ask(s.Turn(k.request))


def limit(run: s.Run, k: s.Limit, fx: Fx) -> Next:
    """The model loop used its last step (RHO-RET-23, D1)."""
    if run.core.policy.step_limit == "fail":
        return run, s.Conclude(s.Fail(STEP_LIMIT))
    return run, s.Conclude(s.Complete("MaxSteps"))


def end_turn(run: s.Run, k: s.EndTurn, fx: Fx) -> Next:
    """A response without calls ends the run unless something still waits for a step (RHO-STEER-2, RHO-BND-3)."""
    core = run.core
    if core.steers.waiting:
        return run, s.Top()
    if core.jobs:
        return to(run, s.Awaiting(())), s.Await()
    if k.collector == "unasked" and core.policy.boundary and core.step < core.policy.max_steps:
        return run, s.AskCollector("before_completion")
    return run, s.Conclude(s.Complete("EndTurn"))
