"""A session's operation as its tasks see it, and a run as its reader sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

import anyio

from rho_adapters.provider import ModelRequest
from rho_adapters.token import CancellationToken
from rho_adapters.tool import Tool
from rho_core.asks import Answers
from rho_core.effects import RunEnd
from rho_core.events import Event
from rho_core.messages import Block, ToolCall

TaskKind = Literal["model", "prepare", "authorize", "execute", "compact", "collect", "record", "timer"]


class Task:
    """One piece of work in a task of its own. `key`: the call, timer or attempt that it is for."""

    __slots__ = ("key", "kind", "request", "scope")

    def __init__(self, kind: TaskKind, key: object = None) -> None:
        self.kind = kind
        self.key = key
        self.scope = anyio.CancelScope()
        self.request: ModelRequest | None = None


class Call:
    """A call that was prepared. Its token is its own when it may be detached (RHO-CAN-3)."""

    __slots__ = ("call", "detachable", "token", "tool")

    def __init__(self, call: ToolCall, tool: Tool, detachable: bool, token: CancellationToken) -> None:
        self.call, self.tool, self.detachable, self.token = call, tool, detachable, token


class Ask:
    """A question that a tool waits for. `refused`: it may not ask."""

    __slots__ = ("answers", "done", "refused")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.answers: Answers | None = None
        self.refused = False


class Work:
    """What a run and a compaction by hand share: an id, a token, tasks."""

    def __init__(self, id: str, request_cancel: Callable[[], None]) -> None:
        self.id = id
        self.token = CancellationToken(request_cancel)
        self.tasks: set[Task] = set()
        self.quiet: anyio.Event | None = None

    def find(self, kind: TaskKind, key: object = None) -> list[Task]:
        """The live tasks of that kind and key."""
        return [t for t in self.tasks if t.kind == kind and t.key == key]

    def abort(self, *kinds: TaskKind, key: object = None) -> None:
        """Cancel tasks; they are gone when they have cleaned up."""
        for task in list(self.tasks):
            if task.kind in kinds and task.key == key:
                task.scope.cancel()

    @property
    def at_work(self) -> bool:
        """Does anything live that the run started? What a recorder was given is in its own hands."""
        return any(t.kind != "record" for t in self.tasks)

    async def until_quiet(self) -> None:
        """Until none of its tasks lives."""
        while self.at_work:
            if self.quiet is None:
                self.quiet = anyio.Event()
            await self.quiet.wait()


class RunState(Work):
    """One run. `channel`: sent and not yet taken; how much fits is the core's knowledge.

    `ended`: no event follows. `awaited`: someone waits for news. `gone`: nobody will read any more. `held`: what
    waits for a checkpoint.
    """

    def __init__(self, id: str, request_cancel: Callable[[], None]) -> None:
        super().__init__(id, request_cancel)
        self.channel: deque[Event] = deque()
        self.ended = False
        self.gone = False
        self.dropped = False
        self.resolved = False
        self.outcome: RunEnd | None = None
        self.save_error: Exception | None = None
        self.calls: dict[str, Call] = {}
        self.asks: dict[tuple[str, str], Ask] = {}
        self.steers: dict[str, tuple[Block, ...]] = {}
        self.held: list[Callable[[], None]] | None = None
        self.recording: anyio.Event | None = None
        self.awaited = False
        self._news: anyio.Event | None = None

    def tell(self) -> None:
        """Something changed for those who read or await the outcome."""
        if self._news is not None:
            self._news.set()
            self._news = None
            self.awaited = False

    async def news(self) -> None:
        """Until something changes."""
        if self._news is None:
            self._news = anyio.Event()
            self.awaited = True
        await self._news.wait()

    def publish(self, act: Callable[[], None]) -> None:
        """Show it now, or when the checkpoint that is being written is done."""
        if self.held is None:
            act()
        else:
            self.held.append(act)

    def send(self, event: Event) -> None:
        """Put an event into the channel."""
        if not self.gone:
            self.channel.append(event)
            if self.awaited:
                self.tell()

    def end(self) -> None:
        """No event follows."""
        self.ended = True
        self.tell()

    def resolve(self, outcome: RunEnd | None) -> None:
        """The outcome is known, or will never come (None)."""
        self.resolved, self.outcome = True, outcome
        self.tell()

    def leave(self) -> None:
        """Nobody will read any more."""
        self.gone = True
        self.channel.clear()
        self.tell()
