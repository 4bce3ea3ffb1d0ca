"""Effects of the core -> what the driver's world does and sees: one row for each kind of effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rho_conformance.drivers.corework.runs import Run
from rho_conformance.drivers.corework.settings import ToolHabit
from rho_conformance.drivers.corework.upcalls import STOPPED, Item, ModelUpcall, ToolUpcall, Upcall
from rho_conformance.errors import DriverError
from rho_core import effects as fx
from rho_core import inputs as i
from rho_core.normal import encode

if TYPE_CHECKING:
    from rho_conformance.drivers.corework.port import SessionPort

TOOL_PHASES = ("ToolPrepare", "ToolAuthorize", "ToolExecute")


# --- run, channel, commands ----------------------------------------------------------------------


def _deliver(port: SessionPort, e: fx.Deliver) -> None:
    run = _run(port, e)
    if not run.gone:
        run.channel.append(e.event)


def _run(port: SessionPort, e: fx.Effect) -> Run:
    """The run of an effect; after its end still that one, since a wrong core is to be seen as it is."""
    if port.active is not None:
        return port.active
    if not port.runs:
        raise DriverError(f"a session that never had a run asked for {e!r}")
    return port.runs[-1]


def _reply(port: SessionPort, e: fx.Reply) -> None:
    port.world.answer(e.command_id, e.value)


def _rejected(port: SessionPort, e: fx.Rejected) -> None:
    port.world.reject(e)


def _admit(port: SessionPort, e: fx.Admit) -> None:
    port.world.operations[e.operation] = port
    port.world.tell_runtime(i.Admit(e.operation))
    run = port.starting.pop(e.operation, None)
    if run is not None and e.operation in port.world.runtime.operations:
        port.active = run
        port.runs.append(run)
        port.world.runs[run.name] = run


def _release(port: SessionPort, e: fx.Release) -> None:
    port.world.tell_runtime(i.Released(e.operation))
    if port.active is not None and port.active.name == e.operation:
        port.active = None


def _outcome(port: SessionPort, e: fx.ReportOutcome) -> None:
    run = _run(port, e)
    if e.outcome is None:
        return
    run.resolved, run.outcome = True, e.outcome
    for command_id in run.draining:
        resolve(port, command_id)
    run.draining.clear()


def resolve(port: SessionPort, command_id: str) -> None:
    """Answer an `outcome` whose run has one."""
    command = port.world.asked(command_id)
    assert command.run is not None and command.run.outcome is not None
    port.world.reply(command, encode.outcome(command.run.outcome, port.world.names.steer))


def _close(port: SessionPort, e: fx.CloseEvents) -> None:
    _run(port, e).ended = True


# --- the model -----------------------------------------------------------------------------------


def _call_model(port: SessionPort, e: fx.CallModel) -> None:
    port.requests += 1
    upcall = ModelUpcall("ModelCall", port.active, port.incarnation)
    upcall.n, upcall.step, upcall.attempt = port.requests, e.step, e.attempt
    upcall.started_ms = port.world.now_ms
    shown = {
        "step": e.step,
        "attempt": e.attempt,
        "messages": encode.messages(e.messages),
        "tools": [tool.name for tool in port.session.policy.tools],
    }
    port.open(upcall, shown)


def _abort_model(port: SessionPort, e: fx.AbortModel) -> None:
    for upcall in port.upcalls:
        if isinstance(upcall, ModelUpcall) and (upcall.step, upcall.attempt) == (e.step, e.attempt):
            port.abandon(upcall, "dropped")


def _claim(port: SessionPort, e: fx.ClaimAnswered) -> None:
    upcall = port.claiming
    if upcall is None:
        return
    name = port.world.names.steer(e.steering_id)
    if e.granted:
        upcall.granted.add(name)
    _steer_claim(port, upcall, "claim", name, e.granted)


def steer_moved(port: SessionPort, upcall: ModelUpcall, item: Item) -> None:
    """The provider delivered or gave back a steer, which it may do with one that it was granted."""
    _steer_claim(port, upcall, item[0], item[1], item[1] in upcall.granted)
    upcall.granted.discard(item[1])


def _steer_claim(port: SessionPort, upcall: ModelUpcall, kind: str, name: str, granted: bool) -> None:
    shown = {"n": upcall.n, "item": kind, "id": name, "granted": granted}
    port.see("SteerClaim", shown, upcall.run)


# --- tools ---------------------------------------------------------------------------------------


def _prepare(port: SessionPort, e: fx.Prepare) -> None:
    habit = port.world.settings.tools.get(e.call.name, ToolHabit(e.call.name, i.Plan(), False))
    upcall = _tool(port, "ToolPrepare", e.call.id, e.call.name, e.call.arguments, e.detachable)
    if not habit.gated_prepare:
        upcall.finish()
        port.queue.append(i.Prepared(e.call.id, habit.plan))


def _authorize(port: SessionPort, e: fx.Authorize) -> None:
    before = _before(port, "ToolPrepare", e.call_id)
    _tool(port, "ToolAuthorize", e.call_id, before.name, before.arguments, before.detachable)


def _execute(port: SessionPort, e: fx.Execute) -> None:
    before = _before(port, "ToolPrepare", e.call_id)
    _tool(port, "ToolExecute", e.call_id, before.name, before.arguments, before.detachable)


def _before(port: SessionPort, kind: str, call_id: str) -> ToolUpcall:
    found = port.find(kind, call_id)
    if isinstance(found, ToolUpcall):
        return found
    # A wrong core may run what it never prepared; that is to be seen, not to be an error of the driver.
    return ToolUpcall(kind, port.active, port.incarnation, call_id)


def _tool(port: SessionPort, kind: str, call_id: str, name: str, arguments: str, detachable: bool) -> ToolUpcall:
    upcall = ToolUpcall(kind, port.active, port.incarnation, call_id)
    upcall.name, upcall.arguments, upcall.detachable = name, arguments, detachable
    return port.open(upcall, {"name": name, "arguments": encode.arguments(arguments)})


def _abort_tool(port: SessionPort, e: fx.AbortTool) -> None:
    for kind in TOOL_PHASES:
        port.abandon(port.find(kind, e.call_id), "dropped")


def _cancel_job(port: SessionPort, e: fx.CancelJob) -> None:
    for kind in TOOL_PHASES:
        port.abandon(port.find(kind, e.call_id), "token")


def _answer(port: SessionPort, e: fx.DeliverAnswer) -> None:
    ask = port.world.names.ask(e.request_id)
    shown = {"call_id": e.call_id, "ask": ask, "answers": encode.answers(e.answers)}
    port.see("HostAnswer", shown, port.active)


def _refuse_ask(port: SessionPort, e: fx.RefuseAsk) -> None:
    shown = {"call_id": e.call_id, "ask": port.world.names.ask(e.request_id)}
    port.see("AskRefused", shown, port.active)


# --- compactor, collector, recorder, clock -------------------------------------------------------


def _compactor(port: SessionPort, e: fx.CallCompactor) -> None:
    upcall = Upcall("Compact", port.active, port.incarnation)
    port.open(upcall, {"messages": encode.messages(e.messages), "trigger": e.trigger.capitalize()})


def _abort_compactor(port: SessionPort, e: fx.AbortCompactor) -> None:
    port.abandon(port.find("Compact"), "dropped")


def _ask_boundary(port: SessionPort, e: fx.AskBoundary) -> None:
    port.open(Upcall("Collect", port.active, port.incarnation), {"kind": e.boundary})


def _ack_boundary(port: SessionPort, e: fx.AckBoundary) -> None:
    # An acknowledgement without an answer before it: the run stopped waiting for the collector.
    port.abandon(port.find("Collect"), "dropped")
    port.see("CollectAck", {"accepted": e.accepted}, port.active)


def _record(port: SessionPort, e: fx.RecordUsage) -> None:
    upcall = Upcall("Record", port.active, port.incarnation)
    outcome: Any = {"Failed": str(e.error_kind)} if e.outcome == "Failed" else e.outcome
    shown = {"step": e.step, "attempt": e.attempt, "outcome": outcome, "usage": encode.usage(e.usage)}
    port.open(upcall, shown)
    if not port.world.settings.gated_recorder:
        upcall.finish()
        port.queue.append(recorded(upcall))


def recorded(upcall: Upcall) -> i.SessionInput:
    """The recorder is through; for a run that is over this comes too late."""
    return i.ForRun("" if upcall.run is None else upcall.run.name, i.UsageRecorded())


def _start_timer(port: SessionPort, e: fx.StartTimer) -> None:
    port.world.arm(port, e.timer_id, e.milliseconds)


def _cancel_timer(port: SessionPort, e: fx.CancelTimer) -> None:
    port.world.disarm(port, e.timer_id)


# --- the token -----------------------------------------------------------------------------------


def _signal_cancel(port: SessionPort, e: fx.SignalCancel) -> None:
    if port.active is not None:
        port.active.token_cancelled = True


def token_cancelled(port: SessionPort) -> None:
    """Whoever is still at work observes the shared token; a provider that heeds it stops by itself."""
    for upcall in list(port.upcalls):
        if not upcall.open or upcall.run is not port.active or upcall.kind == "Record":
            continue  # a recorder has no token
        if isinstance(upcall, ToolUpcall) and upcall.detachable:
            continue  # a job has a token of its own (RHO-CAN-3)
        port.abandon(upcall, "token")
        if isinstance(upcall, ModelUpcall) and port.world.settings.provider_stops:
            upcall.queue.clear()
            upcall.queue.append((STOPPED, None))


def _ignore(port: SessionPort, e: Any) -> None:
    """The double of the provider claims steers when the scenario says so, not when it is offered one."""


ROWS: dict[type, Callable[[SessionPort, Any], None]] = {
    fx.Deliver: _deliver,
    fx.Reply: _reply,
    fx.Rejected: _rejected,
    fx.Admit: _admit,
    fx.Release: _release,
    fx.ReportOutcome: _outcome,
    fx.CloseEvents: _close,
    fx.CallModel: _call_model,
    fx.AbortModel: _abort_model,
    fx.SignalCancel: _signal_cancel,
    fx.OfferSteer: _ignore,
    fx.WithdrawSteer: _ignore,
    fx.ClaimAnswered: _claim,
    fx.Prepare: _prepare,
    fx.Authorize: _authorize,
    fx.Execute: _execute,
    fx.AbortTool: _abort_tool,
    fx.CancelJob: _cancel_job,
    fx.DeliverAnswer: _answer,
    fx.RefuseAsk: _refuse_ask,
    fx.CallCompactor: _compactor,
    fx.AbortCompactor: _abort_compactor,
    fx.AskBoundary: _ask_boundary,
    fx.AckBoundary: _ack_boundary,
    fx.RecordUsage: _record,
    fx.StartTimer: _start_timer,
    fx.CancelTimer: _cancel_timer,
}


def effect(port: SessionPort, value: Any) -> None:
    """Carry out one effect of a session."""
    row = ROWS.get(type(value))
    if row is None:
        raise DriverError(f"a session asked for {value!r}, which it has no business to")
    row(port, value)
