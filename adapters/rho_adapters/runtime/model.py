"""The task of one logical request: from the provider's iterator into the core, delta by delta."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio

import rho_core.session
from rho_adapters.provider import ModelRequest, Offer, ProviderFailure
from rho_adapters.runtime.work import RunState, Task
from rho_core import effects as fx
from rho_core import inputs as inp
from rho_core.events import Timing

if TYPE_CHECKING:
    from rho_adapters.clock import Clock
    from rho_adapters.runtime.port import SessionPort


CLOSE_S = 5.0
"""How long an iterator that is left early may take to clean up, in seconds."""


class Measure:
    """The clock readings of one physical request, in milliseconds."""

    __slots__ = ("_clock", "first", "last", "started")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Another physical request begins."""
        self.started = self._clock.now_ms()
        self.first: int | None = None
        self.last: int | None = None

    def timing(self) -> Timing:
        """What is reported of it."""
        if self.first is None or self.last is None:
            return Timing(self._clock.now_ms() - self.started)
        return Timing(self.last - self.started, self.first - self.started, self.last - self.first)


class Claims:
    """How a steerable provider takes steers, decided by the core at once (RHO-STEER-7)."""

    def __init__(self, port: SessionPort, run: RunState, request: ModelRequest) -> None:
        self._port, self._run, self._request = port, run, request

    def claim(self, steering_id: str) -> bool:
        """Take the steer; False when it cannot be had any more."""
        r = self._request
        effects = self._port.tell(self._run, inp.SteerClaimed(r.step, r.attempt, steering_id))
        granted = any(isinstance(e, fx.ClaimAnswered) and e.granted for e in effects)
        if granted:
            withdraw_from(r, steering_id)
        return granted

    def release(self, steering_id: str) -> None:
        """Give it back."""
        r = self._request
        self._port.tell(self._run, inp.SteerReleased(r.step, r.attempt, steering_id))


def call(port: SessionPort, run: RunState, e: fx.CallModel) -> None:
    """Carry out `CallModel`."""
    request = ModelRequest(
        e.step,
        e.attempt,
        e.messages,
        port.rho.specs,
        port.provider.identity,
        run.token,
        port.state.id,
        port.state.cache_key,
        [Offer(i, run.steers.get(i, ())) for i in e.offers],
    )
    request.steering = Claims(port, run, request)

    async def body(_: Task) -> None:
        await _request(port, run, request)

    task = port.spawn(run, "model", (e.step, e.attempt), body, f"model {e.step}.{e.attempt} of {run.id}")
    task.request = request


def offer(run: RunState, e: fx.OfferSteer) -> None:
    """A steer was accepted while the request runs."""
    for task in run.find("model", (e.step, e.attempt)):
        if task.request is not None:
            task.request.offers.append(Offer(e.steering_id, run.steers.get(e.steering_id, ())))


def withdraw(run: RunState, e: fx.WithdrawSteer) -> None:
    """An offered steer was retracted."""
    for task in run.tasks:
        if task.request is not None:
            withdraw_from(task.request, e.steering_id)


def withdraw_from(request: ModelRequest, steering_id: str) -> None:
    """Take the offer off the list."""
    request.offers[:] = [o for o in request.offers if o.steering_id != steering_id]


async def _request(port: SessionPort, run: RunState, request: ModelRequest) -> None:
    step, attempt = request.step, request.attempt
    measure = Measure(port.rho.clock)
    last: inp.ModelInput
    try:
        stream = port.provider.stream(request)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(_close, stream)
            if await _pump(port, run, stream, measure):
                return
        # An iterator that ends without its response is a response without content: malformed (RHO-RET-1).
        last = inp.ModelReturned(step, attempt, (), measure.timing())
    except ProviderFailure as failed:
        last = inp.ModelFailed(step, attempt, failed.error)
    except Exception as panic:
        port.rho.panicked(panic, f"provider {port.provider.identity.provider}")
        port.tell(run, inp.ModelPanicked(step, attempt))
        return
    await port.offer(run, last)


async def _pump(port: SessionPort, run: RunState, stream: AsyncIterator[inp.ModelInput], measure: Measure) -> bool:
    """From the iterator into the core; True when its response was taken.

    A text delta that has room goes the short way: it has one effect.
    """
    now_ms, step, plain, channel = port.rho.clock.now_ms, rho_core.session.step, port.unjournaled, run.channel
    async for item in stream:
        kind = type(item)
        if kind in inp.GENERATED:
            measure.last = now_ms()
            if measure.first is None:
                measure.first = measure.last
            if kind is inp.TextDelta and plain and run is port.active:
                after = step(port.state, item)
                if len(after.effects) == 1 and type(after.effects[0]) is fx.Deliver:
                    port.state = after.state
                    channel.append(after.effects[0].event)
                    if run.awaited:
                        run.tell()
                    continue  # otherwise nothing was changed, and it goes the long way
        elif kind is inp.ModelReturned:
            content = item.content  # type: ignore[union-attr]
            await port.offer(run, inp.ModelReturned(item.step, item.attempt, content, measure.timing()))
            return True
        elif kind is inp.PhysicalAttemptFailed:
            measure.restart()
        await port.offer(run, item)
        if kind is inp.ModelFailed:
            return True
    return False


async def _close(stream: Any) -> None:
    """An iterator that was left early is closed now, not when it is collected."""
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await aclose()
