"""How a contract is declared: a function with a PEP 316 docstring that calls the real core, and what it is about.

The core itself stays free of contracts. `pre:` bounds what must be bounded for the search to end; the bound is said
again in words, and goes into the ledger.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

Id = Literal["a", "b", "c"]
"""Ids in contracts. The core only compares ids: with two in use, a third value stands for every other."""

IDS = "ids of {a, b, c}, which the core only compares"


@dataclass(frozen=True)
class Contract:
    """`about`: the real functions called; `bounds`: the preconditions in words; `limit`: CPU seconds a condition."""

    function: Callable[..., Any]
    about: tuple[Any, ...]
    bounds: str
    limit: float

    @property
    def name(self) -> str:
        """As in the ledger: `budget.delay`."""
        return f"{self.function.__module__.rsplit('.', 1)[-1]}.{self.function.__name__}"

    @property
    def target(self) -> str:
        """What it is about, by qualified name."""
        return ", ".join(_qualified(t) for t in self.about)

    def digest(self) -> str:
        """Of the contract, of what its module has besides contracts, and of the modules it is about."""
        own = _source(self.function.__module__)
        for other in CONTRACTS.values():
            if other.function.__module__ == self.function.__module__:
                own = own.replace(inspect.getsource(other.function), "")
        modules = sorted({_module(t) for t in self.about})
        parts = (self.name, inspect.getsource(self.function), own, *map(_source, modules))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


CONTRACTS: dict[str, Contract] = {}


def contract(*about: Any, bounds: str = "none", limit: float = 20) -> Callable[[F], F]:
    """Declare one; the function itself stays as it is."""

    def declare(function: F) -> F:
        one = Contract(function, about, bounds, limit)
        if one.name in CONTRACTS and CONTRACTS[one.name].function is not function:
            raise ValueError(f"two contracts are named {one.name}")
        CONTRACTS[one.name] = one
        return function

    return declare


def _module(target: Any) -> str:
    name: str = target.__name__ if inspect.ismodule(target) else target.__module__
    return name


def _qualified(target: Any) -> str:
    return _module(target) if inspect.ismodule(target) else f"{target.__module__}.{target.__qualname__}"


@cache
def _source(module: str) -> str:
    return inspect.getsource(sys.modules[module])
