"""Permitted variants of the surface: how deltas are cut, kinds that nobody knows, figures that are only estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rho_core.ledger
import rho_core.shown
from rho_conformance.drivers.corework import interpret
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.mutants.base import Benign
from rho_conformance.mutants.benign_kit import attr, entry
from rho_core import effects as fx
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.normal import events
from rho_core.run import step, turn

TEXTS: tuple[type, ...] = (ev.AssistantTextDelta, ev.ReasoningDelta, ev.ReasoningSummaryDelta)

# --- BUF-9: where deltas are cut --------------------------------------------------------------------------------------


def _halved(old: Any) -> Any:
    def fold(capture: Any, i: Any, core: Any) -> Any:
        after, (event,) = old(capture, i, core)
        middle = len(i.text) // 2
        parts = tuple(part for part in (i.text[:middle], i.text[middle:]) if part)
        return after, tuple(type(event)(part, i.attempt) for part in parts) or (event,)

    return fold


@dataclass(frozen=True)
class Joined:
    """Several unread deltas that the reader will take as one; it makes room for all of them."""

    event: Any
    count: int


def _join(old: Any) -> Any:
    def deliver(port: SessionPort, e: fx.Deliver) -> None:
        run = port.active
        last: Any = run.channel[-1] if run is not None and run.channel else None
        before: Any = last.event if isinstance(last, Joined) else last
        after: Any = e.event
        if (
            run is None
            or type(before) is not type(after)
            or type(after) not in TEXTS
            or before.attempt != after.attempt
        ):
            old(port, e)
            return
        count = last.count if isinstance(last, Joined) else 1
        joined: Any = Joined(type(after)(before.text + after.text, after.attempt), count + 1)
        run.channel[-1] = joined

    return deliver


def _take_joined(old: Any) -> Any:
    def take(self: SessionPort, run: Any, *, show: bool) -> None:
        first: Any = run.channel[0]
        if isinstance(first, Joined):
            run.channel[0] = first.event
        old(self, run, show=show)
        if isinstance(first, Joined) and run is self.active:
            self.feed(inp.Taken(first.count - 1))

    return take


# --- R22, BUF-8: what stands between ----------------------------------------------------------------------------------


def _delivered_late(old: Any) -> Any:
    """SteeringDelivered is overtaken by a delta of the same attempt that is still unread."""

    def deliver(port: SessionPort, e: fx.Deliver) -> None:
        run = port.active
        old(port, e)
        channel: Any = run.channel if run is not None else ()
        if len(channel) > 1 and isinstance(channel[-2], ev.SteeringDelivered) and type(channel[-1]) in TEXTS:
            channel[-2], channel[-1] = channel[-1], channel[-2]

    return deliver


def _chatty(old: Any) -> Any:
    """Beside the events there are some of kinds that no version of the contract knows."""

    def take(self: SessionPort, run: Any, *, show: bool) -> None:
        event = run.channel[0]
        old(self, run, show=show)
        if show and isinstance(event, (ev.StepStarted, ev.ToolStarted, ev.ModelCallCompleted)):
            self.see("WeatherReported", {"after": type(event).__name__, "text": "fine", "call_id": "none"}, run)

    return take


# --- figures ----------------------------------------------------------------------------------------------------------


def _more_tokens(old: Any) -> Any:
    def step_started(event: Any, names: Any) -> Any:
        shown = old(event, names)
        return {**shown, "estimated_context_tokens": 2 * shown["estimated_context_tokens"] + 7}

    return step_started


def _real_clock(old: Any) -> Any:
    """Measured by a clock that the suite does not turn."""

    def completed(event: Any, names: Any) -> Any:
        shown = old(event, names)
        metrics = {**shown["metrics"]}
        for key, value in (("time_to_first_token_ms", 3), ("generation_time_ms", 4)):
            if key in metrics:
                metrics[key] = value
        return {**shown, "metrics": {**metrics, "total_latency_ms": 11}}

    return completed


def _pending_unanswered(_: Any) -> Any:
    """A request shows the call of a job that is still at work, and no result."""
    return lambda history, pending=frozenset(): tuple(
        m
        for m in rho_core.ledger.model_view(history, pending)
        if getattr(m, "content", None) != rho_core.ledger.PENDING
    )


BENIGN: tuple[Benign, ...] = (
    Benign(
        "deltas-halved",
        "RHO-BUF-9",
        "every delta arrives in two pieces",
        (
            attr(step, "hot", lambda _: lambda run, i: None),
            *(entry(turn.FOLD, kind, _halved) for kind in (inp.TextDelta, inp.RawReasoning, inp.SummaryDelta)),
        ),
    ),
    Benign(
        "deltas-joined",
        "RHO-BUF-9",
        "unread deltas become one",
        (entry(interpret.ROWS, fx.Deliver, _join), attr(SessionPort, "_take", _take_joined)),
    ),
    Benign(
        "delivered-overtaken",
        "R22",
        "SteeringDelivered comes after a later delta",
        (entry(interpret.ROWS, fx.Deliver, _delivered_late),),
    ),
    Benign(
        "unknown-kinds", "RHO-BUF-8", "events of unknown kinds in the stream", (attr(SessionPort, "_take", _chatty),)
    ),
    Benign(
        "other-estimates",
        "RHO-ORD-2",
        "another estimate of the context",
        (entry(events.ROWS, ev.StepStarted, _more_tokens),),
    ),
    Benign(
        "real-clock",
        "RHO-METR-1",
        "timings of a clock of its own",
        (entry(events.ROWS, ev.ModelCallCompleted, _real_clock),),
    ),
    Benign(
        "pending-text",
        "RHO-ORD-7",
        "a pending call is answered in other words",
        (attr(rho_core.ledger, "PENDING", lambda _: "in progress"),),
    ),
    Benign(
        "pending-unanswered",
        "RHO-ORD-7",
        "a request shows a pending call without a result",
        (attr(rho_core.shown, "model_view", _pending_unanswered),),
    ),
)
