"""Which rows of the run machine the suite itself has taken, and by which exits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from rho_core.run import step as run_step
from rho_core.run import table
from rho_core.step import Step
from rho_core.table import RowKey, common_key, flow_key, wait_key


def declared() -> dict[RowKey, frozenset[str]]:
    """Every row, with the names of the exits it declares."""
    rows = {wait_key(*key): row for key, row in table.WAIT.items()}
    rows |= {common_key(key): row for key, row in table.COMMON.items()}
    rows |= {flow_key(key): row for key, row in table.FLOW.items()}
    return {key: frozenset(e.__name__ for e in row.exits) for key, row in rows.items()}


@dataclass
class Coverage:
    """`taken`: (row, exit) pairs that were seen."""

    taken: set[tuple[RowKey, str]] = field(default_factory=set)

    def missing(self) -> list[RowKey]:
        """Rows that were never taken, in table order."""
        seen = {key for key, _ in self.taken}
        return [key for key in declared() if key not in seen]

    def to_json(self) -> dict[str, Any]:
        rows = declared()
        missing = self.missing()
        return {
            "rows": len(rows),
            "taken": len(rows) - len(missing),
            "missing": [" ".join(key) for key in missing],
            "transitions": {" ".join(key): self._row(key, exits) for key, exits in rows.items()},
        }

    def _row(self, key: RowKey, declared_exits: frozenset[str]) -> dict[str, Any]:
        """Whether the row was taken, and for each exit that it declares whether that was."""
        seen = {exit for row, exit in self.taken if row == key}
        return {"taken": bool(seen), "exits": {exit: exit in seen for exit in sorted(declared_exits)}}


@contextmanager
def recording() -> Iterator[Coverage]:
    """While this is held, every step of a run in this process is taken row by row and written down."""
    coverage = Coverage()

    def step(run: Any, i: Any) -> Step[Any]:
        after, path = run_step.witnessed(run, i)
        coverage.taken.update(path)
        return after

    with mock.patch.object(run_step, "step", step):
        yield coverage
