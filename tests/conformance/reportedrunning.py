"""Reported failures as patches of the core: retries, batches, steering, questions, queues (groups D–H, L, N)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rho_conformance.mutants import compaction, stream
from rho_conformance.mutants.base import Patch, attr, row
from rho_core import budget, calls
from rho_core import capture as cap
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.asks import Asks, Choice, HostInputRequest, Question
from rho_core.errors import Error, ErrorName
from rho_core.messages import Assistant, Text, ToolResult
from rho_core.run import batch, end, top, turn
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, change, emit, to
from rho_core.run.table import COMMON, FLOW, WAIT
from rho_core.steering import NO_STEERS, Steer, Steers

FAILED = (s.Streaming, inp.ModelFailed)
RETURNED = (s.Streaming, inp.ModelReturned)


def known(family: Any, name: str) -> tuple[Patch, ...]:
    """The patches of a mutant that the suite already has."""
    (found,) = (m for m in family.MUTANTS if m.name == name)
    patches: tuple[Patch, ...] = found.patches
    return patches


# --- retries ------------------------------------------------------------------------------------------------


def _without_reset(_: Any) -> Any:
    def handler(run: s.Run, k: s.Reset, fx: Fx) -> Next:
        return run, s.Delay(k.turn, k.delay_ms)

    return handler


def _no_last_attempt(after_failure: Any) -> Any:
    def wrapped(spent: Any, policy: Any, retryable: bool, hint: int | None) -> Any:
        return after_failure(spent, replace(policy, request_budget=1_000), retryable, hint)

    return wrapped


def _no_cap(delay: Any) -> Any:
    return lambda failed, hint, base, cap_ms: delay(failed, hint, base, 10**12)


def _half_the_first(delay: Any) -> Any:
    return lambda failed, hint, base, cap_ms: delay(failed, hint, base // 2 if failed == 1 else base, cap_ms)


def _budgets_apart(_: Any) -> Any:
    def wrapped(spent: budget.Budget, policy: Any) -> Any:
        return budget.Budget(spent.requests, spent.malformed + 1, spent.failed), spent.malformed < 3

    return wrapped


def _own_classes(failed: Any) -> Any:
    def handler(run: s.Run, i: inp.ModelFailed, fx: Fx) -> Next:
        if i.error.error_kind not in ("Timeout", "RateLimit", "Unavailable"):
            i = replace(i, error=replace(i.error, retryable=False))
        kept: Next = failed(run, i, fx)
        return kept

    return handler


def _empty_is_well_formed(malformed: Any) -> Any:
    return lambda content, open_ids: malformed(content, open_ids) if content else None


def _what_was_streamed(returned: Any) -> Any:
    def handler(run: s.Run, i: inp.ModelReturned, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Streaming)
        if not i.content:
            i = replace(i, content=cap.seal(run.phase.capture).rest.blocks.items())
        kept: Next = returned(run, i, fx)
        return kept

    return handler


def _breaking_off_returns(failed: Any) -> Any:
    def handler(run: s.Run, i: inp.ModelFailed, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Streaming)
        blocks = cap.seal(run.phase.capture).rest.blocks.items()
        if not blocks:
            kept: Next = failed(run, i, fx)
            return kept
        return turn.model_returned(run, inp.ModelReturned(i.step, i.attempt, blocks), fx)

    return handler


def _abandoned_is_kept(record_next: Any) -> Any:
    def handler(run: s.Run, k: s.Record, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Recording)
        blocks = cap.seal(run.phase.capture).rest.blocks.items()
        run, then = record_next(run, k, fx)
        if blocks and isinstance(then, s.Reset):
            run = change(run, suffix=(*run.core.suffix, Assistant(blocks)))
        return run, then

    return handler


QUESTION = HostInputRequest("retry", "Try again?", (Question("q", "Go on?", (Choice("yes"),)),))


def _asks_whether_to_retry(record_next: Any) -> Any:
    def handler(run: s.Run, k: s.Record, fx: Fx) -> Next:
        run, then = record_next(run, k, fx)
        if not isinstance(then, s.Conclude):
            return run, then
        return emit(to(run, s.Between()), fx, (ev.ToolHostInputRequested("retry", QUESTION),), then)

    return handler


def _only_completed_counts(close_attempt: Any) -> Any:
    def wrapped(run: s.Run, phase: Any, outcome: Any, kind: Any = None) -> Any:
        turn_after, records = close_attempt(run, phase, outcome, kind)
        return turn_after, records if outcome == "Completed" else ()

    return wrapped


# --- tools and requests -------------------------------------------------------------------------------------


def _siblings_cancelled(returned: Any) -> Any:
    def handler(run: s.Run, i: inp.ToolReturned, fx: Fx) -> Next:
        run, then = returned(run, i, fx)
        slots = batch.batch_of(run).slots
        if not isinstance(i.completion, ev.Failure):
            return run, then
        for n, slot in enumerate(slots):
            if slot.stage in ("ready", "running"):
                fx.append(out.AbortTool(slot.call.id))
                slots = calls.put(slots, n, slot.ending("returned", calls.INTERRUPTED_COMPLETION))
        return to(run, s.Batch(slots, batch.batch_of(run).asks)), then

    return handler


def _unknown_is_fatal(open_batch: Any) -> Any:
    def handler(run: s.Run, k: s.OpenBatch, fx: Fx) -> Next:
        registered = {t.name for t in run.core.policy.tools}
        if all(c.name in registered for c in k.calls):
            kept: Next = open_batch(run, k, fx)
            return kept
        return run, s.Conclude(s.Fail(Error(ErrorName.TOOL, "unknown tool")))

    return handler


def _results_sent_again(step_begun: Any) -> Any:
    def handler(run: s.Run, k: s.StepBegun, fx: Fx) -> Next:
        again = tuple(m for m in top.candidate(run.core) if isinstance(m, ToolResult))[:1]
        kept: Next = step_begun(run, s.StepBegun((*k.request, *again)), fx)
        return kept

    return handler


def _work_lost_at_the_limit(limit: Any) -> Any:
    def handler(run: s.Run, k: s.Limit, fx: Fx) -> Next:
        kept: Next = limit(change(run, suffix=()), k, fx)
        return kept

    return handler


# --- steering -----------------------------------------------------------------------------------------------


def _applied_and_lost(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        lost = core.steers.unapplied()
        if lost and not isinstance(how, s.Complete):
            events = (ev.SteeringApplied(lost), *events)
        return outcome, label, events

    return wrapped


def _final_answer(end_turn: Any) -> Any:
    def handler(run: s.Run, k: s.EndTurn, fx: Fx) -> Next:
        kept: Next = end_turn(change(run, steers=NO_STEERS), k, fx)
        return kept

    return handler


def _delivered_silently(delivered: Any) -> Any:
    def handler(run: s.Run, i: inp.SteerDelivered, fx: Fx) -> Next:
        run, then = delivered(run, i, [])
        return run, then

    return handler


def _queued_again(returned: Any) -> Any:
    def handler(run: s.Run, i: inp.CompactorReturned, fx: Fx) -> Next:
        again = tuple(Steer(x, (Text("left"),)) for x in run.core.steers.applied)
        run = change(run, steers=Steers((*run.core.steers.waiting, *again), ()))
        kept: Next = returned(run, i, fx)
        return kept

    return handler


def _steer_is_everything(returned: Any) -> Any:
    def handler(run: s.Run, i: inp.CompactorReturned, fx: Fx) -> Next:
        run, then = returned(run, i, fx)
        if run.core.steers.waiting:
            run = change(run, ledger=replace(run.core.ledger, history=()))
        return run, then

    return handler


# --- questions ----------------------------------------------------------------------------------------------


def _one_id_for_all(_: Any) -> Any:
    def find(self: Asks, request_id: str) -> Any:
        return self.open[0] if self.open else None

    return find


def _ids_never_used(asked: Any) -> Any:
    def handler(run: s.Run, i: inp.ToolAsked, fx: Fx) -> Next:
        phase = batch.batch_of(run)
        kept: Next = asked(to(run, s.Batch(phase.slots, Asks(phase.asks.open, ()))), i, fx)
        return kept

    return handler


def _never_closed(_: Any) -> Any:
    return lambda self, request_id: self


def _asked_again(respond: Any) -> Any:
    def handler(run: s.Run, i: inp.Respond, fx: Fx) -> Next:
        own: Fx = []
        after, then = respond(run, i, own)
        fx.extend(e for e in own if not isinstance(e, out.DeliverAnswer))
        if len(own) == len([e for e in own if not isinstance(e, out.DeliverAnswer)]):
            return after, then
        found = batch.batch_of(run).asks.find(i.request_id)
        assert found is not None
        event = ev.ToolHostInputRequested(found.call_id, found.request)
        return emit(run, fx, (event,), s.Schedule())

    return handler


BUGS: dict[str, tuple[Patch, ...]] = {
    "a retry is silent": (row(FLOW, s.Reset, _without_reset),),
    "there is no last attempt": (attr(budget, "after_failure", _no_last_attempt),),
    "a hint has no cap": (attr(budget, "delay_ms", _no_cap),),
    "the first delay is halved": (attr(budget, "delay_ms", _half_the_first),),
    "malformed responses have a budget of their own": (attr(budget, "after_malformed", _budgets_apart),),
    "the runtime classifies errors itself": (row(WAIT, FAILED, _own_classes),),
    "an empty response is an answer": (attr(turn, "malformed", _empty_is_well_formed),),
    "a stream that breaks off is an answer": (
        row(WAIT, RETURNED, _what_was_streamed),
        row(WAIT, FAILED, _breaking_off_returns),
    ),
    "an abandoned attempt enters the history": (row(FLOW, s.Record, _abandoned_is_kept),),
    "the host is asked whether to retry": (row(FLOW, s.Record, _asks_whether_to_retry),),
    "only completed attempts are recorded": (
        attr(turn, "close_attempt", _only_completed_counts),
        attr(end, "close_attempt", _only_completed_counts),
    ),
    "a failing tool cancels its siblings": (row(WAIT, (s.Batch, inp.ToolReturned), _siblings_cancelled),),
    "an unknown tool ends the run": (row(FLOW, s.OpenBatch, _unknown_is_fatal),),
    "results are sent again": (row(FLOW, s.StepBegun, _results_sent_again),),
    "the step limit throws the work away": (row(FLOW, s.Limit, _work_lost_at_the_limit),),
    "a steer is told as applied and lost": (attr(end, "_ending", _applied_and_lost),),
    "a steer is lost at the end of the turn": (row(FLOW, s.EndTurn, _final_answer),),
    "a delivery is not told": (row(WAIT, (s.Streaming, inp.SteerDelivered), _delivered_silently),),
    "a compaction queues steers again": (row(WAIT, (s.Compacting, inp.CompactorReturned), _queued_again),),
    "a steer replaces the summary": (row(WAIT, (s.Compacting, inp.CompactorReturned), _steer_is_everything),),
    "all questions share one id": (attr(Asks, "find", _one_id_for_all),),
    "a question id may be used again": (row(WAIT, (s.Batch, inp.ToolAsked), _ids_never_used),),
    "an answered question stays open": (attr(Asks, "close", _never_closed),),
    "an answered question is asked again": (row(COMMON, inp.Respond, _asked_again),),
    "waiting for the outcome reads nothing": known(stream, "outcome-does-not-drain"),
    "the queue has no bound": known(stream, "unbounded-channel"),
    "compaction triggers itself": known(compaction, "compacts-until-small"),
    "compaction does not wait for jobs": known(compaction, "compacts-over-pending-jobs"),
}
"""What is wrong -> the patches that make the core do it."""
