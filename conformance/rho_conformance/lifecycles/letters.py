"""What one step of the core shows, in the letters of the lifecycles: the input first, then the effects in their order.

The letter of an input is *offered*: an input that comes too late is ignored by rule, and then nothing has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from rho_conformance.lifecycles.projection import Key, ask_key, attempt_key
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.run import state as s
from rho_spec.lifecycles import Letter

TERMINAL = (ev.Completed, ev.Cancelled, ev.Failed)


class Shown(NamedTuple):
    """`offered`: the machine may take it, and need not."""

    key: Key
    letter: Letter
    offered: bool = False


def _taken(upcall: str, item: str) -> Letter:
    return Letter("Taken", (("item", item), ("upcall", upcall)))


MODEL_ENDS = {inp.ModelReturned: "return", inp.ModelFailed: "fail", inp.ModelPanicked: "panic"}
STEERED = {inp.SteerDelivered: "deliver", inp.SteerReleased: "release"}
PROVIDER_EVENTS = (
    ev.AssistantTextDelta,
    ev.ReasoningDelta,
    ev.ReasoningSummaryDelta,
    ev.ToolCallUpdated,
    ev.UsageUpdated,
    ev.ProviderContextUpdated,
    ev.ProviderRequestRetry,
    ev.WebSearch,
    ev.HostedToolActivity,
    ev.ProviderServiceTierFallback,
    ev.ModelCallCompleted,
    ev.ProviderStreamReset,
)


def shown(before: s.Run, i: Any, effects: Iterable[Any]) -> list[Shown]:
    """Every letter of a step, in order."""
    found = list(_input(i))
    step, attempt = before.core.step, getattr(before.phase, "attempt", 0)
    for e in effects:
        if type(e) is out.CallModel:
            step, attempt = e.step, e.attempt
        if type(e) is out.Deliver:
            found += _event(e.event, step, attempt)
            step = e.event.step if type(e.event) is ev.StepStarted else step
        elif type(e) in EFFECTS:
            found += EFFECTS[type(e)](e, i, before)
    return found


def _input(i: Any) -> Iterator[Shown]:
    kind = type(i)
    if kind is inp.Taken:
        yield Shown(("channel",), Letter("read"))
    elif kind is inp.ReaderClosed:
        yield Shown(("channel",), Letter("close_reader"), True)
    elif kind in MODEL_ENDS:
        yield Shown(attempt_key(i.step, i.attempt), _taken("ModelCall", MODEL_ENDS[kind]), True)
    elif kind is inp.ToolReturned:
        yield Shown(("call", i.call_id), _taken("ToolExecute", "return"), True)
    elif kind is inp.ToolPanicked:
        for upcall in ("ToolPrepare", "ToolAuthorize", "ToolExecute"):
            yield Shown(("call", i.call_id), _taken(upcall, "panic"), True)
    elif kind in STEERED:
        letter = Letter("SteerClaim", (("granted", "true"), ("item", STEERED[kind])))
        yield Shown(("steering", i.steering_id), letter, True)


def _event(event: Any, step: int, attempt: int) -> Iterator[Shown]:
    name = type(event).__name__
    yield Shown(("channel",), Letter("terminal" if isinstance(event, TERMINAL) else "event"))
    yield Shown(("run",), Letter(name))
    if isinstance(event, PROVIDER_EVENTS):
        yield Shown(attempt_key(step, getattr(event, "attempt", attempt)), Letter(name))
    elif isinstance(event, ev.ToolProposed):
        yield Shown(("call", event.call.id), Letter(name))
    elif isinstance(event, ev.ToolFinished):
        yield Shown(("call", event.call_id), Letter(name, (("result", RESULTS[type(event.completion)]),)))
    elif isinstance(event, (ev.ToolStarted, ev.ToolUpdated, ev.ToolDetached, ev.ToolHostInputRequested)):
        yield Shown(("call", event.call_id), Letter(name))
        if isinstance(event, ev.ToolHostInputRequested):
            yield Shown(("host_input", str(step), event.request.id), Letter(name))
    elif isinstance(event, ev.SteeringApplied):
        for steering_id in event.ids:
            yield Shown(("steering", steering_id), Letter(name))
    elif isinstance(event, ev.SteeringDelivered):
        yield Shown(("steering", event.id), Letter(name))


RESULTS = {ev.Success: "ok", ev.Failure: "failed", ev.Unavailable: "unavailable"}

# --- effects ----------------------------------------------------------------------------------------------------------


def _call_model(e: out.CallModel, i: Any, run: s.Run) -> list[Shown]:
    return [Shown(("run",), Letter("ModelCall")), Shown(attempt_key(e.step, e.attempt), Letter("ModelCall"))]


def _abort_model(e: out.AbortModel, i: Any, run: s.Run) -> list[Shown]:
    letter = Letter("Abandoned", (("how", "dropped"), ("upcall", "ModelCall")))
    return [Shown(attempt_key(e.step, e.attempt), letter)]


def _work(name: str) -> Callable[[Any, Any, s.Run], list[Shown]]:
    def letters(e: Any, i: Any, run: s.Run) -> list[Shown]:
        call_id = e.call.id if isinstance(e, out.Prepare) else e.call_id
        return [Shown(("run",), Letter(name)), Shown(("call", call_id), Letter(name))]

    return letters


def _asked(name: str) -> Callable[[Any, Any, s.Run], list[Shown]]:
    return lambda e, i, run: [Shown(ask_key(run, e.request_id), Letter(name))]


def _collect(e: out.AskBoundary, i: Any, run: s.Run) -> list[Shown]:
    return [Shown(("run",), Letter("Collect", (("kind", e.boundary),)))]


def _replied(e: out.Reply | out.Rejected, i: Any, run: s.Run) -> list[Shown]:
    if isinstance(i, inp.Steer):
        reply = "ok" if isinstance(e, out.Reply) else "error"
        return [Shown(("steering", i.steering_id), Letter("steer", (("reply", reply),)))]
    if isinstance(i, inp.Retract) and isinstance(e, out.Reply):
        return [Shown(("steering", i.steering_id), Letter("retract", (("reply", str(e.value)),)))]
    return []


def _claimed(e: out.ClaimAnswered, i: Any, run: s.Run) -> list[Shown]:
    letter = Letter("SteerClaim", (("granted", str(e.granted).lower()), ("item", "claim")))
    return [Shown(("steering", e.steering_id), letter)]


EFFECTS: dict[type, Callable[[Any, Any, s.Run], list[Shown]]] = {
    out.CallModel: _call_model,
    out.AbortModel: _abort_model,
    out.Prepare: _work("ToolPrepare"),
    out.Authorize: _work("ToolAuthorize"),
    out.Execute: _work("ToolExecute"),
    out.DeliverAnswer: _asked("HostAnswer"),
    out.RefuseAsk: _asked("AskRefused"),
    out.CallCompactor: lambda e, i, run: [Shown(("run",), Letter("Compact"))],
    out.AskBoundary: _collect,
    out.Reply: _replied,
    out.Rejected: _replied,
    out.ClaimAnswered: _claimed,
    out.CloseEvents: lambda e, i, run: [Shown(("channel",), Letter("EventsClosed"))],
}
