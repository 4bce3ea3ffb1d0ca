"""What a settled session waits for: the answer to "why does it stand still?" (CORE-LIVE, scenario format §6)."""

from __future__ import annotations

from . import calls, jobs
from .run import state as s
from .session import Active, CompactingByHand, Session


def waiting_on(session: Session) -> tuple[str, ...]:
    """Any of model, recorder, tool:ID, timer, compactor, collector, host:REQUEST, reader; empty when nothing goes on.

    A blocked run waits for its reader and for nothing else: it takes nothing from anyone before.
    """
    if isinstance(session.phase, CompactingByHand):
        return ("compactor",)
    if not isinstance(session.phase, Active):
        return ()
    run = session.phase.run
    if run.blocked is not None:
        return ("reader",)
    return (*_of_phase(run.phase), *_of_jobs(run.core.jobs))


def _of_phase(phase: s.Phase) -> tuple[str, ...]:
    if isinstance(phase, (s.Streaming, s.Draining)):
        return ("model",)
    if isinstance(phase, s.Recording):
        return ("recorder",)
    if isinstance(phase, s.BackingOff):
        return ("timer",)
    if isinstance(phase, (s.Compacting, s.Ebbing)):
        return ("compactor",)
    if isinstance(phase, s.Collecting):
        return ("collector",)
    if isinstance(phase, s.Batch):
        tools = tuple(f"tool:{slot.call.id}" for slot in phase.slots if slot.stage in calls.WORKING)
        return (*tools, *(f"host:{a.request.id}" for a in phase.asks.open))
    return ()


def _of_jobs(pool: jobs.Pool) -> tuple[str, ...]:
    tools = tuple(f"tool:{j.call.id}" for j in pool if j.stage in jobs.WORKING and j.completion is None)
    return (*tools, *("timer" for j in pool if j.stage == "stopping"))
