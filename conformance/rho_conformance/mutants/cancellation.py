"""Wrong about cancellation: how it is heard, what it ends, what its commit holds (RHO-CAN-*)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.capture
import rho_core.run.end
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.mutants import failure
from rho_conformance.mutants.base import Mutant, attr, entry, row
from rho_core import calls
from rho_core import capture as cap
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.messages import AbortedAssistant, Text
from rho_core.run import end, table, turn
from rho_core.run import state as s
from rho_core.run.outbox import change, to

# --- hearing the cancel --------------------------------------------------------------------------------------------


def _unheard(_: Any) -> Any:
    """The cancel is noted on the token, and whoever waits goes on waiting."""
    return lambda run, fx: (run, None)


def _again(_: Any) -> Any:
    def cancel_settling(run: s.Run, fx: Any) -> Any:
        if isinstance(run.phase, s.Settling) and run.phase.cancelled:
            return to(run, s.Between()), s.Conclude(s.CancelRun())
        return run, None

    return cancel_settling


def _unsignalled(old: Any) -> Any:
    """The run is cancelled, and nobody who holds the token is told."""

    def cancel(run: s.Run, i: inp.Cancel, fx: Any) -> Any:
        after, then = old(run, i, fx)
        fx[:] = [e for e in fx if not isinstance(e, out.SignalCancel)]
        return after, then

    return cancel


def _host_alone(old: Any) -> Any:
    """Only the host's command counts; what an extension does to its clone is not seen."""

    def cancel(run: s.Run, i: inp.Cancel, fx: Any) -> Any:
        return (run, None) if i.command_id is None else old(run, i, fx)

    return cancel


def _drop_cancels(old: Any) -> Any:
    """A clone of the token cancels when it goes out of scope."""

    def hand_one(self: SessionPort, upcall: Any, item: Any) -> Any:
        taken = old(self, upcall, item)
        if item[0] == "drop_token":
            self.feed(inp.Cancel(None))
        return taken

    return hand_one


def _send_awaited(old: Any) -> Any:
    """A cancel that meets a blocked send waits until the reader has taken it."""

    def cancel(run: s.Run, i: inp.Cancel, fx: Any) -> Any:
        blocked = run.blocked
        if blocked is not None and blocked.cancellable:
            run = s.Run(run.phase, run.free, s.Blocked(blocked.sends, False, blocked.then), run.core)
        return old(run, i, fx)

    return cancel


# --- after it --------------------------------------------------------------------------------------------------------


def _places_filled(old: Any) -> Any:
    """The places that the interrupted calls leave are filled once more."""

    def cancel_batch(run: s.Run, fx: Any) -> Any:
        slots = run.phase.slots if isinstance(run.phase, s.Batch) else ()
        fx.extend(out.Execute(slot.call.id) for slot in slots if slot.stage in ("ready", "prepared"))
        return old(run, fx)

    return cancel_batch


def _checkpoint(old: Any) -> Any:
    """With a send in the way what there is gets committed at once, and the end later."""

    def cancel(run: s.Run, i: inp.Cancel, fx: Any) -> Any:
        if run.blocked is not None and type(run.phase) in end.CANCEL:
            run = change(run, ledger=run.core.ledger.commit(run.core.suffix), suffix=())
        return old(run, i, fx)

    return cancel


# --- what the commit holds -------------------------------------------------------------------------------------------


def _nothing_achieved(old: Any) -> Any:
    def commit(run: s.Run, k: s.Commit, fx: Any) -> Any:
        if isinstance(k.plan.ending, s.CancelRun):
            run = change(run, suffix=run.core.suffix[:1])
        return old(run, k, fx)

    return commit


def _open_text_alone(_: Any) -> Any:
    """Only the text block that was still open is kept."""

    def aborted(capture: cap.Capture) -> AbortedAssistant | None:
        rest = cap.seal(capture).rest
        blocks = rest.blocks.items()
        last = blocks[-1:] if blocks and isinstance(blocks[-1], Text) else ()
        if not (blocks or rest.summary or rest.context or rest.calls or not rest.usage.is_empty()):
            return None
        return AbortedAssistant(last, rest.summary.text() or None, rest.context, (), rest.usage)

    return aborted


def _reasoning_as_summary(old: Any) -> Any:
    return lambda capture, i, core: (cap.summary_delta(capture, i.text), old(capture, i, core)[1])


def _revision_before(old: Any) -> Any:
    def ending(core: Any, how: Any) -> Any:
        what, label, last = old(core, how)
        told = tuple(ev.Cancelled(e.revision - 1) if isinstance(e, ev.Cancelled) else e for e in last)
        return what, label, told

    return ending


def _all_interrupted(old: Any) -> Any:
    def conclude_batch(run: s.Run, how: Any) -> Any:
        phase = run.phase
        assert isinstance(phase, s.Batch)
        emptied = tuple(calls.Slot(x.call, x.stage, x.plan) for x in phase.slots)
        return old(to(run, s.Batch(emptied, phase.asks)), how)

    return conclude_batch


