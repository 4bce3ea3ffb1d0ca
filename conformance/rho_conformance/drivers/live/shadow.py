"""The strict oracle: the runtime's own inputs, replayed by the core's driver, must show exactly what was seen.

`Shadow` is the world of the core's driver (`corework`) without a will of its own: it is fed what the runtime fed,
in that order, and writes down what the core's driver would have. After every settle the two must agree, channel by
channel: calls of doubles and their ends, answers, events, outcomes, timers, tokens, states. Nothing more, nothing
less, and in order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import anyio

import rho_core.runtime
import rho_core.session
from rho_conformance.drivers.corework import interpret
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.runs import Command, Run
from rho_conformance.drivers.corework.upcalls import ModelUpcall, Upcall
from rho_conformance.drivers.corework.world import World
from rho_conformance.drivers.live import agree
from rho_core import inputs as i
from rho_core.session import Session

if TYPE_CHECKING:
    from rho_conformance.drivers.live.world import LiveWorld

Json = dict[str, Any]
_FROM_RUNTIME = (i.Admitted, i.Refused, i.Cancel)
_PHASES: dict[type, tuple[str, ...]] = {
    i.Prepared: ("ToolPrepare",),
    i.PrepareFailed: ("ToolPrepare",),
    i.Authorized: ("ToolAuthorize",),
    i.Denied: ("ToolAuthorize",),
    i.ToolReturned: ("ToolExecute",),
    i.ToolPanicked: interpret.TOOL_PHASES,
    i.CompactorReturned: ("Compact",),
    i.CompactorFailed: ("Compact",),
    i.CompactorPanicked: ("Compact",),
    i.BoundaryReplied: ("Collect",),
    i.BoundaryGone: ("Collect",),
    i.UsageRecorded: ("Record",),
}
"""Inputs that end an upcall, and which."""
_MODEL_ENDS = (i.ModelReturned, i.ModelFailed, i.ModelPanicked)


class ShadowPort(SessionPort):
    """A session that is fed by the runtime's journal alone."""

    world: Shadow

    def install(self, session: Session) -> None:
        """A session begins here; nothing is held back."""
        super().install(session)
        self.held_back: list[Any] = []

    def forgotten(self) -> list[Any]:
        """What was refused while a send was blocked, and is not offered again now that none is."""
        self.held_back = [v for v in self.held_back if self._still_wanted(v)]
        return self.held_back if rho_core.session.accepts(self.session) else []

    def _still_wanted(self, value: Any) -> bool:
        attempt = getattr(value, "attempt", None)
        upcall = self.find("ModelCall") if attempt is not None else self.find("ToolExecute", value.call_id)
        if upcall is None or not upcall.open:
            return False
        return not isinstance(upcall, ModelUpcall) or (upcall.step, upcall.attempt) == (value.step, attempt)

    def flush(self) -> bool:
        """What the core's driver would feed by itself is the runtime's to feed."""
        return False

    def fed(self, value: i.SessionInput) -> None:
        """One input of the runtime."""
        self.world.fed = 0
        inner = value.input if isinstance(value, i.ForRun) else value
        self._expected(inner)
        if isinstance(inner, i.Taken) and self.active is not None:
            self.world.taken[self.active.name] += inner.n
        if isinstance(inner, i.Start | i.StartToolCall):
            self.starting[inner.run] = Run(inner.run, self.name)
        command_id = getattr(inner, "command_id", None)
        if command_id is not None:
            self.world.commands[command_id] = Command(inner.kind, command_id, self.name)
        late = isinstance(value, i.ForRun) and (self.active is None or value.run != self.active.name)
        ended = [] if late and not isinstance(inner, i.UsageRecorded) else self._ended_by(inner)

        def taken() -> None:
            for upcall in ended:
                upcall.finish()

        if self.offer(value, taken):
            self.held_back = [v for v in self.held_back if v != inner]
        elif inner not in self.held_back:
            self.held_back.append(inner)
        if isinstance(inner, i.SteerDelivered | i.SteerReleased) and self.claiming is not None:
            kind = "deliver" if isinstance(inner, i.SteerDelivered) else "release"
            interpret.steer_moved(self, self.claiming, (kind, self.world.names.steer(inner.steering_id)))

    def _expected(self, value: Any) -> None:
        """What the runtime machine told the session is fed once, and nothing else of that kind is."""
        known = next((q for q in self.queue if q == value), None)
        if known is not None:
            self.queue.remove(known)
        elif isinstance(value, i.Admitted | i.Refused):
            self.world.fault(f"{self.name} was fed {value!r}, which the runtime did not tell it")
        if isinstance(value, i.TimerFired):
            self.world.timer_fired(self, value.timer_id)

    def _ended_by(self, value: Any) -> list[Upcall]:
        step = getattr(value, "attempt", None)
        if step is not None:
            upcall = self.find("ModelCall")
            if not isinstance(upcall, ModelUpcall) or (upcall.step, upcall.attempt) != (value.step, value.attempt):
                return []
            self.claiming = upcall
            return [upcall] if isinstance(value, _MODEL_ENDS) else []
        kinds, call_id = _PHASES.get(type(value), ()), getattr(value, "call_id", None)
        found = [u for u in self.upcalls if u.open and u.kind in kinds and u.call_id == call_id]
        return found[:1] if kinds == ("Record",) else found


