"""The run as a search problem: a node is (run, world, ghost), an edge is one input that the world may give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rho_core import inputs as inp
from rho_core.ledger import Ledger
from rho_core.run import state as rs
from rho_core.run import step as run_step
from rho_core.run import table
from rho_core.session import Active, Identity, Session, session_state

from .configuration import Configuration
from .coverage import Coverage
from .environment import World, first_world, moves, react
from .ghost import Ghost, Moment, freeze, thaw
from .observe import observe
from .properties import blocked_step, held_properties, late_properties, stray_properties
from .work import Issue, refused


class Node(NamedTuple):
    """The search key: equal nodes have equal futures."""

    run: rs.Run
    world: World
    ghost: tuple[Any, ...]


class Edge(NamedTuple):
    """`fair`: the world owes this input some time."""

    input: Any
    fair: bool
    world: World


class RunModel:
    """One configuration of a run. `step` may be replaced to explore another reducer of the same shape."""

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self.coverage = Coverage()
        self._identity = Identity("session", config.policy)
        self._strays: set[tuple[type, bool]] = set()
        self._twice = False  # of each state, the first edge is taken twice

    def first(self) -> Node:
        run = rs.new_run("session", "run", self.config.policy, Ledger((), self.config.revision))
        return Node(run, first_world(self.config), freeze(Ghost()))

    def edges(self, node: Node) -> Iterator[Edge]:
        for move in moves(self.config, node.world, run_step.accepts(node.run)):
            yield Edge(*move)

    def settled(self, node: Node) -> bool:
        return node.world.stage == "over"

    def follow(self, node: Node, edge: Edge) -> tuple[Node, list[Issue]]:
        """Take an edge: step the core, show the step to the ghost, let the world react."""
        run, i = node.run, edge.input
        path: run_step.Path = []
        after = run_step.generic(run, i, path)
        issues: list[Issue] = []
        self.coverage.add(run, path)
        if not path and table.DEFAULTS[type(i)] == "unreachable":
            issues.append(("CORE-LIVE", f"{type(i).__name__} reaches a state in which it cannot come"))
        if type(i) is inp.TextDelta and run_step.step(run, i) != after:
            issues.append(("RHO-BUF-9", "the hot path and the tables differ"))
        if self._twice:
            self._twice = False
            if run_step.step(run, i) != after:
                issues.append(("CORE-CAP", f"{type(i).__name__} has two results"))
        if run.blocked is not None:
            issues += blocked_step(run, i, after)
        if refused(after.effects):
            if run.blocked is None:
                issues.append(("RHO-BUF-3", f"{type(i).__name__} is held back while nothing is blocked"))
            return node, issues
        ghost = thaw(node.ghost, self.config, issues, node.world.open)
        observe(ghost, Moment(i, after.effects, run, after.state, self._state(after.state)))
        world = react(edge.world, after.effects, ghost.open)
        if world.unread > self.config.policy.event_capacity:
            issues.append(("RHO-BUF-2", f"{world.unread} events in a channel of {self.config.policy.event_capacity}"))
        return Node(after.state, world, freeze(ghost)), issues

    def _state(self, run: rs.Run) -> str:
        return session_state(Session(self._identity, Active(run)))

    def examine(self, node: Node) -> Iterator[Issue]:
        """Properties of one state: what is late or stray changes nothing; a blocked run sends nothing it may not."""
        yield from late_properties(node.run, node.world, self.coverage)
        kind = (type(node.run.phase), node.run.blocked is None)
        if kind not in self._strays:
            self._strays.add(kind)
            yield from stray_properties(node.run, self.coverage)
        self._twice = True
        if node.run.blocked is not None:
            yield from held_properties(self.config, node.run, node.world)
