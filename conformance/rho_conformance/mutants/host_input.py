"""Cores that mishandle a tool's question or the commands of a batch (RHO-HOST-*, RHO-COORD-*)."""

from __future__ import annotations

from typing import Any, Literal
from unittest import mock

import rho_core.asks
import rho_core.session
from rho_conformance.mutants.base import Mutant, attr, row
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.asks import Asks, OpenAsk
from rho_core.normal import events as encoded
from rho_core.record import record, tag
from rho_core.run import control, table
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, change, emit
from rho_core.step import Step

# --- questions --------------------------------------------------------------------------------------------


@record
class HostInputRequested:
    """The event that exists for old sources only."""

    request_id: str
    kind: Literal["host_input_requested"] = tag("host_input_requested")


def _legacy(original: Any) -> Any:
    def announced(run: s.Run, k: s.Asked, fx: Fx) -> Next:
        after, then = original(run, k, fx)
        return emit(after, fx, (HostInputRequested(k.request.id),), then)  # type: ignore[arg-type]

    return announced


def _encoder() -> Any:
    """The driver of the core knows only the events that the core has."""
    return mock.patch.dict(
        encoded.ROWS, {HostInputRequested: lambda event, names: {"ask": names.ask(event.request_id)}}
    )


def _first_call_asks(original: Any) -> Any:
    def asked(run: s.Run, i: inp.ToolAsked, fx: Fx) -> Next:
        batch = run.phase
        then = original(run, i, [])[1]
        if not isinstance(batch, s.Batch) or not isinstance(then, s.Asked):
            return original(run, i, fx)  # type: ignore[no-any-return]
        return emit(run, fx, (ev.ToolHostInputRequested(batch.slots[0].call.id, i.request),), then)

    return asked


def _runs_while_asking(original: Any) -> Any:
    def state(session: Any) -> Any:
        seen = original(session)
        return "Running" if seen == "WaitingForHostInput" else seen

    return state


def _waits_on(original: Any) -> Any:
    def state(session: Any) -> Any:
        phase = session.run.phase if session.run is not None else None
        return "WaitingForHostInput" if isinstance(phase, s.Batch) and phase.asks.used else original(session)

    return state


def _waits_for_the_first(original: Any) -> Any:
    def state(session: Any) -> Any:
        phase = session.run.phase if session.run is not None else None
        answered = isinstance(phase, s.Batch) and len(phase.asks.open) < len(phase.asks.used)
        seen = original(session)
        return "Running" if answered and seen == "WaitingForHostInput" else seen

    return state


# --- answers ----------------------------------------------------------------------------------------------


def _stays_open(original: Any) -> Any:
    def respond(run: s.Run, i: inp.Respond, fx: Fx) -> Next:
        _, then = original(run, i, fx)
        return run, then

    return respond


def _anything_fits(original: Any) -> Any:
    return lambda request, answers: None


def _stale_handle(original: Any) -> Any:
    def without_run(session: Any, i: Any) -> Any:
        return Step(session, (out.Reply(i.command_id),)) if type(i) is inp.Respond else original(session, i)

    return without_run


def _asker_gone(original: Any) -> Any:
    def respond(run: s.Run, i: inp.Respond, fx: Fx) -> Next:
        phase = run.phase
        known = isinstance(phase, s.Batch) and i.request_id in phase.asks.used
        if known and isinstance(phase, s.Batch) and phase.asks.find(i.request_id) is None:
            fx.append(out.Reply(i.command_id))
            return run, None
        return original(run, i, fx)  # type: ignore[no-any-return]

    return respond


def _one_place(original: Any) -> Any:
    def announce(self: Asks, call_id: str, request: Any) -> Asks:
        return Asks((OpenAsk(call_id, request),), (*self.used, request.id))

    return announce


def _oldest_is_answered(original: Any) -> Any:
    def respond(run: s.Run, i: inp.Respond, fx: Fx) -> Next:
        phase = run.phase
        told: Fx = []
        after, then = original(run, i, told)
        for effect in told:
            if isinstance(effect, out.DeliverAnswer) and isinstance(phase, s.Batch):
                effect = out.DeliverAnswer(phase.asks.open[0].call_id, effect.request_id, effect.answers)
            fx.append(effect)
        return after, then

    return respond


