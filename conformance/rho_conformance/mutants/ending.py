"""Wrong cores around ends without a commit: RHO-DROP-*, RHO-PERS-*, RHO-LIM-*."""

from __future__ import annotations

from typing import Any

import rho_core.session
from rho_conformance.drivers.corework import commands, interpret, store
from rho_conformance.drivers.corework.port import SessionPort
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import INTERRUPTED
from rho_core.ledger import Ledger
from rho_core.run import batch, end
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, change, to
from rho_core.run.table import COMMON, FLOW, WAIT
from rho_core.step import Step

from .base import Mutant, Patch, attr, entry, row

# --- dropping ---------------------------------------------------------------------------------------------------


def _goes_on(_: Any) -> Any:
    def handler(run: s.Run, i: inp.Drop, fx: Fx) -> Next:
        return run, None

    return handler


def _jobs_go_on(_: Any) -> Any:
    def abort_jobs(run: s.Run, fx: Fx) -> None:
        return None

    return abort_jobs


def _never_free(_: Any) -> Any:
    def tasks_gone(session: rho_core.session.Session, i: inp.TasksGone) -> Step[rho_core.session.Session]:
        return Step(session, ())

    return tasks_gone


def _stays_registered(tasks_gone: Any) -> Any:
    def wrapped(session: rho_core.session.Session, i: inp.TasksGone) -> Step[rho_core.session.Session]:
        return Step(tasks_gone(session, i).state, ())

    return wrapped


def _keeps_the_candidate(abandon: Any) -> Any:
    """A drop commits the candidate as it stands, calls without results and all."""

    def handler(run: s.Run, k: s.Abandon, fx: Fx) -> Next:
        if k.error is None and run.core.suffix:
            run = _committed(run)
        kept: Next = abandon(run, k, fx)
        return kept

    return handler


def _committed(run: s.Run) -> s.Run:
    ledger = run.core.ledger.commit(run.core.suffix)
    return change(run, ledger=ledger) if isinstance(ledger, Ledger) else run


def _cancels_the_run(drop_handle: Any) -> Any:
    def handler(performer: commands.Performer, stimulus: commands.Stimulus) -> None:
        stimulus.port.feed(inp.Cancel(None))
        drop_handle(performer, stimulus)

    return handler


def _shuts_down(_: Any) -> Any:
    def handler(performer: commands.Performer, stimulus: commands.Stimulus) -> None:
        performer.world.tell_runtime(inp.Shutdown(performer.world.command(performer.command(stimulus))))

    return handler


def _completes(drop: Any) -> Any:
    """A dropped run is ended as if the model had nothing more to say."""

    def handler(run: s.Run, i: inp.Drop, fx: Fx) -> Next:
        if type(run.phase) in s.ENDING:
            kept: Next = drop(run, i, fx)
            return kept
        end.stop_work(run, fx)
        run = change(s.Run(s.Between(), run.free, None, run.core), reader="gone")
        return run, s.Conclude(s.Complete("EndTurn"))

    return handler


# --- a lost reader ------------------------------------------------------------------------------------------------


def _never_noticed(_: Any) -> Any:
    """Sends on into a channel that nobody will ever read."""

    def handler(run: s.Run, i: inp.ReaderClosed, fx: Fx) -> Next:
        blocked = run.blocked
        return s.Run(run.phase, 1 << 30, None, run.core), None if blocked is None else blocked.then

    return handler


def _commits_when_interrupted(abandon: Any) -> Any:
    def handler(run: s.Run, k: s.Abandon, fx: Fx) -> Next:
        if run.core.reader == "gone" and run.core.suffix:
            run = _committed(run)
        kept: Next = abandon(run, k, fx)
        return kept

    return handler


def _rolls_back() -> tuple[Patch, ...]:
    """Remembers the ledger that each run began with, and puts it back when the run is interrupted."""
    began: dict[str, Ledger] = {}

    def remembering(begin: Any) -> Any:
        def handler(run: s.Run, i: inp.Begin, fx: Fx) -> Next:
            began[run.core.run] = run.core.ledger
            kept: Next = begin(run, i, fx)
            return kept

        return handler

    def restoring(abandon: Any) -> Any:
        def handler(run: s.Run, k: s.Abandon, fx: Fx) -> Next:
            kept: Next = abandon(change(run, ledger=began[run.core.run]), k, fx)
            return kept

        return handler

    return row(WAIT, (s.Fresh, inp.Begin), remembering), row(FLOW, s.Abandon, restoring)


def _saves_by_itself(release: Any) -> Any:
    def wrapped(port: SessionPort, e: out.Release) -> None:
        release(port, e)
        port.world.saved[port.name] = store.text_of(port)
        port.world.saves += 1

    return wrapped


# --- known limitations --------------------------------------------------------------------------------------------


