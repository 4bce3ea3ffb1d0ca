"""Permitted variants of how a run ends: D1, D2, D4, D9, D23, D24, D26, D29, D30 and races with the end."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any
from unittest import mock

import rho_core.capture
import rho_core.ledger
import rho_core.snapshot
from rho_conformance.mutants.base import Benign
from rho_conformance.mutants.benign_kit import DECIDED, Decided, attr, common, flow
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import jobs
from rho_core.errors import STEP_LIMIT
from rho_core.ledger import Ledger
from rho_core.messages import NO_USAGE, AbortedAssistant, Assistant, Message, Usage, calls_of, interrupted
from rho_core.record import record
from rho_core.run import end, turn
from rho_core.run import state as s
from rho_core.run.outbox import change, send_tail, to

# --- D1, D2 and the tail ----------------------------------------------------------------------------------------------


def _limit_fails(_: Any) -> Any:
    return lambda run, k, fx: (run, s.Conclude(s.Fail(STEP_LIMIT)))


def _open_calls_unfinished(old: Any) -> Any:
    """Only calls whose completion was stored before the end get their ToolFinished."""

    def conclude_batch(run: s.Run, how: s.Ending) -> s.Conclude:
        plan: s.Conclude = old(run, how)
        slots = run.phase.slots if isinstance(run.phase, s.Batch) else ()
        stored = {slot.call.id for slot in slots if slot.completion is not None}
        tail = tuple(e for e in plan.tail if isinstance(e, ev.ToolFinished) and e.call_id in stored)
        return replace(plan, tail=tail)

    return conclude_batch


def _jobs_before_commit(old: Any) -> Any:
    """The last ToolFinished of jobs are sent first; the commit waits until the reader has room for all of them."""

    def commit(run: s.Run, k: s.Commit, fx: Any) -> Any:
        owed = end._owed(run.core.jobs)
        if not owed:
            return old(run, k, fx)
        pool = run.core.jobs
        for job in sorted((j for j in pool if j.stage == "returned"), key=lambda j: j.serial):
            pool = jobs.move_last(pool, job.at("parked"))
        then: Any = Decided()
        return send_tail(change(to(run, s.Stopping(k.plan)), jobs=pool), fx, owed, then)

    return commit


def _jobs_first(old: Any) -> Any:
    """ToolFinished of jobs before those of the batch, and both from the last to the first."""

    def commit(run: s.Run, k: s.Commit, fx: Any) -> Any:
        tail = (*reversed(end._owed(run.core.jobs)), *reversed(k.plan.tail))
        with mock.patch.object(end, "_owed", lambda pool: ()):
            return old(run, s.Commit(replace(k.plan, tail=tail)), fx)

    return commit


def _job_results_first(old: Any) -> Any:
    def commit(run: s.Run, k: s.Commit, fx: Any) -> Any:
        results = (*end._job_results(run.core.jobs), *k.plan.results)
        with mock.patch.object(end, "_job_results", lambda pool: ()):
            return old(run, s.Commit(replace(k.plan, results=results)), fx)

    return commit


# --- what is kept of an unfinished response ---------------------------------------------------------------------------


def _answered(suffix: tuple[Message, ...]) -> tuple[Message, ...]:
    """Complete calls of an aborted response stand as calls, each with an interrupted result."""
    last = suffix[-1] if suffix else None
    if not isinstance(last, AbortedAssistant):
        return suffix
    ids = [c.id for c in calls_of(last.content)]
    if not ids or len(set(ids)) < len(ids):
        return suffix
    message = Assistant(last.content, None, last.reasoning_summary, last.provider_context)
    return (*suffix[:-1], message, *(interrupted(i) for i in ids))


def _calls_committed(old: Any) -> Any:
    def commit(self: Ledger, suffix: tuple[Message, ...]) -> Any:
        return old(self, _answered(suffix))

    return commit


def _response_kept(old: Any) -> Any:
    """A cancel that meets the last event of a whole response loses the event, not the response."""

    def cancel(run: s.Run, i: inp.Cancel, fx: Any) -> Any:
        blocked = run.blocked
        then = blocked.then if blocked is not None else None
        if isinstance(run.phase, s.Responding) and isinstance(then, s.Responded) and then.issue is None:
            run, _ = turn.responded(s.Run(run.phase, run.free, None, run.core), then, fx)
        return old(run, i, fx)

    return cancel


# --- usage ------------------------------------------------------------------------------------------------------------


@record
class LastUsage(Usage):
    """A sum that still knows its last term."""

    last: Usage = NO_USAGE


def _remember_last(old: Any) -> Any:
    def judge(run: s.Run, k: s.Judge, fx: Any) -> Any:
        after, then = old(run, k, fx)
        summed = after.core.usage
        if summed is run.core.usage or not isinstance(run.phase, s.Recording):
            return after, then
        sums = {field.name: getattr(summed, field.name) for field in fields(Usage)}
        return change(after, usage=LastUsage(**sums, last=run.phase.capture.rest.usage)), then

    return judge


def _last_alone(old: Any) -> Any:
    def ending(core: s.Core, how: s.Ending) -> Any:
        what, label, last = old(core, how)
        if not isinstance(what, ev.RunOutcome) or not isinstance(core.usage, LastUsage):
            return what, label, last
        outcome = replace(what, usage=core.usage.last)
        return outcome, label, tuple(ev.Completed(outcome) if isinstance(e, ev.Completed) else e for e in last)

    return ending


BENIGN: tuple[Benign, ...] = (
    Benign("step-limit-fails", "D1", "the step limit is an invalid response", (flow(s.Limit, _limit_fails),)),
    Benign(
        "open-calls-unfinished",
        "D2",
        "a sync call still open at a cancel or failure gets no ToolFinished",
        (attr(end, "_conclude_batch", _open_calls_unfinished),),
    ),
    Benign(
        "jobs-finish-before-commit",
        "R21",
        "ToolFinished of interrupted jobs precede the commit",
        (DECIDED, flow(s.Commit, _jobs_before_commit)),
    ),
    Benign("jobs-finish-first", "R19", "the last ToolFinished in another order", (flow(s.Commit, _jobs_first),)),
    Benign(
        "aborted-calls-answered",
        "D9",
        "complete calls of an aborted response are committed with interrupted results",
        (attr(Ledger, "commit", _calls_committed),),
    ),
    Benign(
        "job-results-first", "D23", "results of jobs before those of the batch", (flow(s.Commit, _job_results_first),)
    ),
    Benign(
        "nothing-aborted",
        "D24",
        "no AbortedAssistant on a cancel or a failure",
        (attr(rho_core.capture, "aborted", lambda _: lambda capture: None),),
    ),
    Benign(
        "usage-of-the-last-response",
        "D26",
        "the outcome counts the last response only",
        (flow(s.Judge, _remember_last), attr(end, "_ending", _last_alone)),
    ),
    Benign(
        "revisions-without-end",
        "D29",
        "the revision may grow beyond 2^64-1",
        tuple(attr(place, "MAX_REVISION", lambda _: 2**70) for place in (rho_core.ledger, rho_core.snapshot)),
    ),
    Benign(
        "cancelled-response-kept",
        "R3",
        "a cancel loses the event of a whole response, and not the response",
        (common(inp.Cancel, _response_kept),),
    ),
)
