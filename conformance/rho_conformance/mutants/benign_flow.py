"""Permitted variants of what happens on the way: proposals, boundaries, steering, jobs, one request too many."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rho_conformance.mutants.base import Benign
from rho_conformance.mutants.benign_kit import attr, common, entry, every_wait, flow, new_flow, wait
from rho_core import budget, calls, jobs
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.ledger import model_view
from rho_core.record import record
from rho_core.run import batch, detached, end, top, turn
from rho_core.run import state as s
from rho_core.run.outbox import change, emit, to
from rho_core.steering import Steer, Steers

# --- D3: proposals ----------------------------------------------------------------------------------------------------


def _async_first(_: Any) -> Any:
    def propose(run: s.Run, k: s.Propose, fx: Any) -> Any:
        phase = run.phase
        assert isinstance(phase, s.Proposing)
        ordered = sorted(phase.calls, key=lambda c: c.id not in phase.detaching)
        return emit(run, fx, tuple(ev.ToolProposed(c) for c in ordered), s.Dispatch())

    return propose


@record
class OpenProposed:
    """Every ToolProposed of a batch was delivered."""

    calls: tuple[Any, ...]


def _async_alone(_: Any) -> Any:
    def propose(run: s.Run, k: s.Propose, fx: Any) -> Any:
        phase = run.phase
        assert isinstance(phase, s.Proposing)
        detaching = tuple(ev.ToolProposed(c) for c in phase.calls if c.id in phase.detaching)
        return emit(run, fx, detaching, s.Dispatch())

    return propose


def _propose_batch(_: Any) -> Any:
    def open_batch(run: s.Run, k: s.OpenBatch, fx: Any) -> Any:
        then: Any = OpenProposed(k.calls)
        return emit(to(run, s.Proposing(k.calls, ())), fx, tuple(ev.ToolProposed(c) for c in k.calls), then)

    return open_batch


def _open_proposed(run: s.Run, k: OpenProposed, fx: Any) -> Any:
    return batch.open_batch(run, s.OpenBatch(k.calls), fx)


# --- D6: jobs ---------------------------------------------------------------------------------------------------------


def _panic_unheard(old: Any) -> Any:
    """A detached tool that dies is never heard of again; one that was still being opened fails."""

    def panicked(run: s.Run, i: inp.ToolPanicked, fx: Any) -> Any:
        opening = jobs.find(run.core.jobs, i.call_id, jobs.OPENING)
        return (run, None) if opening is None else old(run, i, fx)

    return panicked


# --- D10: the order of one boundary -------------------------------------------------------------------------------------


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


# --- steering ---------------------------------------------------------------------------------------------------------


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


# --- retries, questions -------------------------------------------------------------------------------------------------


def _capped(old: Any) -> Any:
    def reset(run: s.Run, k: s.Reset, fx: Any) -> Any:
        reason = k.reason
        if isinstance(reason, ev.RetryableFailure) and reason.retry_after_ms is not None:
            hint = min(reason.retry_after_ms, run.core.policy.retry_after_cap_ms)
            k = replace(k, reason=ev.RetryableFailure(reason.error_kind, hint))
        return old(run, k, fx)

    return reset


def _question_refused(old: Any) -> Any:
    def asked(run: s.Run, i: inp.ToolAsked, fx: Any) -> Any:
        if i.request.id in batch.batch_of(run).asks.used:
            fx.append(out.RefuseAsk(i.call_id, i.request.id))
            return run, None
        return old(run, i, fx)

    return asked


# --- one request too many -----------------------------------------------------------------------------------------------


def _one_more_step(first: bool) -> Any:
    """The cancel is noticed only when the next request is out. `first`: before the first step, or after it."""

    def wrap(old: Any) -> Any:
        def cancel(run: s.Run, fx: Any) -> Any:
            phase, core = run.phase, run.core
            between = not isinstance(phase, s.Collecting) or phase.boundary == "before_provider"
            room = run.free > 0 and core.reader == "open" and core.step < core.policy.max_steps
            external = core.policy.compaction is None or not core.policy.compaction.cooperative
            if (core.step == 0) is not first or not (between and room and external):
                return old(run, fx)
            end.stop_work(run, fx)
            request = model_view(top.candidate(core), jobs.open_ids(core.jobs))
            fx.append(out.Deliver(ev.StepStarted(core.step + 1, top.tokens(core, request))))
            begun = change(s.Run(s.Between(), run.free - 1, None, core), step=core.step + 1, preserve=0)
            return _asked_and_left(begun, s.Turn(request), fx)

        return cancel

    return wrap


def _asked_and_left(run: s.Run, of: s.Turn, fx: Any) -> Any:
    sent = s.Turn(of.request, budget.sent(of.budget), of.physical)
    fx.append(out.CallModel(run.core.step, sent.budget.requests, sent.request))
    fx.append(out.AbortModel(run.core.step, sent.budget.requests))
    turn.record_attempt(run, fx, "Cancelled", None, sent, turn.cap.NOTHING)
    return to(run, s.Between()), s.Conclude(s.CancelRun())


def _one_more_attempt(_: Any) -> Any:
    def cancel(run: s.Run, fx: Any) -> Any:
        assert isinstance(run.phase, s.BackingOff)
        end.stop_work(run, fx)
        return _asked_and_left(run, run.phase.turn, fx)

    return cancel


def _compaction_kept(old: Any) -> Any:
    """What a cooperative compactor returns after the cancel is committed, and the run is cancelled all the same."""

    def compactor_stopped(run: s.Run, i: inp.CompactorReturned, fx: Any) -> Any:
        if not i.messages:
            return old(run, i, fx)
        after, _ = top.compactor_returned(run, i, fx)
        plan = s.Conclude(s.CancelRun())
        if after.blocked is None:
            return after, plan
        waiting = s.Blocked(after.blocked.sends, False, plan)
        return s.Run(s.Cancelling(), after.free, waiting, after.core), None

    return compactor_stopped


# --- overlapping calls --------------------------------------------------------------------------------------------------


def _last_first(old: Any) -> Any:
    """Of several calls that may finish or start, the last one comes first."""

    def schedule(run: s.Run, k: s.Schedule, fx: Any) -> Any:
        slots = batch.batch_of(run).slots
        returned = [n for n, slot in enumerate(slots) if slot.stage == "returned"]
        if len(returned) > 1 and not {"preparing", "panicked"} & {slot.stage for slot in slots}:
            return batch._finish(run, fx, returned[-1], slots[returned[-1]])
        return old(run, k, fx)

    return schedule


def _run_at_once(old: Any) -> Any:
    """A call runs as soon as its ToolStarted is delivered, before the next one is announced."""

    def call_started(run: s.Run, k: s.CallStarted, fx: Any) -> Any:
        after, then = old(run, k, fx)
        slots = batch.batch_of(after).slots
        busy = sum(slot.stage == "running" for slot in slots)
        if slots[k.index].stage != "ready" or busy >= after.core.policy.max_parallel_tools:
            return after, then
        if any(slot.stage == "ready" for slot in slots[: k.index]):
            return after, then
        fx.append(out.Execute(slots[k.index].call.id))
        phase = batch.batch_of(after)
        running = calls.put(slots, k.index, slots[k.index].at("running"))
        return to(after, s.Batch(running, phase.asks)), then

    return call_started


BENIGN: tuple[Benign, ...] = (
    Benign("async-proposed-first", "D3", "async calls are proposed before sync ones", (flow(s.Propose, _async_first),)),
    Benign(
        "sync-proposed-when-scheduled",
        "D3",
        "sync calls are proposed when their batch begins, or never",
        (flow(s.Propose, _async_alone), flow(s.OpenBatch, _propose_batch), new_flow(OpenProposed, _open_proposed)),
    ),
    Benign(
        "panicked-job-hangs",
        "D6",
        "a detached tool that panics is waited for until a cancel",
        every_wait(inp.ToolPanicked, detached.panicked, _panic_unheard),
    ),
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
    Benign(
        "question-refused",
        "D25",
        "a question of a used id is refused alone",
        (wait(s.Batch, inp.ToolAsked, _question_refused),),
    ),
    Benign("capped-hint", "D28", "the reset reports the wait that is kept", (flow(s.Reset, _capped),)),
    Benign(
        "request-before-the-cancel",
        "D31",
        "a cancel before the first step is noticed when a request is out",
        tuple(entry(end.CANCEL, phase, _one_more_step(True)) for phase in (s.Collecting, s.Compacting)),
    ),
    Benign(
        "step-before-the-cancel",
        "R10",
        "a cancel between steps is noticed when the next request is out",
        tuple(entry(end.CANCEL, phase, _one_more_step(False)) for phase in (s.Collecting, s.Compacting)),
    ),
    Benign(
        "attempt-before-the-cancel",
        "R8",
        "a cancel in a delay is noticed when the next request is out",
        (entry(end.CANCEL, s.BackingOff, _one_more_attempt),),
    ),
    Benign(
        "late-compaction-kept",
        "R7",
        "a cooperative compactor's result is committed although the run is cancelled",
        (wait(s.Ebbing, inp.CompactorReturned, _compaction_kept),),
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
    Benign(
        "last-finished-first",
        "R19",
        "calls that wait to be finished are, from the last on",
        (flow(s.Schedule, _last_first),),
    ),
    Benign("run-at-once", "R19", "a call runs before the next one is announced", (flow(s.CallStarted, _run_at_once),)),
)
