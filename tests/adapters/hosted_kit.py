"""Schedules that are chosen: which of the ready tasks goes on next is drawn, so that an interleaving bug replays.

asyncio: an event loop whose task steps are taken from its own list. trio: the order of each batch, which trio
draws from a private generator (as pytest-trio and Hypothesis replace it too).
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rho_conformance.drivers.live import LiveDriver
from rho_conformance.drivers.live.loops import IdleLoop

Choose = Callable[[int], int]
"""From the number of ready tasks to the one that goes on."""
BACKENDS = ("asyncio", "trio")


def choices(drawn: Sequence[int]) -> Choose:
    """Drawn numbers one after the other; when they are used up, the first task always."""
    rest = iter(drawn)
    return lambda ready: next(rest, 0) % ready if ready > 1 else 0


class ChoosingLoop(IdleLoop):
    """Steps of tasks are run in the chosen order; other callbacks keep theirs, which asyncio promises."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._steps: list[tuple[asyncio.Handle, Callable[..., Any], tuple[Any, ...], Any]] = []
        self.chosen = 0
        super().__init__()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if not isinstance(getattr(callback, "__self__", None), asyncio.Task):
            return super().call_soon(callback, *args, context=context)  # type: ignore[arg-type, unused-ignore]
        handle = asyncio.Handle(callback, args, self, context)
        self._steps.append((handle, callback, args, context or contextvars.copy_context()))
        super().call_soon(self._dispatch)
        return handle

    def _dispatch(self) -> None:
        self._steps = [step for step in self._steps if not step[0].cancelled()]
        if not self._steps:
            return
        self.chosen += len(self._steps) > 1
        _, callback, args, context = self._steps.pop(self._choose(len(self._steps)))
        context.run(callback, *args)


class _Order(random.Random):
    """In place of trio's generator: each shuffle is chosen."""

    def __init__(self, choose: Choose) -> None:
        super().__init__(0)
        self._choose = choose

    def seed(self, *_: Any, **__: Any) -> None:
        """Nothing is random here."""

    def shuffle(self, x: Any) -> None:
        left = list(x)
        chosen = [left.pop(self._choose(len(left))) for _ in range(len(left))]
        x[:] = chosen[::-1]  # trio takes its tasks from the end


@contextmanager
def scheduled(backend: str, drawn: Sequence[int]) -> Iterator[LiveDriver]:
    """A driver whose schedule is `drawn`."""
    choose = choices(drawn)
    if backend == "asyncio":
        yield LiveDriver(backend, {"loop_factory": lambda: ChoosingLoop(choose)})
        return
    import trio

    run: Any = trio._core._run
    kept, run._r = run._r, _Order(choose)
    try:
        yield LiveDriver(backend)
    finally:
        run._r = kept
