"""How a deliberately wrong core is made: patches of one handler, held only while the driver works.

A mutant names the rule that must kill it. A *benign* mutant is a permitted variant or race alternative that the
core itself never shows; no rule may call it a failure (design §6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest import mock

from rho_core.table import Row

Patch = Callable[[], AbstractContextManager[Any]]
Wrap = Callable[[Any], Any]
"""Takes the original (a handler, a function, an entry) and gives what stands in its place."""


@dataclass(frozen=True)
class Swap:
    """A patch that says what it replaces: one entry of a table, or one name of a module or class."""

    owner: Any
    key: Any
    replacement: Any

    def __call__(self) -> AbstractContextManager[Any]:
        if isinstance(self.owner, MutableMapping):
            return mock.patch.dict(self.owner, {self.key: self.replacement})
        return mock.patch.object(self.owner, self.key, self.replacement)

    @property
    def target(self) -> Target:
        """What is replaced, in a form that can be compared."""
        return (id(self.owner), self.key)

    @property
    def original(self) -> Any:
        return self.owner[self.key] if isinstance(self.owner, MutableMapping) else getattr(self.owner, self.key)


Target = tuple[int, Any]


def row(table: MutableMapping[Any, Row], key: Any, wrap: Wrap) -> Swap:
    """Replace the handler of one row of a transition table."""
    original = table[key]
    return Swap(table, key, Row(wrap(original.handler), original.exits, original.rules))


def entry(table: MutableMapping[Any, Any], key: Any, wrap: Wrap) -> Swap:
    """Replace one entry of a table of functions."""
    return Swap(table, key, wrap(table[key]))


def attr(owner: ModuleType | type, name: str, wrap: Wrap) -> Swap:
    """Replace a function or constant where it is looked up: `owner` is the module that *uses* the name."""
    return Swap(owner, name, wrap(getattr(owner, name)))


@contextmanager
def applied(patches: tuple[Patch, ...]) -> Iterator[None]:
    """Hold all patches; they are gone again afterwards, whatever happens."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch())
        yield


@dataclass(frozen=True)
class Mutant:
    """One wrong core. `intended`: the rule that must kill it; `title`: what it does wrong."""

    name: str
    intended: str
    title: str
    patches: tuple[Patch, ...]


@dataclass(frozen=True)
class Benign:
    """One permitted core. `permitted_by`: a decision of the design (D3) or a race of the contract (R10)."""

    name: str
    permitted_by: str
    title: str
    patches: tuple[Patch, ...]


def serving(patches: tuple[Patch, ...], title: str, **names: str) -> tuple[Mutant, ...]:
    """One patch that several rules must each kill: `serving(p, "…", name_of_mutant="RHO-…", …)`."""
    return tuple(Mutant(name, rule, title, patches) for name, rule in names.items())
