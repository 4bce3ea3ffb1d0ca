"""Events of a run -> the normal form: one row for each kind (`spec/protocol.md`, "Events")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .. import events as ev
from . import encode

Json = dict[str, Any]


class Names(Protocol):
    """The names that steers and questions are known by."""

    def steer(self, steering_id: str) -> str: ...
    def ask(self, request_id: str) -> str: ...


Row = Callable[[Any, Names], Json]


def _delta(event: Any, _: Names) -> Json:
    return {"text": event.text, "attempt": event.attempt}


def _nothing(event: Any, _: Names) -> Json:
    return {}


def _fields(*names: str) -> Row:
    def row(event: Any, _: Names) -> Json:
        return {name: getattr(event, name) for name in names}

    return row


def _call_updated(event: ev.ToolCallUpdated, _: Names) -> Json:
    return {
        "index": event.index,
        **encode.present(id=event.id, name=event.name),
        "arguments_delta": event.arguments_delta,
        "attempt": event.attempt,
    }


def _finished(event: ev.ToolFinished, _: Names) -> Json:
    match event.completion:
        case ev.Success(text=text):
            return {"call_id": event.call_id, "result": "ok", "text": text}
        case ev.Failure(error_kind=kind, text=text):
            return {"call_id": event.call_id, "result": "failed", "kind": str(kind), "text": text}
        case ev.Unavailable(text=text):
            return {"call_id": event.call_id, "result": "unavailable", "text": text}


def _asked(event: ev.ToolHostInputRequested, names: Names) -> Json:
    return {
        "call_id": event.call_id,
        "ask": names.ask(event.request.id),
        "request": encode.request(event.request, names.ask),
    }


def _model_call_completed(event: ev.ModelCallCompleted, _: Names) -> Json:
    profile = {"provider": event.profile.provider, "api": event.profile.api, "model": event.profile.model}
    timing = event.metrics.timing
    generated = event.metrics.generation_output_tokens
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
    return {"profile": profile, "metrics": metrics, "attempt": event.attempt}


def _reset(event: ev.ProviderStreamReset, _: Names) -> Json:
    reason: Any = "InvalidResponse"
    if isinstance(event.reason, ev.RetryableFailure):
        failure = encode.present(kind=str(event.reason.error_kind), retry_after_ms=event.reason.retry_after_ms)
        reason = {"RetryableFailure": failure}
    return {"reason": reason, "detail": event.detail, "attempt": event.attempt}


def _compacted(event: ev.CompactionCompleted, _: Names) -> Json:
    done = event.outcome
    outcome: Json = {
        "previous_messages": done.previous_messages,
        "current_messages": done.current_messages,
        "previous_tokens": done.previous_tokens,
        "current_tokens": done.current_tokens,
        "removed_tokens": done.removed_tokens,
        "revision": done.revision,
        **encode.present(cost_usd_micros=done.cost_usd_micros),
    }
    if done.committed is not None:
        outcome["committed_snapshot"] = {
            "revision": done.revision,
            "history": encode.messages(done.committed),
        }
    return {"trigger": event.trigger.capitalize(), "outcome": outcome}


def _completed(event: ev.Completed, names: Names) -> Json:
    outcome = encode.success(event.outcome, names.steer)
    return {"outcome": {**outcome, "stop_reason": event.outcome.stop_reason}}


def _failed(event: ev.Failed, _: Names) -> Json:
    retryability = "Retryable" if event.retryable else "Permanent"
    return {"message": event.message, "retryability": retryability, "revision": event.revision}


ROWS: dict[type, Row] = {
    ev.Started: lambda e, _: {"run_id": e.run, "revision": e.revision},
    ev.StepStarted: _fields("step", "estimated_context_tokens"),
    ev.AssistantTextDelta: _delta,
    ev.ReasoningDelta: _delta,
    ev.ReasoningSummaryDelta: _delta,
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
    ev.SteeringApplied: lambda e, names: {"ids": [names.steer(i) for i in e.ids]},
    ev.SteeringDelivered: lambda e, names: {"id": names.steer(e.id)},
    ev.BoundaryInputApplied: lambda e, _: {"session_id": e.session, "run_id": e.run, "input": e.input},
    ev.CompactionStarted: lambda e, _: {
        "trigger": e.trigger.capitalize(),
        "message_count": e.message_count,
    },
    ev.CompactionCompleted: _compacted,
    ev.ProviderDiagnostic: _fields("detail"),
    ev.Completed: _completed,
    ev.Cancelled: _fields("revision"),
    ev.Failed: _failed,
}


def event(value: Any, names: Names) -> tuple[str, Json]:
    """The name and the fields of an event; names are those of the contract. TypeError for what is no event."""
    row = ROWS.get(type(value))
    if row is None:
        raise TypeError(f"not an event: {value!r}")
    return type(value).__name__, row(value, names)
