"""Effects of the core -> what the runtime does: one row for each kind of effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rho_adapters.runtime import lent, model, tools
from rho_adapters.runtime.work import RunState
from rho_core import effects as fx
from rho_core import events as ev

if TYPE_CHECKING:
    from rho_adapters.runtime.port import SessionPort


def run_of(port: SessionPort) -> RunState:
    """The run that an effect is of."""
    work = port.active if port.active is not None else port.leaving
    assert isinstance(work, RunState)
    return work


def _deliver(port: SessionPort, e: fx.Deliver) -> None:
    run, event = run_of(port), e.event
    if type(event) in ev.TERMINAL:
        port.rho.checkpoint(port, run)
    run.publish(lambda: run.send(event))


def _outcome(port: SessionPort, e: fx.ReportOutcome) -> None:
    run = run_of(port)
    port.rho.checkpoint(port, run)
    run.publish(lambda: run.resolve(e.outcome))


def _close(port: SessionPort, e: fx.CloseEvents) -> None:
    run = run_of(port)
    run.publish(run.end)


def _answer(port: SessionPort, e: fx.Reply | fx.Rejected) -> None:
    port.answer(e)


def _not_ready(port: SessionPort, e: fx.NotReady) -> None:
    """Whoever offered the input holds it and offers it again."""


def _admit(port: SessionPort, e: fx.Admit) -> None:
    work = port.starting.pop(e.operation)
    if port.rho.admit(port, e.operation):
        port.active = work


def _release(port: SessionPort, e: fx.Release) -> None:
    if port.active is not None and port.active.id == e.operation:
        port.active = None
    port.rho.release(e.operation)


def _signal_cancel(port: SessionPort, e: fx.SignalCancel) -> None:
    if port.active is not None:
        port.active.token.set()


def _start_timer(port: SessionPort, e: fx.StartTimer) -> None:
    lent.start_timer(port, run_of(port), e)


def _cancel_timer(port: SessionPort, e: fx.CancelTimer) -> None:
    run_of(port).abort("timer", key=e.timer_id)


def _ask_boundary(port: SessionPort, e: fx.AskBoundary) -> None:
    lent.ask_boundary(port, run_of(port), e)


def _record(port: SessionPort, e: fx.RecordUsage) -> None:
    lent.record_usage(port, run_of(port), e)


def _compactor(port: SessionPort, e: fx.CallCompactor) -> None:
    assert port.active is not None
    lent.call_compactor(port, port.active, e)


def _abort_compactor(port: SessionPort, e: fx.AbortCompactor) -> None:
    if port.active is not None:
        port.active.abort("compact")


def _ack_boundary(port: SessionPort, e: fx.AckBoundary) -> None:
    run_of(port).abort("collect")  # still there only when the run stopped waiting for its answer
    collector = port.rho.collector
    if collector is not None:
        port.afterwards.append(lambda: collector.acknowledge(e.accepted))


ROWS: dict[type, Callable[[SessionPort, Any], None]] = {
    fx.Deliver: _deliver,
    fx.Reply: _answer,
    fx.Rejected: _answer,
    fx.NotReady: _not_ready,
    fx.Admit: _admit,
    fx.Release: _release,
    fx.ReportOutcome: _outcome,
    fx.CloseEvents: _close,
    fx.SignalCancel: _signal_cancel,
    fx.CallModel: lambda port, e: model.call(port, run_of(port), e),
    fx.AbortModel: lambda port, e: run_of(port).abort("model", key=(e.step, e.attempt)),
    fx.OfferSteer: lambda port, e: model.offer(run_of(port), e),
    fx.WithdrawSteer: lambda port, e: model.withdraw(run_of(port), e),
    fx.ClaimAnswered: lambda port, e: None,  # read by the one who claimed, from the effects of that step
    fx.Prepare: lambda port, e: tools.prepare(port, run_of(port), e),
    fx.Authorize: lambda port, e: tools.authorize(port, run_of(port), e),
    fx.Execute: lambda port, e: tools.execute(port, run_of(port), e),
    fx.AbortTool: lambda port, e: run_of(port).abort("prepare", "authorize", "execute", key=e.call_id),
    fx.CancelJob: lambda port, e: tools.cancel_job(run_of(port), e),
    fx.DeliverAnswer: lambda port, e: tools.answer(run_of(port), e),
    fx.RefuseAsk: lambda port, e: tools.refuse(run_of(port), e),
    fx.CallCompactor: _compactor,
    fx.AbortCompactor: _abort_compactor,
    fx.AskBoundary: _ask_boundary,
    fx.AckBoundary: _ack_boundary,
    fx.RecordUsage: _record,
    fx.StartTimer: _start_timer,
    fx.CancelTimer: _cancel_timer,
}