def _failed_then_cancelled(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        if isinstance(how, s.Fail):
            events = (*events, ev.Cancelled(core.ledger.revision))
        return outcome, label, events

    return wrapped


def _panic_is_an_answer(worker_panicked: Any) -> Any:
    def handler(run: s.Run, i: inp.ModelPanicked, fx: Fx) -> Next:
        after, then = worker_panicked(run, i, fx)
        if not isinstance(then, s.Abandon):
            return after, then
        return to(after, s.Between()), s.Conclude(s.Complete("EndTurn"))

    return handler


def _both_events_after_a_panic(_: Any) -> Any:
    """A tool's panic sends Failed, and then what every interrupted run of this core sends: Cancelled."""

    def handler(run: s.Run, i: inp.ToolPanicked, fx: Fx) -> Next:
        if batch._slot(run, i.call_id, "preparing", "authorizing", "running") is None:
            return run, None
        revision = run.core.ledger.revision
        fx.append(out.Deliver(ev.Failed(INTERRUPTED.message, False, revision)))
        fx.append(out.Deliver(ev.Cancelled(revision)))
        return run, s.Abandon(INTERRUPTED)

    return handler


def _lost_event_lost_run(exit_run: Any) -> Any:
    def handler(run: s.Run, k: s.Exit, fx: Fx) -> Next:
        if run.core.reader == "gone" and k.end is not None:
            k = s.Exit(out.RunFailed(INTERRUPTED, run.core.steers.unapplied()), "Idle")
        kept: Next = exit_run(run, k, fx)
        return kept

    return handler


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "drop-forgets-the-handle",
        "RHO-DROP-1",
        "lets a dropped run work on: nothing is told, and further requests are made",
        (row(COMMON, inp.Drop, _goes_on),),
    ),
    Mutant(
        "dropped-jobs-work-on",
        "RHO-DROP-1",
        "stops what a dropped run waits for, and not its detached jobs",
        (attr(end, "abort_jobs", _jobs_go_on),),
    ),
    Mutant(
        "dropped-session-never-free",
        "RHO-DROP-2",
        "keeps a session busy for ever once a run of it was dropped",
        (entry(rho_core.session.LINK, inp.TasksGone, _never_free),),
    ),
    Mutant(
        "dropped-run-stays-registered",
        "RHO-DROP-2",
        "frees the session of a dropped run and leaves the run registered",
        (entry(rho_core.session.LINK, inp.TasksGone, _stays_registered),),
    ),
    Mutant(
        "dropped-candidate-kept",
        "RHO-DROP-3",
        "commits the candidate of a dropped run as it stands, with calls that have no result",
        (row(FLOW, s.Abandon, _keeps_the_candidate),),
    ),
    Mutant(
        "session-handle-cancels",
        "RHO-DROP-5",
        "cancels the run when the handle of its session is dropped",
        (entry(commands.HANDLERS, "drop_session", _cancels_the_run),),
    ),
    Mutant(
        "runtime-handle-shuts-down",
        "RHO-DROP-6",
        "shuts the runtime down when its handle is dropped",
        (entry(commands.HANDLERS, "drop_runtime", _shuts_down),),
    ),
    Mutant(
        "lost-reader-not-noticed",
        "RHO-PERS-1",
        "goes on sending, and runs to its normal end, when the reader has gone",
        (row(COMMON, inp.ReaderClosed, _never_noticed),),
    ),
    Mutant(
        "interrupted-candidate-kept",
        "RHO-PERS-2",
        "commits the candidate of a run that lost its reader",
        (row(FLOW, s.Abandon, _commits_when_interrupted),),
    ),
    Mutant(
        "interruption-rolls-back",
        "RHO-PERS-3",
        "undoes what the run committed before it was interrupted",
        _rolls_back(),
    ),
    Mutant(
        "saves-after-every-run",
        "RHO-PERS-5",
        "writes the session to the host's store whenever a run has ended",
        (entry(interpret.ROWS, out.Release, _saves_by_itself),),
    ),
    Mutant(
        "failed-and-cancelled",
        "RHO-LIM-1",
        "sends Cancelled after Failed",
        (attr(end, "_ending", _failed_then_cancelled),),
    ),
    Mutant(
        "dropped-run-completes",
        "RHO-LIM-2",
        "ends a dropped run as completed",
        (row(COMMON, inp.Drop, _completes),),
    ),
    Mutant(
        "panic-taken-for-an-answer",
        "RHO-LIM-3",
        "completes the run when its provider panics",
        (row(COMMON, inp.ModelPanicked, _panic_is_an_answer),),
    ),
    Mutant(
        "two-events-after-a-panic",
        "RHO-LIM-3",
        "sends Failed and Cancelled when a tool panics",
        (row(WAIT, (s.Batch, inp.ToolPanicked), _both_events_after_a_panic),),
    ),
    Mutant(
        "lost-event-lost-run",
        "RHO-LIM-4",
        "reports a committed run as Interrupted because nobody could take its terminal event",
        (row(FLOW, s.Exit, _lost_event_lost_run),),
    ),
)
