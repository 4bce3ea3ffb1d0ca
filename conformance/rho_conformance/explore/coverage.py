"""Which rows of the core's tables the search has taken, and which exits: compared with what they declare, both ways."""

from __future__ import annotations

from rho_core.run import step as run_step
from rho_core.run import table
from rho_core.run.state import Run
from rho_core.table import Row, RowKey, common_key, flow_key, wait_key

Pair = tuple[str, str, str]
"""Phase (or * or ->), trigger, exit."""


class Coverage:
    """Pairs of row and exit that were witnessed, and input kinds that met a default."""

    def __init__(self) -> None:
        self.taken: set[tuple[RowKey, str]] = set()
        self.unplanned: set[tuple[RowKey, str]] = set()
        self.defaults: set[str] = set()
        self._rows = rows()

    def add(self, run: Run, path: run_step.Path) -> None:
        """Note a path. A row of every phase may stay where it is, or resume what was blocked."""
        for pair in path:
            if pair in self.taken:
                continue
            key, leaves = pair
            row = self._rows.get(key)
            if row is None or leaves in {e.__name__ for e in row.exits}:
                self.taken.add((key, leaves))
                continue
            then = run.blocked and type(run.blocked.then).__name__
            if key[0] == "*" and leaves in (type(run.phase).__name__, then):
                self.taken.add((key, ""))
            else:
                self.unplanned.add((key, leaves))

    def default(self, trigger: type) -> None:
        self.defaults.add(trigger.__name__)

    def merge(self, taken: list[Pair], unplanned: list[Pair], defaults: list[str]) -> None:
        """Add what another configuration witnessed."""
        self.taken |= {((a, b), c) for a, b, c in taken}
        self.unplanned |= {((a, b), c) for a, b, c in unplanned}
        self.defaults |= set(defaults)

    def missing(self) -> list[Pair]:
        """Declared exits that were never taken; a row without exits must be taken at least once."""
        seen = {key for key, _ in self.taken}
        found: list[Pair] = []
        for key, row in self._rows.items():
            found += [(*key, e.__name__) for e in row.exits if (key, e.__name__) not in self.taken]
            if not row.exits and key not in seen:
                found.append((*key, ""))
        return sorted(found)


def pairs(found: set[tuple[RowKey, str]]) -> list[Pair]:
    return sorted((*key, leaves) for key, leaves in found)


def rows() -> dict[RowKey, Row]:
    """Every row of the three tables, by key."""
    return {
        **{wait_key(*key): row for key, row in table.WAIT.items()},
        **{common_key(key): row for key, row in table.COMMON.items()},
        **{flow_key(key): row for key, row in table.FLOW.items()},
    }
