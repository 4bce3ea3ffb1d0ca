"""One walk through a configuration, chosen by a reader: what is possible, what is not and why, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rho_core import effects as out
from rho_core import inputs as inp
from rho_core.explain import WhyNot, enabled, why_not
from rho_core.run import step as run_step
from rho_core.session import Active, Identity, Session

from .configuration import Configuration
from .environment import moves
from .model import Edge, Node, RunModel
from .properties import LATE, STRAYS
from .search import render
from .work import Issue


class Taken(NamedTuple):
    """One step that was taken: the input, its effects, what the monitors said of it, and where it led."""

    input: Any
    effects: tuple[Any, ...]
    issues: list[Issue]
    node: Node


class Play:
    """The run of one configuration, begun, and the steps taken since. The monitors judge each one."""

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self._model = RunModel(config)
        self._first = self._model.first()
        self.steps: list[Taken] = []
        self.take(next(iter(self._model.edges(self._first))))

    @property
    def node(self) -> Node:
        return self.steps[-1].node if self.steps else self._first

    @property
    def session(self) -> Session:
        """The session around the run, as `rho_core.explain` wants it."""
        return Session(Identity("session", self.config.policy), Active(self.node.run))

    @property
    def over(self) -> bool:
        return self._model.settled(self.node)

    def choices(self) -> tuple[Edge, ...]:
        """What the world may do now, in the order of the search."""
        return tuple(self._model.edges(self.node))

    def held(self) -> tuple[tuple[Any, WhyNot], ...]:
        """What the world would do and must hold back, each with the reason."""
        if self.over or run_step.accepts(self.node.run):
            return ()
        world = moves(self.config, self.node.world, True)
        reasons = ((i, why_not(self.session, i)) for i, _, _ in world if inp.INPUT_CLASS[type(i)] == "gated")
        return tuple((i, why) for i, why in reasons if why is not None)

    def kinds(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the kinds of input that the phase has a row for and takes now, and of the others."""
        now = set() if self.over else set(enabled(self.session))
        names = [(k.__name__, k in now) for k in inp.INPUT_CLASS if k is not inp.Begin]
        return tuple(n for n, yes in names if yes), tuple(n for n, yes in names if not yes)

    def take(self, edge: Edge) -> Taken:
        """Take one edge. Raises nothing: what goes against a rule is in `issues`."""
        effects = run_step.generic(self.node.run, edge.input).effects
        after, issues = self._model.follow(self.node, edge)
        self.steps.append(Taken(edge.input, effects, issues, after))
        return self.steps[-1]

    def undo(self) -> bool:
        """Take back the last step; False when there is none but the start."""
        if len(self.steps) < 2:
            return False
        self.steps.pop()
        return True

    def find(self, text: str) -> tuple[Edge, ...]:
        """Choices by number (from 1), by the whole text, or by the beginning of the name."""
        choices = self.choices()
        if text.isdecimal():
            return choices[int(text) - 1 : int(text)] if int(text) else ()
        exact = tuple(c for c in choices if render(c.input) == text)
        return exact or tuple(c for c in choices if render(c.input).lower().startswith(text.lower()))

    def why(self, text: str) -> Iterator[tuple[str, WhyNot | None]]:
        """For inputs of that name: why each would have no effect now (None: it would have one)."""
        for i in self._examples():
            if render(i).lower().startswith(text.lower()):
                yield render(i), None if self.over else why_not(self.session, i)

    def _examples(self) -> tuple[Any, ...]:
        """What may come, what is held back, late answers; of any other kind, one that names nothing known."""
        world = self.node.world
        real = [] if self.over else [i for i, _, _ in moves(self.config, world, True)]
        late = [i for work in world.ended for i in LATE[work[0]](work)]
        known = {type(i) for i in (*real, *late)}
        return tuple(dict.fromkeys((*real, *late, *(i for i in STRAYS if type(i) not in known))))

    def events(self) -> tuple[Any, ...]:
        """Every event sent so far, in order."""
        return tuple(e.event for s in self.steps for e in s.effects if isinstance(e, out.Deliver))

    def outcome(self) -> Any:
        """The reported outcome; None while there is none, and after a drop."""
        ends = [e.outcome for s in self.steps for e in s.effects if isinstance(e, out.ReportOutcome)]
        return ends[0] if ends else None
