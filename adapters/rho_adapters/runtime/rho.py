"""The runtime: what sessions share, the tasks of all of them, and the shutdown (RHO-SHUT-*)."""

from __future__ import annotations

import logging
import threading
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

import rho_core.runtime
import rho_core.session
from rho_adapters.clock import Clock, SystemClock
from rho_adapters.errors import InvalidConfiguration
from rho_adapters.host import Authorizer, BoundaryCollector, Compactor, DenyAll, UsageRecorder
from rho_adapters.provider import Provider
from rho_adapters.runtime import checkpoint
from rho_adapters.runtime.config import RhoConfig, checked, make_policy
from rho_adapters.runtime.port import SessionPort
from rho_adapters.runtime.session import Session
from rho_adapters.runtime.work import RunState, Work
from rho_adapters.store import SessionStore
from rho_adapters.tool import Tool
from rho_core import effects as fx
from rho_core import inputs as inp
from rho_core import snapshot
from rho_core.config import Policy
from rho_core.errors import Error, ErrorName
from rho_core.runtime import Runtime

log = logging.getLogger("rho_adapters")
log.addHandler(logging.NullHandler())

Journal = Callable[[str | None, Any], None]
"""Called with (session id, input) for every input fed to a session, (None, input) for the runtime's."""
Observer = Callable[[str | None, Any, tuple[Any, ...]], None]
"""Called with (session id or None, input, effects) after each step, before the effects are carried out."""
DIAGNOSTICS = 16
"""Panics that are remembered."""


