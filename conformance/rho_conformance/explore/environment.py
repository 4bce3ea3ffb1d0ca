"""The world around a run: which inputs are possible, built only from the effects that the core has sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.asks import Answers, Choice, HostInputRequest, Question
from rho_core.messages import Usage, user

from .configuration import Allowance, Configuration
from .work import Open, Work


class World(NamedTuple):
    """`ended`: work that is over, whose answer may still come late. `unread`: events in the channel.

    `marks` belong to the open attempt; `offers` are steers its provider may claim; `claimed` ones it may still give
    back when it has returned.
    """

    left: Allowance
    uses: tuple[int, ...]
    asks: tuple[tuple[str, str], ...]
    open: Open = ()
    ended: Open = ()
    unread: int = 0
    issued: int = 0
    marks: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()
    claimed: tuple[tuple[int, int, str], ...] = ()
    waiting: tuple[tuple[str, str], ...] = ()
    stage: str = "fresh"


Move = tuple[Any, bool, World]
"""An input, whether something obliges the world to make it some time, and the world that made it."""

YES: Answers = (("q", ("yes",)),)
MAYBE: Answers = (("q", ("maybe",)),)


def question(request_id: str) -> HostInputRequest:
    """A request with one question that takes yes or no."""
    return HostInputRequest(request_id, "?", (Question("q", "?", (Choice("yes"), Choice("no"))),))


def first_world(config: Configuration) -> World:
    return World(config.allowance, tuple(r.times for r in config.menu), config.asks)


def _spend(world: World, name: str) -> World:
    return world._replace(left=world.left._replace(**{name: getattr(world.left, name) - 1}))


def moves(config: Configuration, world: World, ready: bool) -> Iterator[Move]:
    """Every possible input. `ready`: gated inputs are taken now; while they are not, the world holds them."""
    if world.stage == "fresh":
        yield config.begin, True, world._replace(stage="running")
        return
    if world.stage == "over":
        return
    if world.unread:
        yield inp.Taken(1), True, world._replace(unread=world.unread - 1)
    yield from _host(world)
    yield from _releases(world)
    for work in world.open:
        yield from ANSWERING[work[0]](config, world, work, ready)


def _host(world: World) -> Iterator[Move]:
    left = world.left
    if left.cancels:
        yield inp.Cancel("cancel"), False, _spend(world, "cancels")
    if left.closes:
        yield inp.ReaderClosed(), False, _spend(world, "closes")._replace(unread=0, stage="unread")
    if left.drops:
        yield inp.Drop(), False, _spend(world, "drops")
    if left.steers:
        number = world.issued + 1
        text = f"s{number}"
        yield inp.Steer("steer", text, user(text).content), False, _spend(world, "steers")._replace(issued=number)
    if left.retracts:
        for number in range(1, world.issued + 1):
            yield inp.Retract("retract", f"s{number}"), False, _spend(world, "retracts")
    if left.responds:
        for _, request in world.waiting:
            for answers in (YES, MAYBE):
                yield inp.Respond("respond", request, answers), False, _spend(world, "responds")


# --- who works for the core, and what it may say -------------------------------------------------------------------


def _model(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    at = (int(work[1]), int(work[2]))
    yield from _claims(world, at, ready)
    if world.left.panics:
        yield inp.ModelPanicked(*at), False, _spend(world, "panics")
    if not ready:
        return
    if world.left.deltas:
        for kind in config.stream:
            yield STREAM[kind](*at), False, _spend(world, "deltas")
    for index, response in enumerate(config.menu):
        if world.uses[index] == 0:
            continue
        missing = next((m for m in response.marks if m not in world.marks), None)
        if missing is not None:
            yield inp.ContextBlock(*at, inp.ASYNC_CALL, missing), True, world._replace(marks=(*world.marks, missing))
            continue
        if any(m not in response.marks for m in world.marks):
            continue
        uses = tuple(n - (k == index) for k, n in enumerate(world.uses))
        after = world._replace(uses=uses)
        if response.error is None:
            yield inp.ModelReturned(*at, response.content), True, after
        else:
            yield inp.ModelFailed(*at, response.error), True, after


def _claims(world: World, at: tuple[int, int], ready: bool) -> Iterator[Move]:
    """A claim is the provider's; what it has claimed it delivers, or gives back."""
    if world.left.claims:
        for steer in world.offers:
            yield inp.SteerClaimed(*at, steer), False, _spend(world, "claims")
    for claim in world.claimed:
        if ready:
            rest = tuple(c for c in world.claimed if c != claim)
            yield inp.SteerDelivered(*claim), False, world._replace(claimed=rest)


def _releases(world: World) -> Iterator[Move]:
    for claim in world.claimed:
        rest = tuple(c for c in world.claimed if c != claim)
        yield inp.SteerReleased(*claim), False, world._replace(claimed=rest)


USAGE = Usage(output_tokens=1)
STREAM: dict[str, Callable[[int, int], Any]] = {
    "text": lambda s, a: inp.TextDelta(s, a, "t"),
    "reasoning": lambda s, a: inp.RawReasoning(s, a, "r"),
    "summary": lambda s, a: inp.SummaryDelta(s, a, "y"),
    "call": lambda s, a: inp.CallDelta(s, a, 0, "Z", "tool", "{}"),
    "context": lambda s, a: inp.ContextBlock(s, a, "opaque", "x", 0),
    "usage": lambda s, a: inp.UsageReported(s, a, USAGE),
    "generation": lambda s, a: inp.GenerationTokensReported(s, a, ev.Reported(1)),
    "web": lambda s, a: inp.WebSearched(s, a, "w"),
    "hosted": lambda s, a: inp.HostedTool(s, a, "h", "d"),
    "tier": lambda s, a: inp.TierFallback(s, a, "a", "b"),
    "physical": lambda s, a: inp.PhysicalAttemptFailed(s, a, "Timeout", Usage()),
}


