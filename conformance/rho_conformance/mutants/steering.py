"""Cores that mistreat a steer: lost, doubled, uncancellable, too early, too late (RHO-STEER-*)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.session
import rho_core.steering
from rho_conformance.mutants.base import Mutant, attr, row
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.messages import User
from rho_core.run import state as s
from rho_core.run import table, top
from rho_core.run.outbox import Fx, Next, change, emit
from rho_core.steering import NO_STEERS, Steers
from rho_core.step import Step

# --- acceptance ---------------------------------------------------------------------------------------------


def _stale_handle(original: Any) -> Any:
    def without_run(session: Any, i: Any) -> Any:
        return Step(session, (out.Reply(i.command_id),)) if type(i) is inp.Steer else original(session, i)

    return without_run


def _settling_accepts(original: Any) -> Any:
    def steer(run: s.Run, i: inp.Steer, fx: Fx) -> Next:
        if not isinstance(run.phase, s.Settling):
            return original(run, i, fx)  # type: ignore[no-any-return]
        fx.append(out.Reply(i.command_id, i.steering_id))
        return run, None

    return steer


def _writes_at_once(original: Any) -> Any:
    def steer(run: s.Run, i: inp.Steer, fx: Fx) -> Next:
        after, then = original(run, i, fx)
        ledger = after.core.ledger
        if isinstance(run.phase, s.Streaming):
            ledger = type(ledger)((*ledger.history, User(i.content)), ledger.revision, ledger.compaction)
        return change(after, ledger=ledger), then

    return steer


# --- the boundary -------------------------------------------------------------------------------------------


def _final_answer(original: Any) -> Any:
    def end_turn(run: s.Run, k: s.EndTurn, fx: Fx) -> Next:
        after, then = original(change(run, steers=NO_STEERS), k, fx)
        return change(after, steers=run.core.steers), then

    return end_turn


def _newest_first(original: Any) -> Any:
    def accept(self: Steers, steering_id: str, content: Any) -> Steers:
        after: Steers = original(self, steering_id, content)
        return Steers((after.waiting[-1], *after.waiting[:-1]), after.applied)

    return accept


def _commits_staged(original: Any) -> Any:
    def commit(run: s.Run, k: s.Commit, fx: Fx) -> Next:
        if not isinstance(k.plan.ending, s.Complete):
            steers = tuple(User(x.content) for x in run.core.steers.waiting)
            k = s.Commit(replace(k.plan, results=(*k.plan.results, *steers)))  # type: ignore[arg-type]
        return original(run, k, fx)  # type: ignore[no-any-return]

    return commit


def _delivered_silently(original: Any) -> Any:
    def consider_steering(run: s.Run, k: s.ConsiderSteering, fx: Fx) -> Next:
        ids = tuple(x.id for x in run.core.steers.waiting if x.stage == "delivered")
        steers, messages = run.core.steers.apply(ids)
        run = change(run, steers=steers, suffix=run.core.suffix + messages)
        return original(run, k, fx)  # type: ignore[no-any-return]

    return consider_steering


def _delivered_at_the_boundary(original: Any) -> Any:
    def consider_steering(run: s.Run, k: s.ConsiderSteering, fx: Fx) -> Next:
        ids = run.core.steers.next_group()
        if not ids or run.core.policy.steerable:
            return original(run, k, fx)  # type: ignore[no-any-return]
        sends: tuple[ev.Event, ...] = (*(ev.SteeringDelivered(x) for x in ids), ev.SteeringApplied(ids))
        return emit(run, fx, sends, s.SteeringIn(ids))

    return consider_steering


# --- retraction ---------------------------------------------------------------------------------------------


def _too_late_in_a_batch(original: Any) -> Any:
    def retract(run: s.Run, i: inp.Retract, fx: Fx) -> Next:
        if isinstance(run.phase, s.Batch) and run.core.steers.find(i.steering_id) is not None:
            fx.append(out.Reply(i.command_id, "AlreadyApplied"))
            return run, None
        return original(run, i, fx)  # type: ignore[no-any-return]

    return retract


def _unknown_is_retracted(original: Any) -> Any:
    def retract(self: Steers, steering_id: str) -> Any:
        steers, answer = original(self, steering_id)
        return steers, "Retracted" if answer == "NotFound" else answer

    return retract


def _applied_is_retracted(original: Any) -> Any:
    def retract(self: Steers, steering_id: str) -> Any:
        return (self, "Retracted") if steering_id in self.applied else original(self, steering_id)

    return retract


def _claim_holds_nothing(original: Any) -> Any:
    def retract(self: Steers, steering_id: str) -> Any:
        staged = self.restage()
        return original(staged if self.find(steering_id) is not None else self, steering_id)

    return retract


# --- the steerable provider ---------------------------------------------------------------------------------


def _grants_everything(original: Any) -> Any:
    def steer_claimed(run: s.Run, i: inp.SteerClaimed, fx: Fx) -> Next:
        after, then = original(run, i, [])
        fx.append(out.ClaimAnswered(i.steering_id, True))
        return after, then

    return steer_claimed


def _delivers_unannounced(original: Any) -> Any:
    def steer_delivered(run: s.Run, i: inp.SteerDelivered, fx: Fx) -> Next:
        moved = run.core.steers.move(i.steering_id, "claimed", "delivered")
        return (run, None) if moved is None else (change(run, steers=moved), None)

    return steer_delivered


def _delivers_twice(original: Any) -> Any:
    def steer_delivered(run: s.Run, i: inp.SteerDelivered, fx: Fx) -> Next:
        known = run.core.steers.find(i.steering_id)
        if known is None or known.stage != "delivered":
            return original(run, i, fx)  # type: ignore[no-any-return]
        return emit(run, fx, (ev.SteeringDelivered(i.steering_id),), s.Watch())

    return steer_delivered


def _other_id(original: Any) -> Any:
    return lambda ids: original(tuple(f"{x}'" for x in ids))


STEER = (table.COMMON, inp.Steer)
RETRACT = (table.COMMON, inp.Retract)
BOUNDARY = (table.FLOW, s.ConsiderSteering)
DELIVERED = (table.WAIT, (s.Streaming, inp.SteerDelivered))

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "steer-accepted-by-a-finished-run",
        "RHO-STEER-1",
        "a steer through the handle of a run that is over is answered ok",
        (attr(rho_core.session, "_without_run", _stale_handle),),
    ),
    Mutant(
        "steer-lost-at-end-turn",
        "RHO-STEER-2",
        "a response without calls ends the run, although accepted steering is staged",
        (row(table.FLOW, s.EndTurn, _final_answer),),
    ),
    Mutant(
        "steer-lost-while-settling",
        "RHO-STEER-2",
        "a run that has committed and still sends its last event accepts a steer",
        (row(*STEER, _settling_accepts),),
    ),
    Mutant(
        "steers-applied-newest-first",
        "RHO-STEER-2",
        "steers enter the history in the reverse of the order of acceptance",
        (attr(rho_core.steering.Steers, "accept", _newest_first),),
    ),
    Mutant(
        "staged-steer-committed-at-the-end",
        "RHO-STEER-3",
        "the commit of a cancelled or failed run takes staged steering into the history",
        (row(table.FLOW, s.Commit, _commits_staged),),
    ),
    Mutant(
        "steer-written-into-the-history",
        "RHO-STEER-3",
        "a steer accepted while the model streams is written into the committed history at once",
        (row(*STEER, _writes_at_once),),
    ),
    Mutant(
        "steer-applied-under-another-id",
        "RHO-STEER-4",
        "SteeringApplied names ids that no steer was answered with",
        (attr(top, "SteeringApplied", _other_id),),
    ),
    Mutant(
        "batch-retracts-nothing",
        "RHO-STEER-5",
        "while tools run a staged steer cannot be taken back",
        (row(*RETRACT, _too_late_in_a_batch),),
    ),
    Mutant(
        "unknown-steer-retracted",
        "RHO-STEER-6",
        "the retract of an id that nobody knows answers Retracted",
        (attr(rho_core.steering.Steers, "retract", _unknown_is_retracted),),
    ),
    Mutant(
        "applied-steer-retracted",
        "RHO-STEER-6",
        "the retract of a steer that is in the history answers Retracted",
        (attr(rho_core.steering.Steers, "retract", _applied_is_retracted),),
    ),
    Mutant(
        "every-claim-granted",
        "RHO-STEER-7",
        "a provider is granted steers that were retracted or claimed before",
        (row(table.COMMON, inp.SteerClaimed, _grants_everything),),
    ),
    Mutant(
        "delivery-unannounced",
        "RHO-STEER-8",
        "the provider's acknowledgement is noted and not told to the reader",
        (row(*DELIVERED, _delivers_unannounced),),
    ),
    Mutant(
        "delivery-announced-twice",
        "RHO-STEER-8",
        "a second acknowledgement of one steer sends SteeringDelivered again",
        (row(*DELIVERED, _delivers_twice),),
    ),
    Mutant(
        "delivered-steer-applied-silently",
        "RHO-STEER-9",
        "a delivered steer enters the history without SteeringApplied",
        (row(*BOUNDARY, _delivered_silently),),
    ),
    Mutant(
        "delivered-without-a-port",
        "RHO-STEER-10",
        "SteeringDelivered is sent for a provider that takes no part in steering",
        (row(*BOUNDARY, _delivered_at_the_boundary),),
    ),
    Mutant(
        "claim-holds-nothing",
        "RHO-STEER-11",
        "a steer that the provider holds can still be taken back",
        (attr(rho_core.steering.Steers, "retract", _claim_holds_nothing),),
    ),
)
