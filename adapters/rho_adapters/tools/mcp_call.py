"""One MCP tool call under way: its progress, its questions, its time limit and its end.

The progress of a call is read from the wire in the order of arrival (`mcp_link`) into a bounded backlog and told to
the reader by a task of the call's own, so that a slow reader holds up neither the connection nor other calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from math import inf

import anyio
from anyio.abc import TaskGroup
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, ElicitRequestParams, ElicitResult, ErrorData

from ..tool import AskRefused, ToolCancelled, ToolContext, ToolFailure
from .mcp_forms import InvalidAnswer, Unaskable, question_for, result_for
from .mcp_options import McpOptions

CURRENT: ContextVar[OpenCall | None] = ContextVar("rho_mcp_call", default=None)
"""The call that a message belongs to, where the transport carries the context of its sender (HTTP does)."""

OPEN_QUESTIONS = 8
"""Questions that a server may have open in one call."""

Reply = ElicitResult | ErrorData

_numbers = count(1)


class OpenCall:
    """`token`: the progress token that it is known by on the wire."""

    def __init__(self, server: str, context: ToolContext, options: McpOptions) -> None:
        self.token = f"rho-{next(_numbers)}"
        self._server, self._context, self._options = server, context, options
        self._backlog: deque[str] = deque(maxlen=options.progress_backlog)
        self._news, self._told = anyio.Event(), anyio.Event()
        self._asked = count(1)
        self._asking = self._live = 0
        self._left = inf if options.call_timeout is None else options.call_timeout
        self._scope = anyio.CancelScope()
        self._tasks: TaskGroup | None = None
        self._finished = self._stopped = False

    def report(self, text: str) -> None:
        """Keep a progress report for the reader; of too many, the oldest is lost."""
        self._backlog.append(text)
        self._news.set()

    async def run(self, body: Callable[[], Awaitable[str]]) -> str:
        """The result of `body`, told after all the progress before it.

        The end of the calling task, the call's token and its time limit each cancel `body`, and with it the
        request. Raises ToolFailure (of `body`, or for the time limit) and ToolCancelled (for the token).
        """
        outcome: str | ToolFailure | None = None
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._tell_progress)
            self._tasks.start_soon(self._watch_token)
            with self._scope:
                self._scope.deadline = anyio.current_time() + self._left
                outcome = await self._attempt(body)
                self._scope.deadline = inf
                await self._told.wait()
            self._finished = True
            self._tasks.cancel_scope.cancel()
        if outcome is None:
            raise self._unanswered()
        if isinstance(outcome, ToolFailure):
            raise outcome
        return outcome

    async def _attempt(self, body: Callable[[], Awaitable[str]]) -> str | ToolFailure:
        """The failure as a value: raised through a task group it would be wrapped in an exception group."""
        before = CURRENT.set(self)
        try:
            return await body()
        except ToolFailure as failed:
            return failed
        finally:
            CURRENT.reset(before)
            self._finished = True
            self._news.set()

    def _unanswered(self) -> ToolFailure | ToolCancelled:
        if self._stopped:
            return ToolCancelled()
        return ToolFailure(f"MCP server {self._server!r} did not answer within {self._options.call_timeout:g} s")

    async def _tell_progress(self) -> None:
        while True:
            while self._backlog:
                await self._context.progress(self._backlog.popleft())
            if self._finished:
                self._told.set()
                return
            self._news = anyio.Event()
            await self._news.wait()

    async def _watch_token(self) -> None:
        await self._context.token.wait()
        self._stopped = True
        self._scope.cancel()

    async def ask(self, params: ElicitRequestParams) -> ElicitResult:
        """Put an elicitation to the host, again with the reason when the answer does not fit the form.

        Raises AskRefused, Unaskable and, after `options.attempts` of them, InvalidAnswer.
        """
        issue: str | None = None
        with self._paused():
            for _ in range(self._options.attempts):
                number = f"{self._context.call.id}/{next(self._asked)}"
                answers = await self._context.ask(question_for(number, self._server, params, issue))
                try:
                    return result_for(params, answers)
                except InvalidAnswer as invalid:
                    issue = str(invalid)
        raise InvalidAnswer(issue)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """The time that the host takes is not the server's."""
        if self._asking == 0:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = inf
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if self._asking == 0:
                self._scope.deadline = anyio.current_time() + self._left

    async def ask_live(self, params: ElicitRequestParams) -> Reply | None:
        """The reply to a request of the server, asked for from a task that is not the call's.

        The question belongs to the call: it is withdrawn with the call, and when the caller is cancelled.
        None: the call ended before there was an answer.
        """
        if self._finished or self._tasks is None:
            return None
        if self._live >= OPEN_QUESTIONS:
            return ErrorData(code=INVALID_REQUEST, message="too many questions are open in this call")
        reply: list[Reply] = []
        done, scope = anyio.Event(), anyio.CancelScope()

        async def work() -> None:
            try:
                with scope:
                    reply.append(await self._reply(params))
            finally:
                done.set()

        self._live += 1
        self._tasks.start_soon(work)
        try:
            await done.wait()
        finally:
            self._live -= 1
            scope.cancel()
        return reply[0] if reply else None

    async def _reply(self, params: ElicitRequestParams) -> Reply:
        try:
            return await self.ask(params)
        except AskRefused:
            return ElicitResult(action="cancel")
        except Unaskable as flaw:
            return ErrorData(code=INVALID_PARAMS, message=f"the form cannot be asked for: {flaw}")
        except InvalidAnswer as invalid:
            return ErrorData(code=INVALID_REQUEST, message=f"no valid answer was given: {invalid}")
