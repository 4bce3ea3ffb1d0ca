"""The world of one `open` around a hosted runtime: its life, its clock, and how it settles."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from rho_conformance.drivers.corework.runs import Run
from rho_conformance.drivers.corework.settings import Settings, ToolHabit
from rho_conformance.drivers.corework.upcalls import Upcall
from rho_conformance.drivers.corework.world import World
from rho_conformance.drivers.live import doubles, lent, loops
from rho_conformance.drivers.live.port import LivePort
from rho_conformance.drivers.live.seam import Hosting
from rho_conformance.drivers.live.shadow import Shadow
from rho_conformance.errors import DriverError
from rho_core import effects as fx
from rho_core import inputs as i
from rho_core.normal import events
from rho_core.session import Session as CoreSession

MOST_ROUNDS = 10_000


class LiveWorld(World):
    """`start`: begins a task in the loop that nobody waits for. `rho`: the runtime, open as long as this world is.

    Everything happens in its event loop.
    """

    ports: dict[str, LivePort]  # type: ignore[assignment]

    def __init__(self, settings: Settings, hosting: Hosting, start: Callable[..., Any]) -> None:
        self.hosting = hosting
        self._start = start
        self.clock: Any = hosting.clock()
        super().__init__(settings, [])
        self.oracle = Shadow(self)
        self.rho: Any = None
        self._stop: anyio.Event | None = None
        self._group: Any = None
        self._expected: dict[Any, deque[LivePort]] = defaultdict(deque)
        self._records: dict[int, LivePort] = {}

    # -- time --------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        return int(self.clock.now_ms())

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        self.clock.pass_until(value)

    def fire_next(self, until_ms: int) -> bool:
        """Wake the earliest sleeper due by then."""
        return bool(self.clock.wake_next(until_ms))

    # -- the runtime's life --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Build the runtime and its sessions."""
        await self._begin()
        for name in self.settings.sessions:
            self.ports[name] = LivePort(self, name, self.opening(name), self.settings.eager)

    async def _begin(self) -> None:
        ready = anyio.Event()
        self._stop = anyio.Event()
        self._start(self._live, self._stop, ready)
        await ready.wait()

    async def _live(self, stop: anyio.Event, ready: anyio.Event) -> None:
        settings, observed = self.settings, Observed(self)
        policy = settings.policy
        decls = {t.name: t.asynchronous for t in policy.tools}
        habits = [settings.tools.get(name, ToolHabit(name, i.Plan(), False)) for name in decls]
        made = self.hosting.make(
            doubles.Provider(self),
            [doubles.Tool(self, habit, self.hosting.spec(habit.name, decls[habit.name])) for habit in habits],
            policy,
            authorizer=doubles.Authorizer(self),
            compactor=lent.Compactor(self),
            collector=lent.Collector(self),
            recorder=lent.Recorder(self),
            clock=self.clock,
            journal=observed.fed,
            observers=[observed.stepped],
        )
        async with made as rho, anyio.create_task_group() as group:
            self.rho, self._group = rho, group
            ready.set()
            await stop.wait()
            observed.over = True
            group.cancel_scope.cancel()

    async def close(self) -> None:
        """End the runtime; what it does then is seen by nobody."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None

    async def again(self) -> None:
        """The process is lost, and begins anew."""
        await self.close()
        self.oracle.restarted()
        self._expected.clear()
        await self._begin()

    def spawn(self, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Start a task of the host."""
        self._group.start_soon(function, *args)

    # -- sessions ------------------------------------------------------------------------------------------------

    def opening(self, name: str) -> Any:
        """A session as the scenario starts it."""
        from rho_conformance.drivers.corework import store

        session = store.opening(self.settings, name)
        return self.restored(session)

    def restored(self, session: CoreSession) -> Any:
        """The runtime's session with the state of this one, by way of a snapshot."""
        import rho_core.snapshot

        if session.ledger.history == () and session.ledger.revision == 0:
            return self.rho.session(session.id, system=self.settings.system)
        if session.ledger.revision == 0 and self.settings.system is not None and len(session.ledger.history) == 1:
            return self.rho.session(session.id, system=self.settings.system)
        return self.rho.restore(rho_core.snapshot.take(session), system=self.settings.system)

    def state_of(self, handle: Any) -> CoreSession:
        """The core's session behind a handle, for the oracle."""
        state: CoreSession = handle.core
        return state

    def port_of(self, session_id: str) -> LivePort:
        """The session of that name."""
        return self.ports[session_id]

    # -- who is called ---------------------------------------------------------------------------------------------

    def expect(self, port: LivePort, effect: Any) -> None:
        """The runtime is going to call a double that is not told for which session."""
        kind = type(effect)
        if kind is fx.Prepare:
            port.detachable[effect.call.id] = effect.detachable
            self._expected["prepare", effect.call.id].append(port)
        elif kind is fx.Authorize:
            self._expected["authorize", effect.call_id].append(port)
        elif kind is fx.Execute:
            self._expected["execute", effect.call_id].append(port)
        elif kind in (fx.CallCompactor, fx.AskBoundary, fx.AckBoundary):
            self._expected[kind].append(port)
        elif kind is fx.RecordUsage:
            self._records[id(effect)] = port

    def port_of_call(self, what: str, call_id: str) -> LivePort:
        """The session of a call that is prepared, authorised or executed now."""
        return self._next((what, call_id))

    def port_of_effect(self, kind: type, effect: Any = None) -> LivePort:
        """The session of a call of a double that was asked for by this effect."""
        return self._next(kind) if effect is None else self._records.pop(id(effect))

    def awaits(self, kind: type) -> bool:
        """Is a call of a double to come that an effect of this kind asked for?"""
        return bool(self._expected[kind])

    def _next(self, key: Any) -> LivePort:
        waiting = self._expected[key]
        if not waiting:
            raise DriverError(f"the runtime called a double that no effect of the core asked for: {key!r}")
        return waiting.popleft()

    # -- what is seen ------------------------------------------------------------------------------------------------

    def show(self, port: LivePort, run: Run, event: Any) -> None:
        """The reader took an event."""
        self.oracle.read(port.name, run.name, event)
        name, fields = events.event(event, self.names)
        port.see(name, fields, run)

    def see(self, name: str, session: str, run: str | None, fields: dict[str, Any]) -> None:
        """Write down one observation, and show it to the oracle."""
        super().see(name, session, run, fields)
        self.oracle.saw(name, session, run, fields)

    def tell_runtime(self, value: i.RuntimeInput) -> None:
        """The one thing that a host tells the runtime: to shut down."""
        assert isinstance(value, i.Shutdown)
        self.answer(value.command_id, self.rho.shutdown())

    def facts(self) -> dict[str, Any]:
        """As the handles of sessions and runs show them."""
        for run in self.runs.values():
            if not run.lost:
                run.token_cancelled = bool(self.ports[run.session].handles[run.name].token.cancelled)
        return super().facts()

    # -- settling ----------------------------------------------------------------------------------------------------

    async def settle_live(self) -> None:
        """Until nothing can happen without an answer, a reader, a host command or time."""
        for _ in range(MOST_ROUNDS):
            await loops.until_idle()
            moved = False
            for port in list(self.ports.values()):
                moved = port.work() or moved
            if not moved:
                return
        raise DriverError("the runtime does not come to rest")

    async def settle_due_live(self) -> None:
        """Settle, and wake what came due while several stimuli were delivered."""
        await self.settle_live()
        while self.fire_next(self.now_ms):
            await self.settle_live()
        for port in self.ports.values():
            port.rest()

    async def advance_live(self, milliseconds: int) -> None:
        """Let time pass; every sleeper wakes at its own time, and the world settles after each."""
        until = self.now_ms + milliseconds
        while self.fire_next(until):
            await self.settle_live()
        self.now_ms = until


class Observed:
    """The tap of one incarnation of the runtime. `over`: nothing of it counts any more."""

    def __init__(self, world: LiveWorld) -> None:
        self._world = world
        self.over = False

    def fed(self, session_id: str | None, value: Any) -> None:
        """An input is going to be fed to the core."""
        if not self.over:
            self._world.oracle.replay(session_id, value)

    def stepped(self, session_id: str | None, value: Any, effects: tuple[Any, ...]) -> None:
        """A step was made."""
        if self.over or session_id is None:
            return
        port = self._world.ports.get(session_id)
        if port is not None:
            port.stepped(value, effects)


__all__ = ["LiveWorld", "Upcall"]
