"""One step of the core against the machines: where each entity stood, what the step showed, and where it stands now.

Every step must be a way in the machines: its letters in their order, and hidden moves between them. A step that shows
an entity nothing and leaves it where it was is a stutter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.lifecycles.accept import Acceptor, acceptors, outermost
from rho_conformance.lifecycles.letters import Shown, shown
from rho_conformance.lifecycles.projection import Key, Place, Places, Projection, project
from rho_core.run import state as s
from rho_spec.lifecycles import Letter

Offer = tuple[Letter, bool]
Point = tuple[int, Place]
"""So many letters were taken, and the entity is there."""
Witness = tuple[str, str, str, str]
"""Machine, trigger, source, destination: one edge of a machine that a step of the core took."""
MACHINES: Mapping[str, tuple[str, ...]] = {"call": ("tool_call", "detached_job")}
"""Kinds of entities with more than one machine; every other kind is named like its machine."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A step that is no way in the machines. `move`: the letter without a move, or the state that cannot be reached."""

    machine: str
    entity: str
    states: tuple[str, ...]
    move: str
    edge: str

    def __str__(self) -> str:
        return (
            f"{self.machine}: {self.entity}: in {' or '.join(self.states)} there is no move {self.move} ({self.edge})"
        )


@dataclass(frozen=True, slots=True)
class Way:
    """The answer for one entity: the edges taken, or where it stopped and at what."""

    taken: tuple[Witness, ...] = ()
    stopped: tuple[Place, ...] = ()
    at: str = ""


@dataclass(slots=True)
class Relation:
    """Machines, what was witnessed of them, and what went against them (the first example of each kind).

    `edges`: of the state graphs walked; `pairs`: of a state and an input among them; `stutters`: pairs that move
    nothing.
    """

    machines: Mapping[str, Acceptor] = field(default_factory=acceptors)
    edges: int = 0
    pairs: int = 0
    stutters: int = 0
    witnessed: set[Witness] = field(default_factory=set)
    mismatches: dict[tuple[str, tuple[str, ...], str], Mismatch] = field(default_factory=dict)
    _ways: dict[tuple[str, Places | None, tuple[Offer, ...], Places | None], Way] = field(default_factory=dict)
    _letters: dict[tuple[str, Letter], bool] = field(default_factory=dict)

    def step(self, before: s.Run, i: Any, effects: Iterable[Any], after: s.Run) -> list[Mismatch]:
        """Check one step of a run."""
        return self.compare(project(before), shown(before, i, effects), project(after), type(i).__name__)

    def compare(self, before: Projection, letters: Iterable[Shown], after: Projection, edge: str) -> list[Mismatch]:
        """Check one step, given as projections and letters."""
        self.pairs += 1
        told: dict[Key, list[Offer]] = {}
        for key, letter, offered in letters:
            if self._knows(key[0], letter):
                told.setdefault(key, []).append((letter, offered))
        moved = set(told)
        if before is not after:
            moved.update(key for key, places in after.items() if before.get(key) != places)
            moved.update(key for key in before if key not in after)
        self.stutters += not moved
        found = []
        for key in moved if len(moved) < 2 else sorted(moved):
            mismatch = self._entity(key, before.get(key), tuple(told.get(key, ())), after.get(key), edge)
            if mismatch is not None:
                found.append(mismatch)
        return found

    def _knows(self, kind: str, letter: Letter) -> bool:
        known = self._letters.get((kind, letter))
        if known is None:
            known = any(self.machines[name].knows(letter) for name in MACHINES.get(kind, (kind,)))
            self._letters[kind, letter] = known
        return known

    def _entity(
        self, key: Key, before: Places | None, told: tuple[Offer, ...], after: Places | None, edge: str
    ) -> Mismatch | None:
        question = (key[0], before, told, after)
        way = self._ways.get(question)
        if way is None:
            way = self._ways[question] = self._ask(*self._question(*question))
            self.witnessed.update(way.taken)
        if not way.at:
            return None
        machine = way.stopped[0][0]
        states = outermost(self.machines[machine], {state for name, state in way.stopped if name == machine})
        entity = " ".join(key[1:]) if key[0] in ("run", "channel") else " ".join((key[0], *key[1:]))
        mismatch = Mismatch(machine, entity or key[0], states, way.at, edge)
        return self.mismatches.setdefault((machine, states, way.at), mismatch)

    def _question(
        self, kind: str, before: Places | None, told: tuple[Offer, ...], after: Places | None
    ) -> tuple[Places, tuple[Offer, ...], Places]:
        """What is not there has not begun, or is over."""
        machines = [self.machines[name] for name in MACHINES.get(kind, (kind,))]
        start = frozenset((m.lifecycle.name, m.initial) for m in machines) if before is None else before
        ends = frozenset((m.lifecycle.name, state) for m in machines for state in m.lifecycle.final)
        return start, told, (ends | (start if before is None else frozenset())) if after is None else after

    def _ask(self, start: Places, told: tuple[Offer, ...], goal: Places) -> Way:
        """From every place where the entity may have been; where the core has forgotten which, one of them must do."""
        ways = [self._search(place, told, goal) for place in sorted(start)]
        good = [way for way in ways if not way.at]
        if good:
            return Way(tuple(witness for way in good for witness in way.taken))
        return Way((), tuple(place for way in ways for place in way.stopped), ways[0].at)

    def _search(self, start: Place, told: tuple[Offer, ...], goal: Places) -> Way:
        """The way with the fewest hidden moves and ignored offers."""
        parents: dict[Point, tuple[Point, Witness | None] | None] = {(0, start): None}
        costs: dict[Point, int] = {(0, start): 0}
        todo: deque[Point] = deque([(0, start)])
        done: set[Point] = set()
        while todo:
            node = todo.popleft()
            if node in done:
                continue
            done.add(node)
            if node[0] == len(told) and node[1] in goal:
                return Way(tuple(_back(parents, node)))
            for cost, target, witness in self._next(node, told):
                total = costs[node] + cost
                if total < costs.get(target, total + 1):
                    costs[target], parents[target] = total, (node, witness)
                    (todo.append if cost else todo.appendleft)(target)
        return _stopped(done, told, goal)

    def _next(self, node: Point, told: tuple[Offer, ...]) -> Iterable[tuple[int, Point, Witness | None]]:
        sent, (name, state) = node
        machine = self.machines[name]
        if sent < len(told):
            letter, offered = told[sent]
            for edge in machine.take(state, letter):
                yield 0, (sent + 1, (name, edge.dest)), (name, edge.move.trigger, edge.source, edge.dest)
            if offered:
                yield 1, (sent + 1, (name, state)), None
        for edge in machine.silent(state):
            yield 1, (sent, (name, edge.dest)), (name, edge.move.trigger, edge.source, edge.dest)


def _back(parents: Mapping[Any, Any], node: Any) -> Iterable[Witness]:
    while parents[node] is not None:
        node, witness = parents[node]
        if witness is not None:
            yield witness


def _stopped(done: set[Point], told: tuple[Offer, ...], goal: Places) -> Way:
    last = max(sent for sent, _ in done)
    places = tuple(sorted(place for sent, place in done if sent == last))
    if last < len(told):
        return Way((), places, f"for {told[last][0]}")
    return Way((), places, f"to {' or '.join(sorted(state for _, state in goal))}")
