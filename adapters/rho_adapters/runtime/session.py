"""A session: one history, at most one operation at a time (RHO-STATE-*)."""

from __future__ import annotations

from collections.abc import Callable

import rho_core.session
from rho_adapters.errors import InvalidConfiguration, ended
from rho_adapters.provider import Provider
from rho_adapters.runtime import checkpoint
from rho_adapters.runtime.port import SessionPort, Waiter
from rho_adapters.runtime.run import Run
from rho_adapters.runtime.text import Content, blocks
from rho_adapters.runtime.work import RunState, Work
from rho_core import inputs as inp
from rho_core import snapshot
from rho_core.config import Compaction
from rho_core.errors import Error, ErrorName
from rho_core.events import RunOutcome, ToolHostInputRequested
from rho_core.messages import History, Message, ToolCall
from rho_core.session import SessionState
from rho_core.waiting import waiting_on


class Session:
    """What a host does with a session. Forgetting it stops nothing (RHO-DROP-5)."""

    def __init__(self, port: SessionPort) -> None:
        self._port = port

    @property
    def id(self) -> str:
        """The session's id."""
        return self._port.state.id

    @property
    def state(self) -> SessionState:
        """What an observer may see (RHO-STATE-1)."""
        return rho_core.session.session_state(self._port.state)

    @property
    def busy(self) -> bool:
        """Would a start be refused with SessionBusy?"""
        return self._port.state.busy

    @property
    def revision(self) -> int:
        """Counts commits."""
        return self._port.state.ledger.revision

    @property
    def history(self) -> History:
        """The committed messages, during a run as well."""
        return self._port.state.ledger.history

    @property
    def provider(self) -> Provider:
        """The model that the next request goes to."""
        return self._port.provider

    @property
    def core(self) -> rho_core.session.Session:
        """The core's session as it is now: immutable, for journals, digests and oracles."""
        return self._port.state

    @property
    def waiting_on(self) -> tuple[str, ...]:
        """What an unfinished operation waits for: model, tool:ID, host:REQUEST, reader, timer…"""
        return waiting_on(self._port.state)

    # -- runs --------------------------------------------------------------------------------------------------

    def start(self, content: Content, *, run_id: str | None = None) -> Run:
        """Begin a run with a user message. Raises SessionBusy, RuntimeShutdown."""
        given = blocks(content)
        return self._begin(run_id, lambda command_id, run: inp.Start(command_id, run, given))

    def start_with_tool_call(self, call: ToolCall, *, run_id: str | None = None) -> Run:
        """Begin a run with a call of the host's own. Raises SessionBusy, RuntimeShutdown, CommandRejected."""
        return self._begin(run_id, lambda command_id, run: inp.StartToolCall(command_id, run, call))

    def _begin(self, run_id: str | None, make: Callable[[str, str], inp.SessionInput]) -> Run:
        port = self._port
        port.rho.check_open()
        state = RunState(run_id or port.rho.serial("run-"), lambda: _cancel(port, state))
        port.starting[state.id] = state
        try:
            port.command(lambda command_id: make(command_id, state.id))
        finally:
            port.starting.pop(state.id, None)
        return Run(port, state)

    async def complete(self, content: Content) -> RunOutcome:
        """Run to the end without looking at the events. Raises what `Run.outcome` raises.

        A tool that asks the host something cancels the run: nobody is here to answer (RHO-HOST-5).
        """
        async with self.start(content) as run:
            asked: str | None = None
            async for event in run:
                if isinstance(event, ToolHostInputRequested) and asked is None:
                    asked = event.request.title
                    run.cancel()
            if asked is not None:
                raise ended(Error(ErrorName.INVALID_HOST_RESPONSE, f"nobody answers {asked!r} in complete()"))
            return await run.outcome()

    async def compact(self) -> int:
        """Compact by hand; the new revision. Raises SessionBusy, RuntimeShutdown, CommandRejected.

        A task that is cancelled here drops the compaction: nothing is installed (contract 6.23).
        """
        port = self._port
        port.rho.check_open()
        if port.rho.compactor is None:
            raise InvalidConfiguration(Error(ErrorName.INVALID_CONFIGURATION, "there is no compactor"))
        command_id, waiter = port.rho.serial("c"), Waiter()
        work = Work(port.rho.serial("compact-"), lambda: _cancel(port, work))
        port.starting[work.id] = work
        port.waiters[command_id] = waiter
        try:
            port.apply(inp.Compact(command_id, work.id))
            await waiter.done.wait()
        finally:
            port.starting.pop(work.id, None)
            if not waiter.done.is_set() and port.active is work:
                port.apply(inp.Drop())
        assert waiter.answer is not None
        revision = port.result(waiter.answer)
        assert isinstance(revision, int)
        return revision

    # -- the history, between runs -----------------------------------------------------------------------------

    def append(self, message: Message) -> int:
        """Add a message; the new revision. Raises SessionBusy."""
        return self._installed(lambda command_id: inp.AppendMessage(command_id, message))

    def replace_history(self, messages: History) -> int:
        """Put another history in its place; the new revision. Raises SessionBusy."""
        return self._installed(lambda command_id: inp.ReplaceHistory(command_id, messages))

    def reset(self) -> int:
        """Back to the system prompt; the new revision. Raises SessionBusy."""
        return self._installed(inp.Reset)

    def _installed(self, make: Callable[[str], inp.SessionInput]) -> int:
        revision = self._port.command(make)
        assert isinstance(revision, int)
        return revision

    def replace_provider(self, provider: Provider) -> None:
        """Go on with another model; provider context of the former is not shown to it. Raises SessionBusy.

        Raises InvalidConfiguration for one that is cooperative or steerable where the session's is not.
        """
        policy = self._port.state.policy
        if (provider.cooperative, provider.steerable) != (policy.cooperative_provider, policy.steerable):
            text = "a session's providers are all cooperative or none, and all steerable or none"
            raise InvalidConfiguration(Error(ErrorName.INVALID_CONFIGURATION, text))
        self._port.command(lambda command_id: inp.ReplaceProvider(command_id, provider.identity))
        self._port.provider = provider

    def set_compaction(self, messages: int | None = None, tokens: int | None = None) -> None:
        """When to compact by itself; neither means never. Raises SessionBusy."""
        compactor = self._port.rho.compactor
        wanted = None
        if compactor is not None and (messages is not None or tokens is not None):
            wanted = Compaction(messages, tokens, compactor.cooperative)
        self._port.command(lambda command_id: inp.SetCompaction(command_id, wanted))

    # -- what outlives the process -----------------------------------------------------------------------------

    def snapshot(self) -> snapshot.Snapshot:
        """The committed state, during a run as well."""
        return snapshot.take(self._port.state)

    async def save(self) -> None:
        """Save the committed state in the runtime's store. Raises StoreError, StaleRevision."""
        rho = self._port.rho
        if rho.store is None:
            raise InvalidConfiguration(Error(ErrorName.INVALID_CONFIGURATION, "the runtime has no store"))
        await checkpoint.save(self._port, rho.store, rho.config.save_grace_ms)


def _cancel(port: SessionPort, work: Work) -> None:
    """Someone cancelled a clone of the token (RHO-CAN-3)."""
    port.tell(work, inp.Cancel(None))
