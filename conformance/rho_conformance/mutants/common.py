"""Wrong cores that any agent runtime could be: what the common rules CP1 to CP16 must see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.session
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import shown
from rho_core.errors import Error, ErrorName
from rho_core.messages import INTERRUPTED, Assistant, ToolResult, User, interrupted
from rho_core.run import end, outbox
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, to
from rho_core.run.table import COMMON, FLOW, WAIT
from rho_core.step import Step

from .base import Mutant, attr, entry, row

# --- what the next request shows ------------------------------------------------------------------------------


def _only_real_results(model_view: Any) -> Any:
    def wrapped(history: Any, pending: Any = frozenset()) -> Any:
        view = model_view(history, pending)
        return tuple(m for m in view if not (isinstance(m, ToolResult) and m.content == INTERRUPTED))

    return wrapped


def _last_call_first(schedule: Any) -> Any:
    def handler(run: s.Run, k: s.Schedule, fx: Fx) -> Next:
        after, then = schedule(run, k, fx)
        if isinstance(then, s.Top):
            before, added = run.core.suffix, after.core.suffix[len(run.core.suffix) :]
            after = outbox.change(after, suffix=(*before, *reversed(added)))
        return after, then

    return handler


def _forgets_what_finished(conclude_batch: Any) -> Any:
    def wrapped(run: s.Run, ending: s.Ending) -> s.Conclude:
        plan: s.Conclude = conclude_batch(run, ending)
        return replace(plan, results=tuple(interrupted(r.id) for r in plan.results))

    return wrapped


# --- tools ----------------------------------------------------------------------------------------------------


def _unknown_tool_is_fatal(open_batch: Any) -> Any:
    def handler(run: s.Run, k: s.OpenBatch, fx: Fx) -> Next:
        registered = {t.name for t in run.core.policy.tools}
        missing = next((c.name for c in k.calls if c.name not in registered), None)
        if missing is None:
            kept: Next = open_batch(run, k, fx)
            return kept
        error = Error(ErrorName.INVALID_CONFIGURATION, f"there is no tool {missing!r}")
        results = tuple(interrupted(c.id) for c in k.calls)
        return to(run, s.Between()), s.Conclude(s.Fail(error), results)

    return handler


def _failure_ends_the_run(returned: Any) -> Any:
    def handler(run: s.Run, i: inp.ToolReturned, fx: Fx) -> Next:
        after, then = returned(run, i, fx)
        if not isinstance(i.completion, ev.Failure):
            return after, then
        return end.fail_batch(after, Error(ErrorName.PROVIDER, i.completion.text), fx)

    return handler


def _tells_no_tool(cancel: Any) -> Any:
    def handler(run: s.Run, i: inp.Cancel, fx: Fx) -> Next:
        own: Fx = []
        kept: Next = cancel(run, i, own)
        batched = isinstance(run.phase, s.Batch)
        fx.extend(e for e in own if not (batched and isinstance(e, (out.AbortTool, out.SignalCancel))))
        return kept

    return handler


# --- ends -----------------------------------------------------------------------------------------------------


def _resumes_the_unfinished(begin: Any) -> Any:
    """Where the history does not end with an answer the run goes on from there, and its own input is lost."""

    def handler(run: s.Run, i: inp.Begin, fx: Fx) -> Next:
        history = run.core.ledger.history
        unfinished = bool(history) and not isinstance(history[-1], Assistant)
        kept: Next = begin(run, inp.Begin((), i.call) if unfinished else i, fx)
        return kept

    return handler


def _one_step_more(limit: Any) -> Any:
    def handler(run: s.Run, k: s.Limit, fx: Fx) -> Next:
        if run.core.step == run.core.policy.max_steps:
            return run, s.BeginStep()
        kept: Next = limit(run, k, fx)
        return kept

    return handler


def _doubled(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        return outcome, label, (*events, events[-1])

    return wrapped


# --- retries ----------------------------------------------------------------------------------------------------


def _silent_restart(reset: Any) -> Any:
    def handler(run: s.Run, k: s.Reset, fx: Fx) -> Next:
        return run, s.Delay(k.turn, k.delay_ms)

    return handler


def _cancel_after_the_delay(_: Any) -> Any:
    def cancel(run: s.Run, fx: Fx) -> Next:
        return run, None

    return cancel


# --- runs and sessions --------------------------------------------------------------------------------------------


def _swallows_a_second_start(step: Any) -> Any:
    def wrapped(session: rho_core.session.Session, i: Any) -> Any:
        if isinstance(i, inp.Start) and session.busy:
            return Step(session, (out.Reply(i.command_id),))
        return step(session, i)

    return wrapped


def goes_on_without_its_owner(_: Any) -> Any:
    """A drop that only forgets the handle: the run works on."""

    def handler(run: s.Run, i: inp.Drop, fx: Fx) -> Next:
        return run, None

    return handler


def _drops_what_has_no_room(_: Any) -> Any:
    def send(run: s.Run, fx: Fx, events: tuple[ev.Event, ...], then: Any, cancellable: bool) -> Next:
        fx.extend(out.Deliver(e) for e in events[: run.free])
        return s.Run(run.phase, max(0, run.free - len(events)), None, run.core), then

    return send


def _cancels_whoever_runs(without_run: Any) -> Any:
    def wrapped(session: rho_core.session.Session, i: Any) -> Any:
        if isinstance(i, inp.Cancel) and session.run is not None:
            return rho_core.session.step(session, i)
        return without_run(session, i)

    return wrapped


def _steer_between_results(steer: Any) -> Any:
    """In a batch a steer is put into the candidate at once: before the results of the batch."""

    def handler(run: s.Run, i: inp.Steer, fx: Fx) -> Next:
        if not isinstance(run.phase, s.Batch):
            kept: Next = steer(run, i, fx)
            return kept
        fx.append(out.Reply(i.command_id, i.steering_id))
        return outbox.change(run, suffix=(*run.core.suffix, User(i.content))), None

    return handler


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "interrupted-results-not-shown",
        "CP1",
        "leaves the results of interrupted calls out of every request",
        (attr(shown, "model_view", _only_real_results),),
    ),
    Mutant(
        "results-last-call-first",
        "CP2",
        "puts the results of a batch into the history in reverse",
        (row(FLOW, s.Schedule, _last_call_first),),
    ),
    Mutant(
        "unknown-tool-is-fatal",
        "CP3",
        "ends the run with an error when the model calls a tool that nobody registered",
        (row(FLOW, s.OpenBatch, _unknown_tool_is_fatal),),
    ),
    Mutant(
        "tool-failure-is-fatal",
        "CP4",
        "ends the run, and its other calls, when one tool reports a failure",
        (row(WAIT, (s.Batch, inp.ToolReturned), _failure_ends_the_run),),
    ),
    Mutant(
        "running-tools-not-told",
        "CP5",
        "ends a cancelled run without a word to the tools that still work for it",
        (row(COMMON, inp.Cancel, _tells_no_tool),),
    ),
    Mutant(
        "finished-results-interrupted",
        "CP6",
        "writes interrupted results for every call of a cancelled batch, the finished ones too",
        (attr(end, "_conclude_batch", _forgets_what_finished),),
    ),
    Mutant(
        "next-run-resumes-the-last",
        "CP7",
        "goes on with the unfinished turn of a cancelled or failed run, without the input of the new one",
        (row(WAIT, (s.Fresh, inp.Begin), _resumes_the_unfinished),),
    ),
    Mutant(
        "one-step-beyond-the-limit",
        "CP8",
        "makes one model request more than the step limit allows",
        (row(FLOW, s.Limit, _one_step_more),),
    ),
    Mutant(
        "terminal-event-doubled",
        "CP9",
        "sends the terminal event of every end twice",
        (attr(end, "_ending", _doubled),),
    ),
    Mutant(
        "silent-restart",
        "CP10",
        "streams a second attempt after the broken first one without a reset between them",
        (row(FLOW, s.Reset, _silent_restart),),
    ),
    Mutant(
        "back-off-outlives-a-cancel",
        "CP11",
        "accepts a cancel during the back-off and waits, and retries, all the same",
        (entry(end.CANCEL, s.BackingOff, _cancel_after_the_delay),),
    ),
    Mutant(
        "second-start-swallowed",
        "CP12",
        "answers ok to a start in a busy session and forgets it",
        (attr(rho_core.session, "step", _swallows_a_second_start),),
    ),
    Mutant(
        "work-outlives-its-consumer",
        "CP13",
        "lets a run whose handle was dropped work on",
        (row(COMMON, inp.Drop, goes_on_without_its_owner),),
    ),
    Mutant(
        "full-queue-loses-events",
        "CP14",
        "takes whatever the model sends and throws away what the full queue has no room for",
        (attr(outbox, "_send", _drops_what_has_no_room),),
    ),
    Mutant(
        "stale-cancel-hits-the-next-run",
        "CP15",
        "cancels the run that is active now when an earlier one is cancelled through its old handle",
        (attr(rho_core.session, "_without_run", _cancels_whoever_runs),),
    ),
    Mutant(
        "steer-between-results",
        "CP16",
        "puts a steer that comes during a batch in front of the batch's results",
        (row(COMMON, inp.Steer, _steer_between_results),),
    ),
)
