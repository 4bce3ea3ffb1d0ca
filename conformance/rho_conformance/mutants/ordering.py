"""Wrong cores around the order of a run's events: RHO-ORD-1, 2, 3, 7, 7b, 12."""

from __future__ import annotations

from typing import Any

from rho_core import capture as cap
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import jobs
from rho_core.ledger import model_view
from rho_core.messages import ToolCall
from rho_core.run import end, state, top, turn
from rho_core.run import state as s
from rho_core.run.outbox import Fx, Next, change, emit
from rho_core.run.table import FLOW, WAIT

from .base import Mutant, attr, entry, row


def _revision_after(begin: Any) -> Any:
    """Counts the commit that is still to come."""

    def handler(run: s.Run, i: inp.Begin, fx: Fx) -> Next:
        own: Fx = []
        kept: Next = begin(run, i, own)
        fx.extend(_later(effect) for effect in own)
        return kept

    return handler


def _later(effect: out.Effect) -> out.Effect:
    if isinstance(effect, out.Deliver) and isinstance(effect.event, ev.Started):
        return out.Deliver(ev.Started(effect.event.run, effect.event.revision + 1))
    return effect


def _step_without_event(_: Any) -> Any:
    def handler(run: s.Run, k: s.BeginStep, fx: Fx) -> Next:
        request = model_view(top.candidate(run.core), jobs.open_ids(run.core.jobs))
        return change(run, step=run.core.step + 1, preserve=0), s.StepBegun(request)

    return handler


def _event_after_request(ask: Any) -> Any:
    def handler(run: s.Run, k: s.Ask, fx: Fx) -> Next:
        run, then = ask(run, k, fx)
        assert isinstance(run.phase, s.Streaming)
        if run.phase.attempt > 1:
            return run, then
        estimate = top.tokens(run.core, k.turn.request)
        return emit(run, fx, (ev.StepStarted(run.core.step, estimate),), then)

    return handler


def _fragments_when_complete(call: Any) -> Any:
    """Holds back the fragments of a call until its arguments are complete."""

    def fold(c: cap.Capture, i: inp.CallDelta, core: state.Core) -> turn.Folded:
        after, events = call(c, i, core)
        slot = next(x for x in after.rest.calls if x.index == i.index)
        if slot.stage == "open":
            return after, ()
        whole = slot.arguments.text()
        return after, tuple(ev.ToolCallUpdated(e.index, e.id, e.name, whole, e.attempt) for e in events)

    return fold


def _every_call_is_marked(_: Any) -> Any:
    def marked(capture: cap.Capture) -> frozenset[str]:
        blocks = cap.seal(capture).rest.blocks.items()
        return frozenset(b.id for b in blocks if isinstance(b, ToolCall))

    return marked


def _owes_nothing(_: Any) -> Any:
    return lambda pool: ()


def _silent_failure(ending: Any) -> Any:
    def wrapped(core: state.Core, end: state.Ending) -> Any:
        outcome, label, events = ending(core, end)
        return outcome, label, () if isinstance(end, s.Fail) else events

    return wrapped


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "started-with-the-next-revision",
        "RHO-ORD-1",
        "Started names the revision that the run is going to commit",
        (row(WAIT, (s.Fresh, inp.Begin), _revision_after),),
    ),
    Mutant(
        "request-before-step-started",
        "RHO-ORD-2",
        "sends the first request of a step and announces the step afterwards",
        (row(FLOW, s.BeginStep, _step_without_event), row(FLOW, s.Ask, _event_after_request)),
    ),
    Mutant(
        "fragments-held-until-complete",
        "RHO-ORD-3",
        "shows a tool call only when its arguments are complete, behind text that came later",
        (entry(turn.FOLD, inp.CallDelta, _fragments_when_complete),),
    ),
    Mutant(
        "async-without-marker",
        "RHO-ORD-7",
        "detaches every call of an async tool, whether the provider marked the call or not",
        (attr(cap, "marked", _every_call_is_marked),),
    ),
    Mutant(
        "interrupted-job-not-finished",
        "RHO-ORD-7b",
        "sends no ToolFinished for the jobs that the end of the run interrupts",
        (attr(end, "_owed", _owes_nothing),),
    ),
    Mutant(
        "silent-failure",
        "RHO-ORD-12",
        "commits a failed run and sends no terminal event",
        (attr(end, "_ending", _silent_failure),),
    ),
)
