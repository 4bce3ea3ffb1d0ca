"""A session: one history, at most one operation at a time (RHO-STATE-*, RHO-DROP-2, RHO-SHUT-6).

The session owns the ledger while idle and moves it into a run; everything that would change it meanwhile is
refused with SessionBusy. Its state is derived, never stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from . import effects as fx
from . import inputs as inp
from .config import Policy
from .errors import INTERRUPTED, Error, ErrorName
from .estimate import context_tokens
from .ledger import Ledger
from .messages import History, System, User, is_object
from .record import record
from .run import state as rs
from .run import step as run_step
from .step import Step

SessionState = Literal["Idle", "Running", "WaitingForHostInput", "Cancelling", "Completed", "Failed"]
Label = rs.Label


@record
class Resting:
    """Nothing is going on. `label`: what the last operation left to be seen."""

    ledger: Ledger
    label: Label = "Idle"


@record
class Admitting:
    """The runtime was asked whether the operation may begin."""

    ledger: Ledger
    command: inp.Start | inp.StartToolCall | inp.Compact


@record
class Active:
    """A run has the ledger."""

    run: rs.Run


@record
class Leaving:
    """A dropped run: busy until nothing it had started is alive (RHO-DROP-2)."""

    ledger: Ledger
    label: Label
    run: str


@record
class CompactingByHand:
    """A manual compaction. `cancelled`: its compactor was told to stop, and may still answer as it likes."""

    ledger: Ledger
    command: inp.Compact
    stage: Literal["running", "cancelled"] = "running"


Phase = Resting | Admitting | Active | Leaving | CompactingByHand


@record
class Identity:
    """What of a session does not change with a run. `metadata`: the host's pairs; `cache_key`: the provider's."""

    id: str
    policy: Policy
    system: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    cache_key: str | None = None


@record
class Session:
    identity: Identity
    phase: Phase

    @property
    def id(self) -> str:
        return self.identity.id

    @property
    def policy(self) -> Policy:
        return self.identity.policy

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return self.identity.metadata

    @property
    def cache_key(self) -> str | None:
        return self.identity.cache_key

    @property
    def ledger(self) -> Ledger:
        """The committed part, during a run as well."""
        return self.phase.run.core.ledger if isinstance(self.phase, Active) else self.phase.ledger

    @property
    def busy(self) -> bool:
        """Would a start be refused with SessionBusy?"""
        return not isinstance(self.phase, Resting)

    @property
    def run(self) -> rs.Run | None:
        """The run that has the ledger."""
        return self.phase.run if isinstance(self.phase, Active) else None

    @property
    def run_id(self) -> str | None:
        run = self.run
        return None if run is None else run.core.run


def new_session(
    session_id: str,
    policy: Policy,
    ledger: Ledger | None = None,
    system: str | None = None,
    metadata: tuple[tuple[str, str], ...] = (),
    cache_key: str | None = None,
) -> Session:
    """A session at rest. A *new* one (no `ledger`) begins with the system prompt; a restored one does not."""
    fresh = Ledger(() if system is None else (System(system),))
    identity = Identity(session_id, policy, system, metadata, cache_key)
    return Session(identity, Resting(fresh if ledger is None else ledger))


def session_state(session: Session) -> SessionState:
    """What an observer may see (RHO-STATE-1); an observation, not a lock (RHO-STATE-5)."""
    phase = session.phase
    if isinstance(phase, (Resting, Leaving)):
        return phase.label
    if isinstance(phase, CompactingByHand) and phase.stage == "cancelled":
        return "Cancelling"
    if not isinstance(phase, Active):
        return "Running"
    run = phase.run.phase
    if isinstance(run, rs.Settled):
        return run.label
    if isinstance(run, rs.Settling):
        return "Cancelling" if run.cancelled else run.label
    if isinstance(run, (rs.Draining, rs.Ebbing, rs.Cancelling)):
        return "Cancelling"
    if isinstance(run, rs.Stopping) and isinstance(run.plan.ending, rs.CancelRun):
        return "Cancelling"
    if isinstance(run, rs.Batch) and run.asks.open:
        return "WaitingForHostInput"
    return "Running"


def accepts(session: Session) -> bool:
    """Are gated inputs taken now?"""
    run = session.run
    return run is None or run_step.accepts(run)


# --- commands that need a session at rest -------------------------------------------------------------------

BUSY = Error(ErrorName.SESSION_BUSY, "the session has an active operation")


def _at(session: Session, phase: Phase) -> Session:
    return Session(session.identity, phase)


def _rejected(session: Session, command_id: str, error: Error, rule: str) -> Step[Session]:
    return Step(session, (fx.Rejected(command_id, error, rule),))


def _admit(session: Session, i: inp.Start | inp.StartToolCall | inp.Compact) -> Step[Session]:
    operation = i.operation if isinstance(i, inp.Compact) else i.run
    return Step(_at(session, Admitting(session.ledger, i)), (fx.Admit(operation),))


def _start_tool(session: Session, i: inp.StartToolCall) -> Step[Session]:
    if i.call.id and i.call.name and is_object(i.call.arguments):
        return _admit(session, i)
    text = "a host call needs an id, a name and an object of arguments"
    return _rejected(session, i.command_id, Error(ErrorName.INVALID_CONFIGURATION, text), "RHO-ORD-4")


def _install(session: Session, command_id: str, history: History) -> Step[Session]:
    """A mutation by the host is a commit of its own: revision + 1 (contract part 4)."""
    ledger = session.ledger.replace(history)
    return _installed(session, command_id, ledger)


def _installed(session: Session, command_id: str, ledger: Ledger | Error) -> Step[Session]:
    if isinstance(ledger, Error):
        return _rejected(session, command_id, ledger, "RHO-TERM-6")
    assert isinstance(session.phase, Resting)
    after = _at(session, Resting(ledger, session.phase.label))
    return Step(after, (fx.Reply(command_id, ledger.revision),))


def _append(session: Session, i: inp.AppendMessage) -> Step[Session]:
    return _install(session, i.command_id, (*session.ledger.history, i.message))


def _replace(session: Session, i: inp.ReplaceHistory) -> Step[Session]:
    return _install(session, i.command_id, i.messages)


def _reset(session: Session, i: inp.Reset) -> Step[Session]:
    """Back to the system prompt; the compaction counters are cleared (rho.md 1.4)."""
    system = session.identity.system
    cleared = Ledger((), session.ledger.revision)
    return _installed(session, i.command_id, cleared.replace(() if system is None else (System(system),)))


def _set_policy(session: Session, command_id: str, **changes: Any) -> Step[Session]:
    identity = replace(session.identity, policy=replace(session.policy, **changes))
    return Step(Session(identity, session.phase), (fx.Reply(command_id),))


def _replace_provider(session: Session, i: inp.ReplaceProvider) -> Step[Session]:
    return _set_policy(session, i.command_id, identity=i.identity)


def _set_compaction(session: Session, i: inp.SetCompaction) -> Step[Session]:
    return _set_policy(session, i.command_id, compaction=i.compaction)


def _set_boundary(session: Session, i: inp.SetBoundaryInputs) -> Step[Session]:
    return _set_policy(session, i.command_id, boundary=i.installed)


IDLE_ONLY: dict[type, Callable[[Session, Any], Step[Session]]] = {
    inp.Start: _admit,
    inp.StartToolCall: _start_tool,
    inp.Compact: _admit,
    inp.AppendMessage: _append,
    inp.ReplaceHistory: _replace,
    inp.Reset: _reset,
    inp.ReplaceProvider: _replace_provider,
    inp.SetCompaction: _set_compaction,
    inp.SetBoundaryInputs: _set_boundary,
}
"""Commands that need a session at rest; SessionBusy comes before anything else that could refuse them (D20)."""

# --- admission -------------------------------------------------------------------------------------------------------


def _operation(command: inp.Start | inp.StartToolCall | inp.Compact) -> str:
    return command.operation if isinstance(command, inp.Compact) else command.run


def _admitted(session: Session, i: inp.Admitted) -> Step[Session]:
    phase = session.phase
    if not isinstance(phase, Admitting) or _operation(phase.command) != i.operation:
        return Step(session, ())
    command, ledger = phase.command, phase.ledger
    if isinstance(command, inp.Compact):
        call = fx.CallCompactor(ledger.history, "manual")
        return Step(_at(session, CompactingByHand(ledger, command)), (call,))
    begin = _begin(command)
    run = rs.new_run(session.id, command.run, session.policy, ledger)
    begun = _advance(session, run, begin)
    return Step(begun.state, (fx.Reply(command.command_id), *begun.effects))


def _begin(command: inp.Start | inp.StartToolCall) -> inp.Begin:
    if isinstance(command, inp.Start):
        return inp.Begin((User(command.content),))
    return inp.Begin((), command.call)


def _refused(session: Session, i: inp.Refused) -> Step[Session]:
    phase = session.phase
    if not isinstance(phase, Admitting) or _operation(phase.command) != i.operation:
        return Step(session, ())
    error = Error(ErrorName.RUNTIME_SHUTDOWN, "the runtime is shut down")
    resting = _at(session, Resting(phase.ledger))
    return _rejected(resting, phase.command.command_id, error, "RHO-SHUT-6")


def _tasks_gone(session: Session, i: inp.TasksGone) -> Step[Session]:
    phase = session.phase
    if not isinstance(phase, Leaving) or phase.run != i.run:
        return Step(session, ())
    return Step(_at(session, Resting(phase.ledger, phase.label)), (fx.Release(i.run),))


# --- the run, and the manual compaction ---------------------------------------------------------------------


def _advance(session: Session, run: rs.Run, i: inp.RunInput) -> Step[Session]:
    """Feed the run; when it is over the ledger comes back."""
    after = run_step.step(run, i)
    phase = after.state.phase
    if type(phase) is not rs.Settled:
        return Step(Session(session.identity, Active(after.state)), after.effects)
    core = after.state.core
    if type(i) is inp.Drop:
        return Step(_at(session, Leaving(core.ledger, phase.label, core.run)), after.effects)
    resting = _at(session, Resting(core.ledger, phase.label))
    return Step(resting, (*after.effects, fx.Release(core.run)))


def _by_hand(session: Session, phase: CompactingByHand, i: inp.RunInput) -> Step[Session]:
    """Not raced but told: whatever the compactor answers decides, cancelled or not (RHO-CAN-5, contract 6.23)."""
    if isinstance(i, inp.CompactorReturned):
        return _hand_compacted(session, phase, i)
    if isinstance(i, inp.CompactorFailed):
        return _hand_failed(session, phase, i.error)
    if isinstance(i, inp.CompactorPanicked):
        return _hand_failed(session, phase, Error(ErrorName.INTERRUPTED, "the compactor panicked"))
    if isinstance(i, inp.Cancel):
        answer = () if i.command_id is None else (fx.Reply(i.command_id),)
        if phase.stage == "cancelled":
            return Step(session, answer)
        told = _at(session, CompactingByHand(phase.ledger, phase.command, "cancelled"))
        return Step(told, (fx.SignalCancel(), *answer))
    if isinstance(i, inp.Drop):
        return _hand_dropped(session, phase)
    return _without_run(session, i)


def _hand_dropped(session: Session, phase: CompactingByHand) -> Step[Session]:
    """Dropping it releases the session; nothing is installed (contract 6.23)."""
    ended = _hand_failed(session, phase, INTERRUPTED)
    signal = (fx.SignalCancel(),) if phase.stage == "running" else ()
    return Step(ended.state, (*signal, fx.AbortCompactor(), *ended.effects))


def _hand_failed(session: Session, phase: CompactingByHand, error: Error) -> Step[Session]:
    resting = _at(session, Resting(phase.ledger))
    command = phase.command
    return Step(resting, (fx.Rejected(command.command_id, error, "RHO-ORD-11b"), fx.Release(command.operation)))


def _hand_compacted(session: Session, phase: CompactingByHand, i: inp.CompactorReturned) -> Step[Session]:
    if not i.messages:
        return _hand_failed(
            session, phase, Error(ErrorName.INVALID_HOST_RESPONSE, "the compactor returned no messages")
        )
    old, spec = phase.ledger, session.policy.tool_spec_tokens
    before, now = context_tokens(old.history, spec), context_tokens(i.messages, spec)
    ledger = old.compact(i.messages, len(old.history) - len(i.messages), before, now, i.usage)
    if isinstance(ledger, Error):
        return _hand_failed(session, phase, ledger)
    command = phase.command
    done = (fx.Reply(command.command_id, ledger.revision), fx.Release(command.operation))
    return Step(_at(session, Resting(ledger, "Completed")), done)


def _without_run(session: Session, i: inp.RunInput) -> Step[Session]:
    """A command through a stale handle is answered; everything else comes too late and is ignored."""
    if isinstance(i, inp.Cancel):
        return Step(session, () if i.command_id is None else (fx.Reply(i.command_id),))
    if isinstance(i, inp.Retract):
        return Step(session, (fx.Reply(i.command_id, "NotFound"),))
    if isinstance(i, (inp.Steer, inp.Respond)):
        rule = "RHO-STEER-2" if isinstance(i, inp.Steer) else "RHO-HOST-5"
        error = Error(ErrorName.INVALID_HOST_RESPONSE, "the run no longer accepts commands")
        return _rejected(session, i.command_id, error, rule)
    return Step(session, ())


def _for_run(session: Session, i: inp.ForRun) -> Step[Session]:
    """By name, so that what comes after its run is over is told from what the next run is to have."""
    if session.run_id != i.run:
        return _without_run(session, i.input)
    after = step(session, i.input)
    held = len(after.effects) == 1 and type(after.effects[0]) is fx.NotReady
    return Step(session, (fx.NotReady(i),)) if held else after  # whoever offers it again keeps the address


# --- the whole -----------------------------------------------------------------------------------------------

LINK: dict[type, Callable[[Session, Any], Step[Session]]] = {
    inp.Admitted: _admitted,
    inp.Refused: _refused,
    inp.TasksGone: _tasks_gone,
}


def step(session: Session, i: inp.SessionInput) -> Step[Session]:
    """Feed one input. Total over `SessionInput`; TypeError for a value of another type."""
    kind = type(i)
    phase = session.phase
    if kind is inp.TextDelta and type(phase) is Active:
        quick = run_step.hot(phase.run, i)  # type: ignore[arg-type]
        if quick is not None:
            return Step(Session(session.identity, Active(quick[0])), quick[1])
    if kind in inp.INPUT_CLASS:
        if type(phase) is Active:
            return _advance(session, phase.run, i)  # type: ignore[arg-type]
        if type(phase) is CompactingByHand:
            return _by_hand(session, phase, i)  # type: ignore[arg-type]
        return _without_run(session, i)  # type: ignore[arg-type]
    if isinstance(i, inp.ForRun):
        return _for_run(session, i)
    command = IDLE_ONLY.get(kind)
    if command is not None:
        if not isinstance(phase, Resting):
            return _rejected(session, i.command_id, BUSY, "RHO-DROP-2")  # type: ignore[union-attr, arg-type]
        return command(session, i)
    link = LINK.get(kind)
    if link is None:
        raise TypeError(f"not an input of a session: {i!r}")
    return link(session, i)
