"""The run machine as a diagram: its states in one column, its transitions as arcs, coloured by whether they were taken.

Drawn from the tables alone: arcs to the right go down the column, arcs to the left go up. No layout library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rho_conformance.report.gathered import Coverage

Taken = Literal["all", "some", "none"]
EVERY, FLOW = "*", "->"
PITCH, TOP = 18, 14
"""Height of one state in the column, and the middle of the first one, in user units."""
LEFT, RIGHT = 340, 490
"""Where arcs end at the left and at the right of the column of names."""
REACH = 6.0
"""How far an arc swings out for each state that it passes."""


@dataclass(slots=True)
class Edge:
    """All rows from one state to another. `rows`: trigger -> taken."""

    source: str
    target: str
    rows: dict[str, bool] = field(default_factory=dict)

    @property
    def taken(self) -> Taken:
        seen = set(self.rows.values())
        return "some" if len(seen) == 2 else "all" if True in seen else "none"


@dataclass(frozen=True, slots=True)
class Arc:
    """An edge as a path in user units."""

    edge: Edge
    path: str


@dataclass(frozen=True, slots=True)
class State:
    """A phase, or a continuation (`flow`), at height `y`."""

    name: str
    y: int
    flow: bool


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the tables in words: `exits` are (state, taken)."""

    state: str
    trigger: str
    taken: bool
    exits: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """The diagram, and its rows as a table."""

    states: tuple[State, ...]
    arcs: tuple[Arc, ...]
    rows: tuple[TableRow, ...]

    @property
    def height(self) -> int:
        return TOP + PITCH * len(self.states)

    @property
    def exits(self) -> int:
        """Number of (row, exit) pairs."""
        return sum(len(row.exits) for row in self.rows)

    @property
    def exits_taken(self) -> int:
        return sum(taken for row in self.rows for _, taken in row.exits)

    @property
    def exits_missing(self) -> list[str]:
        """`state × trigger → exit` for each exit that no step took."""
        return [
            f"{row.state}{' × ' + row.trigger if row.trigger else ''} → {exit}"
            for row in self.rows
            for exit, taken in row.exits
            if not taken
        ]


def machine(coverage: Coverage | None) -> Machine | None:
    """The diagram of a report's coverage; None where there is none, or it names no transitions."""
    if coverage is None or not coverage.transitions:
        return None
    rows = tuple(_row(key, row.taken, row.exits) for key, row in coverage.transitions.items())
    states = _states(rows)
    return Machine(tuple(states.values()), tuple(_arc(edge, states) for edge in _edges(rows)), rows)


def _row(key: str, taken: bool, exits: Mapping[str, bool]) -> TableRow:
    """A key is `PHASE INPUT`, `* INPUT` for every phase, or `-> CONTINUATION`."""
    source, _, trigger = key.partition(" ")
    if source == FLOW:
        source, trigger = trigger, ""
    return TableRow("any phase" if source == EVERY else source, trigger, taken, tuple(exits.items()))


def _states(rows: tuple[TableRow, ...]) -> dict[str, State]:
    """In the order of the tables: phases with the inputs they wait for, then continuations, then what has no row."""
    flow = {row.state for row in rows if not row.trigger}
    names = dict.fromkeys(row.state for row in rows)
    names |= dict.fromkeys(exit for row in rows for exit, _ in row.exits)
    return {name: State(name, TOP + PITCH * n, name in flow) for n, name in enumerate(names)}


def _edges(rows: tuple[TableRow, ...]) -> list[Edge]:
    found: dict[tuple[str, str], Edge] = {}
    for row in rows:
        for exit, taken in row.exits:
            edge = found.setdefault((row.state, exit), Edge(row.state, exit))
            edge.rows[row.trigger or "then"] = taken
    return list(found.values())


def _arc(edge: Edge, states: Mapping[str, State]) -> Arc:
    start, end = states[edge.source].y, states[edge.target].y
    if start == end:
        return Arc(edge, f"M{RIGHT} {start - 4}c26 -4 26 12 0 8")
    side, way = (RIGHT, 1) if end > start else (LEFT, -1)
    out = side + way * (16 + min(300, REACH * abs(end - start) / PITCH))
    return Arc(edge, f"M{side} {start}C{out:g} {start} {out:g} {end} {side} {end}")