def _prepare(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    call_id = str(work[1])
    for plan in config.plans_of(call_id):
        if isinstance(plan, str):
            yield inp.PrepareFailed(call_id, plan), True, world
        else:
            yield inp.Prepared(call_id, plan), True, world
    yield from _panic(world, call_id)


def _panic(world: World, call_id: str) -> Iterator[Move]:
    if world.left.panics:
        yield inp.ToolPanicked(call_id), False, _spend(world, "panics")


def _authorize(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    call_id = str(work[1])
    for granted in config.authorisations:
        yield (inp.Authorized(call_id) if granted else inp.Denied(call_id, "no")), True, world
    yield from _panic(world, call_id)


def _execute(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    call_id = str(work[1])
    over = world._replace(waiting=tuple(w for w in world.waiting if w[0] != call_id))
    for completion in config.completions:
        yield inp.ToolReturned(call_id, completion), True, over
    yield from _panic(over, call_id)
    if world.left.withdrawals:
        for pair in world.waiting:
            if pair[0] == call_id:
                rest = tuple(w for w in world.waiting if w != pair)
                yield inp.AskWithdrawn(*pair), False, _spend(world, "withdrawals")._replace(waiting=rest)
    if not ready:
        return
    if world.left.progress:
        yield inp.ToolProgress(call_id, "p"), False, _spend(world, "progress")
    for number, ask in enumerate(world.asks):
        if ask[0] == call_id:
            rest = (*world.asks[:number], *world.asks[number + 1 :])
            after = world._replace(asks=rest, waiting=(*world.waiting, ask))
            yield inp.ToolAsked(call_id, question(ask[1])), False, after


def _timer(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    yield inp.TimerFired(str(work[1])), True, world


def _compactor(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    for i in config.compactions:
        yield i, True, world
    if world.left.panics:
        yield inp.CompactorPanicked(), False, _spend(world, "panics")


def _boundary(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    for i in config.replies:
        yield i, True, world


def _recorder(config: Configuration, world: World, work: Work, ready: bool) -> Iterator[Move]:
    yield inp.UsageRecorded(), True, world


ANSWERING: dict[str | int, Callable[[Configuration, World, Work, bool], Iterator[Move]]] = {
    "model": _model,
    "prepare": _prepare,
    "authorize": _authorize,
    "execute": _execute,
    "timer": _timer,
    "compactor": _compactor,
    "boundary": _boundary,
    "recorder": _recorder,
}

# --- what the core's effects do to the world -------------------------------------------------------------------


def react(world: World, effects: tuple[Any, ...], now: Open) -> World:
    """The world after the step; `now` is the work that is open after it."""
    before = world.open
    for e in effects:
        handler = HEARD.get(type(e))
        if handler is not None:
            world = handler(world, e)
    if now is not before:
        world = _ended(world, before, now)
    return world


def _ended(world: World, before: Open, now: Open) -> World:
    over = tuple(w for w in before if w not in now and w not in world.ended)
    kinds = {w[0] for w in over} - {"prepare", "authorize", "execute"}  # of those only the last one may still answer
    ended = tuple(w for w in world.ended if w[0] not in kinds)
    world = world._replace(open=now, ended=(*ended, *over))
    if any(w[0] == "model" for w in over):
        world = world._replace(marks=(), offers=())
    return world


def _deliver(world: World, e: out.Deliver) -> World:
    return world._replace(unread=world.unread + 1)


def _offers(world: World, e: out.CallModel) -> World:
    return world._replace(offers=e.offers, claimed=())


def _offer(world: World, e: out.OfferSteer) -> World:
    return world._replace(offers=(*world.offers, e.steering_id))


def _withdraw(world: World, e: out.WithdrawSteer) -> World:
    return world._replace(offers=tuple(s for s in world.offers if s != e.steering_id))


def _claimed(world: World, e: out.ClaimAnswered) -> World:
    if not e.granted:
        return world
    offers = tuple(s for s in world.offers if s != e.steering_id)
    claim = next((int(w[1]), int(w[2]), e.steering_id) for w in world.open if w[0] == "model")
    return world._replace(offers=offers, claimed=(*world.claimed, claim))


def _answered(world: World, e: out.DeliverAnswer | out.RefuseAsk) -> World:
    return world._replace(waiting=tuple(w for w in world.waiting if w != (e.call_id, e.request_id)))


def _closed(world: World, e: out.CloseEvents) -> World:
    left = Allowance()
    return world._replace(stage="over", unread=0, left=left, uses=(), asks=(), waiting=(), issued=0, claimed=())


HEARD: dict[type, Callable[[World, Any], World]] = {
    out.Deliver: _deliver,
    out.CallModel: _offers,
    out.OfferSteer: _offer,
    out.WithdrawSteer: _withdraw,
    out.ClaimAnswered: _claimed,
    out.DeliverAnswer: _answered,
    out.RefuseAsk: _answered,
    out.CloseEvents: _closed,
}
