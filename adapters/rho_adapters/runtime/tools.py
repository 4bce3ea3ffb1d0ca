"""The tasks of a tool call: preparation, authorisation, execution; and what an executor is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from rho_adapters.runtime.text import clean
from rho_adapters.runtime.work import Ask, Call, RunState, Task
from rho_adapters.token import CancellationToken
from rho_adapters.tool import AskRefused, BaseTool, PrepareFailure, Tool, ToolCancelled, ToolFailure, unprepared
from rho_core import effects as fx
from rho_core import inputs as inp
from rho_core.asks import Answers, HostInputRequest
from rho_core.errors import ToolErrorKind
from rho_core.events import Failure, Success
from rho_core.messages import ToolCall

if TYPE_CHECKING:
    from rho_adapters.runtime.port import SessionPort

CANCELLED = "tool call cancelled"
"""The text of a call whose tool heeded its token (rho.md 1.6)."""


class Context:
    """`ToolContext` of one execution."""

    __slots__ = ("_call", "_port", "_run", "_task")

    def __init__(self, port: SessionPort, run: RunState, call: Call, task: Task) -> None:
        self._port, self._run, self._call, self._task = port, run, call, task

    @property
    def call(self) -> ToolCall:
        return self._call.call

    @property
    def token(self) -> CancellationToken:
        return self._call.token

    @property
    def detachable(self) -> bool:
        return self._call.detachable

    async def progress(self, text: str) -> None:
        """Waits while the reader is behind."""
        await self._port.offer(self._run, inp.ToolProgress(self.call.id, clean(text)))

    async def ask(self, request: HostInputRequest) -> Answers:
        """Raises AskRefused."""
        key = (self.call.id, request.id)
        ask = self._run.asks[key] = Ask()
        await self._port.offer(self._run, inp.ToolAsked(self.call.id, request))
        try:
            await ask.done.wait()
        finally:
            if not ask.done.is_set():
                self._run.asks.pop(key, None)
                if not self._task.scope.cancel_called:
                    self._port.tell(self._run, inp.AskWithdrawn(self.call.id, request.id))
        if ask.refused or ask.answers is None:
            raise AskRefused(f"question {request.id!r} was refused")
        return ask.answers


def prepare(port: SessionPort, run: RunState, e: fx.Prepare) -> None:
    """Carry out `Prepare`."""
    tool = port.rho.tools[e.call.name]
    token = CancellationToken() if e.detachable else run.token
    run.calls[e.call.id] = Call(e.call, tool, e.detachable, token)
    if getattr(type(tool), "prepare", None) is BaseTool.prepare:
        port.queue.append(inp.Prepared(e.call.id, unprepared(tool.spec)))  # nothing to wait for
        return

    async def body(task: Task) -> None:
        async def work() -> inp.ToolInput:
            return inp.Prepared(e.call.id, await tool.prepare(e.call))

        await _settle(port, run, e.call.id, task, tool, work)

    port.spawn(run, "prepare", e.call.id, body, f"prepare {e.call.name} {e.call.id}")


def authorize(port: SessionPort, run: RunState, e: fx.Authorize) -> None:
    """Carry out `Authorize`."""
    call = run.calls[e.call_id]

    async def body(task: Task) -> None:
        async def work() -> inp.ToolInput:
            reason = await port.authorizer.authorize(call.call, e.capability)
            return inp.Authorized(e.call_id) if reason is None else inp.Denied(e.call_id, clean(reason))

        await _settle(port, run, e.call_id, task, call.tool, work)

    port.spawn(run, "authorize", e.call_id, body, f"authorize {call.call.name} {e.call_id}")


def execute(port: SessionPort, run: RunState, e: fx.Execute) -> None:
    """Carry out `Execute`."""
    call = run.calls[e.call_id]

    async def body(task: Task) -> None:
        context = Context(port, run, call, task)

        async def work() -> inp.ToolInput:
            return inp.ToolReturned(e.call_id, Success(clean(await call.tool.execute(context))))

        await _settle(port, run, e.call_id, task, call.tool, work)

    port.spawn(run, "execute", e.call_id, body, f"execute {call.call.name} {e.call_id}")


async def _settle(
    port: SessionPort,
    run: RunState,
    call_id: str,
    task: Task,
    tool: Tool,
    work: Callable[[], Awaitable[inp.ToolInput]],
) -> None:
    """Do the work and tell how it ended. Being aborted says nothing: the core asked for it."""
    ended: inp.ToolInput
    try:
        ended = await work()
    except PrepareFailure as failed:
        ended = inp.PrepareFailed(call_id, clean(str(failed)))
    except ToolFailure as failed:
        ended = inp.ToolReturned(call_id, Failure(ToolErrorKind.EXECUTION, clean(str(failed))))
    except ToolCancelled:
        ended = inp.ToolReturned(call_id, Failure(ToolErrorKind.CANCELLED, CANCELLED))
    except Exception as panic:
        port.rho.panicked(panic, f"tool {tool.spec.name}")
        ended = inp.ToolPanicked(call_id)
    except anyio.get_cancelled_exc_class():
        if not task.scope.cancel_called and not port.rho.closing:
            # Cancelled from elsewhere, by its own code for one: the run must not wait for it for ever.
            port.tell(run, inp.ToolPanicked(call_id))
        raise
    if not task.scope.cancel_called:
        port.tell(run, ended)


def cancel_job(run: RunState, e: fx.CancelJob) -> None:
    """Tell a detached job to finish (RHO-CAN-14)."""
    call = run.calls.get(e.call_id)
    if call is not None:
        call.token.set()


def answer(run: RunState, e: fx.DeliverAnswer) -> None:
    """The question is answered, exactly once (RHO-HOST-3)."""
    ask = run.asks.pop((e.call_id, e.request_id), None)
    if ask is not None:
        ask.answers = e.answers
        ask.done.set()


def refuse(run: RunState, e: fx.RefuseAsk) -> None:
    """The tool may not ask (RHO-COORD-3)."""
    ask = run.asks.pop((e.call_id, e.request_id), None)
    if ask is not None:
        ask.refused = True
        ask.done.set()
