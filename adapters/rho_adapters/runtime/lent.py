"""The tasks of what the host lends: compactor, boundary collector, usage recorder; and the timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from rho_adapters.host import CollectorGone, CompactionFailure, CompactionRequest
from rho_adapters.runtime.work import RunState, Task, Work
from rho_core import effects as fx
from rho_core import inputs as inp

if TYPE_CHECKING:
    from rho_adapters.runtime.port import SessionPort


def start_timer(port: SessionPort, run: RunState, e: fx.StartTimer) -> None:
    """Carry out `StartTimer`."""

    async def body(_: Task) -> None:
        await port.rho.clock.sleep_ms(e.milliseconds)
        port.tell(run, inp.TimerFired(e.timer_id))

    port.spawn(run, "timer", e.timer_id, body, f"timer {e.timer_id}")


def call_compactor(port: SessionPort, work: Work, e: fx.CallCompactor) -> None:
    """Carry out `CallCompactor`, of a run or by hand."""
    compactor = port.rho.compactor
    assert compactor is not None

    async def body(_: Task) -> None:
        port.tell(work, await ended())

    async def ended() -> inp.RunInput:
        try:
            done = await compactor.compact(CompactionRequest(e.messages, e.trigger, work.token))
        except CompactionFailure as failed:
            return inp.CompactorFailed(failed.error)
        except Exception as panic:
            port.rho.panicked(panic, "compactor")
            return inp.CompactorPanicked()
        return inp.CompactorReturned(done.messages, done.usage)

    port.spawn(work, "compact", None, body, f"compact {work.id}")


def ask_boundary(port: SessionPort, run: RunState, e: fx.AskBoundary) -> None:
    """Carry out `AskBoundary`. A collector that fails is gone."""
    collector = port.rho.collector
    assert collector is not None

    async def body(_: Task) -> None:
        answer: inp.RunInput
        try:
            answer = inp.BoundaryReplied(await collector.collect(e.boundary))
        except CollectorGone:
            answer = inp.BoundaryGone()
        except Exception as panic:
            port.rho.panicked(panic, "boundary collector")
            answer = inp.BoundaryGone()
        port.tell(run, answer)

    port.spawn(run, "collect", None, body, f"collect {e.boundary}")


def record_usage(port: SessionPort, run: RunState, e: fx.RecordUsage) -> None:
    """Carry out `RecordUsage`; that it failed changes nothing (contract 1.5)."""
    recorder = port.rho.recorder
    assert recorder is not None

    before, begun = run.recording, anyio.Event()
    run.recording = begun

    async def body(_: Task) -> None:
        if before is not None:
            await before.wait()  # records are handed over in the order of the requests
        begun.set()
        try:
            await recorder.record(e)
        except Exception as fault:
            port.rho.panicked(fault, "usage recorder")
        port.tell(run, inp.UsageRecorded())

    port.spawn(run, "record", None, body, f"record {e.step}.{e.attempt}")
