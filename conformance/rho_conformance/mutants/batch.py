"""Wrong cores around a synchronous tool batch: RHO-ORD-4, 5, 6, 8, 9, 10."""

from __future__ import annotations

from typing import Any

from rho_core import calls, jobs
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import ToolErrorKind
from rho_core.run import batch
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, emit, to
from rho_core.run.table import FLOW, WAIT

from .base import Mutant, attr, row


def _propose_after_preparing(propose: Any) -> Any:
    def handler(run: s.Run, k: s.Propose, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Proposing)
        if not run.phase.detaching:
            return run, s.Dispatch()
        kept: Next = propose(run, k, fx)
        return kept

    return handler


def _open_and_propose(open_batch: Any) -> Any:
    def handler(run: s.Run, k: s.OpenBatch, fx: Fx) -> Next:
        run, then = open_batch(run, k, fx)
        return emit(run, fx, tuple(ev.ToolProposed(c) for c in k.calls), then)

    return handler


def _unannounced_refusal(_: Any) -> Any:
    def refused(slot: calls.Slot, message: str) -> calls.Slot:
        return slot.ending("returned", ev.Failure(ToolErrorKind.EXECUTION, message))

    return refused


def _owes_even_when_done(_: Any) -> Any:
    return lambda slot: slot.stage in calls.STARTED


def _unavailable_is_started(opened: Any) -> Any:
    def wrapped(call: Any, available: bool) -> calls.Slot:
        slot: calls.Slot = opened(call, available)
        return slot if available else calls.unavailable(slot).at("refused")

    return wrapped


def _last_call_first(_: Any) -> Any:
    def handler(run: s.Run, k: s.Propose, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Proposing)
        return emit(run, fx, tuple(ev.ToolProposed(c) for c in reversed(run.phase.calls)), s.Dispatch())

    return handler


def _under_the_first_call(progress: Any) -> Any:
    def handler(run: s.Run, i: inp.ToolProgress, fx: Fx) -> Next:
        slots = batch.batch_of(run).slots
        if calls.find(slots, i.call_id, ("running",)) < 0:
            kept: Next = progress(run, i, fx)
            return kept
        return emit(run, fx, (ev.ToolUpdated(slots[0].call.id, i.progress),), s.Schedule())

    return handler


def _in_order_of_completion(call_finished: Any) -> Any:
    def handler(run: s.Run, k: s.CallFinished, fx: Fx) -> Next:
        run, then = call_finished(run, k, fx)
        phase = batch.batch_of(run)
        slots = (*phase.slots[: k.index], *phase.slots[k.index + 1 :], phase.slots[k.index])
        return to(run, s.Batch(slots, phase.asks)), then

    return handler


def _in_call_order(drain: Any) -> Any:
    def wrapped(pool: jobs.Pool) -> Any:
        return drain(tuple(sorted(pool, key=lambda j: j.serial)))

    return wrapped


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "proposed-after-preparation",
        "RHO-ORD-4",
        "prepares the calls of a batch and proposes them only then",
        (row(FLOW, s.Propose, _propose_after_preparing), row(FLOW, s.OpenBatch, _open_and_propose)),
    ),
    Mutant(
        "failed-preparation-not-started",
        "RHO-ORD-5",
        "finishes a call whose preparation failed without ever having started it",
        (attr(calls, "refused", _unannounced_refusal),),
    ),
    Mutant(
        "finished-again-on-cancel",
        "RHO-ORD-5",
        "sends ToolFinished for calls that had theirs when the batch is cancelled",
        (attr(calls, "announced", _owes_even_when_done),),
    ),
    Mutant(
        "unavailable-tool-started",
        "RHO-ORD-6",
        "announces ToolStarted for a tool that nobody registered",
        (attr(calls, "opened", _unavailable_is_started),),
    ),
    Mutant(
        "proposals-from-a-stack",
        "RHO-ORD-8",
        "proposes the calls of a response last one first",
        (row(FLOW, s.Propose, _last_call_first),),
    ),
    Mutant(
        "progress-under-the-first-call",
        "RHO-ORD-9",
        "sends the progress of every call of a batch under the id of its first call",
        (row(WAIT, (s.Batch, inp.ToolProgress), _under_the_first_call),),
    ),
    Mutant(
        "results-in-order-of-completion",
        "RHO-ORD-10",
        "writes the results of a batch into the history in the order in which the calls finished",
        (row(FLOW, s.CallFinished, _in_order_of_completion),),
    ),
    Mutant(
        "job-results-in-order-of-call",
        "RHO-ORD-10",
        "writes the results of async calls into the history in call order, whichever finished first",
        (attr(jobs, "drain", _in_call_order),),
    ),
)
