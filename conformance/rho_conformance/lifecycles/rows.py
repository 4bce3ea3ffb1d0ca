"""The rows of the core's tables against the run's lifecycle: no search, only what the tables declare.

A handler sends at most once, so that a row is at most one shown move, with hidden ones around it; and where the source
and the exit stand in one state, a stutter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rho_conformance.lifecycles.accept import Acceptor, acceptors
from rho_conformance.lifecycles.projection import CONTINUATIONS, PHASES
from rho_conformance.lifecycles.relate import Mismatch
from rho_core.run import table
from rho_core.table import RowKey, common_key, flow_key, wait_key

Exit = tuple[RowKey, tuple[str, ...], type]
"""A row, the lifecycle states that it may start in, and one of its exits."""


def exits() -> Iterator[Exit]:
    """Every declared exit of every row."""
    for (phase, trigger), row in table.WAIT.items():
        for leaves in row.exits:
            yield wait_key(phase, trigger), PHASES[phase], leaves
    for trigger, row in table.COMMON.items():
        for leaves in row.exits:
            yield common_key(trigger), _live(), leaves
    for continuation, row in table.FLOW.items():
        for leaves in row.exits:
            yield flow_key(continuation), CONTINUATIONS[continuation], leaves


def _live() -> tuple[str, ...]:
    return tuple(dict.fromkeys(state for states in PHASES.values() for state in states if state not in _OVER))


_OVER = frozenset({"new", "ended", "gone"})


def row_mismatches(machines: Mapping[str, Acceptor] | None = None) -> list[Mismatch]:
    """Rows that are no way in the machine of a run. KeyError for a phase or continuation that the map does not know."""
    machine = (machines or acceptors())["run"]
    found = []
    for (place, trigger), sources, leaves in exits():
        goal = PHASES[leaves] if leaves in PHASES else CONTINUATIONS[leaves]
        if not reach(machine, sources) & set(goal):
            edge = f"row {place} {trigger}, exit {leaves.__name__}"
            found.append(Mismatch("run", "run", sources, f"to {' or '.join(goal)}", edge))
    return found


def reach(machine: Acceptor, sources: tuple[str, ...]) -> set[str]:
    """States within hidden moves and at most one shown one."""
    before = _hidden(machine, set(sources))
    shown = {edge.dest for edge in machine.edges if edge.source in before and not edge.move.hidden}
    return before | _hidden(machine, shown)


def _hidden(machine: Acceptor, states: set[str]) -> set[str]:
    found, todo = set(states), list(states)
    while todo:
        for edge in machine.silent(todo.pop()):
            if edge.dest not in found:
                found.add(edge.dest)
                todo.append(edge.dest)
    return found
