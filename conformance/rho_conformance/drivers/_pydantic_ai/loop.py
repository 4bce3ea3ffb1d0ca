"""An asyncio loop with virtual time that can tell when it is settled.

Settled is measured, not counted: the loop stops by itself when its ready queue is empty and no timer is due.
Nothing can come from outside, because its selector has no files and a call from another thread is a fault
of the harness (a synchronous tool or hook would run in a worker thread, where virtual time has no hold).
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")


class NotSettled(RuntimeError):
    """The loop was still busy after the step limit, or a thread outside it was at work."""


class _NoFiles(selectors.BaseSelector):
    """A selector that never waits: the loop's self-pipe registers here and is never readable."""

    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else int(fileobj.fileno())
        self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return self._keys[fd]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else int(fileobj.fileno()))

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def close(self) -> None:
        self._keys.clear()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return dict(self._keys)


class _NumberedTask(asyncio.Task[Any]):
    """Tasks end up in sets, whose order is that of hashes: numbers make it the same in every run."""

    def __init__(self, coro: Any, *, loop: VirtualLoop, **kwargs: Any) -> None:
        loop.tasks_made += 1
        self._number = loop.tasks_made
        super().__init__(coro, loop=loop, **kwargs)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs only when `settle` or `advance` asks for it, and never past the virtual time they name."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, max_turns: int = 100_000) -> None:
        super().__init__(_NoFiles())
        self._now = 0.0
        self._turns = 0
        self._max_turns = max_turns
        self._home = threading.get_ident()
        self._foreign = False
        self.tasks_made = 0
        self.set_task_factory(lambda loop, coro, **kwargs: _NumberedTask(coro, loop=self, **kwargs))

    def time(self) -> float:
        return self._now

    @property
    def now_ms(self) -> int:
        return round(self._now * 1000)

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if threading.get_ident() != self._home:
            self._foreign = True
        return super().call_soon_threadsafe(callback, *args, context=context)

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]
        self._turns += 1
        due = self.next_timer()
        idle = not self._ready and (due is None or due > self._now)
        if idle or self._turns >= self._max_turns:
            self._stopping = True

    def next_timer(self) -> float | None:
        """When the next armed timer fires; `None` when none is armed."""
        while self._scheduled and self._scheduled[0].cancelled():
            self._timer_cancelled_count -= 1
            heapq.heappop(self._scheduled)._scheduled = False  # type: ignore[attr-defined]
        return self._scheduled[0].when() if self._scheduled else None

    def settle(self) -> None:
        """Run until nothing is ready. Raises `NotSettled` on a livelock or foreign thread."""
        outer = asyncio._get_running_loop()
        # A caller that is itself asynchronous has its own loop running in this thread; ours is nested in it.
        asyncio._set_running_loop(None)
        self._turns = 0
        try:
            self.run_forever()
        finally:
            asyncio._set_running_loop(outer)
        if self._foreign:
            raise NotSettled("work from another thread reached the loop: use async tools and hooks only")
        if self._turns >= self._max_turns:
            raise NotSettled(f"still busy after {self._max_turns} turns of the loop")

    def skip(self, milliseconds: int) -> None:
        """Let time pass without running anything: what is due fires at the next settle."""
        self._now += milliseconds / 1000

    def advance(self, milliseconds: int) -> None:
        """Let time pass; due timers fire one due time after the other, settling after each."""
        target = self._now + milliseconds / 1000
        while (due := self.next_timer()) is not None and due <= target:
            self._now = max(self._now, due)
            self.settle()
        self._now = target
