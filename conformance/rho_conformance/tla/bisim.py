"""Are the model's state graph and the reducer the same, edge by edge?

The relation is built from its start: (initial state of the model, new run). In every pair that is reached the reducer
is fed every input of the alphabet. What comes out, seen through `view` and `words` and labelled with the model's
action, must be exactly the labelled successors of the model's state, effects included; each of them is a pair of its
own. An input that the model does not offer must change nothing. So no state is ever made up for the reducer: what is
compared is what it reaches.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from rho_core.effects import NotReady
from rho_core.ledger import Ledger
from rho_core.run import state as s
from rho_core.run import step as run_step

from . import view, words
from .graph import Edge, Graph, State
from .setting import Setting
from .values import Value, show
from .world import Move, World, moves, react


@dataclass(frozen=True)
class Mismatch:
    """Where the two part. `only_model`, `only_reducer`: for each action, the successors that the other lacks, as the
    variables in which they differ from the nearest one of the other side (all of them when there is none)."""

    action: str
    variables: tuple[str, ...]
    input: str
    state: tuple[str, ...]
    only_model: tuple[str, ...]
    only_reducer: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(self.variables) or "the edge itself"
        return f"{self.action} {self.input}: {where}"


@dataclass(frozen=True)
class Comparison:
    """`pairs`: (model state, run, world) reached; `steps`: inputs fed; `missed`: model states that a walk without a
    mismatch has not reached."""

    pairs: int
    steps: int
    mismatches: tuple[Mismatch, ...]
    missed: int


Pair = tuple[int, s.Run, World]
Successor = tuple[Move, State, Pair]


class Bisimulation:
    """One setting. `compare` may be called again, while another reducer is patched in."""

    def __init__(self, setting: Setting, graph: Graph) -> None:
        self.setting = setting
        self.graph = graph
        self._fx = graph.variables.index("fx")
        self._number = {state: n for n, state in enumerate(graph.states)}
        self._core = self._without_effects()

    @property
    def cores(self) -> int:
        """States that differ in more than the effects that led to them."""
        return len(set(self._core))

    def _without_effects(self) -> list[int]:
        """For each state the first one that differs in its effects alone; these go on alike, or ValueError."""
        first: dict[State, int] = {}
        cores = [first.setdefault(self._strip(state), n) for n, state in enumerate(self.graph.states)]
        for n, core in enumerate(cores):
            if self.graph.edges[n] != self.graph.edges[core]:
                raise ValueError(f"effects decide what comes next, in {self._text(self.graph.states[n])}")
        return cores

    def _strip(self, state: State) -> State:
        return (*state[: self._fx], *state[self._fx + 1 :])

    def compare(self, limit: int = 20) -> Comparison:
        """Walk all pairs; give up after `limit` mismatches."""
        run = s.new_run("session", "run", self.setting.policy, Ledger())
        begun = self._seen(run, ())
        first: Pair = (self._core[self.graph.first], run, World())
        found: list[Mismatch] = []
        if begun != self.graph.states[self.graph.first]:
            found.append(self._mismatch("Init", [self.graph.states[self.graph.first]], [(None, begun)], first[0]))
        todo, known, reached = deque([first]), {first}, {self.graph.first}
        steps = 0
        while todo and len(found) < limit:
            pair = todo.popleft()
            fed, successors, broken = self._feed(pair)
            steps += fed
            found += broken
            found += self._judge(pair[0], successors)
            for _, state, after in successors:
                number = self._number.get(state)
                if number is None:
                    continue
                reached.add(number)
                if after not in known:
                    known.add(after)
                    todo.append(after)
        missed = 0 if found else len(self.graph.states) - len(reached)
        return Comparison(len(known), steps, tuple(found[:limit]), missed)

    def _seen(self, run: s.Run, fx: tuple[Any, ...]) -> State:
        named: dict[str, Value] = {**view.state(run, self.setting), "fx": words.effects(fx, run)}
        return tuple(named[v] for v in self.graph.variables)

    def _feed(self, pair: Pair) -> tuple[int, list[Successor], list[Mismatch]]:
        """Every input of the alphabet, once."""
        number, run, world = pair
        fed, successors, broken = 0, [], []
        for move in moves(self.setting, world, run_step.accepts(run)):
            fed += 1
            try:
                after = run_step.step(run, move.input)
            except Exception as fault:  # no input raises (design §3.5)
                broken.append(self._raised(move, fault, number))
                continue
            if move.turn == "void":
                if after.state != run or any(type(e) is not NotReady for e in after.effects):
                    state = self._seen(after.state, after.effects)
                    broken.append(self._mismatch(move.action, [], [(move, state)], number))
                continue
            state = self._seen(after.state, after.effects)
            reached = self._number.get(state, -1)
            core = -1 if reached < 0 else self._core[reached]
            successors.append((move, state, (core, after.state, react(world, move, after.effects))))
        return fed, successors, broken

    def _judge(self, number: int, successors: list[Successor]) -> list[Mismatch]:
        """Compare the labelled successors, action by action."""
        want = self.graph.edges[number]
        got: set[Edge] = {(move.action, self._number.get(state, -1)) for move, state, _ in successors}
        if got == want:
            return []
        found = []
        for action in sorted({a for a, _ in want ^ got}):
            model = [self.graph.states[n] for a, n in sorted(want - got) if a == action]
            reducer: list[tuple[Move | None, State]] = [
                (move, state)
                for move, state, _ in successors
                if move.action == action and (action, self._number.get(state, -1)) not in want
            ]
            found.append(self._mismatch(action, model, reducer, number))
        return found

    def _mismatch(
        self, action: str, model: list[State], reducer: list[tuple[Move | None, State]], number: int
    ) -> Mismatch:
        states = [state for _, state in reducer]
        pairs = [(self._differing(a, b), a, b) for a in model for b in states]
        names, a, b = min(pairs, key=lambda p: len(p[0]), default=((), None, None))
        return Mismatch(
            action,
            names,
            "; ".join(str(move.input) for move, _ in reducer if move is not None),
            self._text(self.graph.states[number]),
            tuple(self._some(x, names) for x in ([a] if a else model)),
            tuple(self._some(x, names) for x in ([b] if b else states)),
        )

    def _raised(self, move: Move, fault: Exception, number: int) -> Mismatch:
        state = self._text(self.graph.states[number])
        return Mismatch(move.action, (), str(move.input), state, (), (f"raises {fault!r}",))

    def _differing(self, a: State, b: State) -> tuple[str, ...]:
        return tuple(v for v, x, y in zip(self.graph.variables, a, b, strict=True) if x != y)

    def _some(self, state: State, names: tuple[str, ...]) -> str:
        named = zip(self.graph.variables, state, strict=True)
        return ", ".join(f"{v} = {show(x)}" for v, x in named if v in (names or self.graph.variables))

    def _text(self, state: State) -> tuple[str, ...]:
        return tuple(f"{v} = {show(x)}" for v, x in zip(self.graph.variables, state, strict=True))
