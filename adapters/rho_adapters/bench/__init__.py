"""`rho-core bench`, the runtime's part: ratios against other runtimes, measured side by side in one run."""

from __future__ import annotations

import gc
import time
from statistics import median
from typing import Any

import anyio

from rho_adapters.bench import streaming
from rho_adapters.bench.peers import PEERS, Play

Figures = dict[str, dict[str, Any]]
DELTAS = 10_000
ROUNDS = 5


def figures() -> Figures:
    """`{name: {value, unit}}`; a peer that is not installed has the value None and says so."""
    rates, missing = anyio.run(_rates)
    mine = rates.pop("rho-core")
    out: Figures = {"stream_deltas_per_second": _figure(mine, "1/s, 10,000 deltas to the consumer")}
    for name, rate in rates.items():
        out[f"peer_{name}_deltas_per_second"] = _figure(rate, "1/s")
    for name, why in missing.items():
        out[f"peer_{name}_deltas_per_second"] = {"value": None, "unit": f"missing: {why}"}
    out |= _ratios(mine, rates)
    out["stream_cost_growth"] = _figure(anyio.run(_growth), "per delta, 100,000 over 1,000 deltas")
    out["slow_consumer_kib"] = _figure(anyio.run(streaming.slow_consumer_kib, 10_000), "KiB that an unread run gains")
    cancels = [anyio.run(streaming.cancel_full_channel_ms) for _ in range(20)]
    out["cancel_full_channel_ms"] = _figure(median(cancels), "ms, median of 20")
    starts = [anyio.run(_one_startup) for _ in range(20)]
    out["startup_ms"] = _figure(median(starts), "ms, runtime and session, median of 20")
    return out


def _ratios(mine: float, rates: dict[str, float]) -> Figures:
    if not rates:
        said = {"value": None, "unit": "missing: no peer is installed (extra [bench])"}
        return {"stream_ratio_to_fastest_peer": said, "stream_ratio_to_median_peer": said}
    fastest = max(rates, key=lambda name: rates[name])
    return {
        "stream_ratio_to_fastest_peer": _figure(mine / rates[fastest], f"times as fast as {fastest}"),
        "stream_ratio_to_median_peer": _figure(mine / median(rates.values()), f"times the median of {len(rates)}"),
    }


def _figure(value: float, unit: str) -> dict[str, Any]:
    return {"value": round(value, 2), "unit": unit}


async def _rates() -> tuple[dict[str, float], dict[str, str]]:
    """Deltas per second of each runtime, their rounds interleaved, so that a noisy minute is everybody's."""
    plays: dict[str, Play] = {"rho-core": streaming.ours(DELTAS)}
    missing: dict[str, str] = {}
    for name, make in PEERS.items():
        try:
            plays[name] = make(DELTAS)
        except ImportError as absent:
            missing[name] = f"{name} is not installed ({absent.name or absent})"
    taken: dict[str, list[float]] = {name: [] for name in plays}
    for turn in range(ROUNDS + 1):
        for name, play in plays.items():
            seconds = await _seconds(play)
            if turn:  # the first one warms up
                taken[name].append(seconds)
    return {name: DELTAS / median(times) for name, times in taken.items()}, missing


async def _seconds(play: Play) -> float:
    gc.collect()
    begun = time.perf_counter()
    seen = await play()
    took = time.perf_counter() - begun
    if seen < DELTAS:
        raise AssertionError(f"{seen} events for {DELTAS} deltas: something was not delivered")
    return took


async def _growth() -> float:
    async def per_delta(count: int) -> float:
        times = []
        for _ in range(ROUNDS):
            gc.collect()
            begun = time.process_time()
            await streaming.ours(count)()
            times.append((time.process_time() - begun) / count)
        return median(times)

    await per_delta(1_000)
    return await per_delta(100_000) / await per_delta(1_000)


async def _one_startup() -> float:
    return await streaming.startup_ms()