def _forgets_answered(original: Any) -> Any:
    def close(self: Asks, request_id: str) -> Asks:
        after: Asks = original(self, request_id)
        return Asks(after.open, tuple(x for x in after.used if x != request_id))

    return close


# --- commands of a batch ----------------------------------------------------------------------------------


def _deaf_batch(original: Any) -> Any:
    def command(run: s.Run, i: Any, fx: Fx) -> Next:
        return (run, None) if isinstance(run.phase, s.Batch) else original(run, i, fx)

    return command


def _steers_between_results(original: Any) -> Any:
    def call_finished(run: s.Run, k: s.CallFinished, fx: Fx) -> Next:
        after, then = original(run, k, fx)
        ids = after.core.steers.next_group()
        if not ids or all(slot.stage == "done" for slot in after.phase.slots):
            return after, then
        steers, messages = after.core.steers.apply(ids)
        after = change(after, steers=steers, suffix=after.core.suffix + messages)
        return emit(after, fx, (ev.SteeringApplied(ids),), then)

    return call_finished


STATE = (rho_core.session, "session_state")
RESPOND = (table.COMMON, inp.Respond)
ASKED = (table.WAIT, (s.Batch, inp.ToolAsked))

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "question-of-another-call",
        "RHO-HOST-1",
        "every question is announced as one of the first call of the batch",
        (row(*ASKED, _first_call_asks),),
    ),
    Mutant(
        "running-while-asking",
        "RHO-HOST-1",
        "the session says Running although a question is open",
        (attr(*STATE, _runs_while_asking),),
    ),
    Mutant(
        "legacy-event-sent",
        "RHO-HOST-2",
        "each question is announced by the old event as well",
        (row(table.FLOW, s.Asked, _legacy), _encoder),
    ),
    Mutant(
        "answer-delivered-twice",
        "RHO-HOST-3",
        "an answered question stays open, and a second answer reaches the tool",
        (row(*RESPOND, _stays_open),),
    ),
    Mutant(
        "answer-not-validated",
        "RHO-HOST-3",
        "whatever the host says is delivered",
        (attr(control, "validate", _anything_fits),),
    ),
    Mutant(
        "waiting-after-the-last-answer",
        "RHO-HOST-4",
        "the session waits for host input until the batch is over",
        (attr(*STATE, _waits_on),),
    ),
    Mutant(
        "finished-run-takes-an-answer",
        "RHO-HOST-5",
        "a response through the handle of a run that is over is answered ok",
        (attr(rho_core.session, "_without_run", _stale_handle),),
    ),
    Mutant(
        "answer-for-nobody",
        "RHO-HOST-5",
        "a response to a question that is closed is answered ok",
        (row(*RESPOND, _asker_gone),),
    ),
    Mutant(
        "batch-deaf-to-steers",
        "RHO-COORD-1",
        "while tools run a steer or a retract is not answered",
        (row(table.COMMON, inp.Steer, _deaf_batch), row(table.COMMON, inp.Retract, _deaf_batch)),
    ),
    Mutant(
        "batch-deaf-to-answers",
        "RHO-COORD-1",
        "while tools run a response is not answered",
        (row(*RESPOND, _deaf_batch),),
    ),
    Mutant(
        "one-question-at-a-time",
        "RHO-COORD-2",
        "a second question takes the place of the first",
        (attr(rho_core.asks.Asks, "announce", _one_place),),
    ),
    Mutant(
        "answer-to-the-oldest-question",
        "RHO-COORD-2",
        "an answer goes to the call that has waited longest",
        (row(*RESPOND, _oldest_is_answered),),
    ),
    Mutant(
        "answered-id-forgotten",
        "RHO-COORD-3",
        "a question id may be used again once it was answered",
        (attr(rho_core.asks.Asks, "close", _forgets_answered),),
    ),
    Mutant(
        "running-after-the-first-answer",
        "RHO-COORD-4",
        "the first answer ends the wait, although another question is open",
        (attr(*STATE, _waits_for_the_first),),
    ),
    Mutant(
        "steering-between-results",
        "RHO-COORD-5",
        "steering accepted in a batch is applied as soon as one call has finished",
        (row(table.FLOW, s.CallFinished, _steers_between_results),),
    ),
)
