"""One model step as the contract has it: requests, stream, retries, response (RHO-ORD-2, RHO-ORD-3, RHO-RET-*)."""

from __future__ import annotations

from typing import Any

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.messages import AbortedAssistant, Assistant, Text, ToolCall, ToolResult

from . import ghost_usage as usage_of
from .ghost import Call, Ghost


def is_open(g: Ghost, i: Any) -> bool:
    """Is the attempt that the input names the one that is open?"""
    return g.turn == "open" and i.step == g.step and i.attempt == g.attempt


# --- requests ------------------------------------------------------------------------------------------------------


def step_started(g: Ghost, e: ev.StepStarted) -> None:
    g.need(e.step == g.step + 1, "RHO-ORD-2", f"StepStarted {e.step} after step {g.step}")
    g.need(e.estimated_context_tokens > 0, "RHO-ORD-2", "the estimate is not positive")
    g.need(e.step <= g.policy.max_steps, "RHO-RET-23", "a step beyond the limit")
    g.need(g.turn == "boundary", "RHO-ORD-2", f"StepStarted while the turn is {g.turn}")
    late = [s.id for s in g.steers if s.due and s.stage in ("staged", "claimed", "delivered")]
    g.need(not late, "RHO-STEER-2", f"the step begins without the accepted steers {late}")
    asked = g.collector == "before" or not g.policy.boundary or g.pending
    g.need(asked, "RHO-BND-2", "the step begins and the collector was not asked")
    g.step, g.turn, g.attempt, g.malformed, g.failed, g.physical = e.step, "begun", 0, 0, 0, 0
    g.collector, g.asks = "", ()


def call_model(g: Ghost, e: out.CallModel) -> None:
    g.need(e.step == g.step and e.attempt == g.attempt + 1, "RHO-RET-4", f"request {e.step}/{e.attempt} is out of turn")
    g.need(e.attempt <= g.policy.request_budget, "RHO-RET-4", f"request {e.attempt} of one step")
    g.need(not g.ending, "RHO-CAN-7", "a request after the end was decided")
    expected = ("begun",) if e.attempt == 1 else ("reset", "fired")
    g.need(g.turn in expected, "RHO-RET-8", f"request {e.attempt} while the turn is {g.turn}")
    waits = g.turn == "reset" and g.error is not None
    g.need(not waits, "RHO-RET-2", "a request after a failure without its delay")
    if e.attempt == 1:
        g.request = e.messages
        _first_request(g, e)
    g.need(e.messages == g.request, "RHO-RET-18", "the request of a retry differs")
    staged = tuple(s.id for s in g.steers if s.stage == "staged") if g.policy.steerable else ()
    g.need(e.offers == staged, "RHO-STEER-7", f"offered {e.offers}, staged {staged}")
    g.turn, g.attempt, g.captured, g.more, g.marks, g.tokens = "open", e.attempt, "", False, (), 0
    g.physical, g.error = g.physical + 1, None


def _first_request(g: Ghost, e: out.CallModel) -> None:
    """Every call in it is answered once; no aborted call is in it; it is short enough for the compaction policy."""
    open_calls: list[str] = []
    for message in e.messages:
        if isinstance(message, AbortedAssistant):
            alone = not message.tool_calls and all(isinstance(b, Text) for b in message.content)
            g.need(alone, "RHO-CAN-9", "calls of an aborted message are sent to the model")
        if isinstance(message, Assistant):
            open_calls += [b.id for b in message.content if isinstance(b, ToolCall)]
        elif isinstance(message, ToolResult):
            g.need(message.id in open_calls, "RHO-CAN-12", f"the request answers {message.id} without a call")
            open_calls = [c for c in open_calls if c != message.id]
    g.need(not open_calls, "RHO-CAN-12", f"the request leaves {open_calls} unanswered")
    busy = [c.id for c in g.calls if c.stage not in ("finished", "detached")]
    g.need(not busy, "RHO-ORD-7", f"a request while {busy} are neither finished nor detached")
    limit = g.compact_at
    short = limit is None or g.compaction == "done" or g.pending or len(e.messages) - g.added < limit
    g.need(short, "RHO-ORD-11a", "a request that should have been compacted first")
    g.compaction, g.added = "", 0