class Shadow(World):
    """`faults`: every difference between the runtime and the core, in words."""

    ports: dict[str, ShadowPort]  # type: ignore[assignment]

    def __init__(self, live: LiveWorld) -> None:
        self.live = live
        super().__init__(live.settings, [])
        self.names = live.names
        self.faults: list[str] = []
        self.replies: dict[str, list[Any]] = defaultdict(list)
        self.shown: dict[str, list[Any]] = defaultdict(list)
        self.taken: dict[str, int] = defaultdict(int)
        self._to_runtime: deque[tuple[Any, int]] = deque()
        self._inputs = 0
        self._since = 0
        self._step = 0

    @property
    def now_ms(self) -> int:
        return self.live.now_ms

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        pass

    @property
    def inputs(self) -> int:
        """How many inputs were replayed."""
        return self._inputs

    def fault(self, text: str) -> None:
        """A difference."""
        self.faults.append(text)

    # -- what happens in the runtime ---------------------------------------------------------------------------

    def begins(self, session: Session) -> None:
        """A session stands here, new or restored."""
        port = self.ports.get(session.id)
        if port is None:
            self.ports[session.id] = ShadowPort(self, session.id, session, eager=False)
        else:
            port.install(session)

    def restarted(self) -> None:
        """The process was lost: what was due is due no more."""
        self.runtime = rho_core.runtime.Runtime()
        self._to_runtime.clear()
        self.timers.clear()
        self.ports.clear()
        self.runs.clear()
        self.replies.clear()
        self.observations = []
        self._since = len(self.live.observations)

    def replay(self, session_id: str | None, value: Any) -> None:
        """The runtime is going to feed this."""
        self._inputs += 1
        if session_id is not None:
            for late, _ in self._to_runtime:
                self.fault(f"the runtime machine was not fed {late!r} before {session_id} was fed {value!r}")
            self._to_runtime.clear()
            if session_id in self.ports:
                self.ports[session_id].fed(value)
            return
        if isinstance(value, i.Shutdown):
            self.commands[value.command_id] = Command("shutdown", value.command_id, self.settings.sessions[0])
            super().tell_runtime(value)
        elif not self._to_runtime or self._to_runtime[0][0] != value:
            self.fault(f"the runtime machine was fed {value!r}, which no session asked for then")
        elif self._to_runtime.popleft()[1] != anyio.get_current_task().id:
            self.fault(f"the runtime machine was fed {value!r} later than in the step that asked for it")

    def tell_runtime(self, value: i.RuntimeInput) -> None:
        """A session asked the runtime machine for something."""
        self._to_runtime.append((value, anyio.get_current_task().id))
        super().tell_runtime(value)

    def reply(self, command: Command, value: Any) -> None:
        """An answer that the host must have got."""
        self.replies[command.session].append(value)

    def timer_fired(self, port: ShadowPort, timer_id: str) -> None:
        """A timer fires once, when it is due."""
        found = [t for t in self.timers if t.port is port and t.timer_id == timer_id]
        if not found or found[0].due_ms > self.now_ms:
            self.fault(f"the timer {timer_id!r} of {port.name} fired at {self.now_ms} ms, out of turn")
        for timer in found:
            self.timers.remove(timer)

    # -- what was seen -----------------------------------------------------------------------------------------

    def read(self, session: str, run: str, event: Any) -> None:
        """The reader took an event."""
        self.shown[run].append(event)

    def saw(self, name: str, session: str, run: str | None, fields: Json) -> None:
        """An observation; all of them are compared at once when the world is settled."""

    def settled(self, states: dict[str, Session]) -> None:
        """Nothing moves any more: everything must agree."""
        seen = self.live.observations[self._since if self._step == self.live.step - 1 and self._since else 0 :]
        self._step, self._since = self.live.step, 0
        agree.calls(self.observations, seen, self._at_work(), self.fault)
        agree.replies(self.replies, seen, self.fault)
        self.observations = []
        self.replies.clear()
        for name, state in states.items():
            if name in self.ports and self.ports[name].session != state:
                self.fault(f"the state of {name} is not the core's after the same inputs")
        for value, _ in self._to_runtime:
            self.fault(f"the runtime machine was never fed {value!r}")
        self._to_runtime.clear()
        for port in self.ports.values():
            port.upcalls = [u for u in port.upcalls if u.open]
            for value in port.queue:
                if isinstance(value, _FROM_RUNTIME):
                    self.fault(f"{port.name} was never fed {value!r}")
            port.queue.clear()
            for value in port.forgotten():
                self.fault(f"{value!r} was held back, and is not offered again though {port.name} takes it now")
        self._timers()
        for run in self.live.runs.values():
            if not run.lost and run.name in self.runs:
                self._run(run, self.runs[run.name])

    def _at_work(self) -> set[agree.Key]:
        return {(u.kind, p.name, u.call_id or "") for p in self.ports.values() for u in p.upcalls if u.open}

    def _timers(self) -> None:
        due = min((t.due_ms for t in self.timers), default=None)
        next_ms = self.live.clock.next_ms
        if (due is None) != (next_ms is None) or (due is not None and next_ms is not None and next_ms < due):
            self.fault(f"the clock wakes someone at {next_ms} ms; the core armed a timer for {due}")

    def _run(self, seen: Run, core: Run) -> None:
        port = self.live.ports[seen.session]
        handle = port.handles[seen.name]
        drained = seen.name in port.draining
        agree.events(seen, core, self.shown[seen.name], eager=port.eager, drained=drained, fault=self.fault)
        if bool(handle.token.cancelled) != core.token_cancelled:
            self.fault(
                f"the token of {seen.name} is set: {handle.token.cancelled}; by the core: {core.token_cancelled}"
            )
        if not seen.dropped and bool(handle.resolved) != core.resolved:
            self.fault(f"the outcome of {seen.name} is known: {handle.resolved}; by the core: {core.resolved}")
        alive = not (seen.dropped or seen.gone or core.resolved)
        if drained and alive and self.taken[seen.name] < len(core.channel):
            self.fault(f"{seen.name} has events that nobody takes, though its outcome is awaited")
        if seen.draining and core.resolved:
            self.fault(f"{seen.name} has its outcome, and who awaits it is not told")
        if seen.outcome is not None and seen.outcome != core.outcome:
            self.fault(f"the outcome of {seen.name} was {seen.outcome!r}; by the core: {core.outcome!r}")


__all__ = ["Shadow"]
