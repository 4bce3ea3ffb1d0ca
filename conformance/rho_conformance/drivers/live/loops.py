"""Event loops that tell when nothing can happen by itself, on asyncio and trio: what settling is made of."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

T = TypeVar("T")
Backend = str


class _Watched(selectors.DefaultSelector):
    """A selector that knows when the loop has nothing ready: it is then asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.idle: list[asyncio.Future[None]] = []

    def select(self, timeout: float | None = None) -> Any:
        if self.idle and (timeout is None or timeout > 0):
            idle, self.idle = self.idle, []
            for future in idle:
                if not future.done():
                    future.set_result(None)
            timeout = 0
        return super().select(timeout)


class IdleLoop(asyncio.SelectorEventLoop):
    """An asyncio loop that can be waited for until it is idle."""

    def __init__(self) -> None:
        self._watched = _Watched()
        super().__init__(self._watched)

    async def until_idle(self) -> None:
        """Until no callback is ready."""
        future = self.create_future()
        self._watched.idle.append(future)
        await future


async def until_idle() -> None:
    """Until every other task waits for something that only we, or time, can bring."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio.testing

        await trio.testing.wait_all_tasks_blocked()
        return
    assert isinstance(loop, IdleLoop)
    await loop.until_idle()


async def tick(rounds: int = 4) -> None:
    """Let what is ready happen, and what that makes ready, a few times over; nobody waits to be idle."""
    for _ in range(rounds):
        await anyio.lowlevel.checkpoint()


class LoopThread:
    """An event loop in a thread of its own, to be called from synchronous code."""

    def __init__(self, backend: Backend, options: dict[str, Any] | None = None) -> None:
        if options is None:
            options = {"loop_factory": IdleLoop} if backend == "asyncio" else {}
        if backend == "trio":
            _same_order_every_time()
        self._stack = ExitStack()
        opened: AbstractContextManager[BlockingPortal] = start_blocking_portal(backend, options)
        self._portal = self._stack.enter_context(opened)
        self.group: TaskGroup = self._portal.start_task(_nursery)[1]

    def call(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run a coroutine function there, and wait for it."""
        return self._portal.call(function, *args)

    def close(self) -> None:
        """End the loop and its thread, and whatever still runs in it."""
        self._portal.call(self.group.cancel_scope.cancel)
        self._stack.close()


async def _nursery(*, task_status: TaskStatus[TaskGroup]) -> None:
    """A place for tasks that nobody waits for."""
    async with anyio.create_task_group() as group:
        task_status.started(group)
        await anyio.sleep_forever()


def _same_order_every_time() -> None:
    """trio draws the order of ready tasks; from the same seed it draws the same (private, as pytest-trio has it)."""
    import trio

    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio._core._run._r.seed(0)
