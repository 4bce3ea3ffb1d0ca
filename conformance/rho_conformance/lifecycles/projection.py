"""Where the core's states stand in the lifecycles: the map, as data, and the few places where data need a look.

A state of a run is projected onto every entity it holds. A set of states stands where the core has forgotten which of
them it was. An entity that is not there is either not begun, or in a final state.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from rho_core import events as ev
from rho_core.messages import ToolCall
from rho_core.run import state as s

Place = tuple[str, str]
"""A machine and one of its states."""
Places = frozenset[Place]
Key = tuple[str, ...]
Projection = dict[Key, Places]


def _at(machine: str, *states: str) -> Places:
    return frozenset((machine, state) for state in states)


# --- the run: phases, events that wait for room, continuations ----------------------------------------------------

PHASES: MappingProxyType[type, tuple[str, ...]] = MappingProxyType(
    {
        s.Fresh: ("new",),
        s.Between: ("boundary",),
        s.Compacting: ("compacting",),
        s.Ebbing: ("compacting",),
        s.Collecting: ("collecting",),
        s.Streaming: ("step",),
        s.Responding: ("step",),
        s.Recording: ("step",),
        s.BackingOff: ("step",),
        s.Draining: ("step",),
        s.Proposing: ("step", "opened", "calling"),
        s.Spawning: ("calling",),
        s.Awaiting: ("step", "calling"),
        s.Batch: ("calling",),
        s.Cancelling: ("ending",),
        s.Stopping: ("ending",),
        s.Settling: ("ending",),
        s.Settled: ("ended", "gone"),
    }
)
PENDING: MappingProxyType[type, tuple[str, ...]] = MappingProxyType(
    {
        ev.Started: ("new",),
        ev.CompactionStarted: ("boundary",),
        ev.CompactionCompleted: ("compacting",),
        ev.BoundaryInputApplied: ("collecting",),
        ev.SteeringApplied: ("boundary",),
        ev.StepStarted: ("boundary",),
        ev.ProviderStreamReset: ("step",),
    }
)
"""While one of these waits for room, it has not happened: the run is where it was before."""
CONTINUATIONS: MappingProxyType[type, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                s.Top,
                s.ConsiderCompaction,
                s.ConsiderBoundary,
                s.AfterInput,
                s.ConsiderSteering,
                s.SteeringIn,
                s.BeginStep,
                s.Limit,
            ),
            ("boundary",),
        ),
        s.CallTheCompactor: ("compacting",),
        s.AskCollector: ("boundary", "step"),
        **dict.fromkeys(
            (
                s.StepBegun,
                s.Ask,
                s.Watch,
                s.Reset,
                s.Delay,
                s.WatchBackoff,
                s.Responded,
                s.Record,
                s.WatchRecorder,
                s.Judge,
                s.Hold,
            ),
            ("step",),
        ),
        s.EndTurn: ("step", "collecting"),
        s.Propose: ("step", "opened"),
        s.Await: ("step", "calling"),
        **dict.fromkeys(
            (
                s.Dispatch,
                s.Spawn,
                s.JobStarted,
                s.JobDetached,
                s.OpenBatch,
                s.Schedule,
                s.CallStarted,
                s.CallFinished,
                s.Asked,
            ),
            ("calling",),
        ),
        s.Conclude: ("ending",),
        s.Commit: ("ending",),
        s.Abandon: ("gone",),
        s.Exit: ("ended", "gone"),
    }
)
"""Where the run is when a continuation begins, which is after the send that led to it."""

# --- the leaves: stages ---------------------------------------------------------------------------------------------

SLOTS: MappingProxyType[str, str] = MappingProxyType(
    {
        "preparing": "preparing",
        "prepared": "preparing",
        "refused": "refused",
        "unavailable": "proposed",
        "authorizing": "authorizing",
        "ready": "started",
        "running": "running",
        "returned": "returned",
        "panicked": "broken",
        "done": "finished",
    }
)
JOBS: MappingProxyType[str, str] = MappingProxyType(
    {
        "preparing": "preparing",
        "prepared": "preparing",
        "authorizing": "authorizing",
        "ready": "preparing",
        "failed": "failed",
        "started": "executing",
        "running": "running",
        "stopping": "stopping",
        "returned": "returned",
        "closed": "dropped",
        "parked": "finished",
    }
)
STEERS: MappingProxyType[str, str] = MappingProxyType(
    {"staged": "staged", "claimed": "claimed", "delivered": "announced"}
)


def project(run: s.Run) -> Projection:
    """Every entity of a run and where it stands."""
    found: Projection = {("run",): _run(run), ("channel",): _channel(run)}
    found.update(_attempts(run))
    found.update(_calls(run))
    found.update(_asks(run))
    found.update(_steers(run))
    return found


def _waiting(run: s.Run) -> tuple[ev.Event, ...]:
    return () if run.blocked is None else run.blocked.sends


def _run(run: s.Run) -> Places:
    phase, waiting = run.phase, _waiting(run)
    if waiting and type(waiting[0]) in PENDING:
        return _at("run", *PENDING[type(waiting[0])])
    if isinstance(phase, s.Proposing):
        if len(waiting) < len(phase.calls):
            return _at("run", "calling")
        return _at("run", "opened" if run.core.step == 0 else "step")
    if isinstance(phase, s.Awaiting):
        return _at("run", "calling" if phase.batch else "step")
    return _at("run", *PHASES[type(phase)])


def _channel(run: s.Run) -> Places:
    if isinstance(run.phase, s.Settled):
        return _at("channel", "closed")
    if run.core.reader == "gone":
        return _at("channel", "lost")
    if run.blocked is not None:
        return _at("channel", "waiting")
    return _at("channel", "open" if run.free else "full")


def _attempts(run: s.Run) -> Iterator[tuple[Key, Places]]:
    phase, waiting = run.phase, _waiting(run)
    if isinstance(phase, (s.Streaming, s.Draining, s.Responding, s.Recording)):
        yield attempt_key(run.core.step, phase.attempt), _at("attempt", _attempt(phase))
    elif waiting and isinstance(waiting[0], ev.ProviderStreamReset):
        malformed = isinstance(waiting[0].reason, ev.InvalidResponse)
        yield attempt_key(run.core.step, waiting[0].attempt), _at("attempt", "completed" if malformed else "failed")


def _attempt(phase: s.Streaming | s.Draining | s.Responding | s.Recording) -> str:
    if isinstance(phase, s.Streaming):
        return "streaming"
    if isinstance(phase, s.Draining):
        return "draining"
    if isinstance(phase, s.Responding):
        return "returned"
    return "completed" if isinstance(phase.then, s.Judge) else "failed"


def attempt_key(step: int, number: int) -> Key:
    return ("attempt", str(step), str(number))


def judged_attempt(before: s.Run, path: list[tuple[tuple[str, str], str]]) -> Projection:
    """What became of the attempt that was open before a step, as the rows say that the step has taken."""
    number = getattr(before.phase, "attempt", None)
    if number is None:
        return {}
    states: tuple[str, ...] = ("cut", "abandoned")
    for (_, row), leaves in path:
        if row in ("Judge", "Record") and leaves == "Conclude":
            states = ("spent",)
        elif row == "Judge" and leaves != "Reset":
            states = ("accepted",)
    return {attempt_key(before.core.step, number): _at("attempt", *states)}


def _calls(run: s.Run) -> Iterator[tuple[Key, Places]]:
    phase = run.phase
    finishing = {e.call_id for e in _waiting(run) if isinstance(e, ev.ToolFinished)}
    if isinstance(phase, s.Proposing):
        unknown = {e.call.id for e in _waiting(run) if isinstance(e, ev.ToolProposed)}
        for call in phase.calls:
            if call.id not in unknown:
                machine = "detached_job" if call.id in phase.detaching else "tool_call"
                yield ("call", call.id), _at(machine, "proposed")
    elif isinstance(phase, s.Spawning):
        yield from _proposed(phase.detaching, "detached_job")
        yield from _proposed(phase.batch, "tool_call")
    elif isinstance(phase, s.Awaiting):
        yield from _proposed(phase.batch, "tool_call")
    elif isinstance(phase, s.Batch):
        for slot in phase.slots:
            guarded = slot.stage == "ready" and slot.plan.capability is not None
            yield ("call", slot.call.id), _at("tool_call", "authorizing" if guarded else SLOTS[slot.stage])
    elif isinstance(phase, s.Settling):
        for call_id in finishing:  # the pool is gone: which of the two it was is forgotten
            yield ("call", call_id), _at("tool_call", "owing") | _at("detached_job", "returned")
    for event in _owed(run):
        yield ("call", event.call_id), _at("tool_call", "owing")
    for job in run.core.jobs:
        states: tuple[str, ...] = (JOBS[job.stage],)
        if job.stage == "ready" and job.plan.capability is not None:
            states = ("authorizing",)
        elif job.stage == "started" and job.completion is not None:
            states = ("early",)
        elif job.stage == "parked" and job.call.id in finishing:
            states = ("returned",)
        elif job.stage == "parked" and run.core.reader == "gone":
            states = ("finished", "dropped")  # its ToolFinished may have been lost with the reader
        yield ("call", job.call.id), _at("detached_job", *states)


def _proposed(calls: tuple[ToolCall, ...], machine: str) -> Iterator[tuple[Key, Places]]:
    for call in calls:
        yield ("call", call.id), _at(machine, "proposed")


def _owed(run: s.Run) -> list[ev.ToolFinished]:
    """What the tail of a decided end will still say of its batch."""
    plan: Any = run.phase.plan if isinstance(run.phase, s.Stopping) else run.blocked and run.blocked.then
    plan = plan.plan if isinstance(plan, s.Commit) else plan
    return [e for e in plan.tail if isinstance(e, ev.ToolFinished)] if isinstance(plan, s.Conclude) else []


def ask_key(run: s.Run, request_id: str) -> Key:
    return ("host_input", str(run.core.step), request_id)


def _asks(run: s.Run) -> Iterator[tuple[Key, Places]]:
    if not isinstance(run.phase, s.Batch):
        return
    asks = run.phase.asks
    coming = {e.request.id for e in _waiting(run) if isinstance(e, ev.ToolHostInputRequested)}
    still_open = {a.request.id for a in asks.open}
    for request_id in asks.used:
        if request_id not in coming:
            states = ("open",) if request_id in still_open else ("answered", "closed")
            yield ask_key(run, request_id), _at("host_input", *states)


def _steers(run: s.Run) -> Iterator[tuple[Key, Places]]:
    over = isinstance(run.phase, s.Settled)
    untold = {e.id for e in _waiting(run) if isinstance(e, ev.SteeringDelivered)}
    for steer in run.core.steers.waiting:
        states: tuple[str, ...] = ("delivered" if steer.id in untold else STEERS[steer.stage],)
        if steer.stage == "delivered" and type(run.phase) in s.ENDING:
            states = ("delivered", "announced")  # a cancel may have dropped what would have told of it
        yield ("steering", steer.id), _at("steering", *(("unapplied",) if over else states))
    for steering_id in run.core.steers.applied:
        yield ("steering", steering_id), _at("steering", "over" if over else "applied")
