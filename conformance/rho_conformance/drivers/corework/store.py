"""The host's own store: snapshot, save, restore; and the crash that loses the process (design D21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rho_core.runtime
import rho_core.session
import rho_core.snapshot
import rho_core.wire
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.runs import Command
from rho_conformance.drivers.corework.settings import RefusedConfig, Settings
from rho_conformance.drivers.corework.world import World
from rho_core.errors import Error, ErrorName
from rho_core.ledger import Ledger
from rho_core.normal import encode
from rho_core.session import Session

SHUT = Error(ErrorName.RUNTIME_SHUTDOWN, "the runtime is shut down")
BUSY = Error(ErrorName.SESSION_BUSY, "the session has an unfinished run")
NO_SAVE = Error(ErrorName.PERSISTENCE, "nothing was saved")
DISK_FULL = Error(ErrorName.PERSISTENCE, "the store could not write")


def opening(settings: Settings, name: str) -> Session:
    """The session as the scenario starts it; `history` and `revision` come in through a snapshot."""
    first = name == settings.sessions[0]
    if not first or not (settings.history or settings.revision):
        return rho_core.session.new_session(name, settings.policy, None, settings.system)
    ledger = Ledger(settings.history, settings.revision)
    seed = rho_core.session.new_session(name, settings.policy, ledger)
    try:
        return load(rho_core.wire.dump_snapshot(rho_core.snapshot.take(seed)), settings)
    except rho_core.snapshot.SnapshotError as fault:
        raise RefusedConfig(str(fault.error.name), fault.error.message) from fault


def text_of(port: SessionPort) -> str:
    """A snapshot of the session, as it would lie on a disk."""
    return rho_core.wire.dump_snapshot(rho_core.snapshot.take(port.session))


def load(text: str, settings: Settings) -> Session:
    """The session that a saved text holds."""
    return rho_core.snapshot.restore(rho_core.wire.load_snapshot(text), settings.policy, settings.system)


def snapshot(world: World, command: Command, port: SessionPort, args: dict[str, Any]) -> None:
    world.reply(command, {"ok": text_of(port)})


def save(world: World, command: Command, port: SessionPort, args: dict[str, Any]) -> None:
    """A save that fails leaves the earlier one."""
    if args.get("fail"):
        world.reply(command, encode.error(DISK_FULL))
        return
    world.saved[port.name] = text_of(port)
    world.saves += 1
    world.reply(command, "ok")


def restore(world: World, command: Command, port: SessionPort, args: dict[str, Any]) -> None:
    """Put the last save in place of an idle session."""
    saved = world.saved.get(port.name)
    fault = BUSY if port.session.busy else SHUT if world.runtime.shut else NO_SAVE if saved is None else None
    if fault is not None or saved is None:
        world.reply(command, encode.error(fault or NO_SAVE))
        return
    port.install(load(saved, world.settings))
    world.reply(command, "ok")


def crash(world: World, command: Command, port: SessionPort, args: dict[str, Any]) -> None:
    """The process is lost; each session comes back from its last save, or as the scenario began."""
    world.runtime = rho_core.runtime.Runtime()
    world.commands.clear()
    world.operations.clear()
    world.timers.clear()
    for run in world.runs.values():
        run.leave()
        run.lost = True
        run.draining.clear()
    for one in world.ports.values():
        for upcall in one.upcalls:
            upcall.finish()
        saved = world.saved.get(one.name)
        one.install(one.opening if saved is None else load(saved, world.settings))
    world.reply(command, "ok")


def new_session(world: World, command: Command, port: SessionPort, args: dict[str, Any]) -> None:
    """One more session of the same runtime, named by `as`, else the next free `s<k>`."""
    if world.runtime.shut:
        world.reply(command, encode.error(SHUT, "RHO-SHUT-6"))
        return
    name = args.get("as") or next(s for k in range(1, 10**9) if (s := f"s{k}") not in world.ports)
    if name in world.ports:
        world.reply(command, encode.error(Error(ErrorName.INVALID_CONFIGURATION, f"session {name!r} exists")))
        return
    session = rho_core.session.new_session(name, world.settings.policy, None, world.settings.system)
    world.ports[name] = SessionPort(world, name, session, world.settings.eager)
    world.reply(command, "ok")


StoreCommand = Callable[[World, Command, SessionPort, dict[str, Any]], None]
COMMANDS: dict[str, StoreCommand] = {
    "snapshot": snapshot,
    "save": save,
    "restore": restore,
    "crash": crash,
    "new_session": new_session,
}
