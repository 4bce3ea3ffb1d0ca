"""Permitted variants of what a host sees: when it is answered, in which order a race is taken, the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import rho_core.session
from rho_conformance.drivers.corework import commands, interpret
from rho_conformance.drivers.corework.commands import Performer
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.world import World
from rho_conformance.mutants.base import Benign
from rho_conformance.mutants.benign_kit import attr, entry, inner
from rho_core import effects as fx
from rho_core import inputs as inp
from rho_core.errors import Error, ErrorName
from rho_core.normal import encode
from rho_core.run import state as s
from rho_core.session import Active, Session

BEGINNINGS = (inp.Start, inp.StartToolCall, inp.Compact)
BUSY = Error(ErrorName.SESSION_BUSY, "the last operation is not released yet")
SHUT = Error(ErrorName.RUNTIME_SHUTDOWN, "the runtime is shut down")


def _refuse(port: SessionPort, value: Any, error: Error) -> None:
    """Refuse to begin an operation, without asking the core."""
    command = port.world.asked(value.command_id)
    if not isinstance(value, inp.Compact):
        port.starting.pop(value.run, None)
    port.world.reply(command, encode.error(error))


# --- D20, R25: refusals -----------------------------------------------------------------------------------------------


def _shut_first(old: Any) -> Any:
    """Whether the runtime is shut is looked at before the session is."""

    def feed(self: SessionPort, value: Any) -> None:
        if isinstance(value, BEGINNINGS) and self.world.runtime.shut:
            _refuse(self, value, SHUT)
        else:
            old(self, value)

    return feed


def _noting(name: str) -> Callable[[Any], Any]:
    """Note on the port in which step this happened."""

    def wrap(old: Any) -> Any:
        def handler(port: SessionPort, what: Any) -> None:
            setattr(port, name, port.world.step)
            old(port, what)

        return handler

    return wrap


def _released_late(old: Any) -> Any:
    """The session is free when the step has settled, or when its outcome was given."""

    def feed(self: SessionPort, value: Any) -> None:
        ended, told = getattr(self, "released_in", 0), getattr(self, "told_in", 0)
        if isinstance(value, BEGINNINGS) and ended == self.world.step and told < ended:
            _refuse(self, value, BUSY)
        else:
            old(self, value)

    return feed


# --- D22, STEER-1: commands that wait ---------------------------------------------------------------------------------

HOST_COMMANDS = (inp.Steer, inp.Retract, inp.Respond)


def _blocked(session: Session) -> bool:
    run = session.run
    return run is not None and run.blocked is not None


def _deaf(session: Session) -> bool:
    """Waiting for the recorder, a timer, the compactor, the collector or a preparation: commands are not looked at."""
    run = session.run
    if run is None:
        return False
    phase = run.phase
    if isinstance(phase, s.Batch):
        return any(slot.stage == "preparing" for slot in phase.slots)
    return isinstance(phase, (s.Recording, s.BackingOff, s.Compacting, s.Collecting))


def _completes(session: Session, value: Any) -> bool:
    """With this the blocked send is through."""
    run = session.run
    return run is not None and run.blocked is not None and len(run.blocked.sends) <= run.free + value.n


def _waiting_while(deaf: Callable[[Session], bool]) -> Callable[[Any], Any]:
    """Steer, retract and respond wait while the run is deaf, in their order."""

    def wrap(old: Any) -> Any:
        def offer(self: SessionPort, value: Any, taken: Any = None) -> bool:
            if isinstance(inner(value), HOST_COMMANDS):
                queued = any(isinstance(inner(v), HOST_COMMANDS) for v, _ in self.deferred)
                if deaf(self.session) or queued:
                    return False
            elif isinstance(value, inp.Taken) and _completes(self.session, value):
                # The send is through: what waited for it comes before what follows it.
                waiting = [(v, by) for v, by in self.deferred if isinstance(inner(v), HOST_COMMANDS)]
                if waiting and deaf is _blocked:
                    self.deferred = [d for d in self.deferred if d not in waiting]
                    for command, _ in waiting:
                        old(self, command)
            return bool(old(self, value, taken))

        return offer

    return wrap


# --- D27: a second retract --------------------------------------------------------------------------------------------


def _note_retract(old: Any) -> Any:
    def offer(self: SessionPort, value: Any, taken: Any = None) -> bool:
        if isinstance(value, inp.Retract) and self.active is not None:
            asked: dict[str, Any] = self.world.__dict__.setdefault("retracts", {})
            asked[value.command_id] = (self.active.name, value.steering_id)
        return bool(old(self, value, taken))

    return offer


def _retracted_again(old: Any) -> Any:
    def answer(self: World, command_id: str, value: Any) -> None:
        asked = self.__dict__.get("retracts", {}).get(command_id)
        done: set[Any] = self.__dict__.setdefault("retracted", set())
        if value == "Retracted" and asked is not None:
            done.add(asked)
        elif value == "NotFound" and asked in done:
            value = "Retracted"
        old(self, command_id, value)

    return answer


# --- other words ------------------------------------------------------------------------------------------------------


def _plain_refusal(_: Any) -> Any:
    """Refused in words of its own, without saying by which rule."""

    def reject(self: World, effect: fx.Rejected) -> None:
        error = replace(effect.error, message=f"no ({effect.error.name})")
        self.reply(self.asked(effect.command_id), encode.error(error))

    return reject


def _once(old: Any) -> Any:
    """The outcome of a run is given once; whoever asks again is told that it is consumed."""

    def outcome(performer: Performer, stimulus: Any) -> None:
        run = performer.run_of(stimulus)
        asked: set[str] = performer.world.__dict__.setdefault("outcomes_asked", set())
        if run is not None and run.name in asked:
            gone = Error(ErrorName.INVALID_HOST_RESPONSE, "the outcome was consumed")
            performer.say(stimulus, encode.error(gone), run)
            return
        if run is not None:
            asked.add(run.name)
        old(performer, stimulus)

    return outcome


def _drained_whole(old: Any) -> Any:
    """What the outcome drains leaves nothing behind to be read."""

    def report(port: SessionPort, e: fx.ReportOutcome) -> None:
        run = port.active
        drained = run is not None and bool(run.draining)
        old(port, e)
        if run is not None and drained:
            run.channel.clear()

    return report


# --- D5, R28: the state -----------------------------------------------------------------------------------------------


def _never_cancelling(old: Any) -> Any:
    return lambda session: "Running" if (state := old(session)) == "Cancelling" else state


def _cancelling_late(old: Any) -> Any:
    """Cancelling is seen between the commit and the end alone."""

    def session_state(session: Session) -> str:
        state: str = old(session)
        if state != "Cancelling":
            return state
        phase = session.phase.run.phase if isinstance(session.phase, Active) else None
        return state if isinstance(phase, s.Settling) else "Running"

    return session_state


def _terminal_at_exit(old: Any) -> Any:
    """Completed and Failed are seen when the run is over, not while its last events are still being sent."""

    def session_state(session: Session) -> str:
        run = session.run
        ending = run is not None and isinstance(run.phase, s.Settling) and not run.phase.cancelled
        return "Running" if ending else str(old(session))

    return session_state


BENIGN: tuple[Benign, ...] = (
    Benign(
        "shutdown-before-busy",
        "D20",
        "a runtime that is shut says so before a busy session does",
        (attr(SessionPort, "feed", _shut_first),),
    ),
    Benign(
        "released-after-the-step",
        "R25",
        "right after its terminal event the session is still busy",
        (
            entry(interpret.ROWS, fx.Release, _noting("released_in")),
            attr(interpret, "resolve", _noting("told_in")),
            attr(SessionPort, "feed", _released_late),
        ),
    ),
    Benign(
        "commands-wait-for-the-send",
        "D22",
        "commands are served when the blocked send is through",
        (attr(SessionPort, "offer", _waiting_while(_blocked)),),
    ),
    Benign(
        "commands-wait-for-the-run",
        "RHO-STEER-1",
        "commands are not served in delays, compaction, preparation and at the collector",
        (attr(SessionPort, "offer", _waiting_while(_deaf)),),
    ),
    Benign(
        "retracted-twice",
        "D27",
        "a second retract of a steer answers Retracted",
        (attr(SessionPort, "offer", _note_retract), attr(World, "answer", _retracted_again)),
    ),
    Benign(
        "refused-in-other-words",
        "RHO-HOST-5",
        "refusals name no rule and have texts of their own",
        (attr(World, "reject", _plain_refusal),),
    ),
    Benign(
        "outcome-once",
        "CORE-S7",
        "a second outcome is refused as consumed",
        (entry(commands.HANDLERS, "outcome", _once),),
    ),
    Benign(
        "nothing-left-over",
        "R29",
        "what was unread is gone once the outcome was given",
        (entry(interpret.ROWS, fx.ReportOutcome, _drained_whole),),
    ),
    Benign(
        "never-cancelling",
        "D5",
        "Cancelling is never seen",
        (attr(rho_core.session, "session_state", _never_cancelling),),
    ),
    Benign(
        "cancelling-late",
        "D5",
        "Cancelling is seen between commit and end alone",
        (attr(rho_core.session, "session_state", _cancelling_late),),
    ),
    Benign(
        "terminal-state-at-exit",
        "R28",
        "Completed and Failed are not seen before the run is over",
        (attr(rho_core.session, "session_state", _terminal_at_exit),),
    ),
)
