"""Stimuli of the host that concern the runtime as a whole: its store, its crash, another session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rho_core.snapshot
import rho_core.wire
from rho_conformance.drivers.corework import store
from rho_conformance.drivers.corework.commands import HANDLERS, Performer, Stimulus
from rho_conformance.drivers.live.port import LivePort
from rho_conformance.drivers.live.world import LiveWorld
from rho_core.errors import Error, ErrorName
from rho_core.normal import encode


class LivePerformer(Performer):
    """As the core's driver takes stimuli apart; these few it does by the runtime's API. `restarts`: crashes to do."""

    world: LiveWorld

    def __init__(self, world: LiveWorld) -> None:
        super().__init__(world)
        self.crashed: Stimulus | None = None

    def handler(self, name: str) -> Callable[[Any, Stimulus], None] | None:
        """What a stimulus does."""
        return _LIVE.get(name) or HANDLERS.get(name)

    async def restart(self) -> None:
        """The crash that a stimulus asked for: it takes the loop, and so comes after the stimulus was read."""
        stimulus, self.crashed = self.crashed, None
        if stimulus is None:
            return
        world = self.world
        for run in world.runs.values():
            run.leave()
            run.lost = True
            run.draining.clear()
        world.commands.clear()
        await world.again()
        for port in world.ports.values():
            saved = world.saved.get(port.name)
            opening = port.opening if saved is None else store.load(saved, world.settings)
            port.install_handle(world.restored(opening))
        world.reply(self.command(stimulus), "ok")


def _snapshot(p: LivePerformer, s: Stimulus) -> None:
    p.world.reply(p.command(s), {"ok": rho_core.wire.dump_snapshot(_port(s).handle.snapshot())})


def _save(p: LivePerformer, s: Stimulus) -> None:
    if s.args.get("fail"):
        p.world.reply(p.command(s), encode.error(store.DISK_FULL))
        return
    p.world.saved[s.port.name] = rho_core.wire.dump_snapshot(_port(s).handle.snapshot())
    p.world.saves += 1
    p.world.reply(p.command(s), "ok")


def _restore(p: LivePerformer, s: Stimulus) -> None:
    port, saved = _port(s), p.world.saved.get(s.port.name)
    busy = port.handle.busy
    fault = store.BUSY if busy else store.SHUT if p.world.rho.is_shut else store.NO_SAVE if saved is None else None
    if fault is not None or saved is None:
        p.world.reply(p.command(s), encode.error(fault or store.NO_SAVE))
        return
    p.world.rho.forget(port.handle)
    port.install_handle(p.world.restored(store.load(saved, p.world.settings)))
    p.world.reply(p.command(s), "ok")


def _crash(p: LivePerformer, s: Stimulus) -> None:
    p.crashed = s


def _new_session(p: LivePerformer, s: Stimulus) -> None:
    world = p.world
    if world.rho.is_shut:
        world.reply(p.command(s), encode.error(store.SHUT, "RHO-SHUT-6"))
        return
    name = s.args.get("as") or next(n for k in range(1, 10**9) if (n := f"s{k}") not in world.ports)
    if name in world.ports:
        fault = Error(ErrorName.INVALID_CONFIGURATION, f"session {name!r} exists")
        world.reply(p.command(s), encode.error(fault))
        return
    handle = world.rho.session(name, system=world.settings.system)
    world.ports[name] = LivePort(world, name, handle, world.settings.eager)
    world.reply(p.command(s), "ok")


def _port(s: Stimulus) -> LivePort:
    assert isinstance(s.port, LivePort)
    return s.port


_LIVE: dict[str, Callable[[LivePerformer, Stimulus], None]] = {
    "snapshot": _snapshot,
    "save": _save,
    "restore": _restore,
    "crash": _crash,
    "new_session": _new_session,
}
