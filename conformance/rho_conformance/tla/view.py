"""What the model says of a run: every variable of RhoRun.tla, read off the reducer's state. As strict as `words`."""

from __future__ import annotations

from typing import Any

from rho_core import calls, jobs, session
from rho_core import messages as msg
from rho_core.asks import NO_ASKS
from rho_core.capture import Capture
from rho_core.config import Policy
from rho_core.run import state as s

from .setting import ERRORS, Setting, content
from .values import Value, record
from .words import NO_OUTCOME, completion, ending, event, message, outcome, streamed

PLACES: dict[type, str] = {
    s.Fresh: "fresh",
    s.Streaming: "stream",
    s.BackingOff: "delay",
    s.Spawning: "spawn",
    s.Awaiting: "await",
    s.Batch: "batch",
    s.Stopping: "stopping",
    s.Settled: "over",
    # blocked: where the run goes on
    s.Top: "boundary",
    s.SteeringIn: "applied",
    s.StepBegun: "begun",
    s.Watch: "stream",
    s.Responded: "answered",
    s.Delay: "reset",
    s.WatchBackoff: "delay",
    s.Dispatch: "proposed",
    s.Spawn: "spawn",
    s.JobStarted: "job started",
    s.JobDetached: "detached",
    s.Await: "await",
    s.Schedule: "batch",
    s.CallStarted: "started",
    s.CallFinished: "finished",
    s.Conclude: "conclude",
    s.Exit: "exit",
}
_IDENTITY = session.Identity("session", Policy())
NO_BUDGET = record(requests=0, malformed=0, failed=0)

# --- the state -----------------------------------------------------------------------------------------------------


def _slot(slot: calls.Slot) -> Value:
    at = "unknown" if slot.stage == "unavailable" else slot.stage
    return record(id=slot.call.id, at=at, res=completion(slot.completion, slot.call.id))


def _job(job: jobs.Job) -> Value:
    # A prepared job is ready as soon as the run looks: no call of the model needs an authorisation.
    at = "ready" if job.stage == "prepared" else job.stage
    return record(id=job.call.id, at=at, res=completion(job.completion, job.call.id))


def _ids(of: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(x.id for x in of)


def state(run: s.Run, setting: Setting) -> dict[str, Value]:
    """Every variable of the model but `fx`."""
    phase, core = run.phase, run.core
    then = None if run.blocked is None else run.blocked.then
    plan = phase.plan if isinstance(phase, s.Stopping) else then if isinstance(then, s.Conclude) else None
    place = phase if then is None else then
    return {
        "pc": PLACES.get(type(place), repr(place)),
        "pend": () if run.blocked is None else tuple(map(event, run.blocked.sends)),
        "firm": run.blocked is not None and not run.blocked.cancellable,
        "about": _about(phase, then),
        "queue": setting.number("Capacity") - run.free,
        "reader": core.reader == "open",
        "step": core.step,
        "budget": _budget(phase, then),
        "capture": _captured(phase, plan),
        "answer": _answer(then, setting),
        "wait": then.delay_ms if isinstance(then, s.Delay) else 0,
        "timer": phase.stage if isinstance(phase, s.BackingOff) else "off",
        **_open_calls(phase, plan),
        "slots": _slots(phase),
        "jobs": tuple(map(_job, core.jobs)),
        "steers": tuple(x.id if x.stage == "staged" else repr(x) for x in core.steers.waiting),
        "candidate": tuple(map(message, core.suffix)),
        "history": tuple(map(message, core.ledger.history)),
        "revision": core.ledger.revision,
        "ending": "none" if plan is None else ending(plan.ending),
        "outcome": outcome(phase.end, core.ledger.revision) if isinstance(phase, s.Settling) else NO_OUTCOME,
        "label": session.session_state(session.Session(_IDENTITY, session.Active(run))),
    }


def _about(phase: s.Phase, then: s.Continuation | None) -> tuple[str, ...]:
    match then:
        case s.SteeringIn(ids):
            return ids
        case s.JobStarted(call_id) | s.JobDetached(call_id):
            return (call_id,)
        case s.CallStarted(index) | s.CallFinished(index) if isinstance(phase, s.Batch):
            return (phase.slots[index].call.id,)
    return ()


def _budget(phase: s.Phase, then: s.Continuation | None) -> Value:
    turn = getattr(then, "turn", None) or getattr(phase, "turn", None)
    if not isinstance(turn, s.Turn):
        return NO_BUDGET
    spent = turn.budget
    return record(requests=spent.requests, malformed=spent.malformed, failed=spent.failed)


def _captured(phase: s.Phase, plan: s.Conclude | None) -> frozenset[Value]:
    if isinstance(phase, (s.Streaming, s.Responding)):
        return _capture(phase.capture)
    if plan is None or plan.aborted is None:
        return frozenset()
    return streamed(plan.aborted.content, plan.aborted.provider_context)


def _capture(c: Capture) -> frozenset[Value]:
    open_text = () if c.tail is None else (msg.Text(c.tail),)
    rest = c.rest
    known = not (rest.summary or rest.calls or c.spine) and rest.usage == msg.NO_USAGE
    return streamed((*rest.blocks.items(), *open_text), rest.context) if known else frozenset({repr(c)})


def _answer(then: s.Continuation | None, setting: Setting) -> str:
    if not isinstance(then, s.Responded):
        return "none"
    menu = (a for a in setting.names("Answers") if a not in ERRORS)
    return next((a for a in menu if content(a) == then.content), repr(then))


def _open_calls(phase: s.Phase, plan: s.Conclude | None) -> dict[str, Value]:
    todo: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    match phase:
        case s.Proposing(called, detaching):
            todo, detach = tuple(c.id for c in called if c.id not in detaching), detaching
        case s.Spawning(detaching_calls, batch):
            todo, detach = _ids(batch), _ids(detaching_calls)
        case s.Awaiting(batch):
            todo = _ids(batch)
    return {"todo": todo if plan is None else _ids(plan.results), "detach": detach}


def _slots(phase: s.Phase) -> Value:
    if not isinstance(phase, s.Batch):
        return ()
    return tuple(map(_slot, phase.slots)) if phase.asks == NO_ASKS else repr(phase.asks)
