"""Find the driver factory of a target: `core`, `chaos[:SEED]`, `mutant:NAME`, `python:module:factory`, or a
registered name (design §7)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from rho_conformance.driver import Driver, DriverFactory, import_factory, load_driver
from rho_conformance.errors import UsageError

ENTRY_POINT_GROUP = "rho_core.targets"

# Name -> (module, attribute). Imported only when asked for: none of them is needed to judge another target.
BUILT_IN: dict[str, tuple[str, str]] = {
    "core": ("rho_conformance.drivers.core", "factory"),
    "pydantic-ai": ("rho_conformance.drivers.pydantic_ai", "factory"),
}
CHAOS = ("rho_conformance.chaos", "factory")
MUTANT = ("rho_conformance.mutants", "mutant_factory")
DEFAULT_SEED = 0


def resolve(target: str) -> DriverFactory:
    """The driver factory of a target; raises `UsageError` for a name that means nothing."""
    scheme, colon, rest = target.partition(":")
    if scheme == "python" and colon:
        return load_driver(target)
    if scheme == "exec" and colon:
        raise UsageError(f"target {target!r}: child processes (exec:) are not supported yet; use python:module:factory")
    if scheme == "mutant" and colon:
        return _made(MUTANT, target, rest)
    if scheme == "chaos":
        return _made(CHAOS, target, _seed(target, rest) if colon else DEFAULT_SEED)
    if target in BUILT_IN:
        return cast(DriverFactory, import_factory(*BUILT_IN[target], target=target))
    registered = _registered()
    if target in registered:
        return _load(registered[target], target)
    known = [*sorted({*BUILT_IN, *registered}), "chaos[:SEED]", "mutant:NAME", "python:MODULE:FACTORY"]
    raise UsageError(f"unknown target {target!r}; known: {', '.join(known)}")


def _made(place: tuple[str, str], target: str, argument: str | int) -> DriverFactory:
    maker: Callable[[Any], Any] = import_factory(*place, target=target)
    if argument == "":
        raise UsageError(f"target {target!r}: a name must follow the colon")
    try:
        made = maker(argument)
    except KeyError as unknown:
        raise UsageError(f"target {target!r}: there is no {argument!r}") from unknown
    # A maker may build a driver or a factory of drivers; a caller opens several, each from a fresh one.
    return (lambda: cast(Driver, maker(argument))) if hasattr(made, "perform") else cast(DriverFactory, made)


def _seed(target: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as fault:
        raise UsageError(f"target {target!r}: the seed {text!r} is not an integer") from fault


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _load(entry: EntryPoint, target: str) -> DriverFactory:
    try:
        return cast(DriverFactory, entry.load())
    except (Exception, SystemExit) as fault:
        cause = f"{type(fault).__name__}: {fault}"
        raise UsageError(f"target {target!r}: {entry.value} cannot be loaded: {cause}") from fault
