"""Wrong cores around the channel and the terminal event: RHO-BUF-1 to 6, 10; RHO-TERM-1 to 6."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.config
from rho_conformance.drivers.corework import interpret, port
from rho_core import capture as cap
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.config import Policy
from rho_core.errors import INTERRUPTED
from rho_core.messages import Block, Text, ToolCall
from rho_core.run import end, outbox, turn
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next
from rho_core.run.table import FLOW, WAIT

from .base import Mutant, attr, entry, row, serving

# --- buffering ---------------------------------------------------------------------------------


def _session_for_run(begin: Any) -> Any:
    """Addresses the stream by its session: two runs of one session look like one."""

    def handler(run: s.Run, i: inp.Begin, fx: Fx) -> Next:
        own: Fx = []
        kept: Next = begin(run, i, own)
        for effect in own:
            if isinstance(effect, out.Deliver) and isinstance(effect.event, ev.Started):
                effect = out.Deliver(ev.Started(run.core.session, effect.event.revision))
            fx.append(effect)
        return kept

    return handler


def _without_room(_: Any) -> Any:
    def send(run: s.Run, fx: Fx, events: tuple[ev.Event, ...], then: s.Continuation, cancellable: bool) -> Next:
        fx.extend(out.Deliver(e) for e in events)
        return s.Run(run.phase, max(0, run.free - len(events)), None, run.core), then

    return send


def _any_number(check: Any) -> Any:
    def wrapped(policy: Policy) -> Any:
        return check(replace(policy, event_capacity=max(1, policy.event_capacity)))

    return wrapped


def _deltas_if_room(emit: Any) -> Any:
    deltas = (ev.AssistantTextDelta, ev.ReasoningDelta, ev.ReasoningSummaryDelta)

    def wrapped(run: s.Run, fx: Fx, events: tuple[ev.Event, ...], then: Any, **how: bool) -> Next:
        kept = () if run.free == 0 and isinstance(events[0], deltas) else events
        sent: Next = emit(run, fx, kept, then, **how)
        return sent

    return wrapped


def _drains_nothing(read: Any) -> Any:
    def wrapped(self: port.SessionPort, run: Any) -> bool:
        asked, run.draining = run.draining, []
        moved: bool = read(self, run)
        run.draining = asked
        return moved

    return wrapped


def _progress_first(deliver: Any) -> Any:
    """Progress is put before everything the reader has not taken yet."""

    def wrapped(at: port.SessionPort, e: out.Deliver) -> None:
        deliver(at, e)
        if isinstance(e.event, ev.ToolUpdated) and at.active is not None and at.active.channel:
            at.active.channel.rotate(1)

    return wrapped


def _as_streamed(judge: Any) -> Any:
    def handler(run: s.Run, k: s.Judge, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Recording)
        shown = tuple(b for b in cap.seal(run.phase.capture).rest.blocks.items() if isinstance(b, Text))
        calls = tuple(b for b in k.content if isinstance(b, ToolCall))
        content: tuple[Block, ...] = (*shown, *calls) if shown else k.content
        kept: Next = judge(run, s.Judge(content, k.issue), fx)
        return kept

    return handler


# --- the terminal event --------------------------------------------------------------------------------

TERMINAL = (ev.Completed, ev.Cancelled, ev.Failed)


def _terminal_first(send_tail: Any) -> Any:
    def wrapped(run: s.Run, fx: Fx, events: tuple[ev.Event, ...], then: s.Continuation) -> Next:
        sent: Next = send_tail(run, fx, tuple(sorted(events, key=lambda e: not isinstance(e, TERMINAL))), then)
        return sent

    return wrapped


def _no_outcome(abandon: Any) -> Any:
    def handler(run: s.Run, k: s.Abandon, fx: Fx) -> Next:
        kept: Next = abandon(run, s.Abandon(None), fx)
        return kept

    return handler


def _before_the_commit(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        if isinstance(outcome, ev.RunOutcome):
            events = (ev.Completed(replace(outcome, revision=outcome.revision - 1)),)
        return outcome, label, events

    return wrapped


def _interrupted_by_cancel(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        if isinstance(how, s.CancelRun):
            outcome = replace(outcome, error=INTERRUPTED)
        return outcome, label, events

    return wrapped


def _with_diagnostic(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        if isinstance(how, s.Fail) and how.error.diagnostic is not None:
            text = f"{how.error.message} ({how.error.diagnostic})"
            events = (*events[:-1], replace(events[-1], message=text))
        return outcome, label, events

    return wrapped


def _always_permanent(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        if isinstance(how, s.Fail):
            events = (*events[:-1], replace(events[-1], retryable=False))
        return outcome, label, events

    return wrapped


def _told_twice(abandon: Any) -> Any:
    def handler(run: s.Run, k: s.Abandon, fx: Fx) -> Next:
        if k.error is not None and run.free > 1:
            failed = ev.Failed(k.error.message, k.error.retryable, run.core.ledger.revision)
            fx.extend((out.Deliver(failed), out.Deliver(failed)))
        kept: Next = abandon(run, k, fx)
        return kept

    return handler


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "started-names-the-session",
        "RHO-BUF-1",
        "Started carries the id of the session where the id of the run belongs",
        (row(WAIT, (s.Fresh, inp.Begin), _session_for_run),),
    ),
    *serving(
        (attr(outbox, "_send", _without_room),),
        "sends into the channel whether there is room or not",
        **{"unbounded-channel": "RHO-BUF-2", "never-stalls": "RHO-BUF-4"},
    ),
    Mutant(
        "zero-capacity-accepted",
        "RHO-BUF-2",
        "takes a configuration with room for no event",
        (attr(rho_core.config, "check_policy", _any_number),),
    ),
    Mutant(
        "deltas-dropped-when-full",
        "RHO-BUF-3",
        "drops a delta that finds the channel full",
        (attr(turn, "emit", _deltas_if_room),),
    ),
    Mutant(
        "outcome-does-not-drain",
        "RHO-BUF-5",
        "waits for the end of the run and leaves the channel full",
        (attr(port.SessionPort, "_read", _drains_nothing),),
    ),
    Mutant(
        "progress-overtakes",
        "RHO-BUF-6",
        "puts the progress of a tool before the events that are still unread",
        (entry(interpret.ROWS, out.Deliver, _progress_first),),
    ),
    Mutant(
        "content-from-deltas",
        "RHO-BUF-10",
        "commits the streamed text where the provider returned another one",
        (row(FLOW, s.Judge, _as_streamed),),
    ),
    Mutant(
        "terminal-event-first",
        "RHO-TERM-1",
        "sends the terminal event before the other events that the end owes",
        (attr(end, "send_tail", _terminal_first),),
    ),
    Mutant(
        "no-outcome-without-commit",
        "RHO-TERM-2",
        "leaves the outcome of a run that ends without a commit open for ever",
        (row(FLOW, s.Abandon, _no_outcome),),
    ),
    Mutant(
        "completed-before-its-commit",
        "RHO-TERM-3",
        "fills the outcome inside Completed before the commit has raised the revision",
        (attr(end, "_ending", _before_the_commit),),
    ),
    Mutant(
        "cancelled-is-interrupted",
        "RHO-TERM-4",
        "reports a committed cancellation as Interrupted",
        (attr(end, "_ending", _interrupted_by_cancel),),
    ),
    Mutant(
        "diagnostic-in-message",
        "RHO-TERM-5",
        "appends the provider's diagnostic to the text of Failed",
        (attr(end, "_ending", _with_diagnostic),),
    ),
    Mutant(
        "failed-always-permanent",
        "RHO-TERM-5",
        "Failed says Permanent whatever the error says",
        (attr(end, "_ending", _always_permanent),),
    ),
    Mutant(
        "abandoned-told-twice",
        "RHO-TERM-6",
        "tells the end of a run that was interrupted and committed nothing twice",
        (row(FLOW, s.Abandon, _told_twice),),
    ),
)
