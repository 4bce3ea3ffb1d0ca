"""Does a machine accept what was seen of one entity? A set of states is moved through the sightings.

Two channels meet in one machine: events, which a reader takes when it likes, and everything else, which is seen when it
happens. What was read was sent at the latest in that step and in that order (RHO-BUF-6); so an event may be taken to
have been sent before anything else that was seen until then. Hidden moves are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from rho_spec.lifecycles import Letter, Lifecycle, load
from rho_spec.machines import Edge, edges
from rho_spec.observations import EVENTS

NEVER = 1 << 60
"""A step later than any."""
Front = dict[int, set[str]]
"""Number of events that were sent -> states in which the entity may be."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One letter and the step in which it was seen. `event`: on the channel that a reader reads."""

    letter: Letter
    step: int
    event: bool


@dataclass(slots=True)
class Entity:
    """What was seen of one thing. `unread`: more events may have been sent than were ever read.

    `drained`: the step from which on somebody else took events, so that those that were read may have gaps between.
    """

    machine: str
    name: str
    sightings: list[Sighting] = field(default_factory=list)
    unread: bool = True
    drained: int = NEVER


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a machine does not accept. `states`: where it may have been; `letter`: what it has no move for there."""

    machine: str
    entity: str
    states: tuple[str, ...]
    letter: str
    step: int
    taken: int = 0

    def __str__(self) -> str:
        where = " or ".join(self.states)
        return f"{self.machine}: {self.entity}, step {self.step}: in {where} there is no move for {self.letter}"


class Acceptor:
    """One machine, with its edges by state."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self.lifecycle = lifecycle
        self.edges = edges(lifecycle)
        self._from: dict[str, list[Edge]] = {state: [] for state in lifecycle.states}
        for edge in self.edges:
            self._from[edge.source].append(edge)
        self._taken: dict[tuple[str, Letter], tuple[Edge, ...]] = {}
        self._known: dict[Letter, bool] = {}

    @property
    def initial(self) -> str:
        return self.lifecycle.initial

    def knows(self, letter: Letter) -> bool:
        """Is there any move for it? What a machine does not speak of is not its affair."""
        if letter not in self._known:
            self._known[letter] = any(move.shown_by(letter) for move in self.lifecycle.moves)
        return self._known[letter]

    def take(self, state: str, letter: Letter) -> tuple[Edge, ...]:
        """The edges that the letter takes from a state."""
        found = self._taken.get((state, letter))
        if found is None:
            found = tuple(edge for edge in self._from[state] if edge.move.shown_by(letter))
            self._taken[state, letter] = found
        return found

    def silent(self, state: str) -> list[Edge]:
        """Edges that nothing shows."""
        return [edge for edge in self._from[state] if edge.move.hidden]

    def unseen(self, state: str) -> list[Edge]:
        """Edges that an event would show which was sent and never read."""
        return [edge for edge in self._from[state] if any(word in _SENT for word in edge.move.on)]

    def reads(self, state: str) -> list[Edge]:
        """Edges of the reader's own: it may take more than it tells."""
        return [edge for edge in self._from[state] if "read" in edge.move.on]


_SENT = frozenset(EVENTS) | {"event", "terminal"}


@cache
def acceptors() -> Mapping[str, Acceptor]:
    """The machines of this installation."""
    return {name: Acceptor(lifecycle) for name, lifecycle in load().items()}


def accept(machine: Acceptor, entity: Entity) -> Refusal | None:
    """None when the machine accepts; else the first thing for which it has no move."""
    seen = _merged(machine, [s for s in entity.sightings if machine.knows(s.letter)])
    events = [s for s in seen if s.event]
    front = _closure(machine, {0: {machine.initial}}, events, entity)
    for sighting in seen:
        if sighting.event:
            continue
        due = sum(e.step < sighting.step for e in events)
        after: Front = {}
        for sent, states in front.items():
            if sent >= due:
                reached = {edge.dest for state in states for edge in machine.take(state, sighting.letter)}
                if reached:
                    after[sent] = reached
        if not after:
            return _refuse(machine, entity, front, events, due, sighting)
        front = _closure(machine, after, events, entity)
    if len(events) not in front:
        return _refuse(machine, entity, front, events, len(events), None)
    return None


def _merged(machine: Acceptor, seen: list[Sighting]) -> list[Sighting]:
    """One of a row of equal events will do where it leaves every state as it is (deltas)."""
    found: list[Sighting] = []
    for sighting in seen:
        again = found and sighting.event and found[-1] == sighting
        if again and all(e.source == e.dest for e in machine.edges if e.move.shown_by(sighting.letter)):
            continue
        found.append(sighting)
    return found


def _closure(machine: Acceptor, front: Front, events: list[Sighting], entity: Entity) -> Front:
    """Whatever may have happened besides: hidden moves, events sent before they were read, or never read."""
    todo = [(sent, state) for sent, states in front.items() for state in states]
    found: Front = {}
    for sent, state in todo:
        found.setdefault(sent, set()).add(state)
    while todo:
        sent, state = todo.pop()
        after = [(sent, edge.dest) for edge in (*machine.silent(state), *machine.reads(state))]
        if sent < len(events):
            after += [(sent + 1, edge.dest) for edge in machine.take(state, events[sent].letter)]
        if entity.unread if sent == len(events) else events[sent].step >= entity.drained:
            after += [(sent, edge.dest) for edge in machine.unseen(state)]
        for step, dest in after:
            if dest not in found.setdefault(step, set()):
                found[step].add(dest)
                todo.append((step, dest))
    return {sent: states for sent, states in found.items() if states}


def _refuse(
    machine: Acceptor, entity: Entity, front: Front, events: list[Sighting], due: int, sighting: Sighting | None
) -> Refusal:
    """The event that could not be sent in time, else the sighting itself."""
    sent = max(front)
    blamed = events[sent] if sent < due or sighting is None else sighting
    states = outermost(machine, front[sent])
    return Refusal(machine.lifecycle.name, entity.name, states, str(blamed.letter), blamed.step, sent)


def outermost(machine: Acceptor, states: Iterable[str]) -> tuple[str, ...]:
    """For the reader of a message: the states that no hidden move has led to from another of them."""
    known = set(states)
    led = {edge.dest for state in known for edge in machine.silent(state) if edge.dest != state}
    return tuple(state for state in machine.lifecycle.states if state in known - led) or tuple(sorted(known))
