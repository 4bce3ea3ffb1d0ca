"""The world of one `open`: clock, observations, runtime, sessions, and how it settles (format §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rho_core.runtime
from rho_conformance.drivers.corework.items import Surroundings
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.runs import Command, Names, Run
from rho_conformance.drivers.corework.settings import Settings
from rho_conformance.errors import DriverError
from rho_core import effects as fx
from rho_core import inputs as i
from rho_core.normal import encode

MOST_INPUTS = 100_000
"""Inputs that one step of a script can come to; a core that takes more of them feeds itself for ever."""

Journal = list[tuple[str | None, Any]]
"""What was fed: (session, input); (None, input) for the runtime; (session, Session) where one began."""


@dataclass(slots=True)
class Timer:
    """An armed timer; `order` settles ties in arming order."""

    port: SessionPort
    timer_id: str
    due_ms: int
    order: int


class World:
    """Everything around the core. It moves only when a stimulus or the settling moves it."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self.settings = settings
        self.journal = journal
        self.now_ms = 0
        self.seq = 0
        self.step = 0
        self.observations: list[dict[str, Any]] = []
        self.runtime = rho_core.runtime.Runtime()
        self.names = Names()
        self.ports: dict[str, SessionPort] = {}
        self.runs: dict[str, Run] = {}
        self.operations: dict[str, SessionPort] = {}
        self.commands: dict[str, Command] = {}
        self.timers: list[Timer] = []
        self.saved: dict[str, str] = {}
        self.saves = 0
        self.fed = 0
        self._serial = 0

    @property
    def restless(self) -> bool:
        """The core feeds itself for ever; nothing is done with it any more."""
        return self.fed > MOST_INPUTS

    # -- small services ----------------------------------------------------------------------------

    def serial(self) -> int:
        """A number used once."""
        self._serial += 1
        return self._serial

    @property
    def around(self) -> Surroundings:
        """What the doubles may look at."""
        return Surroundings(self.now_ms, self.names, self.settings.tools)

    def see(self, name: str, session: str, run: str | None, fields: dict[str, Any]) -> None:
        """Write down one observation."""
        where = {"session": session} if run is None else {"session": session, "run": run}
        self.seq += 1
        body = {**where, **fields}
        self.observations.append({"seq": self.seq, "step": self.step, "at_ms": self.now_ms, name: body})

    def command(self, command: Command) -> str:
        """Register a command; the id under which the core will answer it."""
        command_id = f"c{self.serial()}"
        self.commands[command_id] = command
        return command_id

    def reply(self, command: Command, value: Any) -> None:
        """The host has its answer."""
        run = command.run.name if command.run is not None else None
        self.see("Reply", command.session, run, {"name": command.name, "value": value})

    def asked(self, command_id: str) -> Command:
        """The command of that id. It is kept: an answer given twice is for the suite to see and to judge."""
        command = self.commands.get(command_id)
        if command is None:
            raise DriverError(f"the core answered command {command_id!r}, which was never given")
        return command

    def answer(self, command_id: str, value: Any) -> None:
        """`Reply` of the core."""
        command = self.asked(command_id)
        if command.stimulus == "retract":
            self.reply(command, {"ok": value})
        elif command.stimulus == "shutdown":
            self.reply(command, {"ok": {"cancelled_runs": value}})
        else:
            self.reply(command, "ok")

    def reject(self, effect: fx.Rejected) -> None:
        """`Rejected` of the core."""
        self.reply(self.asked(effect.command_id), encode.error(effect.error, effect.rule))

    # -- the runtime -------------------------------------------------------------------------------

    def tell_runtime(self, value: i.RuntimeInput) -> None:
        """Feed the runtime; what it tells sessions is queued, so that its reply comes first (RHO-SHUT-1)."""
        self.journal.append((None, value))
        step = rho_core.runtime.step(self.runtime, value)
        self.runtime = step.state
        for effect in step.effects:
            match effect:
                case fx.Admitted(operation=operation):
                    self.operations[operation].queue.append(i.Admitted(operation))
                case fx.Refused(operation=operation):
                    self.operations[operation].queue.append(i.Refused(operation))
                case fx.CancelOperation(operation=operation):
                    self.operations[operation].queue.append(i.Cancel(None))
                case fx.Reply(command_id=command_id, value=value_of):
                    self.answer(command_id, value_of)
                case _:
                    raise DriverError(f"the runtime asked for {effect!r}, which it has no business to")

    # -- time --------------------------------------------------------------------------------------

    def arm(self, port: SessionPort, timer_id: str, milliseconds: int) -> None:
        """Start a timer."""
        self.timers.append(Timer(port, timer_id, self.now_ms + milliseconds, self.serial()))

    def disarm(self, port: SessionPort, timer_id: str | None) -> None:
        """Stop a timer of a session, or all of them."""
        self.timers = [
            t for t in self.timers if t.port is not port or (timer_id is not None and t.timer_id != timer_id)
        ]

    def fire_next(self, until_ms: int) -> bool:
        """Fire the earliest timer due by then; the clock stands at its time, or later if it was late."""
        due = min(self.timers, key=lambda t: (t.due_ms, t.order), default=None)
        if due is None or due.due_ms > until_ms:
            return False
        self.now_ms = max(self.now_ms, due.due_ms)
        self.timers.remove(due)
        due.port.feed(i.TimerFired(due.timer_id))
        return True

    def advance(self, milliseconds: int) -> None:
        """Let time pass; every timer fires at its own time, and the world settles after each."""
        until = self.now_ms + milliseconds
        while self.fire_next(until):
            self.settle()
        self.now_ms = until

    # -- settling ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Until nothing can happen without an answer, a reader, a host command or time."""
        moved = True
        while moved and not self.restless:
            moved = False
            for port in list(self.ports.values()):
                moved = port.work() or moved

    def settle_due(self) -> None:
        """Settle, and fire what came due while several stimuli were delivered."""
        self.settle()
        while self.fire_next(self.now_ms):
            self.settle()
        for port in self.ports.values():
            port.rest()

    # -- what is reported --------------------------------------------------------------------------

    def waiting_on(self) -> list[str]:
        """What the unfinished runs wait for; nothing, if they never come to rest."""
        if self.restless:
            return []
        return [wait for port in self.ports.values() for wait in port.waiting_on()]

    def facts(self) -> dict[str, Any]:
        """Facts of every session, and those of the first one at the top."""
        sessions = {name: port.facts() for name, port in self.ports.items()}
        first = sessions[self.settings.sessions[0]]
        tokens = {r.name: r.facts() for r in self.runs.values() if not r.lost}
        return {**first, "tokens": tokens, "saves": self.saves, "sessions": sessions}
