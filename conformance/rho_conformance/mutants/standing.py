"""Wrong cores that the suite's standing checks must see in any trace: CORE-LIVE, CORE-CAP, CORE-S1 to CORE-S7."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.session
from rho_conformance.drivers.corework import commands
from rho_core import capture as cap
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import CANCELLED
from rho_core.ledger import Ledger
from rho_core.messages import INTERRUPTED, History
from rho_core.run import batch, end, turn
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, change, emit
from rho_core.run.table import FLOW, WAIT
from rho_core.session import Resting, Session
from rho_core.step import Step

from .base import Mutant, attr, entry, row


def _usage_after_the_end(exit_run: Any) -> Any:
    def handler(run: s.Run, k: s.Exit, fx: Fx) -> Next:
        if isinstance(run.phase, s.Settling):
            fx.append(out.Deliver(ev.UsageUpdated(run.core.usage)))
        kept: Next = exit_run(run, k, fx)
        return kept

    return handler


def _open_calls_left(conclude_batch: Any) -> Any:
    def wrapped(run: s.Run, ending: s.Ending) -> s.Conclude:
        plan: s.Conclude = conclude_batch(run, ending)
        return replace(plan, results=tuple(r for r in plan.results if r.content != INTERRUPTED))

    return wrapped


def _reasoning_summarised(fold: Any) -> Any:
    def wrapped(c: cap.Capture, i: inp.RawReasoning, core: s.Core) -> turn.Folded:
        _, events = fold(c, i, core)
        return cap.summary_delta(c, i.text), events

    return wrapped


def _same_revision(_: Any) -> Any:
    """A change that the host makes between two runs is not counted as a commit."""

    def install(session: Session, command_id: str, history: History) -> Step[Session]:
        old = session.ledger
        ledger = Ledger(history, old.revision, old.compaction)
        label: Any = rho_core.session.session_state(session)
        return Step(Session(session.identity, Resting(ledger, label)), (out.Reply(command_id, old.revision),))

    return install


def _failure_not_counted(commit: Any) -> Any:
    """A failed run installs its history as the revision that was there before."""

    def handler(run: s.Run, k: s.Commit, fx: Fx) -> Next:
        if isinstance(k.plan.ending, s.Fail):
            old = run.core.ledger
            run = change(run, ledger=Ledger(old.history, old.revision - 1, old.compaction))
        kept: Next = commit(run, k, fx)
        return kept

    return handler


def _started_left_out(begin: Any) -> Any:
    def handler(run: s.Run, i: inp.Begin, fx: Fx) -> Next:
        own: Fx = []
        after, then = begin(run, i, own)
        fx.extend(e for e in own if not (isinstance(e, out.Deliver) and isinstance(e.event, ev.Started)))
        return s.Run(after.phase, run.free, None, after.core), then

    return handler


def _started_with_the_first_step(begin_step: Any) -> Any:
    """Together with `_started_left_out`: the reader is told of the run when its first step has begun."""

    def handler(run: s.Run, k: s.BeginStep, fx: Fx) -> Next:
        if run.core.step > 0:
            kept: Next = begin_step(run, k, fx)
            return kept
        roomy = s.Run(run.phase, 1 << 30, None, run.core)
        own: Fx = []
        after, then = begin_step(roomy, k, own)
        sends = [e.event for e in own if isinstance(e, out.Deliver)]
        late = ev.Started(run.core.run, run.core.ledger.revision)
        return emit(s.Run(after.phase, run.free, None, after.core), fx, (*sends, late), then)

    return handler


def _finished_twice(_: Any) -> Any:
    def finish(run: s.Run, fx: Fx, index: int, slot: Any) -> Next:
        event = ev.ToolFinished(slot.call.id, slot.completion)
        return emit(run, fx, (event, event), s.CallFinished(index))

    return finish


def _late_cancel_counts(without_run: Any) -> Any:
    """A cancel that comes after the end makes a cancelled run of it."""

    def wrapped(session: Session, i: Any) -> Step[Session]:
        step: Step[Session] = without_run(session, i)
        if not isinstance(i, inp.Cancel) or not isinstance(session.phase, Resting):
            return step
        return Step(step.state, (*step.effects, out.ReportOutcome(out.RunFailed(CANCELLED, ()))))

    return wrapped


def _wakes_nobody(prepare_failed: Any) -> Any:
    """Stores that a call cannot run, and lets nobody look at the batch again."""

    def handler(run: s.Run, i: inp.PrepareFailed, fx: Fx) -> Next:
        return prepare_failed(run, i, fx)[0], None

    return handler


def _failure_wakes_nobody(returned: Any) -> Any:
    def handler(run: s.Run, i: inp.ToolReturned, fx: Fx) -> Next:
        after, then = returned(run, i, fx)
        return after, None if isinstance(i.completion, ev.Failure) else then

    return handler


def _refuses(_: Any) -> Any:
    def handler(performer: commands.Performer, stimulus: commands.Stimulus) -> None:
        fields = {"stimulus": stimulus.name, "feature": stimulus.name}
        stimulus.port.see("Refused", fields, None)

    return handler


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "usage-after-the-end",
        "CORE-S1",
        "sends UsageUpdated once more when a run is over, after its terminal event",
        (row(FLOW, s.Exit, _usage_after_the_end),),
    ),
    Mutant(
        "open-calls-left",
        "CORE-S2",
        "commits a cancelled batch with the results it has, and leaves the other calls unanswered",
        (attr(end, "_conclude_batch", _open_calls_left),),
    ),
    Mutant(
        "reasoning-kept-as-summary",
        "CORE-S3",
        "keeps raw reasoning as the summary of its message",
        (entry(turn.FOLD, inp.RawReasoning, _reasoning_summarised),),
    ),
    Mutant(
        "host-change-not-counted",
        "CORE-S4",
        "installs a message or a history of the host without a new revision",
        (attr(rho_core.session, "_install", _same_revision),),
    ),
    Mutant(
        "failed-run-not-counted",
        "CORE-S4",
        "commits what a failed run leaves behind without a new revision",
        (row(FLOW, s.Commit, _failure_not_counted),),
    ),
    Mutant(
        "started-left-out",
        "CORE-S5",
        "begins a run without a word",
        (row(WAIT, (s.Fresh, inp.Begin), _started_left_out),),
    ),
    Mutant(
        "started-with-the-first-step",
        "CORE-S5",
        "sends Started after the StepStarted of the first step",
        (
            row(WAIT, (s.Fresh, inp.Begin), _started_left_out),
            row(FLOW, s.BeginStep, _started_with_the_first_step),
        ),
    ),
    Mutant(
        "tool-finished-twice",
        "CORE-S6",
        "sends ToolFinished twice",
        (attr(batch, "_finish", _finished_twice),),
    ),
    Mutant(
        "late-cancel-rewrites-the-outcome",
        "CORE-S7",
        "turns the outcome of a finished run into Cancelled when it is cancelled afterwards",
        (attr(rho_core.session, "_without_run", _late_cancel_counts),),
    ),
    Mutant(
        "failed-preparation-wakes-nobody",
        "CORE-LIVE",
        "notes that a call could not be prepared and does not look at its batch again",
        (row(WAIT, (s.Batch, inp.PrepareFailed), _wakes_nobody),),
    ),
    Mutant(
        "failed-call-wakes-nobody",
        "CORE-LIVE",
        "stores the failure of a tool and does not look at its batch again",
        (row(WAIT, (s.Batch, inp.ToolReturned), _failure_wakes_nobody),),
    ),
    Mutant(
        "cancel-declared-and-refused",
        "CORE-CAP",
        "declares that it can be cancelled, and cannot",
        (entry(commands.HANDLERS, "cancel", _refuses),),
    ),
    Mutant(
        "append-declared-and-refused",
        "CORE-CAP",
        "declares that the host can append to a history, and refuses it",
        (entry(commands.HANDLERS, "append", _refuses),),
    ),
)
