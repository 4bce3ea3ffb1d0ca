"""Inputs of the core as what the environment hands over: provider and tool items (`spec/scenario-format.md`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_core import inputs as inp
from rho_core import messages as m
from rho_core.errors import ProviderError, ToolErrorKind
from rho_core.events import Failure, Reported, Success
from rho_core.normal import encode

Json = dict[str, Any]
MODEL_ENDS = frozenset({inp.ModelReturned, inp.ModelFailed, inp.ModelPanicked})


def given_call(value: m.ToolCall, marked: bool = False) -> Json:
    """A complete call, as the environment hands it over. `marked`: it may be detached."""
    detachable = {"async": True} if marked else {}
    return {"id": value.id, "tool": value.name, "args": encode.arguments(value.arguments), **detachable}


def _call_delta(i: inp.CallDelta) -> Json:
    return {"call_delta": {"index": i.index, **encode.present(id=i.id, name=i.name), "arguments": i.arguments}}


def _failed(error: ProviderError) -> Json:
    hint = None if error.retry_after_ms is None else f"{error.retry_after_ms}ms"
    told = encode.present(retry_after=hint, diagnostic=error.diagnostic)
    return {"kind": str(error.error_kind), "retryable": error.retryable, "message": error.message, **told}


_MODEL: dict[type, Callable[[Any], Json]] = {
    inp.TextDelta: lambda i: {"delta": i.text},
    inp.RawReasoning: lambda i: {"reasoning": i.text},
    inp.SummaryDelta: lambda i: {"summary": i.text},
    inp.CallDelta: _call_delta,
    inp.ContextBlock: lambda i: {
        "context": {"kind": i.context_kind, "data": i.data, **encode.present(position=i.position)}
    },
    inp.UsageReported: lambda i: {"usage": encode.usage(i.usage)},
    inp.GenerationTokensReported: lambda i: {
        "generation_tokens": i.tokens.tokens if isinstance(i.tokens, Reported) else "unavailable"
    },
    inp.WebSearched: lambda i: {"web_search": i.detail},
    inp.HostedTool: lambda i: {"hosted": {"name": i.name, "detail": i.detail}},
    inp.TierFallback: lambda i: {"tier_fallback": {"requested": i.requested, "used": i.used}},
    inp.PhysicalAttemptFailed: lambda i: {
        "physical_retry": {"kind": str(i.error_kind), "usage": encode.usage(i.usage)}
    },
    inp.ModelFailed: lambda i: {"fail": _failed(i.error)},
    inp.ModelPanicked: lambda i: {"panic": True},
}


def of_model(value: inp.ModelInput, marked: frozenset[str], steers: dict[str, str]) -> Json | None:
    """A provider item. `marked`: calls that the provider marked as detachable; `steers`: names by id."""
    if isinstance(value, inp.ModelReturned):
        return {"return": response(value.content, marked)}
    if isinstance(value, inp.SteerClaimed | inp.SteerDelivered | inp.SteerReleased):
        verb = {inp.SteerClaimed: "claim", inp.SteerDelivered: "deliver", inp.SteerReleased: "release"}[type(value)]
        return {verb: steers.get(value.steering_id, value.steering_id)}
    row = _MODEL.get(type(value))
    return None if row is None else row(value)


def response(content: tuple[m.Block, ...], marked: frozenset[str]) -> Json:
    """The blocks of a response: no key for what it does not hold."""
    calls = [given_call(c, c.id in marked) for c in m.calls_of(content)]
    other = len(content) > len(calls)
    return {**({"text": m.text_of(content)} if other else {}), **({"calls": calls} if calls else {})}


def _returned(i: inp.ToolReturned) -> Json:
    match i.completion:
        case Success(text=text):
            return {"return": text}
        case Failure(error_kind=ToolErrorKind.CANCELLED):
            return {"cancelled": True}
        case other:
            return {"fail": other.text}


_TOOL: dict[type, tuple[str, Callable[[Any], Json]]] = {
    inp.Prepared: ("ToolPrepare", lambda i: {"prepared": True}),
    inp.PrepareFailed: ("ToolPrepare", lambda i: {"prep_fail": i.message}),
    inp.Authorized: ("ToolAuthorize", lambda i: {"authorize": "allow"}),
    inp.Denied: ("ToolAuthorize", lambda i: {"authorize": "deny"}),
    inp.ToolProgress: ("ToolExecute", lambda i: {"progress": i.progress}),
    inp.ToolAsked: ("ToolExecute", lambda i: {"ask": i.request.id}),
    inp.AskWithdrawn: ("ToolExecute", lambda i: {"withdraw": i.request_id}),
    inp.ToolReturned: ("ToolExecute", _returned),
    inp.ToolPanicked: ("ToolExecute", lambda i: {"panic": True}),
}
TOOL_ENDS = frozenset({inp.Prepared, inp.PrepareFailed, inp.Authorized, inp.Denied, inp.ToolReturned, inp.ToolPanicked})


def of_tool(value: Any) -> tuple[str, Json] | None:
    """The upcall that a tool item answers, and the item."""
    row = _TOOL.get(type(value))
    return None if row is None else (row[0], row[1](value))
