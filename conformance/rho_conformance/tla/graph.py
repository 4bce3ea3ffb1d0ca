"""The state graph that TLC has dumped: states as tuples of values, labelled edges."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .values import Value, parse

State = tuple[Value, ...]
Edge = tuple[str, int]
"""The name of an action, and the number of the state it leads to."""

_EDGE = re.compile(r'(-?\d+) -> (-?\d+) \[label="(\w+)"')
_NODE = re.compile(r'(-?\d+) \[label="(/\\\\ .*)"(?:,style = filled)?\];?\s*$')


@dataclass(frozen=True)
class Graph:
    """`variables`: their names, sorted; a state is the tuple of their values. `first`: the one initial state."""

    variables: tuple[str, ...]
    states: tuple[State, ...]
    edges: tuple[frozenset[Edge], ...]
    first: int

    @property
    def transitions(self) -> int:
        """Labelled edges; TLC counts what it generated, which may name one of them several times."""
        return sum(map(len, self.edges))


def load(lines: Iterable[str]) -> Graph:
    """Read what `-dump dot,actionlabels` wrote. ValueError when it is not one connected dump of a single start."""
    names: dict[str, int] = {}
    states: dict[int, State] = {}
    first: list[int] = []
    arrows: dict[int, set[Edge]] = defaultdict(set)
    memo: dict[str, Value] = {}
    variables: tuple[str, ...] = ()
    for line in lines:
        edge = _EDGE.match(line)
        if edge is not None:
            arrows[names.setdefault(edge[1], len(names))].add((edge[3], names.setdefault(edge[2], len(names))))
            continue
        node = _NODE.match(line)
        if node is None:
            continue
        number = names.setdefault(node[1], len(names))
        named = sorted(_assignments(node[2], memo))
        variables = tuple(name for name, _ in named)
        states[number] = tuple(value for _, value in named)
        if "style = filled" in line:
            first.append(number)
    if len(first) != 1 or len(states) != len(names):
        raise ValueError(f"not a whole state graph: {len(states)} of {len(names)} states, {len(first)} initial ones")
    order = range(len(names))
    return Graph(variables, tuple(states[n] for n in order), tuple(frozenset(arrows[n]) for n in order), first[0])


def _assignments(label: str, memo: dict[str, Value]) -> Iterable[tuple[str, Value]]:
    text = label.replace('\\"', '"').replace("\\\\", "\\").removeprefix("/\\ ")
    for part in text.split("\\n/\\ "):
        name, _, value = part.partition(" = ")
        if value not in memo:
            memo[value] = parse(value.replace("\\n", " "))  # long values are wrapped
        yield name, memo[value]
