"""Patches that add up: each wraps what stands in its place at the moment it is applied.

The mutants of the other modules wrap the core as it was imported, which is right for one fault at a time. Permitted
variants are also mixed with each other (`rho_conformance.chaos`), and then two of them may meet in one row.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from rho_conformance.mutants.base import Patch, Swap, Wrap
from rho_core import inputs as inp
from rho_core.record import record
from rho_core.run import state as s
from rho_core.run import table
from rho_core.table import Row

Handler = Callable[..., Any]


class Late(Swap):
    """Its `replacement` is made of what is there when the patch is applied, and not of what was imported."""

    def __call__(self) -> AbstractContextManager[Any]:
        return Swap(self.owner, self.key, self.replacement(self.original))()


class Added(Swap):
    """An entry that only the variant has; the core never comes to it."""

    @property
    def original(self) -> Any:
        return self.replacement


def row(rows: MutableMapping[Any, Row], key: Any, wrap: Wrap) -> Late:
    """As `base.row`, of the row that is there when the patch is applied."""
    return Late(rows, key, lambda old: Row(wrap(old.handler), old.exits, old.rules))


def entry(entries: MutableMapping[Any, Any], key: Any, wrap: Wrap) -> Late:
    """As `base.entry`, of the entry that is there when the patch is applied."""
    return Late(entries, key, wrap)


def attr(owner: ModuleType | type, name: str, wrap: Wrap) -> Late:
    """As `base.attr`, of the attribute that is there when the patch is applied."""
    return Late(owner, name, wrap)


def flow(continuation: type, wrap: Wrap) -> Patch:
    """The handler of a continuation."""
    return row(table.FLOW, continuation, wrap)


def wait(phase: type, what: type, wrap: Wrap) -> Patch:
    """The handler of an input in a phase."""
    return row(table.WAIT, (phase, what), wrap)


def common(what: type, wrap: Wrap) -> Patch:
    """The handler of an input in every phase."""
    return row(table.COMMON, what, wrap)


def new_flow(continuation: type, handler: Handler) -> Patch:
    """One more continuation, which only this variant has."""
    return Added(table.FLOW, continuation, Row(handler, (), ()))


def every_wait(what: type, handler: Handler, wrap: Wrap) -> tuple[Patch, ...]:
    """The rows of this input, in all phases, that have this handler."""
    keys = [key for key, found in table.WAIT.items() if key[1] is what and found.handler is handler]
    return tuple(row(table.WAIT, key, wrap) for key in keys)


@record
class Decided:
    """What stood before the end was delivered: end as the phase says, which a cancel may have changed meanwhile."""


def _decided(run: s.Run, k: Decided, fx: Any) -> tuple[s.Run, s.Conclude]:
    assert isinstance(run.phase, s.Stopping)
    return run, run.phase.plan


DECIDED = new_flow(Decided, _decided)


def ending_with(run: s.Run, plan: s.Conclude) -> tuple[s.Run, s.Conclude | None]:
    """Decide the end now: a blocked send that may be cancelled is dropped, another keeps its place before the end.

    Needs `DECIDED` among the patches.
    """
    blocked = run.blocked
    if blocked is None or blocked.cancellable:
        return s.Run(s.Between(), run.free, None, run.core), plan
    then: Any = Decided()
    return s.Run(s.Stopping(plan), run.free, s.Blocked(blocked.sends, False, then), run.core), None


def inner(value: Any) -> Any:
    """The input itself, when it is addressed to a run by name."""
    return value.input if isinstance(value, inp.ForRun) else value
