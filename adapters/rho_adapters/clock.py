"""Time, as the runtime sees it: a monotonic clock to measure with and a sleep. Tests bring their own."""

from __future__ import annotations

import time
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

import anyio


class Clock(Protocol):
    """Milliseconds; `now_ms` never goes back."""

    def now_ms(self) -> int: ...

    async def sleep_ms(self, milliseconds: int) -> None: ...


class SystemClock:
    """The machine's."""

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def sleep_ms(self, milliseconds: int) -> None:
        await anyio.sleep(milliseconds / 1_000)


class VirtualClock:
    """Time that moves only when it is told to; sleepers wake in the order of their time, ties as they began."""

    def __init__(self) -> None:
        self._now = 0
        self._order = count()
        self._sleepers: list[tuple[int, int, anyio.Event]] = []

    def now_ms(self) -> int:
        return self._now

    async def sleep_ms(self, milliseconds: int) -> None:
        wake = anyio.Event()
        entry = (self._now + milliseconds, next(self._order), wake)
        heappush(self._sleepers, entry)
        try:
            await wake.wait()
        finally:
            if not wake.is_set():
                self._sleepers.remove(entry)
                self._sleepers.sort()

    @property
    def next_ms(self) -> int | None:
        """When the earliest sleeper wakes."""
        return self._sleepers[0][0] if self._sleepers else None

    def wake_next(self, until_ms: int) -> bool:
        """Move to the earliest sleeper due by then and wake it; False when none is."""
        if not self._sleepers or self._sleepers[0][0] > until_ms:
            return False
        due, _, wake = heappop(self._sleepers)
        self._now = max(self._now, due)
        wake.set()
        return True

    def pass_until(self, until_ms: int) -> None:
        """Let the time come, with nobody to wake on the way."""
        self._now = max(self._now, until_ms)