# --- the stream ------------------------------------------------------------------------------------------------------

SHOWN: dict[type, Any] = {
    inp.TextDelta: lambda i: ev.AssistantTextDelta(i.text, i.attempt),
    inp.RawReasoning: lambda i: ev.ReasoningDelta(i.text, i.attempt),
    inp.SummaryDelta: lambda i: ev.ReasoningSummaryDelta(i.text, i.attempt),
    inp.CallDelta: lambda i: ev.ToolCallUpdated(i.index, i.id, i.name, i.arguments, i.attempt),
    inp.ContextBlock: lambda i: ev.ProviderContextUpdated(i.context_kind),
    inp.WebSearched: lambda i: ev.WebSearch(i.detail),
    inp.HostedTool: lambda i: ev.HostedToolActivity(i.name, i.detail),
    inp.TierFallback: lambda i: ev.ProviderServiceTierFallback(i.requested, i.used),
    inp.PhysicalAttemptFailed: lambda i: ev.ProviderRequestRetry(),
}
DURABLE = (inp.SummaryDelta, inp.CallDelta, inp.ContextBlock)


def stream(g: Ghost, i: Any) -> None:
    """A model item was taken: it is shown next, and kept in case the attempt never completes."""
    if not is_open(g, i):
        return
    if isinstance(i, inp.TextDelta):
        g.captured += i.text
    if type(i) in DURABLE:
        g.more = True
    if isinstance(i, inp.ContextBlock) and i.context_kind == inp.ASYNC_CALL:
        g.marks = (*g.marks, i.data)
    if isinstance(i, inp.UsageReported):
        g.tokens += i.usage.output_tokens or 0
    if isinstance(i, inp.PhysicalAttemptFailed):
        usage_of.physical(g, i)
        g.tokens = 0
    if not g.cancelled and type(i) in SHOWN:
        g.owed = (*g.owed, SHOWN[type(i)](i))


def shown(g: Ghost, e: Any) -> None:
    """A model event: in source order, inside its attempt, nothing lost (RHO-ORD-3)."""
    g.need(
        g.turn == "open" and getattr(e, "attempt", g.attempt) == g.attempt, "RHO-ORD-3", f"{e.kind} outside its attempt"
    )
    pay(g, e, "RHO-ORD-3")


def pay(g: Ghost, e: Any, rule: str) -> None:
    """The event is the next one owed."""
    g.need(g.owed[:1] == (e,), rule, f"{e.kind} is delivered, owed are {[o.kind for o in g.owed]}")
    g.owed = g.owed[1:]


def usage(g: Ghost, e: ev.UsageUpdated) -> None:
    g.need(g.turn == "open", "RHO-ORD-3", "UsageUpdated outside an attempt")
    g.need((e.usage.output_tokens or 0) == g.spent + g.tokens, "RHO-RET-12", f"usage {e.usage.output_tokens}")


# --- how an attempt ends -------------------------------------------------------------------------------------------


def returned(g: Ghost, i: inp.ModelReturned) -> None:
    if is_open(g, i):
        g.turn, g.content = "stopped" if g.cancelled else "returned", i.content
        fits = "InvalidResponse" if is_malformed(g) else "Completed"
        usage_of.due(g, "Cancelled" if g.cancelled else fits)


def failed(g: Ghost, i: inp.ModelFailed) -> None:
    if is_open(g, i):
        g.turn, g.error = "stopped" if g.cancelled else "failed", i.error
        g.failed += 1
        if g.cancelled:
            usage_of.due(g, "Cancelled")
        else:
            usage_of.due(g, "Failed", i.error.error_kind)
            restage(g)


def restage(g: Ghost) -> None:
    """The attempt failed: what it claimed or delivered is staged again (D15)."""
    back = ("claimed", "delivered")
    g.steers = tuple(s._replace(stage="staged") if s.stage in back else s for s in g.steers)


