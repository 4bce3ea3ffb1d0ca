"""Wrong about what a retry repeats, what it costs and what is measured (RHO-RET-11 to 23, RHO-METR-*)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.capture
import rho_core.events
from rho_conformance.mutants.base import Mutant, attr, entry, row
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import Error, ErrorName
from rho_core.messages import Assistant, User, calls_of
from rho_core.run import end, table, turn
from rho_core.run import state as s
from rho_core.run.outbox import change

# --- usage, requests, provider activity ---------------------------------------------------------------------------


def _only_success(old: Any) -> Any:
    def close_attempt(run: Any, phase: Any, outcome: Any, kind: Any = None) -> Any:
        after, records = old(run, phase, outcome, kind)
        return after, records if outcome == "Completed" else records[:-1]

    return close_attempt


def _physical_last(old: Any) -> Any:
    def close_attempt(run: Any, phase: Any, outcome: Any, kind: Any = None) -> Any:
        after, records = old(run, phase, outcome, kind)
        return after, (*records[-1:], *records[:-1])

    return close_attempt


def _cancel_forgets(_: Any) -> Any:
    return lambda run, fx, outcome, kind=None: None


def _all_attempts(old: Any) -> Any:
    def record_next(run: s.Run, k: s.Record, fx: Any) -> Any:
        assert isinstance(run.phase, s.Recording)
        after, then = old(run, k, fx)
        if isinstance(then, s.Reset):
            after = change(after, usage=after.core.usage + run.phase.capture.rest.usage)
        return after, then

    return record_next


def _rebuilt(old: Any) -> Any:
    """The request of a retry is made anew, with the steering accepted since."""

    def delay(run: s.Run, k: s.Delay, fx: Any) -> Any:
        steered = tuple(User(x.content) for x in run.core.steers.waiting)
        again = s.Turn(k.turn.request + steered, k.turn.budget, k.turn.physical)
        return old(run, s.Delay(again, k.delay_ms), fx)

    return delay


def _reruns(old: Any) -> Any:
    def delay(run: s.Run, k: s.Delay, fx: Any) -> Any:
        for message in run.core.suffix:
            if isinstance(message, Assistant):
                fx.extend(out.Execute(call.id) for call in calls_of(message.content))
        return old(run, k, fx)

    return delay


def _unseen(_: Any) -> Any:
    return lambda capture, i, core: (capture, ())


def _physical_unseen(old: Any) -> Any:
    return lambda capture, i, core: (old(capture, i, core)[0], ())


def _usage_stays(old: Any) -> Any:
    return lambda capture, i, core: (capture, old(capture, i, core)[1])


def _no_detail(_: Any) -> Any:
    return lambda capture, i, core: (capture, (ev.HostedToolActivity(i.name, i.name),))


def _fatal(old: Any) -> Any:
    def returned(run: s.Run, i: inp.ToolReturned, fx: Any) -> Any:
        after, then = old(run, i, fx)
        if then is None or not isinstance(i.completion, ev.Failure):
            return after, then
        return end.fail_batch(after, Error(ErrorName.TOOL, i.completion.text), fx)

    return returned


def _one_more_step(old: Any) -> Any:
    def consider_steering(run: s.Run, k: s.ConsiderSteering, fx: Any) -> Any:
        after, then = old(run, k, fx)
        first = isinstance(then, s.Limit) and after.core.step == after.core.policy.max_steps
        return after, s.BeginStep() if first else then

    return consider_steering


# --- metrics --------------------------------------------------------------------------------------------------------


def _last_report(_: Any) -> Any:
    def usage_reported(capture: Any, usage: Any) -> Any:
        rest = replace(capture.rest, usage=usage)
        return rho_core.capture.Capture(capture.tail, capture.spine, rest)

    return usage_reported


def _falls_back(old: Any) -> Any:
    def metrics(output: int | None, generation: Any, timing: Any) -> Any:
        guess = ev.Reported(output) if generation is None and output is not None else generation
        return old(output, guess, timing)

    return metrics


def _reasoning_hidden(old: Any) -> Any:
    def metrics(output: int | None, generation: Any, timing: Any) -> Any:
        shown = generation.tokens if isinstance(generation, ev.Reported) else output
        return old(shown, generation, timing)

    return metrics


def _as_context(old: Any) -> Any:
    shown = ev.ProviderContextUpdated("model_call_generation_output_tokens")
    return lambda capture, i, core: (old(capture, i, core)[0], (shown,))


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "abandoned-attempt-unrecorded",
        "RHO-RET-11",
        "only successful attempts are recorded",
        (attr(turn, "close_attempt", _only_success),),
    ),
    Mutant(
        "physical-request-recorded-last",
        "RHO-RET-11",
        "an attempt is recorded before the failed physical requests inside it",
        (attr(turn, "close_attempt", _physical_last),),
    ),
    Mutant(
        "cancelled-attempt-unrecorded",
        "RHO-RET-11",
        "an attempt that a cancel ends is not recorded",
        (attr(end, "write_off", _cancel_forgets),),
    ),
    Mutant(
        "abandoned-usage-counted",
        "RHO-RET-12",
        "the outcome counts failed attempts as well",
        (row(table.FLOW, s.Record, _all_attempts),),
    ),
    Mutant(
        "physical-retry-unseen",
        "RHO-RET-15",
        "a physical retry sends no event",
        (entry(turn.FOLD, inp.PhysicalAttemptFailed, _physical_unseen),),
    ),
    Mutant(
        "physical-usage-stays",
        "RHO-RET-15",
        "usage of a failed physical request stays in the attempt's total",
        (entry(turn.FOLD, inp.PhysicalAttemptFailed, _usage_stays),),
    ),
    Mutant("web-search-unseen", "RHO-RET-16", "a search sends no event", (entry(turn.FOLD, inp.WebSearched, _unseen),)),
    Mutant(
        "hosted-detail-lost",
        "RHO-RET-17",
        "hosted activity is reported without its detail",
        (entry(turn.FOLD, inp.HostedTool, _no_detail),),
    ),
    Mutant(
        "retry-with-steering",
        "RHO-RET-18",
        "a retry sends steering accepted since the first attempt",
        (row(table.FLOW, s.Delay, _rebuilt),),
    ),
    Mutant(
        "retry-reruns-tools", "RHO-RET-19", "a retry runs earlier calls again", (row(table.FLOW, s.Delay, _reruns),)
    ),
    Mutant(
        "failed-tool-ends-run",
        "RHO-RET-22",
        "a tool that fails fails the run",
        (row(table.WAIT, (s.Batch, inp.ToolReturned), _fatal),),
    ),
    Mutant(
        "one-step-too-many",
        "RHO-RET-23",
        "the model is asked once more at the step limit",
        (row(table.FLOW, s.ConsiderSteering, _one_more_step),),
    ),
    Mutant(
        "output-tokens-last-report",
        "RHO-METR-1",
        "the last usage report of an attempt replaces the earlier ones",
        (attr(rho_core.capture, "usage_reported", _last_report),),
    ),
    Mutant(
        "generation-falls-back",
        "RHO-METR-2",
        "a missing generation count is taken from output_tokens",
        (attr(rho_core.events, "Metrics", _falls_back),),
    ),
    Mutant(
        "hidden-reasoning-lost",
        "RHO-METR-4",
        "the generation count replaces output_tokens",
        (attr(rho_core.events, "Metrics", _reasoning_hidden),),
    ),
    Mutant(
        "generation-as-context",
        "RHO-METR-5",
        "the generation count is sent on as provider context",
        (entry(turn.FOLD, inp.GenerationTokensReported, _as_context),),
    ),
)
