"""One run: its consumer (the caller's `async for` over `run_stream_events`) and the handles onto it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, AgentRunResultEvent, CancellationToken, RunCancelled, RunContext, UsageLimits
from pydantic_ai.conversation import Conversation
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from . import doubles, events, normal
from .doubles import Gate
from .normal import Json
from .reader import Reader

if TYPE_CHECKING:
    from .session import Session
    from .world import World


class Run:
    """A run from `start` to its outcome. `active` until the runtime has handed over a result or an error."""

    def __init__(self, world: World, session: Session, name: str, prompt: str) -> None:
        self.world, self.session, self.name, self.prompt = world, session, name, prompt
        self.reader = Reader(held=world.reader_held)
        self.token = CancellationToken()
        self.outcome: Json | None = None
        self.active = True
        self.dropped = False
        self._steps = 0
        self._context: RunContext[Run] | None = None
        self._early_steers: list[tuple[Json, str]] = []
        self._steers: dict[str, str] = {}
        self._applied: set[str] = set()
        self._waiting_outcome: list[str] = []
        self._task = world.loop.create_task(self._consume())
        self._task.add_done_callback(self._ended)

    # ---- what the caller does -------------------------------------------------------------------

    async def _consume(self) -> None:
        """The caller: starts the run by asking for its first event, then reads as the reader allows."""
        base = await self.session.load()
        error: BaseException | None = None
        messages: list[ModelMessage] | None = None
        try:
            with Agent.parallel_tool_call_execution_mode(self.world.tool_mode):
                async with self._events(base) as stream:
                    try:
                        async for event in stream:
                            if isinstance(event, AgentRunResultEvent):
                                messages = event.result.all_messages()
                                self.outcome = _completed(event.result.output)
                                continue
                            await self._deliver(self._translate(event))
                    except Exception as failure:
                        error, messages = failure, _handed_over(failure, stream)
        except asyncio.CancelledError as stop:
            # The caller left the stream: the runtime tears the run down and attaches its messages to this.
            cancelled = RunCancelled.from_cancellation(stop)
            error = stop
            messages = None if cancelled is None or self.dropped else cancelled.all_messages()
        await self._finish(base, error, messages)

    def _events(self, base: Conversation) -> Any:
        limit = self.world.max_steps
        return self.world.agent.run_stream_events(
            self.prompt,
            message_history=base.messages,
            model=FunctionModel(stream_function=self._model_call, model_name=doubles.MODEL_NAME),
            deps=self,
            usage_limits=UsageLimits(request_limit=limit),
            cancellation_token=self.token,
        )

    def _translate(self, event: Any) -> events.Named | None:
        named = events.translate(event, self.world.tool_names, self._steers.get)
        if named is not None and named[0] == "SteeringApplied":
            self._applied.update(named[1]["ids"])
        return named

    async def _deliver(self, named: events.Named | None) -> None:
        if named is not None and await self.reader.take():
            self.note(*named)
        await self.reader.ask()

    async def _finish(
        self, base: Conversation, error: BaseException | None, messages: list[ModelMessage] | None
    ) -> None:
        """Keep the messages; a conflict with another run of the session is then how this one ends."""
        if messages is not None:
            try:
                await self.session.save(base, messages)
            except UserError as conflict:
                error = conflict
        if error is not None:
            self.outcome = normal.outcome_error(error)
        self._over()
        terminal = _terminal(error, self.outcome)
        if terminal is not None and await self.reader.take():
            self.note(*terminal)
        if not self.reader.closed:
            self.note("EventsClosed", {})

    def _over(self) -> None:
        self.active = False
        for name in self._waiting_outcome:
            self.world.reply(self, name, self.outcome)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.world.fault = fault
        elif self.active:
            # Let go before the task had taken its first step.
            self.outcome = normal.outcome_error(asyncio.CancelledError())
            self._over()

    def note(self, name: str, fields: Json) -> None:
        self.world.note(name, {"session": self.session.name, "run": self.name, **fields})

    # ---- what the runtime does ------------------------------------------------------------------

    async def began(self, context: RunContext[Run]) -> None:
        """The `before_run` hook: only here does a run that streams its events show its steering queue."""
        self._context = context
        for steer, reply in self._early_steers:
            self.steer(steer, reply)

    async def _model_call(self, history: list[ModelMessage], info: AgentInfo) -> AsyncIterator[doubles.Chunk]:
        self._steps += 1
        gate = Gate("ModelCall", {"n": len(self.session.models) + 1}, self.name, self.note)
        self.session.models.append(gate)
        system = {} if not info.instructions else {"system": info.instructions}
        self.note(
            "ModelCall",
            {
                **gate.ident,
                "step": self._steps,
                "attempt": 1,
                "messages": normal.request(history),
                "tools": sorted(tool.name for tool in info.function_tools),
                **system,
            },
        )
        async for chunk in doubles.model_stream(gate):
            yield chunk

    async def tool_call(self, name: str, call_id: str, args: Json, on_cancel: str) -> Any:
        gate = Gate("ToolExecute", {"call_id": call_id}, self.name, self.note)
        self.session.tools.append(gate)
        self.note("ToolExecute", {**gate.ident, "name": name, "arguments": args})
        return await doubles.tool_call(gate, on_cancel)

    # ---- commands -------------------------------------------------------------------------------

    def steer(self, steer: Json, reply: str) -> None:
        """Queue a message for the run; before the runtime has shown its queue the answer is owed."""
        if self._context is None and self.active:
            self._early_steers.append((steer, reply))
            return
        try:
            if self._context is None:
                raise UserError("the run ended before it began")
            ident = self._context.enqueue(steer["text"])
        except UserError as refused:
            self.world.reply(self, reply, normal.outcome_error(refused))
            return
        self._steers[str(ident)] = steer.get("as") or reply
        self.world.reply(self, reply, "ok")

    def retract(self, ref: str, reply: str) -> None:
        ident = next((ident for ident, name in self._steers.items() if name == ref), None)
        gone = ident is not None and self._context is not None and self._context.dequeue(ident)
        missed = "AlreadyApplied" if ref in self._applied else "NotFound"
        self.world.reply(self, reply, {"ok": "Retracted" if gone else missed})

    def ask_outcome(self, reply: str) -> None:
        """Await the outcome: the events not read yet are drained, and lost to the reader."""
        self.reader.drain()
        if self.outcome is not None and not self.active:
            self.world.reply(self, reply, self.outcome)
        else:
            self._waiting_outcome.append(reply)

    def leave(self, *, drop: bool) -> None:
        """The caller stops consuming: it leaves the stream's context, which is how a run is let go."""
        self.dropped = self.dropped or drop
        self.reader.close()
        if self.active:
            self._task.cancel()

    @property
    def held_back(self) -> bool:
        """Whether the run stands still until its caller takes the next event."""
        return self.active and self.reader.waiting


def _completed(output: object) -> Json:
    return {"ok": {"text": str(output), "stop": "EndTurn"}}


def _handed_over(failure: Exception, stream: Any) -> list[ModelMessage] | None:
    """The history of a run that failed: on the exception if it has one, else on the stream handle."""
    if isinstance(failure, RunCancelled):
        return failure.all_messages()
    try:
        return list(stream.all_messages())
    except UserError:
        return None


def _terminal(error: BaseException | None, outcome: Json | None) -> events.Named | None:
    if error is None:
        return ("Completed", {"outcome": (outcome or {}).get("ok")})
    if isinstance(error, RunCancelled):
        return ("Cancelled", {})
    if isinstance(error, asyncio.CancelledError):
        return None
    return ("Failed", {"message": str(error)})
