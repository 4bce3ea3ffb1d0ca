"""One session and its runtime as a search problem: start, admission, shutdown, drop, manual compaction.

Session and runtime talk through a queue, so that every command may fall between an effect and its answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from rho_core import effects as out
from rho_core import inputs as inp
from rho_core.config import Compaction, Policy
from rho_core.ledger import Ledger
from rho_core.messages import Text, user
from rho_core.record import record
from rho_core.runtime import Runtime
from rho_core.runtime import step as runtime_step
from rho_core.session import Session, new_session, session_state
from rho_core.session import step as session_step

from .lifecycle_ghost import Life, judge, judge_settled
from .work import Issue, Open, Work, answer, effect

TEXT = (Text("a"),)


@record
class Lifecycle:
    """How often each command may be given. The runs themselves are short: one request, text, room for every event."""

    name: str
    starts: int = 2
    compacts: int = 0
    cancels: int = 1
    drops: int = 1
    shutdowns: int = 2
    appends: int = 1
    cooperative: bool = False
    limit: int = 200_000


class World(NamedTuple):
    """`owner`: the run of each open work; `queue`: what session and runtime still have to tell each other.

    `gone`: the dropped run whose tasks are still alive.
    """

    starts: int
    compacts: int
    cancels: int
    drops: int
    shutdowns: int
    appends: int
    open: tuple[tuple[Work, str], ...] = ()
    queue: tuple[Any, ...] = ()
    gone: str = ""
    late: tuple[tuple[Work, str], ...] = ()
    issued: int = 0


class Node(NamedTuple):
    session: Session
    runtime: Runtime
    world: World
    life: Life


class Edge(NamedTuple):
    input: Any
    fair: bool
    world: World


RUNTIME = (inp.Admit, inp.Released, inp.Shutdown)
QUEUED: dict[type, Any] = {
    out.Admit: lambda e: inp.Admit(e.operation),
    out.Release: lambda e: inp.Released(e.operation),
    out.Admitted: lambda e: inp.Admitted(e.operation),
    out.Refused: lambda e: inp.Refused(e.operation),
    out.CancelOperation: lambda e: inp.Cancel(None),
}


class LifecycleModel:
    """Searches `session.step` and `runtime.step` together."""

    def __init__(self, config: Lifecycle) -> None:
        self.config = config
        compaction = Compaction(messages=9, cooperative=config.cooperative)
        self._policy = Policy(compaction=compaction, cooperative_provider=config.cooperative)

    def first(self) -> Node:
        c = self.config
        world = World(c.starts, c.compacts, c.cancels, c.drops, c.shutdowns, c.appends)
        return Node(new_session("session", self._policy, Ledger()), Runtime(), world, Life())

    def settled(self, node: Node) -> bool:
        """At rest with nothing under way. More may be asked; nothing has to come."""
        return not (node.session.busy or node.world.queue or node.world.open)

    def edges(self, node: Node) -> Iterator[Edge]:
        world = node.world
        yield from _commands(world, node.session)
        if world.queue:
            yield Edge(world.queue[0], True, world._replace(queue=world.queue[1:]))
        for work, run in world.open:
            for i in _answers(work):
                yield Edge(inp.ForRun(run, i) if run in ("r1", "r2", "r3") else i, True, world)
        if world.gone:
            yield Edge(inp.TasksGone(world.gone), True, world._replace(gone=""))

    def follow(self, node: Node, edge: Edge) -> tuple[Node, list[Issue]]:
        session, runtime, i = node.session, node.runtime, edge.input
        effects: tuple[Any, ...]
        if isinstance(i, RUNTIME):
            turned = runtime_step(runtime, i)
            runtime, effects = turned.state, turned.effects
        else:
            stepped = session_step(session, i)
            session, effects = stepped.state, stepped.effects
        issues: list[Issue] = []
        world = _react(edge.world, i, effects, node.session, session, issues)
        after = Node(session, runtime, world, node.life)
        return after._replace(life=judge(node, after, i, effects, issues)), issues

    def examine(self, node: Node) -> Iterator[Issue]:
        """Late answers of an earlier run change nothing; a session at rest shows it."""
        for work, run in node.world.late:
            for i in _answers(work):
                after = session_step(node.session, inp.ForRun(run, i))
                if run != node.session.run_id and (after.state != node.session or after.effects):
                    yield "RHO-DROP-1", f"a late {type(i).__name__} of {run} is not ignored"
        if self.settled(node):
            yield from judge_settled(node, session_state(node.session))


def _commands(world: World, session: Session) -> Iterator[Edge]:
    number = world.issued + 1
    if world.starts:
        start = inp.Start(f"c{number}", f"r{number}", user("hello").content)
        yield Edge(start, False, world._replace(starts=world.starts - 1, issued=number))
    if world.compacts:
        compact = inp.Compact(f"c{number}", f"m{number}")
        yield Edge(compact, False, world._replace(compacts=world.compacts - 1, issued=number))
    if world.cancels:
        yield Edge(inp.Cancel("cancel"), False, world._replace(cancels=world.cancels - 1))
    if world.drops and (session.run_id or any(work[0] == "compactor" for work, _ in world.open)):
        yield Edge(inp.Drop(), False, world._replace(drops=world.drops - 1))
    if world.shutdowns:
        yield Edge(inp.Shutdown("shutdown"), False, world._replace(shutdowns=world.shutdowns - 1))
    if world.appends:
        append = inp.AppendMessage("append", user("more"))
        yield Edge(append, False, world._replace(appends=world.appends - 1))


def _answers(work: Work) -> tuple[Any, ...]:
    if work[0] == "model":
        at = (int(work[1]), int(work[2]))
        return inp.ModelReturned(*at, TEXT), inp.ModelPanicked(*at)
    return inp.CompactorReturned((user("summary"),)), inp.CompactorReturned(()), inp.CompactorPanicked()


def _react(
    world: World, i: Any, effects: tuple[Any, ...], before: Session, after: Session, issues: list[Issue]
) -> World:
    """Work belongs to the run it was begun for; what session and runtime say to each other waits its turn."""
    run = after.run_id or before.run_id or "manual"
    inner = i.input if isinstance(i, inp.ForRun) else i
    owners = dict(world.open)
    now: Open = answer(tuple(owners), inner)
    for e in effects:
        now = effect(now, e, issues)
    over = tuple((w, r) for w, r in world.open if w not in now and r != "manual" and (w, r) not in world.late)
    queue = deque(world.queue)
    for e in effects:
        if type(e) in QUEUED:
            queue.append(QUEUED[type(e)](e))
    gone = str(before.run_id) if type(i) is inp.Drop and before.run_id and after.run is None else world.gone
    return world._replace(
        open=tuple((w, owners.get(w, run)) for w in now), queue=tuple(queue), gone=gone, late=(*world.late, *over)
    )
