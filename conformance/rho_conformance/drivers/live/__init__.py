"""Drivers of a runtime built on the core, on a real event loop: targets `asyncio` and `trio`."""

from __future__ import annotations

from typing import Any

from rho_conformance.drivers.core import hello
from rho_conformance.drivers.corework import decode, settings
from rho_conformance.drivers.live import loops
from rho_conformance.drivers.live.commands import LivePerformer
from rho_conformance.drivers.live.seam import hosting
from rho_conformance.drivers.live.world import LiveWorld
from rho_conformance.errors import DriverError
from rho_core.snapshot import SnapshotError

Json = dict[str, Any]


class LiveDriver:
    """One loop thread for each open world. `options`: of the loop's backend, for schedules of one's own.

    `strict`: a difference that the oracle finds is a DriverError, at once. Otherwise it is a `Refused`: the driver
    declares everything, hence the core's trace, and what does not show it fails CORE-CAP.
    """

    def __init__(self, backend: str, options: Json | None = None, *, strict: bool = True) -> None:
        self.backend, self.options, self.strict = backend, options, strict
        self._hosting = hosting()
        self._loop: loops.LoopThread | None = None
        self._world: LiveWorld | None = None
        self._performer: LivePerformer | None = None

    def hello(self) -> Json:
        """Who answers and what it can do."""
        return hello(self.backend)

    def open(self, config: Json) -> Json:
        """Begin a new world; `{error: NAME}` for a configuration that the contract refuses."""
        self.close()
        try:
            read = settings.read(config)
        except settings.RefusedConfig as refused:
            return {"error": refused.name}
        self._loop = loops.LoopThread(self.backend, self.options)
        world = LiveWorld(read, self._hosting, self._loop.group.start_soon)
        self._world, self._performer = world, LivePerformer(world)
        try:
            self._loop.call(world.open)
        except settings.RefusedConfig as refused:
            return {"error": refused.name}
        except SnapshotError as refused:
            return {"error": str(refused.error.name)}
        return {}

    def perform(self, stimuli: list[Json]) -> Json:
        """Deliver the stimuli in order, settle once, report. DriverError for what is not of the format."""
        if self._loop is None or self._world is None:
            raise DriverError("perform: no world is open")
        return self._loop.call(self._perform, stimuli)

    async def _perform(self, stimuli: list[Json]) -> Json:
        world, performer = self._world, self._performer
        assert world is not None and performer is not None
        world.step += 1
        world.observations = []
        if len(stimuli) == 1 and set(stimuli[0]) == {"advance"}:
            performer.counts["advance"] = performer.counts.get("advance", 0) + 1
            await world.advance_live(decode.duration_ms(stimuli[0]["advance"], "advance"))
        else:
            for stimulus in stimuli:
                performer.perform(stimulus)
                await performer.restart()
                if len(stimuli) > 1:
                    await loops.tick()  # what can be handed over at once is, and nothing settles
        await world.settle_due_live()
        world.oracle.settled({name: world.state_of(port.handle) for name, port in world.ports.items()})
        if world.oracle.faults:
            self._differs(world, stimuli)
        return {"observations": list(world.observations), "waiting_on": world.waiting_on(), "facts": world.facts()}

    def _differs(self, world: LiveWorld, stimuli: list[Json]) -> None:
        found = f"strict oracle: {world.oracle.faults[0]}"
        if self.strict:
            raise DriverError(found)
        world.oracle.faults.clear()
        stimulus = next(iter(stimuli[-1]), "") if stimuli else ""
        world.see("Refused", world.settings.sessions[0], None, {"stimulus": stimulus, "feature": found})

    def close(self) -> None:
        """End the runtime and its loop."""
        loop, world = self._loop, self._world
        self._loop = self._world = self._performer = None
        if loop is not None:
            if world is not None:
                loop.call(world.close)
            loop.close()


def asyncio_factory() -> LiveDriver:
    """The target `asyncio`."""
    return LiveDriver("asyncio", strict=False)


def trio_factory() -> LiveDriver:
    """The target `trio`."""
    return LiveDriver("trio", strict=False)