class Rho:
    """An async context; its sessions work as long as it is open. No task of theirs outlives it.

    `checkpoint`: save each session in `store` when a run of it ends, before its end is shown. `policy`: the
    core's policy as it is, in place of the one that `config` and the parts make. `journal`: see `Journal`; with
    it a run can be replayed through the core. `observers`: see `Observer`; they may look and never feed.
    Raises InvalidConfiguration.
    """

    def __init__(
        self,
        provider: Provider,
        tools: Sequence[Tool] = (),
        config: RhoConfig = RhoConfig(),  # noqa: B008 - frozen
        *,
        authorizer: Authorizer | None = None,
        compactor: Compactor | None = None,
        collector: BoundaryCollector | None = None,
        recorder: UsageRecorder | None = None,
        store: SessionStore | None = None,
        checkpoint: bool = False,
        clock: Clock | None = None,
        journal: Journal | None = None,
        observers: Sequence[Observer] = (),
        policy: Policy | None = None,
    ) -> None:
        made = make_policy(config, provider, tools, compactor, collector, recorder)
        self.policy = made if policy is None else checked(policy)
        self.provider = provider
        self.tools = {t.spec.name: t for t in tools}
        self.specs = tuple(t.spec for t in tools)
        self.config = config
        self.authorizer: Authorizer = authorizer or DenyAll()
        self.compactor, self.collector, self.recorder = compactor, collector, recorder
        self.store = store
        self.clock: Clock = clock or SystemClock()
        self.journal = journal
        self.observers = tuple(observers)
        self.diagnostics: deque[str] = deque(maxlen=DIAGNOSTICS)
        self.closing = False
        if checkpoint and store is None:
            raise _invalid("checkpoints need a store")
        self._checkpoint = checkpoint
        self._runtime = Runtime()
        self._ports: dict[str, SessionPort] = {}
        self._operations: dict[str, SessionPort] = {}
        self._serials: dict[str, int] = {}
        self._group: TaskGroup | None = None
        self._stack = AsyncExitStack()
        self._alive = 0
        self._thread = 0
        self._token: object = None
        self._abandoned: deque[tuple[SessionPort, RunState]] = deque()
        self._burial: anyio.Event | None = None

    # -- sessions ----------------------------------------------------------------------------------------------

    def session(
        self,
        session_id: str | None = None,
        *,
        system: str | None = None,
        metadata: tuple[tuple[str, str], ...] = (),
        cache_key: str | None = None,
        authorizer: Authorizer | None = None,
    ) -> Session:
        """A new session; `authorizer`: its own. Raises InvalidConfiguration when there is one of that id."""
        name = session_id or self.serial("session-")
        new = rho_core.session.new_session(name, self.policy, None, system, metadata=metadata, cache_key=cache_key)
        return self._install(new, authorizer)

    def restore(
        self, taken: snapshot.Snapshot, *, system: str | None = None, authorizer: Authorizer | None = None
    ) -> Session:
        """A session as a snapshot has it; `system` is what a later reset begins with. Raises SnapshotError."""
        return self._install(snapshot.restore(taken, self.policy, system), authorizer)

    async def open(
        self, session_id: str, *, system: str | None = None, authorizer: Authorizer | None = None
    ) -> Session:
        """The session of that id: the open one, else the one in the store, else a new one. Raises StoreError."""
        if session_id in self._ports:
            return Session(self._ports[session_id])
        taken = None if self.store is None else await self.store.load(session_id)
        if taken is None:
            return self.session(session_id, system=system, authorizer=authorizer)
        session = self.restore(taken, system=system, authorizer=authorizer)
        self._ports[session_id].saved = taken.revision
        return session

    def session_of(self, session_id: str) -> Session:
        """The open session of that id. Raises InvalidConfiguration when there is none."""
        port = self._ports.get(session_id)
        if port is None:
            raise _invalid(f"session {session_id!r} is not open")
        return Session(port)

    def forget(self, session: Session) -> None:
        """Close a session that is at rest, so that its id is free again. Raises InvalidConfiguration when busy."""
        if session.busy:
            raise _invalid(f"session {session.id!r} has an unfinished operation")
        self._ports.pop(session.id, None)

    def _install(self, state: rho_core.session.Session, authorizer: Authorizer | None) -> Session:
        if state.id in self._ports:
            raise _invalid(f"session {state.id!r} is open")
        port = self._ports[state.id] = SessionPort(self, state, self.provider, authorizer or self.authorizer)
        return Session(port)

    @property
    def is_shut(self) -> bool:
        """Does it take no new work (RHO-SHUT-6)?"""
        return self._runtime.shut

    # -- the runtime machine -----------------------------------------------------------------------------------

    def shutdown(self) -> int:
        """Cancel every registered operation and take no new one; how many were cancelled. Later calls: 0."""
        command_id = self.serial("c")
        effects = self._tell(inp.Shutdown(command_id))
        for port in list(self._ports.values()):
            port.flush()
        return next(e.value for e in effects if isinstance(e, fx.Reply) and isinstance(e.value, int))

    def admit(self, port: SessionPort, operation: str) -> bool:
        """Register an operation, unless the runtime is shut down."""
        self._operations[operation] = port
        admitted = any(isinstance(e, fx.Admitted) for e in self._tell(inp.Admit(operation)))
        if not admitted:
            del self._operations[operation]
        return admitted

    def release(self, operation: str) -> None:
        """The operation is over."""
        self._operations.pop(operation, None)
        self._tell(inp.Released(operation))

    def _tell(self, value: inp.RuntimeInput) -> tuple[Any, ...]:
        """Feed the runtime; what it says to sessions is queued there."""
        if self.journal is not None:
            self.journal(None, value)
        step = rho_core.runtime.step(self._runtime, value)
        self._runtime = step.state
        if self.observers:
            self.observed(None, value, step.effects)
        for effect in step.effects:
            match effect:
                case fx.Admitted(operation=operation):
                    self._operations[operation].queue.append(inp.Admitted(operation))
                case fx.Refused(operation=operation):
                    self._operations[operation].queue.append(inp.Refused(operation))
                case fx.CancelOperation(operation=operation):
                    self._operations[operation].queue.append(inp.Cancel(None))
                case _:
                    pass  # the reply to a shutdown, which its caller reads
        return step.effects

    # -- services for sessions ---------------------------------------------------------------------------------

    def serial(self, prefix: str) -> str:
        """An id used once in this runtime."""
        number = self._serials[prefix] = self._serials.get(prefix, 0) + 1
        return f"{prefix}{number}"

    def checkpoint(self, port: SessionPort, run: RunState) -> None:
        """Save before the end of a run is shown, if that is wanted."""
        if self._checkpoint and self.store is not None:
            checkpoint.hold(port, run, self.store, self.config.save_grace_ms)

    def panicked(self, fault: Exception, where: str) -> None:
        """Something that the host lent failed in a way it should not."""
        self.diagnostics.append(f"{where}: {type(fault).__name__}: {fault}")
        log.warning("%s failed: %s", where, type(fault).__name__, exc_info=fault)

    def observed(self, session_id: str | None, value: Any, effects: tuple[Any, ...]) -> None:
        """Show a step to the observers; one that fails costs nobody else anything."""
        for observer in self.observers:
            try:
                observer(session_id, value, effects)
            except Exception as fault:
                self.panicked(fault, "observer")

    def check_open(self) -> None:
        """Raises InvalidConfiguration outside of the context."""
        if self._group is None:
            raise _invalid("the runtime is not open: use `async with Rho(...) as rho`")

    def start_task(self, body: Callable[..., Awaitable[None]], *args: Any, name: str) -> None:
        """Start a task that does not outlive the runtime."""
        self.check_open()
        assert self._group is not None
        self._alive += 1
        self._group.start_soon(self._counted, body, args, name=name)

    async def _counted(self, body: Callable[..., Awaitable[None]], args: tuple[Any, ...]) -> None:
        try:
            await body(*args)
        finally:
            self._alive -= 1

    async def wait_quiet(self, work: Work) -> None:
        """Until no task of that run lives; clean-up that takes too long is left to the end of the runtime."""
        with anyio.move_on_after(self.config.close_grace_ms / 1_000, shield=True):
            await work.until_quiet()

    # -- runs that nobody holds --------------------------------------------------------------------------------

    def abandoned(self, port: SessionPort, run: RunState) -> None:
        """The handle of a run was collected. Called by the collector, from any thread, at any moment."""
        if run.resolved or run.dropped or self.closing:
            return
        self._abandoned.append((port, run))
        warnings.warn(f"run {run.id} was forgotten before its end; it is dropped", ResourceWarning, stacklevel=2)
        if threading.get_ident() == self._thread:
            self._wake_undertaker()
        else:
            threading.Thread(target=self._wake_from_afar, daemon=True).start()

    def _wake_from_afar(self) -> None:
        anyio.from_thread.run_sync(self._wake_undertaker, token=self._token)  # type: ignore[arg-type]

    def _wake_undertaker(self) -> None:
        if self._burial is not None:
            self._burial.set()

    async def _undertaker(self) -> None:
        while True:
            self._burial = anyio.Event()
            while self._abandoned:
                port, run = self._abandoned.popleft()
                port.drop(run)
            await self._burial.wait()

    # -- the context -------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._group is not None or self.closing:
            raise _invalid("a runtime is opened once")
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        self._thread, self._token = threading.get_ident(), anyio.lowlevel.current_token()
        self._group.start_soon(self._undertaker, name="rho undertaker")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None
        self.shutdown()
        with anyio.move_on_after(self.config.close_grace_ms / 1_000, shield=True):
            for port in self._ports.values():
                if port.active is not None:
                    await port.active.until_quiet()
        self.closing = True
        for port in self._ports.values():
            if isinstance(port.active, RunState):
                port.drop(port.active)
        self._group.cancel_scope.cancel()
        # The body's own exception is not the group's: told of it, the group would wrap it.
        await self._stack.__aexit__(None, None, None)
        self._group = None
        assert self._alive == 0, f"{self._alive} tasks outlived the runtime"


def _invalid(text: str) -> InvalidConfiguration:
    return InvalidConfiguration(Error(ErrorName.INVALID_CONFIGURATION, text))
