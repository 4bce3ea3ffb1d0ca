"""Reported failures as patches of the core: cancelled, failed, dropped, compacted, stored (groups A–C, I–K)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rho_conformance.mutants.base import Patch, attr, entry, row
from rho_core import calls
from rho_core import capture as cap
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import CANCELLED, ErrorName
from rho_core.messages import Assistant, ToolResult
from rho_core.run import end, turn
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, change, emit, to
from rho_core.run.table import COMMON, FLOW, WAIT

# --- what the history says of calls -------------------------------------------------------------------------


def _only_completed_answered(conclude: Any) -> Any:
    def wrapped(run: s.Run, ending: s.Ending) -> s.Conclude:
        plan: s.Conclude = conclude(run, ending)
        assert isinstance(run.phase, s.Batch)
        results = tuple(calls.result(slot) for slot in run.phase.slots if slot.completion is not None)
        return s.Conclude(plan.ending, results, plan.tail, plan.aborted)

    return wrapped


def _completed_forgotten(conclude: Any) -> Any:
    def wrapped(run: s.Run, ending: s.Ending) -> s.Conclude:
        plan: s.Conclude = conclude(run, ending)
        lost = tuple(ToolResult(r.id, False, "no result provided") for r in plan.results)
        return s.Conclude(plan.ending, lost, plan.tail, plan.aborted)

    return wrapped


def _questions_unanswered(conclude: Any) -> Any:
    def wrapped(run: s.Run, ending: s.Ending) -> s.Conclude:
        plan: s.Conclude = conclude(run, ending)
        assert isinstance(run.phase, s.Batch)
        asking = {a.call_id for a in run.phase.asks.open}
        asking |= {x.call.id for x in run.phase.slots if x.stage == "authorizing"}
        return s.Conclude(plan.ending, tuple(r for r in plan.results if r.id not in asking), plan.tail)

    return wrapped


def _unscheduled_unanswered(cancel: Any) -> Any:
    def handler(run: s.Run, fx: Fx) -> Next:
        run, then = cancel(run, fx)
        return run, s.Conclude(then.ending)

    return handler


def _unprepared_unanswered(cancel: Any) -> Any:
    def handler(run: s.Run, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Batch)
        idle = any(x.stage in ("preparing", "prepared") for x in run.phase.slots)
        run, then = cancel(run, fx)
        return run, s.Conclude(then.ending) if idle else then

    return handler


def _streamed_call_kept(cancel: Any) -> Any:
    def handler(run: s.Run, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Streaming)
        blocks = cap.seal(run.phase.capture).rest.blocks.items()
        run, _ = cancel(run, fx)
        if blocks:
            run = change(run, suffix=(*run.core.suffix, Assistant(blocks)))
        return run, s.Conclude(s.CancelRun())

    return handler


def _reasoning_is_text(_: Any) -> Any:
    def fold(c: cap.Capture, i: inp.RawReasoning, core: s.Core) -> turn.Folded:
        return cap.text_delta(c, i.text), (ev.ReasoningDelta(i.text, i.attempt),)

    return fold


# --- cancels that are not heard -----------------------------------------------------------------------------


def _deaf(_: Any) -> Any:
    def handler(run: s.Run, fx: Fx) -> Next:
        return run, None

    return handler


def _deaf_to_questions(cancel: Any) -> Any:
    def handler(run: s.Run, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Batch)
        waits = run.phase.asks.open or any(x.stage == "authorizing" for x in run.phase.slots)
        kept: Next = (run, None) if waits else cancel(run, fx)
        return kept

    return handler


def _stream_left_open(exit_run: Any) -> Any:
    def handler(run: s.Run, k: s.Exit, fx: Fx) -> Next:
        if isinstance(k.end, out.RunFailed) and k.end.error == CANCELLED:
            return run, None
        kept: Next = exit_run(run, k, fx)
        return kept

    return handler


def _tells_nobody(cancel: Any) -> Any:
    def handler(run: s.Run, i: inp.Cancel, fx: Fx) -> Next:
        own: Fx = []
        run, then = cancel(run, i, own)
        fx.extend(e for e in own if not isinstance(e, (out.SignalCancel, out.AbortTool, out.AbortModel)))
        return run, then

    return handler


def _provider_wins(stopped: Any) -> Any:
    def handler(run: s.Run, i: inp.ModelReturned, fx: Fx) -> Next:
        assert isinstance(run.phase, s.Draining)
        phase = run.phase
        return to(run, s.Responding(phase.turn, phase.attempt, phase.capture)), s.Responded(i.content, None)

    return handler


def _nothing_kept(commit: Any) -> Any:
    def handler(run: s.Run, k: s.Commit, fx: Fx) -> Next:
        if isinstance(k.plan.ending, s.CancelRun):
            run, k = change(run, suffix=()), s.Commit(s.Conclude(k.plan.ending))
        kept: Next = commit(run, k, fx)
        return kept

    return handler


# --- what is told of the end --------------------------------------------------------------------------------


def _failed_and_finished(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        if isinstance(how, s.Fail):
            done = ev.RunOutcome(core.answer, core.usage, "EndTurn", core.ledger.revision)
            events = (*events, ev.Completed(done))
        return outcome, label, events

    return wrapped


def _cancelled_and_finished(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        if isinstance(how, s.CancelRun):
            done = ev.RunOutcome(core.answer, core.usage, "EndTurn", core.ledger.revision)
            events = (ev.Completed(done), *events)
        return outcome, label, events

    return wrapped


def _cancelled_is_success(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        return ending(core, s.Complete("EndTurn") if isinstance(how, s.CancelRun) else how)

    return wrapped


def _refused_commit_is_silent(abandon: Any) -> Any:
    def handler(run: s.Run, k: s.Abandon, fx: Fx) -> Next:
        if k.error is not None and k.error.name is ErrorName.PERSISTENCE:
            return run, None
        kept: Next = abandon(run, k, fx)
        return kept

    return handler


class Told(s.Complete):
    """A success whose Completed has been sent."""


def _told_before_the_commit(commit: Any) -> Any:
    def handler(run: s.Run, k: s.Commit, fx: Fx) -> Next:
        if type(k.plan.ending) is not s.Complete:
            kept: Next = commit(run, k, fx)
            return kept
        then = s.Commit(replace(k.plan, ending=Told(k.plan.ending.stop)))
        done = ev.RunOutcome(run.core.answer, run.core.usage, k.plan.ending.stop, run.core.ledger.revision + 1)
        return emit(run, fx, (ev.Completed(done),), then)

    return handler


def _told_once(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        return outcome, label, () if type(how) is Told else events

    return wrapped


DEAF_TOOLS = entry(end.CANCEL, s.Batch, _deaf)

BUGS: dict[str, tuple[Patch, ...]] = {
    "interrupted calls get no result": (attr(end, "_conclude_batch", _only_completed_answered),),
    "completed results are forgotten": (attr(end, "_conclude_batch", _completed_forgotten),),
    "a call that waits for the host gets no result": (attr(end, "_conclude_batch", _questions_unanswered),),
    "a call that was never scheduled gets no result": (
        entry(end.CANCEL, s.Proposing, _unscheduled_unanswered),
        entry(end.CANCEL, s.Awaiting, _unscheduled_unanswered),
        entry(end.CANCEL, s.Batch, _unprepared_unanswered),
    ),
    "a streamed call enters the history": (entry(end.CANCEL, s.Streaming, _streamed_call_kept),),
    "reasoning is kept as text": (entry(turn.FOLD, inp.RawReasoning, _reasoning_is_text),),
    "a cancelled run never closes its stream": (row(FLOW, s.Exit, _stream_left_open),),
    "the back-off does not hear a cancel": (entry(end.CANCEL, s.BackingOff, _deaf),),
    "nobody is told of a cancel": (row(COMMON, inp.Cancel, _tells_nobody),),
    "a running tool absorbs the cancel": (DEAF_TOOLS,),
    "an open question absorbs the cancel": (entry(end.CANCEL, s.Batch, _deaf_to_questions),),
    "a cooperative provider absorbs the cancel": (row(WAIT, (s.Draining, inp.ModelReturned), _provider_wins),),
    "the stream does not hear a cancel": (entry(end.CANCEL, s.Streaming, _deaf),),
    "a cancelled turn is thrown away": (row(FLOW, s.Commit, _nothing_kept),),
    "a failure is told, and then a success": (attr(end, "_ending", _failed_and_finished),),
    "a cancel is told, and a success": (attr(end, "_ending", _cancelled_and_finished),),
    "a cancel is told as a success": (attr(end, "_ending", _cancelled_is_success),),
    "a refused commit ends nothing": (row(FLOW, s.Abandon, _refused_commit_is_silent),),
    "Completed comes before the commit": (
        row(FLOW, s.Commit, _told_before_the_commit),
        attr(end, "_ending", _told_once),
    ),
}
"""What is wrong -> the patches that make the core do it."""
