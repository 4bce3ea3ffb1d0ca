"""Events of a run as observations: one row for each kind (`spec/protocol.md`, "Events")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_adapters.recording import encode
from rho_core import events as ev

Json = dict[str, Any]
Steers = dict[str, str]
"""The name in the recording of each steering id."""
Row = Callable[[Any, Steers], Json]


def _fields(*names: str) -> Row:
    def row(event: Any, _: Steers) -> Json:
        return {name: getattr(event, name) for name in names}

    return row


def _nothing(event: Any, _: Steers) -> Json:
    return {}


def _call_updated(event: ev.ToolCallUpdated, _: Steers) -> Json:
    known = encode.present(id=event.id, name=event.name)
    return {"index": event.index, **known, "arguments_delta": event.arguments_delta, "attempt": event.attempt}


def _finished(event: ev.ToolFinished, _: Steers) -> Json:
    match event.completion:
        case ev.Success(text=text):
            return {"call_id": event.call_id, "result": "ok", "text": text}
        case ev.Failure(error_kind=kind, text=text):
            return {"call_id": event.call_id, "result": "failed", "kind": str(kind), "text": text}
        case ev.Unavailable(text=text):
            return {"call_id": event.call_id, "result": "unavailable", "text": text}


def _asked(event: ev.ToolHostInputRequested, _: Steers) -> Json:
    return {"call_id": event.call_id, "ask": event.request.id, "request": encode.request(event.request)}


def _model_call_completed(event: ev.ModelCallCompleted, _: Steers) -> Json:
    timing, generated = event.metrics.timing, event.metrics.generation_output_tokens
    reported: Any = None
    if generated is not None:
        reported = {"Reported": generated.tokens} if isinstance(generated, ev.Reported) else "Unavailable"
    metrics = encode.present(
        output_tokens=event.metrics.output_tokens,
        generation_output_tokens=reported,
        time_to_first_token_ms=timing.time_to_first_token_ms,
        generation_time_ms=timing.generation_time_ms,
        total_latency_ms=timing.total_latency_ms,
    )
    profile = {"provider": event.profile.provider, "api": event.profile.api, "model": event.profile.model}
    return {"profile": profile, "metrics": metrics, "attempt": event.attempt}


def _reset(event: ev.ProviderStreamReset, _: Steers) -> Json:
    reason: Any = "InvalidResponse"
    if isinstance(event.reason, ev.RetryableFailure):
        told = encode.present(kind=str(event.reason.error_kind), retry_after_ms=event.reason.retry_after_ms)
        reason = {"RetryableFailure": told}
    return {"reason": reason, "detail": event.detail, "attempt": event.attempt}


def _compacted(event: ev.CompactionCompleted, _: Steers) -> Json:
    done = event.outcome
    names = ("previous_messages", "current_messages", "previous_tokens", "current_tokens", "removed_tokens", "revision")
    outcome: Json = {name: getattr(done, name) for name in names}
    outcome |= encode.present(cost_usd_micros=done.cost_usd_micros)
    if done.committed is not None:
        outcome["committed_snapshot"] = {"revision": done.revision, "history": encode.messages(done.committed)}
    return {"trigger": event.trigger.capitalize(), "outcome": outcome}


def _completed(event: ev.Completed, steers: Steers) -> Json:
    return {"outcome": {**encode.success(event.outcome, steers), "stop_reason": event.outcome.stop_reason}}


def _failed(event: ev.Failed, _: Steers) -> Json:
    retryability = "Retryable" if event.retryable else "Permanent"
    return {"message": event.message, "retryability": retryability, "revision": event.revision}


_DELTA = _fields("text", "attempt")
ROWS: dict[type, Row] = {
    ev.StepStarted: _fields("step", "estimated_context_tokens"),
    ev.AssistantTextDelta: _DELTA,
    ev.ReasoningDelta: _DELTA,
    ev.ReasoningSummaryDelta: _DELTA,
    ev.ToolCallUpdated: _call_updated,
    ev.ToolProposed: lambda e, _: {"call_id": e.call.id, "call": encode.call(e.call)},
    ev.ToolStarted: _fields("call_id", "name", "metadata"),
    ev.ToolUpdated: _fields("call_id", "progress"),
    ev.ToolDetached: _fields("call_id"),
    ev.ToolFinished: _finished,
    ev.ToolHostInputRequested: _asked,
    ev.UsageUpdated: lambda e, _: {"usage": encode.usage(e.usage)},
    ev.ProviderContextUpdated: lambda e, _: {"kind": e.context_kind},
    ev.ProviderRequestRetry: _nothing,
    ev.WebSearch: _fields("detail"),
    ev.HostedToolActivity: _fields("name", "detail"),
    ev.ProviderServiceTierFallback: _fields("requested", "used"),
    ev.ModelCallCompleted: _model_call_completed,
    ev.ProviderStreamReset: _reset,
    ev.SteeringApplied: lambda e, steers: {"ids": [steers.get(i, i) for i in e.ids]},
    ev.SteeringDelivered: lambda e, steers: {"id": steers.get(e.id, e.id)},
    ev.CompactionStarted: lambda e, _: {"trigger": e.trigger.capitalize(), "message_count": e.message_count},
    ev.CompactionCompleted: _compacted,
    ev.ProviderDiagnostic: _fields("detail"),
    ev.Completed: _completed,
    ev.Cancelled: _fields("revision"),
    ev.Failed: _failed,
}


def fields(event: Any, run: str, steers: Steers) -> Json:
    """The fields of an event; a kind that is not known here has none. `run`: the name of its run."""
    if isinstance(event, ev.Started):
        return {"run_id": run, "revision": event.revision}
    if isinstance(event, ev.BoundaryInputApplied):
        return {"session_id": event.session, "run_id": run, "input": event.input}
    row = ROWS.get(type(event))
    return {} if row is None else row(event, steers)
