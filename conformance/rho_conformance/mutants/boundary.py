"""Cores that mishandle boundary input: not asked, not waited for, taken for steering (RHO-BND-*)."""

from __future__ import annotations

from typing import Any

from rho_conformance.mutants.base import Mutant, row
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import INTERRUPTED
from rho_core.run import state as s
from rho_core.run import table
from rho_core.run.outbox import Fx, Next, emit

# --- whom it asks, and when -------------------------------------------------------------------------------


def _asks_nobody(original: Any) -> Any:
    def end_turn(run: s.Run, k: s.EndTurn, fx: Fx) -> Next:
        after, then = original(run, k, fx)
        fresh = k.collector == "unasked" and not run.core.policy.boundary
        over = isinstance(then, s.Conclude) and run.core.step < run.core.policy.max_steps
        return (after, s.AskCollector("before_completion")) if fresh and over else (after, then)

    return end_turn


def _steers_are_inputs(original: Any) -> Any:
    def steering_in(run: s.Run, k: s.SteeringIn, fx: Fx) -> Next:
        texts = [b.text for x in run.core.steers.waiting if x.id in k.ids for b in x.content]  # type: ignore[union-attr]
        after, then = original(run, k, fx)
        if run.core.policy.boundary:
            return after, then
        events = tuple(ev.BoundaryInputApplied(run.core.session, run.core.run, t) for t in texts)
        return emit(after, fx, events, then)

    return steering_in


def _skips_the_first_step(original: Any) -> Any:
    def consider_boundary(run: s.Run, k: s.ConsiderBoundary, fx: Fx) -> Next:
        return (run, s.ConsiderSteering()) if run.core.step == 0 else original(run, k, fx)

    return consider_boundary


def _again_for_a_retry(original: Any) -> Any:
    def delay(run: s.Run, k: s.Delay, fx: Fx) -> Next:
        if run.core.policy.boundary:
            fx.append(out.AskBoundary("before_provider"))
        return original(run, k, fx)  # type: ignore[no-any-return]

    return delay


def _asks_beside_jobs(original: Any) -> Any:
    def top(run: s.Run, k: s.Top, fx: Fx) -> Next:
        after, then = original(run, k, fx)
        beside = isinstance(then, s.ConsiderSteering) and after.core.step < after.core.policy.max_steps
        return (after, s.ConsiderBoundary()) if beside else (after, then)

    return top


def _gone_means_nothing(original: Any) -> Any:
    def boundary_gone(run: s.Run, i: inp.BoundaryGone, fx: Fx) -> Next:
        return run, s.Conclude(s.Fail(INTERRUPTED))

    return boundary_gone


def _input_is_the_end(original: Any) -> Any:
    def after_input(run: s.Run, k: s.AfterInput, fx: Fx) -> Next:
        if k.boundary == "before_completion":
            return run, s.Conclude(s.Complete("EndTurn"))
        return original(run, k, fx)  # type: ignore[no-any-return]

    return after_input


def _never_before_completion(original: Any) -> Any:
    def end_turn(run: s.Run, k: s.EndTurn, fx: Fx) -> Next:
        return original(run, s.EndTurn("asked"), fx)  # type: ignore[no-any-return]

    return end_turn


def _in_the_last_step_too(original: Any) -> Any:
    def end_turn(run: s.Run, k: s.EndTurn, fx: Fx) -> Next:
        after, then = original(run, k, fx)
        fresh = k.collector == "unasked" and run.core.policy.boundary and isinstance(then, s.Conclude)
        return (after, s.AskCollector("before_completion")) if fresh else (after, then)

    return end_turn


# --- how it announces them --------------------------------------------------------------------------------


def _as_steering(original: Any) -> Any:
    def after_input(run: s.Run, k: s.AfterInput, fx: Fx) -> Next:
        after, then = original(run, k, fx)
        return emit(after, fx, (ev.SteeringApplied(("boundary",)),), then)

    return after_input


def _takes_text_back(original: Any) -> Any:
    def after_input(run: s.Run, k: s.AfterInput, fx: Fx) -> Next:
        after, then = original(run, k, fx)
        if k.boundary == "before_provider":
            return after, then
        reset = ev.ProviderStreamReset(ev.InvalidResponse(), "boundary input", 1)
        return emit(after, fx, (reset,), then)

    return after_input


AFTER = (table.FLOW, s.AfterInput)
END_TURN = (table.FLOW, s.EndTurn)

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "steer-announced-as-boundary-input",
        "RHO-BND-1",
        "BoundaryInputApplied is sent for a steer, though no collector is installed",
        (row(table.FLOW, s.SteeringIn, _steers_are_inputs),),
    ),
    Mutant(
        "collector-missed",
        "RHO-BND-1",
        "a run without a collector waits for one before it completes",
        (row(*END_TURN, _asks_nobody),),
    ),
    Mutant(
        "first-step-unasked",
        "RHO-BND-2",
        "the first step begins without asking the collector",
        (row(table.FLOW, s.ConsiderBoundary, _skips_the_first_step),),
    ),
    Mutant(
        "asked-again-for-a-retry",
        "RHO-BND-2",
        "each retry asks the collector again",
        (row(table.FLOW, s.Delay, _again_for_a_retry),),
    ),
    Mutant(
        "lost-collector-fails-the-run",
        "RHO-BND-2",
        "a collector that goes away makes the run commit and fail",
        (row(table.WAIT, (s.Collecting, inp.BoundaryGone), _gone_means_nothing),),
    ),
    Mutant(
        "asked-while-a-job-runs",
        "RHO-BND-2",
        "the collector is asked although a detached job is pending",
        (row(table.FLOW, s.Top, _asks_beside_jobs),),
    ),
    Mutant(
        "asked-in-the-last-step",
        "RHO-BND-3",
        "the collector is asked before the completion of the last permitted step",
        (row(*END_TURN, _in_the_last_step_too),),
    ),
    Mutant(
        "input-ends-the-run",
        "RHO-BND-3",
        "an input before the completion is committed, and the run completes all the same",
        (row(*AFTER, _input_is_the_end),),
    ),
    Mutant(
        "completion-unasked",
        "RHO-BND-3",
        "an end-turn response is committed without asking the collector",
        (row(*END_TURN, _never_before_completion),),
    ),
    Mutant(
        "input-announced-as-steering",
        "RHO-BND-4",
        "a boundary input is announced by SteeringApplied as well",
        (row(*AFTER, _as_steering),),
    ),
    Mutant(
        "input-takes-text-back",
        "RHO-BND-5",
        "a reset withdraws the streamed text when an input is accepted",
        (row(*AFTER, _takes_text_back),),
    ),
)
