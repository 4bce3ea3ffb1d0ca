"""Permitted variants of how calls and jobs are run: D3, D6, D25 and overlapping calls."""

from __future__ import annotations

from typing import Any

from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.mutants.base import Benign
from rho_conformance.mutants.benign_kit import attr, every_wait, flow, new_flow, wait
from rho_core import calls, jobs
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.record import record
from rho_core.run import batch, detached
from rho_core.run import state as s
from rho_core.run.outbox import emit, to

# --- D3: proposals --------------------------------------------------------------------------------------------------


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


# --- D6, D25 --------------------------------------------------------------------------------------------------------


def _panic_unheard(old: Any) -> Any:
    """A detached tool that dies is never heard of again; one that was still being opened fails."""

    def panicked(run: s.Run, i: inp.ToolPanicked, fx: Any) -> Any:
        opening = jobs.find(run.core.jobs, i.call_id, jobs.OPENING)
        return (run, None) if opening is None else old(run, i, fx)

    return panicked


def _dead_is_silent(old: Any) -> Any:
    """What would come from a tool that has panicked comes from nobody."""

    def give(self: SessionPort, upcall: Any, given: Any) -> None:
        dead: list[Any] = self.__dict__.setdefault("dead", [])
        if upcall in dead:
            return
        if any(kind == "panic" for kind, _ in given):
            dead.append(upcall)
        old(self, upcall, given)

    return give


def _question_refused(old: Any) -> Any:
    def asked(run: s.Run, i: inp.ToolAsked, fx: Any) -> Any:
        if i.request.id in batch.batch_of(run).asks.used:
            fx.append(out.RefuseAsk(i.call_id, i.request.id))
            return run, None
        return old(run, i, fx)

    return asked


# --- overlapping calls ----------------------------------------------------------------------------------------------


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
        (
            *every_wait(inp.ToolPanicked, detached.panicked, _panic_unheard),
            attr(SessionPort, "give", _dead_is_silent),
        ),
    ),
    Benign(
        "question-refused",
        "D25",
        "a question of a used id is refused alone",
        (wait(s.Batch, inp.ToolAsked, _question_refused),),
    ),
    Benign(
        "last-finished-first",
        "R19",
        "calls that wait to be finished are, from the last on",
        (flow(s.Schedule, _last_first),),
    ),
    Benign("run-at-once", "R19", "a call runs before the next one is announced", (flow(s.CallStarted, _run_at_once),)),
)
