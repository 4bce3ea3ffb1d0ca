"""A synchronous tool batch: propose, prepare, schedule, host input (rho.md 3.6, RHO-ORD-4…10, RHO-COORD-*)."""

from __future__ import annotations

from .. import asks, calls, resources
from .. import effects as out
from .. import events as ev
from .. import inputs as inp
from ..errors import INTERRUPTED, Error, ErrorName
from ..messages import ToolCall
from . import state as s
from .end import fail_batch
from .outbox import Fx, Next, change, emit, to


def batch_of(run: s.Run) -> s.Batch:
    """The phase, in handlers that only this phase reaches."""
    assert isinstance(run.phase, s.Batch)
    return run.phase


def _put(run: s.Run, index: int, slot: calls.Slot) -> s.Run:
    phase = batch_of(run)
    return to(run, s.Batch(calls.put(phase.slots, index, slot), phase.asks))


def propose(run: s.Run, k: s.Propose, fx: Fx) -> Next:
    """Every call is announced in model order before anything of any of them happens (RHO-ORD-4, D3)."""
    assert isinstance(run.phase, s.Proposing)
    return emit(run, fx, tuple(ev.ToolProposed(c) for c in run.phase.calls), s.Dispatch())


def dispatch(run: s.Run, k: s.Dispatch, fx: Fx) -> Next:
    """Async calls are started first; the rest waits for every job of the run (rho.md 3.3 j)."""
    phase = run.phase
    assert isinstance(phase, s.Proposing)
    detaching = tuple(c for c in phase.calls if c.id in phase.detaching)
    batch = tuple(c for c in phase.calls if c.id not in phase.detaching)
    if detaching:
        return to(run, s.Spawning(detaching, batch)), s.Spawn()
    if run.core.jobs:
        return to(run, s.Awaiting(batch)), s.Await()
    return run, s.OpenBatch(batch)


def open_batch(run: s.Run, k: s.OpenBatch, fx: Fx) -> Next:
    """Everything available is prepared at once, whatever `max_parallel_tools` says."""
    registered = {t.name for t in run.core.policy.tools}
    slots = tuple(calls.opened(c, c.name in registered) for c in k.calls)
    fx.extend(out.Prepare(slot.call, False) for slot in slots if slot.stage == "preparing")
    return to(run, s.Batch(slots)), s.Schedule()


def schedule(run: s.Run, k: s.Schedule, fx: Fx) -> Next:
    """One act of the coordinator: at most one send, so that a cancel falls between calls."""
    slots = batch_of(run).slots
    stages = {slot.stage for slot in slots}
    if "panicked" in stages:
        return run, s.Abandon(INTERRUPTED)
    if "preparing" in stages:
        return run, None
    for index, slot in enumerate(slots):
        if slot.stage == "returned":
            return _finish(run, fx, index, slot)
    if stages == {"done"}:
        results = tuple(calls.result(slot) for slot in slots)
        return change(to(run, s.Between()), suffix=run.core.suffix + results), s.Top()
    return _announce(run, fx, slots) or _execute(run, fx, slots)


def _finish(run: s.Run, fx: Fx, index: int, slot: calls.Slot) -> Next:
    completion = slot.completion or calls.INTERRUPTED_COMPLETION
    return emit(run, fx, (ev.ToolFinished(slot.call.id, completion),), s.CallFinished(index))


def _announce(run: s.Run, fx: Fx, slots: tuple[calls.Slot, ...]) -> Next | None:
    """Calls that cannot run come first, in order and past every barrier (RHO-ORD-6); then whoever may start."""
    for index, slot in enumerate(slots):
        if slot.stage == "unavailable":
            return _finish(_put(run, index, calls.unavailable(slot)), fx, index, calls.unavailable(slot))
        if slot.stage == "refused":
            return emit(run, fx, (ev.ToolStarted(slot.call.id, slot.call.name),), s.CallStarted(index))
    plans = tuple(slot.plan for slot in slots)
    for index, slot in enumerate(slots):
        free = all(slots[i].stage == "done" for i in resources.blockers(plans, index))
        if slot.stage == "prepared" and free:
            event = ev.ToolStarted(slot.call.id, slot.call.name, slot.plan.metadata)
            return emit(run, fx, (event,), s.CallStarted(index))
    return None


def _execute(run: s.Run, fx: Fx, slots: tuple[calls.Slot, ...]) -> Next:
    """Fill the free places of `max_parallel_tools`; those being authorised do not count."""
    places = run.core.policy.max_parallel_tools - sum(slot.stage == "running" for slot in slots)
    for index, slot in enumerate(slots):
        if slot.stage == "ready" and places > 0:
            places -= 1
            run = _put(run, index, slot.at("running"))
            fx.append(out.Execute(slot.call.id))
    return run, None


def call_started(run: s.Run, k: s.CallStarted, fx: Fx) -> Next:
    """The reader knows of it; now it may be authorised or run (RHO-ORD-5)."""
    slot = calls.started(batch_of(run).slots[k.index])
    if slot.stage == "authorizing":
        fx.append(out.Authorize(slot.call.id, slot.plan.capability or ""))
    return _put(run, k.index, slot), s.Schedule()


