"""The model's words for messages, completions, reasons, events and effects of the reducer.

Strict on purpose: what the model has no word for becomes its `repr`, which no TLA+ state holds, so that a reducer that
leaves the model's vocabulary is a mismatch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_core import calls
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import messages as msg
from rho_core.errors import Error, ErrorName, ProviderErrorKind, ToolErrorKind
from rho_core.run import state as s

from .setting import CALLS, ERRORS, content, tool
from .values import Value

TEXT = "t"
"""The one delta of an attempt."""

NO_OUTCOME: Value = ("none", 0, ())

# --- messages, completions, reasons ------------------------------------------------------------------------------


def _result(ok: bool, text: str, call_id: str) -> str:
    known = {
        (True, "ok"): "ok",
        (False, "error"): "error",
        (False, msg.INTERRUPTED): "interrupted",
        (False, calls.unavailable_text(tool(call_id))): "unavailable",
    }
    return known.get((ok, text), repr((ok, text)))


def completion(of: ev.ToolCompletion | None, call_id: str) -> str:
    """How a call ended, or "none"."""
    match of:
        case None:
            return "none"
        case ev.Success("ok"):
            return "ok"
        case ev.Failure(ToolErrorKind.EXECUTION, "error"):
            return "error"
        case ev.Failure(ToolErrorKind.CANCELLED, msg.INTERRUPTED):
            return "interrupted"
        case ev.Unavailable(text) if text == calls.unavailable_text(tool(call_id)):
            return "unavailable"
    return repr(of)


def message(m: msg.Message) -> Value:
    """One message of the candidate or of the history."""
    match m:
        case msg.User((msg.Text(text),)):
            return ("user", text)
        case msg.ToolResult(call_id, ok, text):
            return ("result", call_id, _result(ok, text, call_id))
        case msg.Assistant(blocks, _, None):
            ids = tuple(b.id for b in msg.calls_of(blocks))
            return ("assistant", ids if blocks in (content(a) for a in ("text", *CALLS)) else repr(blocks))
        case msg.AbortedAssistant(blocks, None, context, (), msg.NO_USAGE):
            return ("aborted", streamed(blocks, context))
    return repr(m)


def streamed(blocks: tuple[msg.Block, ...], context: tuple[msg.ProviderContext, ...]) -> frozenset[Value]:
    """What an attempt has streamed: "text", and ids of calls marked as async."""
    texts = {"text" if b == msg.Text(TEXT) else repr(b) for b in blocks}
    return frozenset(texts | {c.data if c.context_kind == inp.ASYNC_CALL else repr(c) for c in context})


def _reason(error: Error | None, text: str) -> str:
    """The answer of the menu that an error or the text of an event goes back to."""
    if error is not None and error.name in (ErrorName.CANCELLED, ErrorName.INTERRUPTED):
        return "cancel" if error.name is ErrorName.CANCELLED else "Interrupted"
    name = text.removeprefix("provider failed: ")
    if name in ERRORS:
        return name
    mine = error is None or error.provider_kind == ProviderErrorKind.INVALID_RESPONSE
    bad = name == "the response has no content" or name.endswith("is still open")
    return "malformed" if mine and bad else repr((error, text))


def ending(of: s.Ending) -> str:
    """The reason of a cooperative end."""
    match of:
        case s.Complete(stop):
            return stop
        case s.CancelRun():
            return "cancel"
        case s.Fail(error):
            return _reason(error, error.message)


# --- effects ---------------------------------------------------------------------------------------------------------


def _timer(timer_id: str) -> str:
    kind, _, name = timer_id.partition(":")
    return {"retry": "retry", "stop": name}.get(kind, repr(timer_id))


def outcome(end: out.RunEnd | None, revision: int) -> Value:
    """An outcome as the model has it: reason, revision, steers that were never applied."""
    match end:
        case None:
            return NO_OUTCOME
        case ev.RunOutcome(_, msg.NO_USAGE, stop, told, unapplied):
            return (stop, told, unapplied)
        case out.RunFailed(error, unapplied):
            return (_reason(error, error.message), revision, unapplied)
    return repr(end)


def _reset(e: ev.ProviderStreamReset) -> Value:
    match e.reason:
        case ev.InvalidResponse():
            return (type(e).__name__, e.attempt, _reason(None, e.detail), 0)
        case ev.RetryableFailure(kind, hint) if e.detail in ERRORS and ERRORS[e.detail].error_kind == kind:
            return (type(e).__name__, e.attempt, e.detail, hint or 0)
    return repr(e)


EVENTS: dict[type, Callable[[Any], tuple[Value, ...]]] = {
    ev.Started: lambda e: (e.revision,) if e.run == "run" else (repr(e),),
    ev.StepStarted: lambda e: (e.step,),
    ev.AssistantTextDelta: lambda e: (e.attempt,) if e.text == TEXT else (repr(e),),
    ev.ProviderContextUpdated: lambda e: (),
    ev.ModelCallCompleted: lambda e: (e.attempt,),
    ev.ToolProposed: lambda e: (e.call.id,),
    ev.ToolStarted: lambda e: (e.call_id,) if e.name == tool(e.call_id) else (repr(e),),
    ev.ToolUpdated: lambda e: (e.call_id,),
    ev.ToolDetached: lambda e: (e.call_id,),
    ev.ToolFinished: lambda e: (e.call_id, completion(e.completion, e.call_id)),
    ev.SteeringApplied: lambda e: (e.ids,),
    ev.ProviderDiagnostic: lambda e: () if e.detail == "why" else (repr(e),),
    ev.Completed: lambda e: (e.outcome.stop_reason, e.outcome.revision),
    ev.Cancelled: lambda e: (e.revision,),
    ev.Failed: lambda e: (_reason(None, e.message), e.retryable, e.revision),
}


def event(e: ev.Event) -> Value:
    """One event: its kind and what the model knows of it."""
    if type(e) is ev.ProviderStreamReset:
        return _reset(e)
    known = EVENTS.get(type(e))
    return repr(e) if known is None else (type(e).__name__, *known(e))


EFFECTS: dict[type, Callable[[Any], tuple[Value, ...]]] = {
    out.Deliver: lambda e: ("deliver", event(e.event)),
    out.Reply: lambda e: ("reply", "ok" if e.value is None else e.value),
    out.Rejected: lambda e: ("rejected", e.rule),
    out.CallModel: lambda e: ("call_model", e.step, e.attempt, len(e.messages)),
    out.AbortModel: lambda e: ("abort_model", e.step, e.attempt),
    out.SignalCancel: lambda e: ("signal_cancel",),
    out.StartTimer: lambda e: ("start_timer", _timer(e.timer_id), e.milliseconds),
    out.CancelTimer: lambda e: ("cancel_timer", _timer(e.timer_id)),
    out.Prepare: lambda e: ("prepare", e.call.id),
    out.Execute: lambda e: ("execute", e.call_id),
    out.AbortTool: lambda e: ("abort_tool", e.call_id),
    out.CancelJob: lambda e: ("cancel_job", e.call_id),
    out.CloseEvents: lambda e: ("close",),
}


def effects(fx: tuple[Any, ...], run: s.Run) -> Value:
    """The effects of one input, in their order."""
    revision = run.core.ledger.revision
    return tuple(
        ("report", outcome(e.outcome, revision))
        if type(e) is out.ReportOutcome
        else EFFECTS[type(e)](e)
        if type(e) in EFFECTS
        else repr(e)
        for e in fx
    )
