"""Breadth-first search of one model: every reachable node, every edge, the shortest trace to each violation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from rho_core.record import record

from .work import Issue

N = TypeVar("N")
KEPT = 20
"""Violations kept for each configuration, one a rule and message."""


class EdgeLike(Protocol):
    """An input, and whether the world owes it."""

    @property
    def input(self) -> Any: ...

    @property
    def fair(self) -> bool: ...


E = TypeVar("E", bound=EdgeLike)


class Model(Protocol[N, E]):
    """What can be searched. Nodes are hashable; equal nodes have equal futures."""

    def first(self) -> N: ...

    def edges(self, node: N) -> Iterator[E]: ...

    def settled(self, node: N) -> bool: ...

    def follow(self, node: N, edge: E) -> tuple[N, list[Issue]]: ...

    def examine(self, node: N) -> Iterator[Issue]: ...


@record
class Violation:
    """`trace`: the inputs from the start, the last one being the one that went wrong."""

    rule: str
    message: str
    configuration: str
    trace: tuple[str, ...]


@record
class Result:
    """One configuration. `complete`: no bound was hit; `depth`: of the deepest node."""

    name: str
    states: int
    transitions: int
    depth: int
    complete: bool
    deadlocks: tuple[Violation, ...]
    violations: tuple[Violation, ...]
    taken: tuple[tuple[str, str, str], ...] = ()
    unplanned: tuple[tuple[str, str, str], ...] = ()
    defaults: tuple[str, ...] = ()


class Search(Iterable[N]):
    """The state graph as far as it is known: nodes by number, their parents, and the edges the world owes."""

    def __init__(self, name: str, model: Model[N, Any], limit: int) -> None:
        self.name, self.model, self.limit = name, model, limit
        self.nodes: list[N] = []
        self.hashes: list[int] = []
        self.numbers: dict[int, list[int]] = {}
        self.parents: list[tuple[int, Any]] = []
        self.depths: list[int] = []
        self.fair: list[tuple[int, int]] = []
        self.goals: list[int] = []
        self.broken: set[int] = set()
        self.transitions = 0
        self.violations: dict[tuple[str, str], Violation] = {}
        self.deadlocks: list[Violation] = []

    def __iter__(self) -> Iterator[N]:
        return iter(self.nodes)

    def run(self, on_progress: Callable[[str, int, int], None] | None = None) -> Result:
        """Search until nothing new is found or the limit is hit."""
        self._number(self.model.first(), (-1, None))
        queue = deque([0])
        while queue and len(self.nodes) < self.limit:
            number = queue.popleft()
            queue.extend(self._expand(number))
            if on_progress is not None and number % 5_000 == 0:
                on_progress(self.name, len(self.nodes), self.transitions)
        complete = not queue
        if complete:
            self._stuck()
        return Result(
            self.name,
            len(self.nodes),
            self.transitions,
            max(self.depths),
            complete,
            tuple(self.deadlocks),
            tuple(self.violations.values()),
        )

    def _number(self, node: N, parent: tuple[int, Any]) -> tuple[int, bool]:
        key = hash(node)  # asked for once: it walks the whole state
        alike = self.numbers.setdefault(key, [])
        for known in alike:
            if self.nodes[known] == node:
                return known, False
        number = len(self.nodes)
        alike.append(number)
        self.nodes.append(node)
        self.hashes.append(key)
        self.parents.append(parent)
        self.depths.append(0 if parent[0] < 0 else self.depths[parent[0]] + 1)
        return number, True

    def _expand(self, number: int) -> list[int]:
        """Follow every edge. What comes after a violation is not searched: it would only repeat it."""
        node, model = self.nodes[number], self.model
        before = self.hashes[number]
        for issue in self._examine(node):
            self._report(issue, self._trace(number))
        found: list[int] = []
        owed = model.settled(node)
        if owed:
            self.goals.append(number)
        for edge in model.edges(node):
            self.transitions += 1
            after, issues = self._follow(node, edge)
            owed = owed or edge.fair
            if issues:
                self.broken.add(number)
                for issue in issues:
                    self._report(issue, (*self._trace(number), render(edge.input)))
                continue
            target, new = self._number(after, (number, edge.input))
            if edge.fair:
                self.fair.append((number, target))
            if new:
                found.append(target)
        if hash(node) != before:
            self._report(("CORE-CAP", "the core changed a state in place"), self._trace(number))
        if not owed:
            text = "the run is not over, and nobody owes it an input"
            self.deadlocks.append(Violation("CORE-LIVE", text, self.name, self._trace(number)))
        return found

    def _examine(self, node: N) -> list[Issue]:
        try:
            return list(self.model.examine(node))
        except Exception as error:
            return [("CORE-CAP", f"an input raises {type(error).__name__}: {error}")]

    def _follow(self, node: N, edge: Any) -> tuple[N, list[Issue]]:
        """No input raises (design 3.5)."""
        try:
            after, issues = self.model.follow(node, edge)
        except Exception as error:
            return node, [("CORE-CAP", f"{type(edge.input).__name__} raises {type(error).__name__}: {error}")]
        return after, issues

    def _report(self, issue: Issue, trace: tuple[str, ...]) -> None:
        rule, message = issue
        if issue not in self.violations and len(self.violations) < KEPT:
            self.violations[issue] = Violation(rule, message, self.name, trace)

    def _trace(self, number: int) -> tuple[str, ...]:
        trace: list[str] = []
        while self.parents[number][0] >= 0:
            number, i = self.parents[number]
            trace.append(render(i))
        return tuple(reversed(trace))

    def _stuck(self) -> None:
        """From every node a settled one is reachable by what the world owes alone: no command, no luck."""
        back: dict[int, list[int]] = {}
        for source, target in self.fair:
            back.setdefault(target, []).append(source)
        reached = set(self.goals) | self.broken
        todo = list(reached)
        while todo:
            for source in back.get(todo.pop(), ()):
                if source not in reached:
                    reached.add(source)
                    todo.append(source)
        dead = {d.trace for d in self.deadlocks}
        lost = [n for n in range(len(self.nodes)) if n not in reached]
        for number in lost[:1]:
            trace = self._trace(number)
            if trace not in dead:
                text = f"{len(lost)} states from which the run cannot end"
                self.deadlocks.append(Violation("CORE-LIVE", text, self.name, trace))


def render(i: Any) -> str:
    """An input in one line: its name and what tells it from its likes."""
    shown = [repr(v) if isinstance(v, str) else str(v) for n in _TOLD if (v := getattr(i, n, None)) is not None]
    content = getattr(i, "content", None)
    if content is not None and type(i).__name__ == "ModelReturned":
        shown.append("+".join(getattr(b, "id", None) or b.kind for b in content) or "nothing")
    error = getattr(i, "error", None)
    if error is not None:
        hint = getattr(error, "retry_after_ms", None)
        shown.append(f"{'retryable' if error.retryable else 'permanent'}{'' if hint is None else f' after {hint} ms'}")
    return f"{type(i).__name__}({', '.join(shown)})"


_TOLD = (
    "n",
    "step",
    "attempt",
    "steering_id",
    "call_id",
    "request_id",
    "timer_id",
    "operation",
    "run",
    "reason",
    "input",
)