def call_finished(run: s.Run, k: s.CallFinished, fx: Fx) -> Next:
    return _put(run, k.index, batch_of(run).slots[k.index].at("done")), s.Schedule()


# --- what tools report: stored in the slot; the coordinator then looks again ------------------------------------


def _slot(run: s.Run, call_id: str, *stages: calls.Stage) -> tuple[int, calls.Slot] | None:
    slots = batch_of(run).slots
    index = calls.find(slots, call_id, stages)
    return None if index < 0 else (index, slots[index])


def prepared(run: s.Run, i: inp.Prepared, fx: Fx) -> Next:
    found = _slot(run, i.call_id, "preparing")
    return (_put(run, found[0], calls.prepared(found[1], i.plan)), s.Schedule()) if found else (run, None)


def prepare_failed(run: s.Run, i: inp.PrepareFailed, fx: Fx) -> Next:
    found = _slot(run, i.call_id, "preparing")
    return (_put(run, found[0], calls.refused(found[1], i.message)), s.Schedule()) if found else (run, None)


def authorized(run: s.Run, i: inp.Authorized, fx: Fx) -> Next:
    found = _slot(run, i.call_id, "authorizing")
    return (_put(run, found[0], found[1].at("ready")), s.Schedule()) if found else (run, None)


def denied(run: s.Run, i: inp.Denied, fx: Fx) -> Next:
    found = _slot(run, i.call_id, "authorizing")
    return (_put(run, found[0], calls.denied(found[1], i.reason)), s.Schedule()) if found else (run, None)


def returned(run: s.Run, i: inp.ToolReturned, fx: Fx) -> Next:
    """The completion is kept from now on, whatever happens (RHO-CAN-12); open questions of the call close."""
    found = _slot(run, i.call_id, "running")
    if found is None:
        return run, None
    index, slot = found
    phase = batch_of(run)
    slots = calls.put(phase.slots, index, slot.ending("returned", i.completion))
    return to(run, s.Batch(slots, phase.asks.close_call(i.call_id))), s.Schedule()


def panicked(run: s.Run, i: inp.ToolPanicked, fx: Fx) -> Next:
    """A synchronous tool takes the worker with it (RHO-LIM-3)."""
    found = _slot(run, i.call_id, "preparing", "authorizing", "running")
    return (_put(run, found[0], found[1].at("panicked")), s.Schedule()) if found else (run, None)


def progress(run: s.Run, i: inp.ToolProgress, fx: Fx) -> Next:
    if _slot(run, i.call_id, "running") is None:
        return run, None
    return emit(run, fx, (ev.ToolUpdated(i.call_id, i.progress),), s.Schedule())


# --- host input ---------------------------------------------------------------------------------------------------


def asked(run: s.Run, i: inp.ToolAsked, fx: Fx) -> Next:
    """Announce a question; an id that this batch has used fails the run (RHO-COORD-3, D25)."""
    if _slot(run, i.call_id, "running") is None:
        return run, None
    issue = asks.check_request(i.request)
    if issue is not None:
        fx.append(out.RefuseAsk(i.call_id, i.request.id))
        return run, None
    if i.request.id in batch_of(run).asks.used:
        fx.append(out.RefuseAsk(i.call_id, i.request.id))
        text = f"host input request id {i.request.id!r} is used twice in one tool batch"
        return fail_batch(run, Error(ErrorName.INVALID_HOST_RESPONSE, text), fx)
    event = ev.ToolHostInputRequested(i.call_id, i.request)
    return emit(run, fx, (event,), s.Asked(i.call_id, i.request))


def ask_announced(run: s.Run, k: s.Asked, fx: Fx) -> Next:
    """Open from its delivery on, unless the tool has returned meanwhile (RHO-HOST-1)."""
    phase = batch_of(run)
    opened = phase.asks.announce(k.call_id, k.request)
    if _slot(run, k.call_id, "running") is None:
        opened = opened.close(k.request.id)
    return to(run, s.Batch(phase.slots, opened)), s.Schedule()


def ask_withdrawn(run: s.Run, i: inp.AskWithdrawn, fx: Fx) -> Next:
    """The requester stopped waiting: no answer fits any more (RHO-HOST-5)."""
    phase = batch_of(run)
    blocked = run.blocked
    if blocked is not None and isinstance(blocked.then, s.Asked) and blocked.then.request.id == i.request_id:
        # Its announcement is still on its way: it will be seen, and find nothing open.
        used = asks.Asks(phase.asks.open, (*phase.asks.used, i.request_id))
        blocked = s.Blocked(blocked.sends, blocked.cancellable, s.Schedule())
        return s.Run(s.Batch(phase.slots, used), run.free, blocked, run.core), None
    return to(run, s.Batch(phase.slots, phase.asks.close(i.request_id))), None


def open_calls(run: s.Run) -> tuple[ToolCall, ...]:
    """Calls of the batch that something outside works for."""
    return tuple(slot.call for slot in batch_of(run).slots if slot.stage in calls.WORKING)
