"""A session as the runtime holds it: the one place where the core is stepped (design §8).

`step` is pure and synchronous, so the event loop is the only lock: every task calls `apply` itself, and no
input waits in a mailbox.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

import rho_core.session
from rho_adapters.errors import rejected
from rho_adapters.host import Authorizer
from rho_adapters.provider import Provider
from rho_adapters.runtime import carry
from rho_adapters.runtime.work import RunState, Task, TaskKind, Work
from rho_core import effects as fx
from rho_core import inputs as inp
from rho_core.session import Session as CoreSession

if TYPE_CHECKING:
    from rho_adapters.runtime.rho import Rho

Effects = tuple[Any, ...]


class Waiter:
    """A command whose answer comes later."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.answer: fx.Reply | fx.Rejected | None = None


class SessionPort:
    """`state`: the core's session. `active`: the run or compaction that has it. `queue`: inputs that follow at once."""

    def __init__(self, rho: Rho, state: CoreSession, provider: Provider, authorizer: Authorizer) -> None:
        self.rho = rho
        self.state = state
        self.provider = provider
        self.authorizer = authorizer
        self.active: Work | None = None
        self.starting: dict[str, Work] = {}
        self.leaving: RunState | None = None
        self.queue: deque[inp.SessionInput] = deque()
        self.afterwards: deque[Callable[[], None]] = deque()
        self.answers: dict[str, fx.Reply | fx.Rejected] = {}
        self.waiters: dict[str, Waiter] = {}
        self.saved: int | None = None
        self.save_lock = anyio.Lock()
        self._taken = 0
        self._gate: anyio.Event | None = None
        self._stepping = False
        self._journal = rho.journal

    # -- stepping the core -------------------------------------------------------------------------------------

    def apply(self, value: inp.SessionInput) -> Effects:
        """Feed one input and carry out its effects; what they cause at once is fed before this returns."""
        if self._stepping:
            raise RuntimeError("the core is being stepped: a callback of the host fed it from within")
        self._stepping = True
        try:
            if self._taken:
                taken, self._taken = self._taken, 0
                self._one(inp.Taken(taken))
            effects = self._one(value)
            while self.queue:
                self._one(self.queue.popleft())
        finally:
            self._stepping = False
        if self._gate is not None and rho_core.session.accepts(self.state):
            self._open_gate()
        while self.afterwards:
            self.afterwards.popleft()()
        return effects

    def flush(self) -> None:
        """Feed what was queued from outside a step."""
        if self.queue and not self._stepping:
            self.apply(self.queue.popleft())

    def _one(self, value: inp.SessionInput) -> Effects:
        if self._journal is not None:
            self._journal(self.state.id, value)
        step = rho_core.session.step(self.state, value)
        self.state = step.state
        if self.rho.observers:
            self.rho.observed(self.state.id, value, step.effects)
        rows = carry.ROWS
        for effect in step.effects:
            rows[type(effect)](self, effect)
        return step.effects

    @property
    def unjournaled(self) -> bool:
        """May a delta be fed without `apply`, since nobody listens to the inputs?"""
        return self._journal is None and not self.rho.observers

    # -- what the reader took -----------------------------------------------------------------

    def took(self, run: RunState) -> None:
        """The reader took an event of the active run.

        Nothing in the core depends on it before the next input, unless a send is blocked: so takes are counted
        here and told at once, before anything else is.
        """
        self._taken += 1
        if not run.channel or self.blocked:
            taken, self._taken = self._taken, 0
            self.apply(inp.Taken(taken))

    @property
    def blocked(self) -> bool:
        """Does a send wait for the reader?"""
        phase = self.state.phase
        return type(phase) is rho_core.session.Active and phase.run.blocked is not None

    def addressed(self, work: Work | None, value: inp.RunInput) -> inp.SessionInput:
        """An input for a run that may be over: the core tells by the name whether it comes too late."""
        return value if work is self.active and work is not None else inp.ForRun("" if work is None else work.id, value)

    def tell(self, work: Work | None, value: inp.RunInput) -> Effects:
        """Feed an input of a run's task: control or record, which are always taken."""
        return self.apply(self.addressed(work, value))

    async def offer(self, work: Work, value: inp.RunInput) -> Effects:
        """Feed a gated input; waits while the channel holds the run up (RHO-BUF-4)."""
        while True:
            effects = self.apply(value if work is self.active else inp.ForRun(work.id, value))
            if not effects or type(effects[0]) is not fx.NotReady:
                return effects
            await self.ready()

    async def ready(self) -> None:
        """Until gated inputs are taken again."""
        if self._gate is None:
            self._gate = anyio.Event()
        await self._gate.wait()

    def _open_gate(self) -> None:
        if self._gate is not None:
            self._gate.set()
            self._gate = None

    # -- commands ----------------------------------------------------------------------------------------------

    def command(self, make: Callable[[str], inp.SessionInput]) -> str | int | None:
        """Give a command that is answered at once. Raises CommandRejected."""
        command_id = self.rho.serial("c")
        self.apply(make(command_id))
        return self.result(self.answers.pop(command_id))

    def result(self, answer: fx.Reply | fx.Rejected) -> str | int | None:
        """The value of an answer. Raises CommandRejected."""
        if isinstance(answer, fx.Rejected):
            raise rejected(answer.error, answer.rule)
        return answer.value

    def answer(self, effect: fx.Reply | fx.Rejected) -> None:
        """An answer of the core."""
        waiter = self.waiters.pop(effect.command_id, None)
        if waiter is None:
            self.answers[effect.command_id] = effect
        else:
            waiter.answer = effect
            waiter.done.set()

    # -- tasks -------------------------------------------------------------------------------------------------

    def spawn(
        self, work: Work, kind: TaskKind, key: object, body: Callable[[Task], Awaitable[None]], name: str
    ) -> Task:
        """Run `body` in a task that `work` owns."""
        task = Task(kind, key)
        work.tasks.add(task)
        self.rho.start_task(self._run_task, work, task, body, name=name)
        return task

    async def _run_task(self, work: Work, task: Task, body: Callable[[Task], Awaitable[None]]) -> None:
        try:
            with task.scope:
                await body(task)
        finally:
            work.tasks.discard(task)
            if not work.at_work:
                self._quiet(work)

    def _quiet(self, work: Work) -> None:
        if work.quiet is not None:
            work.quiet.set()
            work.quiet = None
        if work is self.leaving:
            self.leaving = None
            self.apply(inp.TasksGone(work.id))

    def drop(self, run: RunState) -> None:
        """Give a run up: abort, promise nothing (RHO-DROP-1). The session is free when its tasks are gone."""
        if run.dropped:
            return
        run.dropped = True
        run.leave()
        if run is self.active:
            self.leaving = run
            self.apply(inp.Drop())
            for task in list(run.tasks):
                if task.kind != "record":
                    task.scope.cancel()
            if not run.at_work:
                self._quiet(run)
