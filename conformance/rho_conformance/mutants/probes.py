"""Which patched places does a script pass? A mutant of a place that it never passes cannot change what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import FunctionType
from typing import Any

from rho_conformance.mutants.base import Benign, Mutant, Swap, Target
from rho_core.table import Row


class Passed:
    """The places passed since `clear`."""

    def __init__(self) -> None:
        self.places: set[Target] = set()

    def clear(self) -> set[Target]:
        """What was passed so far, and begin anew."""
        passed, self.places = self.places, set()
        return passed


@contextmanager
def probing(made: Iterable[Mutant | Benign], passed: Passed) -> Iterator[None]:
    """While this is held, every function that some mutant replaces notes that it was called."""
    swaps = {p.target: p for m in made for p in m.patches if isinstance(p, Swap)}
    with ExitStack() as stack:
        for swap in swaps.values():
            probe = _probe(swap.original, swap.target, passed)
            if probe is not None:
                stack.enter_context(Swap(swap.owner, swap.key, probe)())
        yield


def _probe(original: Any, place: Target, passed: Passed) -> Any:
    if isinstance(original, Row):
        return Row(_noting(original.handler, place, passed), original.exits, original.rules)
    return _noting(original, place, passed) if isinstance(original, FunctionType) else None


def _noting(function: Callable[..., Any], place: Target, passed: Passed) -> Callable[..., Any]:
    @wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        passed.places.add(place)
        return function(*args, **kwargs)

    return noting


def may_differ(made: Mutant | Benign, passed: set[Target]) -> bool:
    """Could this mutant show anything else on a script that passed these places? True where we cannot tell."""
    return any(
        not isinstance(p, Swap) or p.target in passed or not isinstance(p.original, (Row, FunctionType))
        for p in made.patches
    )