def is_malformed(g: Ghost) -> bool:
    """No content, an id twice, or the id of a call whose result the model has not been given (D14)."""
    ids = [b.id for b in g.content if isinstance(b, ToolCall)]
    still = {c.id for c in g.calls if c.stage != "finished" or (c.detach and c.step == g.step)}
    return not g.content or len(set(ids)) < len(ids) or any(x in still for x in ids)


def completed(g: Ghost, e: ev.ModelCallCompleted) -> None:
    """Once for each return, after all the attempt has shown; then the response is judged."""
    g.need(g.turn == "returned" and e.attempt == g.attempt, "RHO-METR-1", f"ModelCallCompleted while {g.turn}")
    g.need(not g.owed, "RHO-ORD-3", f"{[o.kind for o in g.owed]} never came before ModelCallCompleted")
    g.need((e.metrics.output_tokens or 0) == g.tokens, "RHO-METR-1", f"metrics {e.metrics.output_tokens}")
    if is_malformed(g):
        g.turn, g.malformed, g.error = "bad", g.malformed + 1, None
        restage(g)
        return
    g.turn, g.spent, g.said = "boundary", g.spent + g.tokens, g.said + 1
    g.answer = "".join(b.text for b in g.content if isinstance(b, Text))
    declared = {t.name for t in g.policy.tools if t.asynchronous}
    calls = tuple(b for b in g.content if isinstance(b, ToolCall))
    g.calls = (*g.calls, *(Call(c.id, c.name, c.id in g.marks and c.name in declared) for c in calls))
    g.steers = tuple(s._replace(due=True) for s in g.steers)


def may_retry(g: Ghost) -> bool:
    """Does the budget of the step allow another request (RHO-RET-1, RHO-RET-4, RHO-RET-5)?"""
    if g.attempt >= g.policy.request_budget:
        return False
    if g.turn == "bad":
        return g.malformed < g.policy.malformed_budget
    return g.turn == "failed" and g.error.retryable


def reset(g: Ghost, e: ev.ProviderStreamReset) -> None:
    g.need(g.turn in ("bad", "failed"), "RHO-RET-8", f"a reset while the turn is {g.turn}")
    g.need(g.turn not in ("bad", "failed") or may_retry(g), "RHO-RET-4", "a reset that no request may follow")
    g.need(e.attempt == g.attempt, "RHO-RET-8", f"the reset names attempt {e.attempt}")
    want: ev.ResetReason = ev.InvalidResponse()
    if g.turn == "failed":
        want = ev.RetryableFailure(g.error.error_kind, g.error.retry_after_ms or None)
    g.need(e.reason == want, "RHO-RET-9", f"the reset says {e.reason}")
    g.need(not g.owed, "RHO-ORD-3", f"{[o.kind for o in g.owed]} never came before the reset")
    g.turn, g.captured, g.more, g.tokens = "reset", "", False, 0


def delay_ms(g: Ghost) -> int:
    """1, 2, 4 s by failed requests; a hint counts up to 60 s, and never shortens the wait (RHO-RET-2, RHO-RET-3)."""
    wait = 1000
    for _ in range(g.failed - 1):
        wait *= 2
    return max(wait, min(g.error.retry_after_ms or 0, 60_000))


def timer_started(g: Ghost, e: out.StartTimer) -> None:
    if g.ending or g.stopping:
        call = next((c for c in g.calls if g.stopping[-1:] == (c.id,)), None)
        time = call and call.plan and call.plan.complete_within_ms
        g.need(e.milliseconds == time, "RHO-CAN-14", f"a timer of {e.milliseconds} ms after the end was decided")
        return
    g.need(g.turn == "reset" and g.error is not None, "RHO-RET-2", f"a timer while the turn is {g.turn}")
    if g.error is not None:
        want = delay_ms(g)
        rule = "RHO-RET-3" if g.error.retry_after_ms else "RHO-RET-2"
        g.need(e.milliseconds == want, rule, f"the delay is {e.milliseconds} ms, not {want} ms")
    g.turn = "waiting"


def timer_fired(g: Ghost, i: inp.TimerFired) -> None:
    if g.turn == "waiting" and not i.timer_id.startswith("stop:"):
        g.turn = "fired"
