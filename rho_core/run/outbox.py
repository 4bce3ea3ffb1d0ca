"""Sending into a bounded channel, and waiting for room (rho.md 3.1, RHO-BUF-3, RHO-PERS-1).

A *cancellable* send keeps its state change in `then`; an *uncancellable* one has made it before. One exception by
contract: the result of a call is stored before its ToolFinished is sent.
"""

from __future__ import annotations

from dataclasses import replace

from ..effects import Deliver, Effect
from ..errors import INTERRUPTED
from ..events import Event
from .state import Abandon, Blocked, Continuation, Core, Phase, Run

Fx = list[Effect]
Next = tuple[Run, Continuation | None]


def to(run: Run, phase: Phase) -> Run:
    """The run in another phase."""
    return Run(phase, run.free, run.blocked, run.core)


def with_core(run: Run, core: Core) -> Run:
    return Run(run.phase, run.free, run.blocked, core)


def change(run: Run, **changes: object) -> Run:
    """The run with fields of its core replaced."""
    return Run(run.phase, run.free, run.blocked, replace(run.core, **changes))  # type: ignore[arg-type]


def emit(run: Run, fx: Fx, events: tuple[Event, ...], then: Continuation, *, cancellable: bool = True) -> Next:
    """Send nonterminal events. Without a reader the run is interrupted here (RHO-PERS-1)."""
    if run.core.reader == "gone":
        return run, Abandon(INTERRUPTED)
    return _send(run, fx, events, then, cancellable)


def send_tail(run: Run, fx: Fx, events: tuple[Event, ...], then: Continuation) -> Next:
    """Send the last events of a committed run: best effort (RHO-LIM-4)."""
    if run.core.reader == "gone":
        return run, then
    return _send(run, fx, events, then, False)


def _send(run: Run, fx: Fx, events: tuple[Event, ...], then: Continuation, cancellable: bool) -> Next:
    room = run.free
    fx.extend(Deliver(e) for e in events[:room])
    if len(events) <= room:
        return Run(run.phase, room - len(events), None, run.core), then
    return Run(run.phase, 0, Blocked(events[room:], cancellable, then), run.core), None


def pump(run: Run, fx: Fx, taken: int) -> Next:
    """The reader made room: deliver what is blocked; with the last of it the continuation runs."""
    free = min(run.core.policy.event_capacity, run.free + taken)
    blocked = run.blocked
    if blocked is None:
        return Run(run.phase, free, None, run.core), None
    sends = blocked.sends
    fx.extend(Deliver(e) for e in sends[:free])
    if len(sends) > free:
        rest = Blocked(sends[free:], blocked.cancellable, blocked.then)
        return Run(run.phase, 0, rest, run.core), None
    return Run(run.phase, free - len(sends), None, run.core), blocked.then
