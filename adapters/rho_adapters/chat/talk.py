"""The conversation: what the person does becomes starts, steers, answers and cancels; events become entries."""

from __future__ import annotations

import signal

import anyio
from anyio.abc import TaskGroup

from rho_adapters.chat import asking as ask
from rho_adapters.chat import commands, slash
from rho_adapters.chat.asking import Asking
from rho_adapters.chat.entries import Answered, CardState, Ended, Entry, Note, Typed
from rho_adapters.chat.screen import Input, Interrupt, Line, Screen
from rho_adapters.chat.view import View
from rho_adapters.errors import CommandRejected, RhoError, RunFailed
from rho_adapters.runtime.checkpoint import CheckpointFailed
from rho_adapters.runtime.run import Run
from rho_adapters.runtime.session import Session
from rho_adapters.tools.policy import Decision
from rho_core import events as ev
from rho_core.messages import ToolCall

FAULT = 3
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Talk:
    """One conversation on one screen. `model`: the name shown; `status`: the exit status, when it is over."""

    def __init__(self, screen: Screen, model: str) -> None:
        self._screen = screen
        self._model = model
        self._session: Session
        self._tasks: TaskGroup
        self._run: Run | None = None
        self._view: View | None = None
        self._askings: list[Asking] = []
        self._steers: list[str] = []
        self._compacting: anyio.CancelScope | None = None
        self._leaving = False
        self._changed = anyio.Event()
        self.status = 0

    async def hold(self, session: Session) -> int:
        """Until the person leaves; the exit status."""
        self._session = session
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._signals)
            self.refresh()
            await self._follow()
            self._leave()
            if self._run is not None:
                await anyio.sleep_forever()  # the end of the run, or one more Ctrl-C, ends it all
        return self.status

    async def _follow(self) -> None:
        async for one in self._screen.inputs():
            if not await self._input(one):
                return
            while not self._screen.live and self._run is not None and not self._askings:
                await self._changed.wait()

    async def _signals(self) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as received:
            async for number in received:
                if number == signal.SIGINT:
                    self.interrupt()
                else:
                    self.status = 128 + number
                    self._tasks.cancel_scope.cancel()

    # -- what the person does ----------------------------------------------------------------------------------

    async def _input(self, one: Input) -> bool:
        """Whether to go on."""
        if isinstance(one, Line):
            return await self._line(one.text)
        if isinstance(one, Interrupt):
            self.interrupt()
            return True
        return False

    async def _line(self, text: str) -> bool:
        if self._askings and not text.startswith("/"):
            self._answer(text)
            return True
        if not text.strip():
            return True
        try:
            meant = commands.parse(text)
        except commands.UnknownCommand as unknown:
            self.note(str(unknown), bad=True)
            return True
        if isinstance(meant, str):
            self._say(meant)
            return True
        return await slash.obey(self, meant.name)

    def _say(self, text: str) -> None:
        try:
            if self._run is not None and self._view is not None:
                self._steer(self._run, self._view, text)
            else:
                self._start(text)
        except CommandRejected as refused:
            self.note(str(refused), bad=True)

    def _start(self, text: str) -> None:
        run = self._session.start(text)
        self._run, self._view, self._steers = run, View(), []
        self._add([Typed(text)])
        self._tasks.start_soon(self._pump, run, self._view)

    def _steer(self, run: Run, view: View, text: str) -> None:
        steer = run.steer(text)
        view.staged[steer] = text
        self._steers.append(steer)
        self.refresh()

    def cancel(self) -> bool:
        """Cancel the run; False when there is none, or it is being cancelled."""
        if self._run is None or self._view is None or self._view.cancelling:
            return False
        self._view.cancelling = True
        self._run.cancel()
        self.refresh()
        return True

    def interrupt(self) -> None:
        """Ctrl-C: cancel the run, or leave when it is being cancelled already or nothing runs."""
        if self.cancel():
            return
        if self._compacting is not None:
            self._compacting.cancel()
        else:
            self._tasks.cancel_scope.cancel()

    def _leave(self) -> None:
        """When the run that goes on has been cancelled, or at once when there is none."""
        self._leaving = True
        if self._run is None:
            self._tasks.cancel_scope.cancel()
        else:
            self.cancel()

    # -- what slash commands use -------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The session that is talked to."""
        return self._session

    def retract(self) -> tuple[str, str] | None:
        """Take the last steer back: its text and the answer. None when there is none. Raises CommandRejected."""
        if self._run is None or self._view is None or not self._steers:
            return None
        steer = self._steers.pop()
        answer = self._run.retract_steering(steer)
        return self._view.staged.pop(steer, ""), answer

    def compact(self) -> None:
        """Compact by hand, while the person may go on typing; Ctrl-C gives it up."""
        self._tasks.start_soon(self._compact)

    async def _compact(self) -> None:
        try:
            with anyio.CancelScope() as self._compacting:
                self.refresh()
                self.note(f"compacted, revision {await self._session.compact()}")
        except RhoError as refused:
            self.note(str(refused), bad=True)
        finally:
            self._compacting = None
            self.refresh()

    # -- a run -------------------------------------------------------------------------------------------------

    async def _pump(self, run: Run, view: View) -> None:
        try:
            async with run:
                async for event in run:
                    self._event(run, view, event)
                await self._end(run, view)
                self._over(run)  # what it leaves behind may still be cleaning up
        finally:
            self._over(run)

    def _over(self, run: Run) -> None:
        if self._run is not run:
            return
        self._run = self._view = None
        self._askings = []
        self.refresh()
        if self._leaving:
            self._tasks.cancel_scope.cancel()

    def _event(self, run: Run, view: View, event: ev.Event) -> None:
        entries = view.feed(event)
        if isinstance(event, ev.ToolHostInputRequested):
            request = event.request
            self._askings.append(ask.of_request(event.call_id, request, lambda given: run.respond(request.id, given)))
        elif isinstance(event, ev.ToolFinished):
            self._askings = [a for a in self._askings if a.owner != event.call_id]
        self._add(entries)

    async def _end(self, run: Run, view: View) -> None:
        """The authoritative result: it is there when no terminal event is (RHO-TERM-2)."""
        told_of, entries = view.over, view.close()
        fault = 0 if self._screen.live else FAULT  # a person has seen it; who reads the pipe may not look
        try:
            await run.outcome()
            self.status = 0
        except RunFailed as failed:
            self.status = fault
            if not told_of:
                entries.append(Ended(failed.name, view.usage, None, failed.error.message, ok=False))
        except CheckpointFailed as failed:
            self.status = fault
            entries.append(Note(f"not saved: {failed}", bad=True))
        self._add(entries)

    # -- questions ---------------------------------------------------------------------------------------------

    async def decide(self, call: ToolCall, capability: str) -> Decision:
        """Ask whether a call may use a capability."""
        decisions: list[Decision] = []
        decided = anyio.Event()

        def done(decision: Decision) -> None:
            decisions.append(decision)
            decided.set()

        asking = ask.of_capability(call, capability, done)
        self._askings.append(asking)
        self._mark(call.id, "running", "asking")
        self.refresh()
        try:
            await decided.wait()
        finally:
            if asking in self._askings:
                self._askings.remove(asking)
            self._mark(call.id, "asking", "running")
            self.refresh()
        return decisions[0]

    def _answer(self, line: str) -> None:
        asking = self._askings[0]
        try:
            finished = asking.take(line)
        except CommandRejected as refused:
            asking.again(str(refused))
            finished = False
        if finished:
            self._askings.remove(asking)
            self._mark(asking.owner, "asking", "running")
            self._add([Answered(asking.title, asking.summary())])
        self.refresh()

    def _mark(self, call_id: str, before: CardState, after: CardState) -> None:
        card = None if self._view is None else self._view.cards.get(call_id)
        if card is not None and card.state == before:
            card.state = after

    # -- the screen --------------------------------------------------------------------------------------------

    def note(self, text: str, bad: bool = False) -> None:
        """Say something that is neither the model's nor the person's."""
        self._add([Note(text, bad)])

    def _add(self, entries: list[Entry]) -> None:
        self._screen.add(entries)
        self.refresh()

    def refresh(self) -> None:
        """Show how it stands."""
        asking = self._askings[0] if self._askings else None
        self._screen.update(self._view, asking, self._standing())
        self._changed.set()
        self._changed = anyio.Event()

    def _standing(self) -> str:
        if self._view is None:
            doing = "compacting" if self._compacting is not None else "Ctrl-D leaves, /help helps"
        elif self._view.cancelling:
            doing = "cancelling; Ctrl-C again leaves"
        elif self._askings:
            doing = "waits for your answer; Ctrl-C cancels"
        else:
            doing = f"step {self._view.step}; Ctrl-C cancels, a line steers"
        return f" {self._model} · {self._session.id} · {doing} "
