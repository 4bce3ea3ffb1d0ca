"""A run as its host holds it: events, outcome, commands; letting go of it drops the run (RHO-DROP-1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self
from weakref import finalize

from rho_adapters.errors import RunDropped, ended
from rho_adapters.runtime.checkpoint import CheckpointFailed
from rho_adapters.runtime.port import SessionPort
from rho_adapters.runtime.text import Content, blocks
from rho_adapters.runtime.work import RunState
from rho_adapters.token import CancellationToken
from rho_core import inputs as inp
from rho_core.effects import RunFailed as CoreRunFailed
from rho_core.errors import Error, ErrorName
from rho_core.events import Event, RunOutcome


class Run:
    """An async iterator over the run's events, and an async context that drops an unfinished run on leaving.

    A run whose handle is collected is dropped as well; that is a fallback, and a ResourceWarning says so.
    """

    def __init__(self, port: SessionPort, state: RunState) -> None:
        self._port = port
        self._state = state
        self._finalizer = finalize(self, port.rho.abandoned, port, state)
        self._finalizer.atexit = False

    @property
    def id(self) -> str:
        """The run's id."""
        return self._state.id

    @property
    def token(self) -> CancellationToken:
        """The run's shared token; cancelling any clone cancels the run (RHO-CAN-3)."""
        return self._state.token

    @property
    def resolved(self) -> bool:
        """Is the outcome known?"""
        return self._state.resolved

    # -- reading -----------------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        state = self._state
        if not state.channel and not await self._filled():
            raise StopAsyncIteration
        event = state.channel.popleft()
        if state is self._port.active:
            self._port.took(state)
        return event

    async def next_event(self) -> Event | None:
        """The next event, or None when the stream is at its end or the reader is closed."""
        return await anext(self, None)

    def try_next(self) -> Event | None:
        """The next event if there is one by now; nobody waits."""
        state = self._state
        if not state.channel:
            return None
        event = state.channel.popleft()
        if state is self._port.active:
            self._port.took(state)
        return event

    @property
    def at_end(self) -> bool:
        """Has every event been read, and does none follow?"""
        return self._state.ended and not self._state.channel

    async def _filled(self) -> bool:
        """Wait for an event; False when none will come."""
        state = self._state
        while not state.channel:
            if state.ended or state.gone:
                return False
            await state.news()
        return True

    async def outcome(self) -> RunOutcome:
        """The outcome, whoever reads the events; unread ones are thrown away, since they would hold the run up.

        Raises RunCancelled, RunInterrupted or RunFailed for a run that did not complete, RunDropped after a
        drop, CheckpointFailed when the end could not be saved.
        """
        state = self._state
        while not state.resolved:
            if state.dropped:
                break
            if state.channel:
                await self.next_event()
            else:
                await state.news()
        return self._result()

    def _result(self) -> RunOutcome:
        outcome, fault = self._state.outcome, self._state.save_error
        if outcome is None:
            raise RunDropped(Error(ErrorName.INTERRUPTED, "the run was dropped"), "RHO-DROP-1")
        if fault is not None:
            raise CheckpointFailed(outcome.error if isinstance(outcome, CoreRunFailed) else outcome, fault) from fault
        if isinstance(outcome, CoreRunFailed):
            raise ended(outcome.error, outcome.unapplied_steering)
        return outcome

    def close_reader(self) -> None:
        """Nobody will read any more: the run is interrupted at its next event (RHO-PERS-1)."""
        if self._state.gone:
            return
        self._state.leave()
        if self._state is self._port.active:
            self._port.apply(inp.ReaderClosed())

    # -- commands ----------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Request cooperative cancellation; idempotent (RHO-CAN-1)."""
        self._command(lambda command_id: inp.Cancel(command_id))

    def steer(self, content: Content, *, steering_id: str | None = None) -> str:
        """One more user message for this run; its steering id. Raises CommandRejected when it takes no more."""
        given = blocks(content)
        steer = steering_id or self._port.rho.serial("steer-")
        self._state.steers[steer] = given
        self._command(lambda command_id: inp.Steer(command_id, steer, given))
        return steer

    def steer_retractable(self, content: Content) -> str:
        """As `steer`, by the contract's name for one that is meant to be taken back perhaps."""
        return self.steer(content)

    def retract_steering(self, steering_id: str) -> str:
        """Take a steer back: `Retracted`, `AlreadyApplied` or `NotFound` (RHO-STEER-*)."""
        return str(self._command(lambda command_id: inp.Retract(command_id, steering_id)))

    def respond(self, request_id: str, answers: Mapping[str, Iterable[str]]) -> None:
        """Answer a question of a tool. Raises CommandRejected when it is not open or the answers do not fit."""
        given = tuple((question, tuple(values)) for question, values in answers.items())
        self._command(lambda command_id: inp.Respond(command_id, request_id, given))

    def _command(self, make: Callable[[str], inp.RunInput]) -> str | int | None:
        port, state = self._port, self._state
        return port.command(lambda command_id: port.addressed(state, make(command_id)))

    # -- letting go --------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Give the run up: its work is aborted, and nothing is promised (RHO-DROP-1)."""
        self._finalizer.detach()
        self._port.drop(self._state)

    async def aclose(self) -> None:
        """Drop the run if it is unfinished, and wait until nothing that it had started is alive (RHO-DROP-2)."""
        self.drop()
        await self._port.rho.wait_quiet(self._state)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
