"""Our own runtime: deltas to a consumer, a consumer that does not read, a cancel against a full channel, start-up."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import AsyncIterator

import anyio

from rho_adapters.bench.peers import PIECE, Play, count_events
from rho_adapters.errors import RunCancelled
from rho_adapters.provider import BaseProvider, ModelRequest
from rho_adapters.runtime.config import RhoConfig
from rho_adapters.runtime.rho import Rho
from rho_core import inputs as inp
from rho_core.messages import Identity, Text


class Flood(BaseProvider):
    """A model that says the same piece `count` times; without end when `count` is 0."""

    identity = Identity("bench", "scripted", "flood")

    def __init__(self, count: int) -> None:
        self.count = count
        self.sent = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        while self.count == 0 or self.sent < self.count:
            self.sent += 1
            yield request.text(PIECE)
        self.sent = 0
        yield request.returned((Text(PIECE * self.count),))


def ours(count: int) -> Play:
    """One run of our runtime at the default capacity, 64."""

    async def play() -> int:
        async with Rho(Flood(count)) as rho, rho.session().start("go") as run:
            return await count_events(run)

    return play


async def cancel_full_channel_ms() -> float:
    """Milliseconds from a cancel, with the channel full and the model still talking, to the outcome."""
    flood = Flood(0)
    async with Rho(flood) as rho, rho.session().start("go") as run:
        while flood.sent < 64:
            await anyio.sleep(0)
        begun = time.perf_counter()
        run.cancel()
        try:
            await run.outcome()
        except RunCancelled:
            return (time.perf_counter() - begun) * 1_000
    raise AssertionError("a cancelled run completed")


async def startup_ms() -> float:
    """Milliseconds to make and open a runtime and a session, and to close them again."""
    begun = time.perf_counter()
    async with Rho(Flood(1)) as rho:
        rho.session()
    return (time.perf_counter() - begun) * 1_000


async def slow_consumer_kib(count: int) -> float:
    """KiB that a run holds when its consumer stopped reading, after the model could have said `count` deltas."""
    flood = Flood(0)
    async with Rho(flood, config=RhoConfig(event_capacity=64)) as rho, rho.session().start("go") as run:
        for _ in range(10):
            await anyio.sleep(0)
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(count):
                await anyio.sleep(0)
            held, _peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert flood.sent < 64 + 2, "the model was not held back"
        run.cancel()
    return held / 1_024
