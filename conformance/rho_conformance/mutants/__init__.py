"""Deliberately wrong and deliberately different cores: do the rules see the one, and let the other pass?"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from rho_conformance.driver import Driver
from rho_conformance.mutants.base import Benign, Mutant, applied
from rho_conformance.mutants.benign import BENIGN


@cache
def mutants() -> tuple[Mutant, ...]:
    """Every mutant, in the order of the family modules. Names are unique."""
    found: dict[str, Mutant] = {}
    for family in iter_modules(__path__):
        for mutant in getattr(import_module(f"{__name__}.{family.name}"), "MUTANTS", ()):
            # A family may gather the tables of its parts: the same mutant twice is one.
            if found.setdefault(mutant.name, mutant) is not mutant:
                raise ValueError(f"two mutants have the name {mutant.name!r}")
    return tuple(found.values())


def benign() -> tuple[Benign, ...]:
    """Every permitted variant. (The module of that name is loaded above: loaded later, it would hide this function.)"""
    return BENIGN


def find(name: str) -> Mutant | Benign:
    """The mutant, or benign mutant, of that name. KeyError when there is none."""
    by_name: dict[str, Mutant | Benign] = {m.name: m for m in mutants()}
    by_name.update((b.name, b) for b in benign())
    return by_name[name]


def mutant_factory(name: str) -> Driver:
    """A core driver that works under the mutant's patches."""
    return driver_of(find(name))


def driver_of(made: Mutant | Benign) -> Driver:
    """A fresh driver of this core."""
    from rho_conformance.drivers.core import CoreDriver

    return CoreDriver(lambda: applied(made.patches))
