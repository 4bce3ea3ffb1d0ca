"""Inputs that every phase serves at once, blocked or not (design §3.3, D22)."""

from __future__ import annotations

from .. import effects as out
from .. import inputs as inp
from ..asks import validate
from ..errors import INTERRUPTED, Error, ErrorName
from ..events import SteeringApplied
from . import state as s
from .detached import LOOK_AGAIN
from .end import undecided
from .outbox import Fx, Next, change, pump, to
from .turn import is_current


def taken(run: s.Run, i: inp.Taken, fx: Fx) -> Next:
    return pump(run, fx, i.n)


def reader_closed(run: s.Run, i: inp.ReaderClosed, fx: Fx) -> Next:
    """The run ends at the blocked or next nonterminal send, or in a boundary wait (D4).

    A run that has decided its end goes on with it: its last events are best effort (RHO-LIM-4, R23).
    """
    blocked = run.blocked
    run = change(s.Run(run.phase, run.free, None, run.core), reader="gone")
    if type(run.phase) in s.ENDING:
        return run, None if blocked is None else blocked.then
    if blocked is not None or isinstance(run.phase, s.Collecting):
        return run, s.Abandon(INTERRUPTED)
    return run, None


def drop(run: s.Run, i: inp.Drop, fx: Fx) -> Next:
    """Abort; nothing is promised (RHO-DROP-1, RHO-DROP-3). What was committed stays."""
    phase = run.phase
    if isinstance(phase, s.Settled):
        return run, None
    if isinstance(phase, s.Settling):
        return s.Run(phase, run.free, None, run.core), s.Exit(None, phase.label)
    if undecided(run):
        fx.append(out.SignalCancel())
    return run, s.Abandon(None)


def worker_panicked(run: s.Run, i: inp.ModelPanicked | inp.CompactorPanicked, fx: Fx) -> Next:
    """The worker died: Interrupted, no event, nothing installed (RHO-LIM-3)."""
    streaming = isinstance(i, inp.ModelPanicked) and isinstance(run.phase, (s.Streaming, s.Draining))
    compacting = isinstance(i, inp.CompactorPanicked) and isinstance(run.phase, (s.Compacting, s.Ebbing))
    if not compacting and not (streaming and is_current(run, i)):
        return run, None
    return to(run, s.Between()), s.Abandon(INTERRUPTED)  # what died needs no abort


# --- steering -----------------------------------------------------------------------------------------------------


def _refuse(fx: Fx, command_id: str, rule: str, text: str) -> None:
    fx.append(out.Rejected(command_id, Error(ErrorName.INVALID_HOST_RESPONSE, text), rule))


def steer(run: s.Run, i: inp.Steer, fx: Fx) -> Next:
    """Accepted until the run has decided to end (RHO-STEER-1, D7)."""
    if type(run.phase) in s.ENDING or isinstance(run.phase, s.Fresh):
        _refuse(fx, i.command_id, "RHO-STEER-2", "the run no longer accepts commands")
        return run, None
    core = run.core
    if core.steers.knows(i.steering_id):
        _refuse(fx, i.command_id, "RHO-STEER-4", f"steering id {i.steering_id!r} is in use")
        return run, None
    fx.append(out.Reply(i.command_id, i.steering_id))
    run = change(run, steers=core.steers.accept(i.steering_id, i.content))
    if isinstance(run.phase, s.Streaming) and core.policy.steerable:
        fx.append(out.OfferSteer(core.step, run.phase.attempt, i.steering_id))
    # At an end turn a steer is what the run waits for; elsewhere the next boundary finds it.
    awaited = run.blocked is None and isinstance(run.phase, s.Awaiting)
    return run, LOOK_AGAIN[s.Awaiting] if awaited else None


def retract(run: s.Run, i: inp.Retract, fx: Fx) -> Next:
    """Decide the race now (RHO-STEER-5, RHO-STEER-6)."""
    steers, answer = run.core.steers.retract(i.steering_id)
    fx.append(out.Reply(i.command_id, answer))
    if answer != "Retracted":
        return run, None
    if isinstance(run.phase, s.Streaming) and run.core.policy.steerable:
        fx.append(out.WithdrawSteer(i.steering_id))
    return _edit_pending(change(run, steers=steers), i.steering_id)


def _edit_pending(run: s.Run, steering_id: str) -> Next:
    """A SteeringApplied that is still blocked has not happened: the id leaves it."""
    blocked = run.blocked
    if blocked is None or not isinstance(blocked.then, s.SteeringIn) or steering_id not in blocked.then.ids:
        return run, None
    ids = tuple(x for x in blocked.then.ids if x != steering_id)
    if not ids:
        return s.Run(run.phase, run.free, None, run.core), s.ConsiderSteering()
    pending = s.Blocked((SteeringApplied(ids),), True, s.SteeringIn(ids))
    return s.Run(run.phase, run.free, pending, run.core), None


def steer_claimed(run: s.Run, i: inp.SteerClaimed, fx: Fx) -> Next:
    """Claim or retraction: exactly one side wins (RHO-STEER-7, R13)."""
    current = isinstance(run.phase, s.Streaming) and run.core.policy.steerable and is_current(run, i)
    moved = run.core.steers.move(i.steering_id, "staged", "claimed") if current else None
    fx.append(out.ClaimAnswered(i.steering_id, moved is not None))
    return (run, None) if moved is None else (change(run, steers=moved), None)


# --- host input -----------------------------------------------------------------------------------------------------


def respond(run: s.Run, i: inp.Respond, fx: Fx) -> Next:
    """Validate and deliver to the open question of that id, exactly once (RHO-HOST-3, RHO-HOST-5)."""
    phase = run.phase
    found = phase.asks.find(i.request_id) if isinstance(phase, s.Batch) else None
    if found is None or not isinstance(phase, s.Batch):
        _refuse(fx, i.command_id, "RHO-HOST-5", f"no host input request {i.request_id!r} awaits a response")
        return run, None
    issue = validate(found.request, i.answers)
    if issue is not None:
        _refuse(fx, i.command_id, "RHO-HOST-3", issue)
        return run, None
    fx.append(out.DeliverAnswer(found.call_id, i.request_id, i.answers))
    fx.append(out.Reply(i.command_id))
    batch = s.Batch(phase.slots, phase.asks.close(i.request_id))
    return s.Run(batch, run.free, run.blocked, run.core), None
