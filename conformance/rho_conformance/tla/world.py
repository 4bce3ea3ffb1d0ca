"""Who works for the run: which inputs may come, known from the effects of the reducer alone.

The model must offer exactly the same ones. Every other input of the alphabet is late or out of turn, and must change
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from rho_conformance.explore.work import Open, answer, effect
from rho_core import effects as out
from rho_core import inputs as inp
from rho_core.errors import ToolErrorKind
from rho_core.events import Failure, Success, ToolProposed
from rho_core.ledger import PENDING
from rho_core.messages import ToolResult, user

from .setting import ASYNC, CALLS, ERRORS, GRACE_MS, Setting, content
from .words import TEXT

Turn = Literal["offered", "void"]
"""May this input come now, or must it change nothing?"""


class World(NamedTuple):
    """`open`: work that was begun and not ended. `asked`: step and attempt of the newest model request.

    `streamed`: what its provider has sent: "text", ids of marked calls. `pending`: calls that its request shows as
    running. `made`: calls that were proposed. `hurried`: jobs that were told to come to an end.
    """

    stage: Literal["fresh", "running", "over"] = "fresh"
    reader: bool = True
    unread: int = 0
    open: Open = ()
    asked: tuple[int, int] = (1, 1)
    streamed: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    hurried: frozenset[str] = frozenset()


class Move(NamedTuple):
    """An input under the name of the model's action."""

    action: str
    input: Any
    turn: Turn


def moves(setting: Setting, world: World, ready: bool) -> Iterator[Move]:
    """The alphabet of the setting, but for what the model leaves out. `ready`: no send is blocked."""
    if world.stage == "fresh":
        yield Move("Begin", inp.Begin((user("prompt"),)), "offered")
        return
    if world.stage == "running":
        yield from _host(setting, world)
    yield from _model(setting, world, ready)
    for call_id in setting.calls:
        yield from _tool(setting, world, call_id, ready)
    yield from _timers(setting, world)


def _host(setting: Setting, world: World) -> Iterator[Move]:
    allowed = setting.names("Allowed")
    if world.unread and world.reader:
        yield Move("Take", inp.Taken(1), "offered")
    if "cancel" in allowed:
        yield Move("Cancel", inp.Cancel("cancel"), "offered")
        yield Move("Cancel", inp.Cancel(), "offered")
    if "drop" in allowed:
        yield Move("Drop", inp.Drop(), "offered")
    if "close" in allowed and world.reader:
        yield Move("Close", inp.ReaderClosed(), "offered")
    for steer in setting.names("Steers"):
        if "steer" in allowed:
            yield Move("Steer", inp.Steer("steer", steer, user(steer).content), "offered")
        if "retract" in allowed:
            yield Move("Retract", inp.Retract("retract", steer), "offered")


def _turn(now: bool) -> Turn:
    return "offered" if now else "void"


def _model(setting: Setting, world: World, ready: bool) -> Iterator[Move]:
    at, allowed, answers = world.asked, setting.names("Allowed"), setting.names("Answers")
    open_now = ("model", *at) in world.open
    now = _turn(open_now and ready)
    stale = (at[0], at[1] - 1)
    yield Move("Respond", inp.ModelReturned(*stale, content("text")), "void")
    yield Move("ModelFails", inp.ModelFailed(*stale, ERRORS["fail"]), "void")
    if "delta" in allowed and not (open_now and "text" in world.streamed):
        yield Move("Delta", inp.TextDelta(*at, TEXT), now)
    if "panic" in allowed:
        yield Move("ModelPanics", inp.ModelPanicked(*at), _turn(open_now))
    for call_id in sorted(set(setting.calls) & set(ASYNC) - world.made - world.streamed):
        yield Move("Mark", inp.ContextBlock(*at, inp.ASYNC_CALL, call_id), now)
    for name in answers:
        if name in ERRORS:
            yield Move("ModelFails", inp.ModelFailed(*at, ERRORS[name]), now)
        elif all(c in world.pending or c not in world.made for c in CALLS.get(name, ())):
            yield Move("Respond", inp.ModelReturned(*at, content(name)), now)


def _tool(setting: Setting, world: World, call_id: str, ready: bool) -> Iterator[Move]:
    preparing = _turn(("prepare", call_id) in world.open)
    at_work = ("execute", call_id) in world.open
    grace = GRACE_MS if setting.constants["Grace"] else None
    yield Move("Prepared", inp.Prepared(call_id, inp.Plan(complete_within_ms=grace)), preparing)
    if call_id in setting.names("Broken"):
        yield Move("PrepareFails", inp.PrepareFailed(call_id, "error"), preparing)
    for completion in (Success("ok"), Failure(ToolErrorKind.EXECUTION, "error")):
        yield Move("ToolReturns", inp.ToolReturned(call_id, completion), _turn(at_work))
    if "progress" in setting.names("Allowed"):
        heard = at_work and ready and call_id not in world.hurried
        yield Move("Progress", inp.ToolProgress(call_id, "p"), _turn(heard))


def _timers(setting: Setting, world: World) -> Iterator[Move]:
    step, attempt = world.asked
    names = (f"retry:{step}:{attempt}", *(f"stop:{c}" for c in setting.calls))
    for timer in names:
        yield Move("TimerFires", inp.TimerFired(timer), _turn(("timer", timer) in world.open))


# --- what a step does to the world ------------------------------------------------------------------------------------


def react(world: World, move: Move, fx: tuple[Any, ...]) -> World:
    """The world after an input and its effects."""
    i = move.input
    world = world._replace(open=answer(world.open, i))
    match i:
        case inp.Begin():
            world = world._replace(stage="running")
        case inp.Taken():
            world = world._replace(unread=world.unread - 1)
        case inp.ReaderClosed():
            world = world._replace(reader=False)
        case inp.TextDelta():
            world = world._replace(streamed=world.streamed | {"text"})
        case inp.ContextBlock():
            world = world._replace(streamed=world.streamed | {i.data})
    for e in fx:
        world = _after(world, e)
    return world


def _after(world: World, e: Any) -> World:
    world = world._replace(open=effect(world.open, e, []))
    match e:
        case out.Deliver(event):
            made = {event.call.id} if isinstance(event, ToolProposed) else set()
            return world._replace(unread=world.unread + 1, made=world.made | made)
        case out.CallModel():
            pending = {m.id for m in e.messages if isinstance(m, ToolResult) and m.content == PENDING}
            return world._replace(asked=(e.step, e.attempt), streamed=frozenset(), pending=frozenset(pending))
        case out.CancelJob():
            return world._replace(hurried=world.hurried | {e.call_id})
        case out.CloseEvents():
            return World("over", asked=world.asked)
    return world
