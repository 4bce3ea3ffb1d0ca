"""The in-process driver of the core: target `core` (`spec/protocol.md`).

Every core function is called through its module at call time, and every method runs inside `patches()`: a
wrong core is this driver with other tables.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import rho_core
from rho_conformance.drivers.corework import decode, settings, store
from rho_conformance.drivers.corework.commands import Performer
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.world import Journal, World
from rho_conformance.errors import DriverError

Json = dict[str, Any]
Patches = Callable[[], AbstractContextManager[Any]]


def hello(name: str) -> Json:
    """What a driver of the core, or of a runtime built on it, can do: everything."""
    return {
        "protocol": 1,
        "name": name,
        "version": rho_core.__version__,
        "profiles": ["rho", "common"],
        "capabilities": ["*"],
        "extensions": ["provider.tier_fallback", "tool.withdraw"],
        "time": "virtual",
        "deterministic": True,
    }


class CoreDriver:
    """`journal`: what was fed to the core since `open` (`world.Journal`). `name`: shown in `hello`."""

    def __init__(self, patches: Patches | None = None, name: str = "core") -> None:
        self.patches: Patches = patches or nullcontext
        self.name = name
        self.journal: Journal = []
        self._world: World | None = None
        self._performer: Performer | None = None

    def hello(self) -> Json:
        """Who answers and what it can do."""
        return hello(self.name)

    def open(self, config: Json) -> Json:
        """Begin a new world; `{error: NAME}` for a configuration that the contract refuses."""
        self.close()
        self.journal.clear()
        with self.patches():
            try:
                read = settings.read(config)
                world = World(read, self.journal)
                for name in read.sessions:
                    session = store.opening(read, name)
                    world.ports[name] = SessionPort(world, name, session, read.eager)
            except settings.RefusedConfig as refused:
                return {"error": refused.name}
        self._world, self._performer = world, Performer(world)
        return {}

    def perform(self, stimuli: list[Json]) -> Json:
        """Deliver the stimuli in order, settle once, report. `DriverError` for what is not of the format."""
        world, performer = self._world, self._performer
        if world is None or performer is None:
            raise DriverError("perform: no world is open")
        with self.patches():
            world.step += 1
            world.fed = 0 if not world.restless else world.fed
            world.observations = []
            if len(stimuli) == 1 and set(stimuli[0]) == {"advance"}:
                performer.counts["advance"] = performer.counts.get("advance", 0) + 1
                world.advance(decode.duration_ms(stimuli[0]["advance"], "advance"))
            else:
                for stimulus in stimuli:
                    performer.perform(stimulus)
            world.settle_due()
            return {
                "observations": world.observations,
                "waiting_on": world.waiting_on(),
                "facts": world.facts(),
            }

    def close(self) -> None:
        """Forget the world; the journal stays until the next `open`."""
        self._world = self._performer = None


def factory() -> CoreDriver:
    """The target `core`."""
    return CoreDriver()
