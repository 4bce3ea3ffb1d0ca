"""Every edge of the explorer's state graphs, against the lifecycles (`relate`), without the explorer's own monitors."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from rho_conformance.explore import work
from rho_conformance.explore.configuration import Allowance, Configuration
from rho_conformance.explore.configurations import BATCH, ONE, SCOPES, TEXT, Config
from rho_conformance.explore.environment import World, first_world, moves, react
from rho_conformance.explore.lifecycle import Lifecycle, LifecycleModel
from rho_conformance.explore.lifecycle import Node as SessionNode
from rho_conformance.lifecycles.letters import Shown, shown
from rho_conformance.lifecycles.projection import Projection, judged_attempt, project
from rho_conformance.lifecycles.relate import Relation
from rho_core import effects as out
from rho_core import inputs as inp
from rho_core.ledger import Ledger
from rho_core.run import state as s
from rho_core.run import step as run_step
from rho_core.session import Active, Identity, Resting, Session, session_state
from rho_spec.lifecycles import Letter

RunNode = tuple[int, World]
"""The number of a run's state, and the world around it."""
AFTER_A_FAILURE = Lifecycle("after a failure", starts=1, drops=0, shutdowns=0, appends=0)
"""Begins with a session that shows Failed."""
FURTHER: tuple[Config, ...] = (
    Configuration(
        "questions of tools that die",
        replace(ONE, max_steps=1),
        Allowance(panics=1),
        (TEXT, BATCH),
        asks=(("B", "q1"),),
    ),
    Configuration(
        "a provider that is awaited",
        replace(ONE, max_steps=1, cooperative_provider=True),
        Allowance(cancels=1, drops=1, deltas=1, panics=1),
        (TEXT,),
    ),
    AFTER_A_FAILURE,
)
"""What the scopes of the explorer leave out and a machine has a move for."""


class Edge(NamedTuple):
    """One step. `over`: what is known of entities that end in it and are forgotten after it.

    `fresh`: this state has not met this input before, in any world.
    """

    name: str
    letters: list[Shown]
    after: Any
    over: Projection
    fresh: bool = True


class Graph(Protocol):
    """A state graph to walk. Equal nodes have equal edges and views."""

    limit: int

    def first(self) -> Any: ...

    def edges(self, node: Any) -> Iterator[Edge]: ...

    def view(self, node: Any) -> Projection: ...


class Taken(NamedTuple):
    """What a state does with an input: the number of the state after it, and what it shows."""

    after: int
    effects: tuple[Any, ...]
    letters: list[Shown]
    over: Projection


class Runs:
    """One run in the world of a configuration. States are numbered: most edges differ only in the world."""

    def __init__(self, config: Configuration) -> None:
        self.config, self.limit = config, config.limit
        self._identity = Identity("session", config.policy)
        self._numbers: dict[s.Run, int] = {}
        self._runs: list[s.Run] = []
        self._views: list[Projection] = []
        self._taken: list[dict[Any, Taken]] = []

    def first(self) -> RunNode:
        run = s.new_run("session", "run", self.config.policy, Ledger((), self.config.revision))
        return self._number(run), first_world(self.config)

    def _number(self, run: s.Run) -> int:
        number = self._numbers.setdefault(run, len(self._runs))
        if number == len(self._runs):
            self._runs.append(run)
            self._taken.append({})
            view = project(run)
            state = session_state(Session(self._identity, Active(run)))
            view["session",] = frozenset({("session", state)})
            self._views.append(view)
        return number

    def edges(self, node: RunNode) -> Iterator[Edge]:
        number, world = node
        known = self._taken[number]
        for i, _, asked in moves(self.config, world, run_step.accepts(self._runs[number])):
            taken = known.get(i)
            fresh = taken is None
            if taken is None:
                taken = known[i] = self._take(self._runs[number], i)
            after = (taken.after, _world(asked, i, taken.effects, self._runs[taken.after]))
            yield Edge(type(i).__name__, taken.letters, after, taken.over, fresh)

    def _take(self, run: s.Run, i: Any) -> Taken:
        step, path = run_step.witnessed(run, i)
        letters = shown(run, i, step.effects)
        return Taken(self._number(step.state), step.effects, letters, judged_attempt(run, path))

    def view(self, node: RunNode) -> Projection:
        return self._views[node[0]]

    def pairs(self) -> set[tuple[s.Run, Any]]:
        """Every state with every input that it has met so far."""
        return {(run, i) for run, taken in zip(self._runs, self._taken, strict=True) for i in taken}


def _world(world: World, i: Any, effects: tuple[Any, ...], after: s.Run) -> World:
    """The world after the step; what is open in it is what the core has begun and not ended."""
    now = work.answer(world.open, i)
    for e in effects:
        # A record of an attempt that was cut short is awaited by nobody.
        if type(e) is not out.RecordUsage or isinstance(after.phase, s.Recording):
            now = work.effect(now, e, [])
    return react(world, effects, now)


class Sessions:
    """A session and its runtime, from the state that an earlier operation has left."""

    def __init__(self, config: Lifecycle) -> None:
        self.config, self.limit = config, config.limit
        self._model = LifecycleModel(config)

    def first(self) -> SessionNode:
        node = self._model.first()
        if self.config is not AFTER_A_FAILURE:
            return node
        failed = Session(node.session.identity, Resting(node.session.ledger, "Failed"))
        return node._replace(session=failed)

    def edges(self, node: SessionNode) -> Iterator[Edge]:
        for edge in self._model.edges(node):
            after, _ = self._model.follow(node, edge)
            i = edge.input
            begun = isinstance(i, (inp.Start, inp.Compact)) and not node.session.busy and after.session.busy
            letters = [Shown(("session",), Letter("start"))] if begun else []
            yield Edge(type(i).__name__, letters, after, {})

    def view(self, node: SessionNode) -> Projection:
        return {("session",): frozenset({("session", session_state(node.session))})}


def check(scope: str = "small", names: Iterable[str] | None = None, relation: Relation | None = None) -> Relation:
    """Walk the configurations of a scope (or those named) completely, and compare every edge."""
    found = relation or Relation()
    known = {config.name: config for config in (*SCOPES[scope], *FURTHER)}
    for name in known if names is None else names:
        walk(known[name], found)
    return found


def walk(config: Config, relation: Relation) -> None:
    """One configuration, breadth first, to the end or to its limit."""
    walk_graph(Sessions(config) if isinstance(config, Lifecycle) else Runs(config), relation)


def walk_graph(graph: Graph, relation: Relation) -> None:
    """One state graph; a state that meets the same input in another world is compared once."""
    first = graph.first()
    known, todo = {first}, deque([first])
    while todo:
        node = todo.popleft()
        view = graph.view(node)
        for edge in graph.edges(node):
            relation.edges += 1
            if edge.fresh:
                after = graph.view(edge.after)
                # What is known of an entity that ended counts only where nothing of it is left.
                relation.compare(view, edge.letters, {**edge.over, **after} if edge.over else after, edge.name)
            if edge.after not in known and len(known) < graph.limit:
                known.add(edge.after)
                todo.append(edge.after)
