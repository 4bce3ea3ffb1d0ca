"""Compactor, collector and recorder of the environment, as the hosted runtime calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rho_conformance.drivers.corework import items
from rho_conformance.drivers.corework.upcalls import STOPPED, Upcall
from rho_conformance.drivers.live.doubles import Panic
from rho_core import effects as fx
from rho_core import inputs as i
from rho_core.errors import CANCELLED
from rho_core.normal import encode

if TYPE_CHECKING:
    from rho_conformance.drivers.live.world import LiveWorld


class Compactor:
    """Answers when the scenario says so."""

    def __init__(self, world: LiveWorld) -> None:
        compaction = world.settings.policy.compaction
        self._world = world
        self.cooperative = compaction is not None and compaction.cooperative

    async def compact(self, request: Any) -> Any:
        port = self._world.port_of_effect(fx.CallCompactor)
        run = None if request.trigger == "manual" else port.run_now()
        upcall = Upcall("Compact", run, port.incarnation)
        shown = {"messages": encode.messages(request.messages), "trigger": request.trigger.capitalize()}
        port.open_live(upcall, shown, request.token)
        try:
            item = await port.next_item(upcall)
        finally:
            port.left(upcall)
        if item[0] == "panic":
            raise Panic("compactor")
        if item[0] == STOPPED:
            raise self._world.hosting.compaction_failure(CANCELLED)
        given = items.compactor_input(item)
        if isinstance(given, i.CompactorFailed):
            raise self._world.hosting.compaction_failure(given.error)
        assert isinstance(given, i.CompactorReturned)
        return self._world.hosting.compacted(given.messages)


class Collector:
    """Answers when the scenario says so; hears what became of it."""

    def __init__(self, world: LiveWorld) -> None:
        self._world = world

    async def collect(self, boundary: str) -> str | None:
        port = self._world.port_of_effect(fx.AskBoundary)
        upcall = Upcall("Collect", port.run_now(), port.incarnation)
        port.open_live(upcall, {"kind": boundary}, None)
        try:
            kind, given = await port.next_item(upcall, taken=False)
        finally:
            port.left(upcall)
        if kind == "gone":
            raise self._world.hosting.collector_gone
        return given if given is None else str(given)

    def acknowledge(self, accepted: bool) -> None:
        if not self._world.awaits(fx.AckBoundary):
            return  # of a runtime whose process was lost: its end is seen by nobody
        port = self._world.port_of_effect(fx.AckBoundary)
        port.see("CollectAck", {"accepted": accepted}, port.run_now())


class Recorder:
    """Is through with a record at once, or when the scenario says so."""

    def __init__(self, world: LiveWorld) -> None:
        self._world = world

    async def record(self, e: fx.RecordUsage) -> None:
        port = self._world.port_of_effect(fx.RecordUsage, e)
        upcall = Upcall("Record", port.run_now(), port.incarnation)
        outcome: Any = {"Failed": str(e.error_kind)} if e.outcome == "Failed" else e.outcome
        shown = {"step": e.step, "attempt": e.attempt, "outcome": outcome, "usage": encode.usage(e.usage)}
        port.open_live(upcall, shown, None)
        if not self._world.settings.gated_recorder:
            upcall.finish()
            return
        kind, _ = await port.next_item(upcall, taken=False)
        if kind == "fail":
            raise OSError("the ledger is full")
