"""One model step: requests, the stream, retries, the response (rho.md 3.5, RHO-RET-*)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import budget, jobs
from .. import capture as cap
from .. import effects as out
from .. import events as ev
from .. import inputs as inp
from ..config import Policy
from ..errors import from_provider, invalid_response
from ..messages import Assistant, Block, calls_of, malformed, text_of
from . import state as s
from .outbox import Fx, Next, change, emit, to
from .top import announce_job


def ask(run: s.Run, k: s.Ask, fx: Fx) -> Next:
    """One more logical request, with the request of the step as it was (RHO-RET-18)."""
    turn = s.Turn(k.turn.request, budget.sent(k.turn.budget), k.turn.physical)
    offers = run.core.steers.staged() if run.core.policy.steerable else ()
    attempt = turn.budget.requests
    fx.append(out.CallModel(run.core.step, attempt, turn.request, offers))
    return to(run, s.Streaming(turn, attempt)), s.Watch()


def watch(run: s.Run, k: s.Watch, fx: Fx) -> Next:
    """Jobs that returned are announced while the model streams."""
    job = jobs.first_returned(run.core.jobs)
    return (run, None) if job is None else announce_job(run, fx, job, k)


# --- model events: how each is captured, and what the reader sees of it ---------------------------------------

Folded = tuple[cap.Capture, tuple[ev.Event, ...]]


def _text(c: cap.Capture, i: inp.TextDelta, core: s.Core) -> Folded:
    return cap.text_delta(c, i.text), (ev.AssistantTextDelta(i.text, i.attempt),)


def _reasoning(c: cap.Capture, i: inp.RawReasoning, core: s.Core) -> Folded:
    return cap.seal(c), (ev.ReasoningDelta(i.text, i.attempt),)


def _summary(c: cap.Capture, i: inp.SummaryDelta, core: s.Core) -> Folded:
    return cap.summary_delta(c, i.text), (ev.ReasoningSummaryDelta(i.text, i.attempt),)


def _call(c: cap.Capture, i: inp.CallDelta, core: s.Core) -> Folded:
    after = cap.call_delta(c, i)
    call_id, name = cap.known(after, i.index)
    return after, (ev.ToolCallUpdated(i.index, call_id, name, i.arguments, i.attempt),)


def _context(c: cap.Capture, i: inp.ContextBlock, core: s.Core) -> Folded:
    return cap.context_block(c, i, core.policy.identity), (ev.ProviderContextUpdated(i.context_kind),)


def _usage(c: cap.Capture, i: inp.UsageReported, core: s.Core) -> Folded:
    after = cap.usage_reported(c, i.usage)
    return after, (ev.UsageUpdated(core.usage + after.rest.usage),)


def _generation(c: cap.Capture, i: inp.GenerationTokensReported, core: s.Core) -> Folded:
    return cap.generation_tokens(c, i.tokens), ()


def _web(c: cap.Capture, i: inp.WebSearched, core: s.Core) -> Folded:
    return c, (ev.WebSearch(i.detail),)


def _hosted(c: cap.Capture, i: inp.HostedTool, core: s.Core) -> Folded:
    return c, (ev.HostedToolActivity(i.name, i.detail),)


def _tier(c: cap.Capture, i: inp.TierFallback, core: s.Core) -> Folded:
    return c, (ev.ProviderServiceTierFallback(i.requested, i.used),)


def _physical(c: cap.Capture, i: inp.PhysicalAttemptFailed, core: s.Core) -> Folded:
    return cap.physical_retry(c), (ev.ProviderRequestRetry(),)


FOLD: dict[type, Callable[[cap.Capture, Any, s.Core], Folded]] = {
    inp.TextDelta: _text,
    inp.RawReasoning: _reasoning,
    inp.SummaryDelta: _summary,
    inp.CallDelta: _call,
    inp.ContextBlock: _context,
    inp.UsageReported: _usage,
    inp.GenerationTokensReported: _generation,
    inp.WebSearched: _web,
    inp.HostedTool: _hosted,
    inp.TierFallback: _tier,
    inp.PhysicalAttemptFailed: _physical,
}
MODEL_EVENTS = tuple(FOLD)


def is_current(run: s.Run, i: Any) -> bool:
    """Does the model input belong to the open attempt? Others are late, and ignored by rule."""
    attempt: int | None = getattr(run.phase, "attempt", None)
    return bool(i.attempt == attempt and i.step == run.core.step)


def model_event(run: s.Run, i: Any, fx: Fx) -> Next:
    """Capture first, then send: a cancel may drop the event, never what was captured (RHO-CAN-9)."""
    if not is_current(run, i):
        return run, None
    assert isinstance(run.phase, s.Streaming)
    capture, events = FOLD[type(i)](run.phase.capture, i, run.core)
    run = to(run, s.Streaming(_physical_turn(run, i), run.phase.attempt, capture))
    return emit(run, fx, events, s.Watch()) if events else (run, s.Watch())


def _physical_turn(run: s.Run, i: Any) -> s.Turn:
    """A failed physical request gets a record of its own and counts (RHO-RET-11, RHO-RET-15)."""
    assert isinstance(run.phase, (s.Streaming, s.Draining))
    turn = run.phase.turn
    if not isinstance(i, inp.PhysicalAttemptFailed):
        return turn
    # The provider's own figure is the whole of that request; what streamed before is what we know otherwise.
    usage = run.phase.capture.rest.usage if i.usage.is_empty() else i.usage
    failed = (*turn.failed, *_record(run, out.RecordUsage(run.core.step, turn.physical, "Failed", i.error_kind, usage)))
    return s.Turn(turn.request, turn.budget, turn.physical + 1, failed)


def drained_event(run: s.Run, i: Any, fx: Fx) -> Next:
    """After a cancel a cooperative provider is still captured, and no longer shown."""
    if not is_current(run, i):
        return run, None
    assert isinstance(run.phase, s.Draining)
    capture, _ = FOLD[type(i)](run.phase.capture, i, run.core)
    return to(run, s.Draining(_physical_turn(run, i), run.phase.attempt, capture)), None


def _record(run: s.Run, effect: out.RecordUsage) -> s.Records:
    return (effect,) if run.core.policy.recorder else ()


def close_attempt(
    run: s.Run, phase: s.Streaming | s.Draining, outcome: out.RecordOutcome, error_kind: str | None = None
) -> tuple[s.Turn, s.Records]:
    """The turn after an attempt that ends here, and its records: failed physical requests first."""
    turn = phase.turn
    own = out.RecordUsage(run.core.step, turn.physical, outcome, error_kind, phase.capture.rest.usage)
    return s.Turn(turn.request, turn.budget, turn.physical + 1), (*turn.failed, *_record(run, own))


# --- the end of an attempt --------------------------------------------------------------------------------------


def model_returned(run: s.Run, i: inp.ModelReturned, fx: Fx) -> Next:
    """The provider is done: ModelCallCompleted, for malformed responses too."""
    if not is_current(run, i):
        return run, None
    phase = run.phase
    assert isinstance(phase, s.Streaming)
    issue = malformed(i.content, jobs.open_ids(run.core.jobs))
    turn, records = close_attempt(run, phase, "Completed" if issue is None else "InvalidResponse")
    rest = phase.capture.rest
    metrics = ev.Metrics(rest.usage.output_tokens, rest.generation, i.timing)
    event = ev.ModelCallCompleted(run.core.policy.identity, metrics, phase.attempt)
    run = to(run, s.Responding(turn, phase.attempt, phase.capture, records))
    return emit(run, fx, (event,), s.Responded(i.content, issue))


def responded(run: s.Run, k: s.Responded, fx: Fx) -> Next:
    """What the attempt has cost is written down before it is judged (rho.md 3.5)."""
    phase = run.phase
    assert isinstance(phase, s.Responding)
    if k.issue is not None:
        run = change(run, steers=run.core.steers.restage())
    after = s.Recording(phase.turn, phase.attempt, phase.capture, phase.records, s.Judge(k.content, k.issue))
    return to(run, after), s.Record()


def record_next(run: s.Run, k: s.Record, fx: Fx) -> Next:
    """One record at a time, each awaited (RHO-RET-11)."""
    phase = run.phase
    assert isinstance(phase, s.Recording)
    if not phase.left:
        return run, phase.then
    fx.append(phase.left[0])
    rest = s.Recording(phase.turn, phase.attempt, phase.capture, phase.left[1:], phase.then)
    return to(run, rest), s.WatchRecorder()


def watch_recorder(run: s.Run, k: s.WatchRecorder, fx: Fx) -> Next:
    """Jobs are announced meanwhile; an answer that came while a send was blocked is found here."""
    phase = run.phase
    assert isinstance(phase, s.Recording)
    job = jobs.first_returned(run.core.jobs)
    if job is not None:
        return announce_job(run, fx, job, k)
    return (run, s.Record()) if phase.stage == "answered" else (run, None)


def usage_recorded(run: s.Run, i: inp.UsageRecorded, fx: Fx) -> Next:
    phase = run.phase
    assert isinstance(phase, s.Recording)
    after = s.Recording(phase.turn, phase.attempt, phase.capture, phase.left, phase.then, "answered")
    return to(run, after), s.WatchRecorder()


def judge(run: s.Run, k: s.Judge, fx: Fx) -> Next:
    """A well-formed response enters the candidate; a malformed one is retried within the budget."""
    if k.issue is not None:
        return _malformed(run, k.issue)
    run = enter(run, k.content)
    return run, s.EndTurn() if isinstance(run.phase, s.Between) else s.Propose()


def enter(run: s.Run, content: tuple[Block, ...]) -> s.Run:
    """The candidate with the response as the provider returned it (RHO-BUF-10); its calls are to be proposed."""
    phase, core = run.phase, run.core
    assert isinstance(phase, s.Recording)
    rest = phase.capture.rest
    message = Assistant(content, core.policy.identity, rest.summary.text() or None, rest.context)
    calls = calls_of(content)
    run = change(run, usage=core.usage + rest.usage, suffix=(*core.suffix, message), answer=text_of(content))
    if not calls:
        return to(run, s.Between())
    marked = cap.marked(phase.capture)
    detaching = tuple(c.id for c in calls if c.id in marked and _detachable(core.policy, c.name))
    return to(run, s.Proposing(calls, detaching))


def _detachable(policy: Policy, name: str) -> bool:
    """Honoured only when the tool declares it as well (RHO-ORD-7)."""
    return any(t.name == name and t.asynchronous for t in policy.tools)


def _malformed(run: s.Run, issue: str) -> Next:
    phase = run.phase
    assert isinstance(phase, s.Recording)
    after, again = budget.after_malformed(phase.turn.budget, run.core.policy)
    turn = s.Turn(phase.turn.request, after, phase.turn.physical)
    if not again:
        return to(run, s.Between()), s.Conclude(s.Fail(invalid_response(issue)))
    return run, s.Reset(turn, ev.InvalidResponse(), issue, 0)


def model_failed(run: s.Run, i: inp.ModelFailed, fx: Fx) -> Next:
    """Retry what the provider calls retryable, within the budget; else fail with what was captured (RHO-FAIL-1)."""
    if not is_current(run, i):
        return run, None
    phase, core = run.phase, run.core
    assert isinstance(phase, s.Streaming)
    turn, records = close_attempt(run, phase, "Failed", i.error.error_kind)
    hint = i.error.retry_after_ms or None
    after, delay = budget.after_failure(turn.budget, core.policy, i.error.retryable, hint)
    then: s.Reset | s.Conclude
    if delay is None:
        then = s.Conclude(s.Fail(from_provider(i.error)), aborted=cap.aborted(phase.capture))
    else:
        again = s.Turn(turn.request, after, turn.physical)
        then = s.Reset(again, ev.RetryableFailure(i.error.error_kind, hint), i.error.message, delay)
    run = to(run, s.Recording(turn, phase.attempt, phase.capture, records, then))
    return change(run, steers=core.steers.restage()), s.Record()


def reset(run: s.Run, k: s.Reset, fx: Fx) -> Next:
    """From here on nothing of the abandoned attempt is kept (RHO-RET-7)."""
    event = ev.ProviderStreamReset(k.reason, k.detail, k.turn.budget.requests)
    return emit(to(run, s.Between()), fx, (event,), s.Delay(k.turn, k.delay_ms))


def delay(run: s.Run, k: s.Delay, fx: Fx) -> Next:
    if k.delay_ms == 0:
        return run, s.Ask(k.turn)
    timer = f"retry:{run.core.step}:{k.turn.budget.requests}"
    fx.append(out.StartTimer(timer, k.delay_ms))
    return to(run, s.BackingOff(k.turn, timer)), s.WatchBackoff()


def watch_backoff(run: s.Run, k: s.WatchBackoff, fx: Fx) -> Next:
    """Jobs are announced during the delay as well; a timer that fired meanwhile is found here."""
    assert isinstance(run.phase, s.BackingOff)
    job = jobs.first_returned(run.core.jobs)
    if job is not None:
        return announce_job(run, fx, job, k)
    return (run, s.Ask(run.phase.turn)) if run.phase.stage == "fired" else (run, None)


def retry_timer(run: s.Run, i: inp.TimerFired, fx: Fx) -> Next:
    assert isinstance(run.phase, s.BackingOff)
    if i.timer_id != run.phase.timer_id:
        return run, None
    return to(run, s.BackingOff(run.phase.turn, run.phase.timer_id, "fired")), s.WatchBackoff()


# --- mid-turn steering --------------------------------------------------------------------------------------------


def steer_delivered(run: s.Run, i: inp.SteerDelivered, fx: Fx) -> Next:
    """The backend has it: from now on it cannot be retracted (RHO-STEER-8)."""
    moved = run.core.steers.move(i.steering_id, "claimed", "delivered") if is_current(run, i) else None
    if moved is None:
        return run, None
    return emit(change(run, steers=moved), fx, (ev.SteeringDelivered(i.steering_id),), s.Watch())


def steer_released(run: s.Run, i: inp.SteerReleased, fx: Fx) -> Next:
    moved = run.core.steers.move(i.steering_id, "claimed", "staged") if is_current(run, i) else None
    return (run, None) if moved is None else (change(run, steers=moved), None)