def _complete_alone(old: Any) -> Any:
    def conclude_batch(run: s.Run, how: Any) -> Any:
        plan = old(run, how)
        slots = run.phase.slots if isinstance(run.phase, s.Batch) else ()
        stored = {x.call.id for x in slots if x.completion is not None}
        return replace(plan, results=tuple(r for r in plan.results if r.id in stored))

    return conclude_batch


def _never_scheduled(_: Any) -> Any:
    """Only the scheduler answers calls, and it has not seen these."""
    return lambda run, fx: (to(run, s.Between()), s.Conclude(s.CancelRun()))


def _parked_alone(old: Any) -> Any:
    return lambda pool: old(tuple(j for j in pool if j.stage == "parked"))


def _unannounced(_: Any) -> Any:
    return lambda pool: ()


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "cancel-unheard-in-batch",
        "RHO-CAN-1",
        "a cancel is lost while tools are at work",
        (entry(end.CANCEL, s.Batch, _unheard),),
    ),
    Mutant(
        "second-cancel-commits-again",
        "RHO-CAN-2",
        "a second cancel commits and announces the end once more",
        (attr(rho_core.run.end, "CANCEL", lambda old: {**old, s.Settling: _again(None)}),),
    ),
    Mutant(
        "clones-not-told",
        "RHO-CAN-2",
        "the shared token stays live after a cancel",
        (row(table.COMMON, inp.Cancel, _unsignalled),),
    ),
    Mutant(
        "token-cancel-unheard",
        "RHO-CAN-3",
        "a clone that is cancelled does not cancel the run",
        (row(table.COMMON, inp.Cancel, _host_alone),),
    ),
    Mutant(
        "dropped-clone-cancels",
        "RHO-CAN-4",
        "dropping a clone of the token cancels the run",
        (attr(SessionPort, "_hand_one", _drop_cancels),),
    ),
    Mutant(
        "compactor-and-collector-not-raced",
        "RHO-CAN-5",
        "a cancel waits for the compactor and the collector",
        (entry(end.CANCEL, s.Compacting, _unheard), entry(end.CANCEL, s.Collecting, _unheard)),
    ),
    Mutant(
        "blocked-send-not-raced",
        "RHO-CAN-5",
        "a cancel waits for the reader",
        (row(table.COMMON, inp.Cancel, _send_awaited),),
    ),
    Mutant(
        "queued-calls-begin",
        "RHO-CAN-7",
        "a cancel frees places, and queued calls take them",
        (entry(end.CANCEL, s.Batch, _places_filled),),
    ),
    Mutant(
        "candidate-dropped",
        "RHO-CAN-8",
        "the cancel commit keeps the user message alone",
        (row(table.FLOW, s.Commit, _nothing_achieved),),
    ),
    Mutant(
        "aborted-text-cut",
        "RHO-CAN-9",
        "an AbortedAssistant lacks text that was shown before the last break",
        (attr(rho_core.capture, "aborted", _open_text_alone),),
    ),
    Mutant(
        "raw-reasoning-committed",
        "RHO-CAN-10",
        "raw reasoning enters the history as a summary",
        (entry(turn.FOLD, inp.RawReasoning, _reasoning_as_summary),),
    ),
    Mutant(
        "cancelled-with-old-revision",
        "RHO-CAN-11",
        "the event Cancelled carries the revision before its commit",
        (attr(rho_core.run.end, "_ending", _revision_before),),
    ),
    Mutant(
        "lost-interrupted-result",
        "RHO-CAN-12",
        "a cancelled batch answers only the calls that are complete",
        (attr(rho_core.run.end, "_conclude_batch", _complete_alone),),
    ),
    Mutant(
        "lost-complete-result",
        "RHO-CAN-12",
        "a cancelled batch interrupts every call, complete or not",
        (attr(rho_core.run.end, "_conclude_batch", _all_interrupted),),
    ),
    Mutant(
        "unscheduled-call-unanswered",
        "RHO-CAN-13",
        "calls that waited for jobs get no result",
        (entry(end.CANCEL, s.Awaiting, _never_scheduled), entry(end.CANCEL, s.Spawning, _never_scheduled)),
    ),
    Mutant(
        "pending-job-unanswered",
        "RHO-CAN-14",
        "jobs that were pending at the end get no result",
        (attr(rho_core.run.end, "_job_results", _parked_alone),),
    ),
    Mutant(
        "pending-job-unannounced",
        "RHO-CAN-14",
        "jobs that were pending at the end get no ToolFinished",
        (attr(rho_core.run.end, "_owed", _unannounced),),
    ),
    Mutant(
        "raced-cancel-commits-twice",
        "RHO-CAN-15",
        "a cancel that meets a blocked send commits twice",
        (row(table.COMMON, inp.Cancel, _checkpoint),),
    ),
    *failure.MUTANTS,
)
