"""Permitted variants of what happens on the way: proposals, boundaries, steering, jobs, one request too many."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.session
from rho_conformance.mutants.base import Benign
from rho_conformance.mutants.benign_kit import attr, common, flow, new_flow, wait
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import CANCELLED
from rho_core.record import record
from rho_core.run import state as s
from rho_core.run.outbox import change, emit, to
from rho_core.session import CompactingByHand, Session
from rho_core.steering import Steer, Steers
from rho_core.step import Step

# --- D10: the order of one boundary ---------------------------------------------------------------------------------


@record
class SteeringInFirst(s.SteeringIn):
    """SteeringApplied was delivered, and the boundary has only begun."""


def _steering_first(old: Any) -> Any:
    def at_top(run: s.Run, k: s.Top, fx: Any) -> Any:
        after, then = old(run, k, fx)
        ids = after.core.steers.next_group() if isinstance(then, s.ConsiderCompaction) else ()
        return emit(after, fx, (ev.SteeringApplied(ids),), SteeringInFirst(ids)) if ids else (after, then)

    return at_top


def _then_the_rest(run: s.Run, k: SteeringInFirst, fx: Any) -> Any:
    steers, messages = run.core.steers.apply(k.ids)
    return change(run, steers=steers, suffix=run.core.suffix + messages), s.Top()


def _retract_first(old: Any) -> Any:
    """What the core does to a blocked SteeringApplied, with the continuation of this variant."""

    def retract(run: s.Run, i: inp.Retract, fx: Any) -> Any:
        early = run.blocked is not None and isinstance(run.blocked.then, SteeringInFirst)
        after, then = old(run, i, fx)
        if not early:
            return after, then
        if isinstance(then, s.ConsiderSteering):
            return after, s.Top()
        waiting = after.blocked
        if waiting is not None and type(waiting.then) is s.SteeringIn:
            waiting = s.Blocked(waiting.sends, True, SteeringInFirst(waiting.then.ids))
        return s.Run(after.phase, after.free, waiting, after.core), then

    return retract


@record
class AskFirst:
    """Boundary input comes before compaction."""


def _boundary_first(old: Any) -> Any:
    def at_top(run: s.Run, k: s.Top, fx: Any) -> Any:
        after, then = old(run, k, fx)
        return after, AskFirst() if isinstance(then, s.ConsiderCompaction) else then

    return at_top


def _ask_first(run: s.Run, k: AskFirst, fx: Any) -> Any:
    asked = run.core.policy.boundary
    return run, s.AskCollector("before_provider") if asked else s.ConsiderCompaction()


def _compaction_next(old: Any) -> Any:
    def handler(run: s.Run, k: Any, fx: Any) -> Any:
        fresh = run.core.preserve
        after, then = old(run, k, fx)
        collecting = isinstance(run.phase, s.Collecting) and run.phase.boundary == "before_provider"
        if fresh and collecting and after.core.ledger is not run.core.ledger:
            after = change(after, preserve=fresh + 1)
        early = collecting or isinstance(k, s.AfterInput)
        return after, s.ConsiderCompaction() if early and isinstance(then, s.ConsiderSteering) else then

    return handler


def _boundary_done(_: Any) -> Any:
    return lambda run, k, fx: (run, s.ConsiderSteering())


# --- steering -------------------------------------------------------------------------------------------------------


def _one_group(_: Any) -> Any:
    return lambda self: self.unapplied()


def _held(_: Any) -> Any:
    def restage(self: Steers) -> Steers:
        held = (s_ if s_.stage == "delivered" else Steer(s_.id, s_.content) for s_ in self.waiting)
        return Steers(tuple(held), self.applied)

    return restage


def _too_late(old: Any) -> Any:
    """A steer whose SteeringApplied is already on its way is not given back."""

    def retract(run: s.Run, i: inp.Retract, fx: Any) -> Any:
        then = run.blocked.then if run.blocked is not None else None
        if isinstance(then, s.SteeringIn) and i.steering_id in then.ids:
            fx.append(out.Reply(i.command_id, "AlreadyApplied"))
            return run, None
        return old(run, i, fx)

    return retract


def _accepted_while_ending(old: Any) -> Any:
    """A steer that races with the end is acknowledged, and then listed as never applied."""

    def steer(run: s.Run, i: inp.Steer, fx: Any) -> Any:
        if isinstance(run.phase, (s.Draining, s.Ebbing, s.Cancelling)) and not run.core.steers.knows(i.steering_id):
            fx.append(out.Reply(i.command_id, i.steering_id))
            return change(run, steers=run.core.steers.accept(i.steering_id, i.content)), None
        return old(run, i, fx)

    return steer


# --- retries ---------------------------------------------------------------------------------------------


def _capped(old: Any) -> Any:
    def reset(run: s.Run, k: s.Reset, fx: Any) -> Any:
        reason = k.reason
        if isinstance(reason, ev.RetryableFailure) and reason.retry_after_ms is not None:
            hint = min(reason.retry_after_ms, run.core.policy.retry_after_cap_ms)
            k = replace(k, reason=ev.RetryableFailure(reason.error_kind, hint))
        return old(run, k, fx)

    return reset


# --- compaction -----------------------------------------------------------------------------------------------------


def _compaction_left(_: Any) -> Any:
    """What a cooperative compactor returns after the cancel comes too late."""
    return lambda run, i, fx: (to(run, s.Between()), s.Conclude(s.CancelRun()))


def _hand_dropped(old: Any) -> Any:
    """A compaction by hand is raced against its cancel like an automatic one."""

    def by_hand(session: Session, phase: CompactingByHand, i: Any) -> Any:
        told = old(session, phase, i)
        if not isinstance(i, inp.Cancel) or phase.stage == "cancelled":
            return told
        ended = old(session, phase, inp.CompactorFailed(CANCELLED))
        return Step(ended.state, (*told.effects, out.AbortCompactor(), *ended.effects))

    return by_hand


# --- the recorder -----------------------------------------------------------------------------------------------------


def _unawaited(_: Any) -> Any:
    """Each record is given and not waited for."""
    return lambda run, k, fx: (run, s.Record())


BENIGN: tuple[Benign, ...] = (
    Benign(
        "steering-before-compaction",
        "D10",
        "steering is applied first at a boundary",
        (
            flow(s.Top, _steering_first),
            new_flow(SteeringInFirst, _then_the_rest),
            common(inp.Retract, _retract_first),
        ),
    ),
    Benign(
        "boundary-before-compaction",
        "D10",
        "the collector is asked before the compactor is",
        (
            flow(s.Top, _boundary_first),
            new_flow(AskFirst, _ask_first),
            wait(s.Collecting, inp.BoundaryReplied, _compaction_next),
            flow(s.AfterInput, _compaction_next),
            flow(s.ConsiderBoundary, _boundary_done),
        ),
    ),
    Benign(
        "steers-in-one-group",
        "D10",
        "delivered and staged steers enter together",
        (attr(Steers, "next_group", _one_group),),
    ),
    Benign(
        "delivered-stays-held",
        "D15",
        "a delivered steer is not staged again when its attempt fails",
        (attr(Steers, "restage", _held),),
    ),
    Benign("capped-hint", "D28", "the reset reports the wait that is kept", (flow(s.Reset, _capped),)),
    Benign(
        "late-compaction-left",
        "R7",
        "what a cooperative compactor returns after the cancel is not committed",
        (wait(s.Ebbing, inp.CompactorReturned, _compaction_left),),
    ),
    Benign(
        "compaction-by-hand-raced",
        "RHO-CAN-5",
        "a cancel drops the compactor of a compaction by hand",
        (attr(rho_core.session, "_by_hand", _hand_dropped),),
    ),
    Benign(
        "recorder-unawaited",
        "RHO-RET-11",
        "the run does not wait for its recorder",
        (flow(s.WatchRecorder, _unawaited),),
    ),
    Benign(
        "applied-on-its-way",
        "R12",
        "a retract is too late once SteeringApplied is being sent",
        (common(inp.Retract, _too_late),),
    ),
    Benign(
        "steer-accepted-while-ending",
        "R15",
        "a steer after the cancel is acknowledged, and never applied",
        (common(inp.Steer, _accepted_while_ending),),
    ),
)
