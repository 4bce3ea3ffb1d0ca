"""What happens between steps: steering, compaction, boundary input (RHO-STEER-*, RHO-ORD-11*, RHO-BND-*)."""

from __future__ import annotations

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import ErrorName

from .ghost import Ghost, Steer
from .ghost_turn import is_open, pay
from .ghost_usage import judged, recording

WAITING = ("staged", "claimed", "delivered")


def between(g: Ghost) -> bool:
    """Is this a step boundary: the last response is judged and every sync call of it is over?"""
    return g.turn == "boundary" and all(c.detach or c.stage == "finished" for c in g.calls)


# --- steering ---------------------------------------------------------------------------------------------------------


def steered(g: Ghost, i: inp.Steer) -> None:
    """Accepted until the end is decided; judged with its reply (see `ghost_commands`)."""
    if not g.ending and g.steer(i.steering_id) is None:
        g.steers = (*g.steers, Steer(i.steering_id))


def retracted(g: Ghost, i: inp.Retract) -> None:
    """A staged steer goes; its reply was judged before (see `ghost_commands`)."""
    steer = g.steer(i.steering_id)
    if steer is not None and steer.stage == "staged":
        g.move(steer, "retracted")


def applied(g: Ghost, e: ev.SteeringApplied) -> None:
    g.need(between(g), "RHO-COORD-5", "SteeringApplied inside a step")
    known = [s for s in g.steers if s.id in e.ids]
    order = tuple(s.id for s in known)
    g.need(bool(e.ids) and order == e.ids, "RHO-STEER-2", f"SteeringApplied {e.ids}, accepted in order {order}")
    for steer in known:
        g.need(steer.stage in WAITING, "RHO-STEER-6", f"{steer.id} is applied, it was {steer.stage}")
    delivered = [s.id for s in g.steers if s.stage == "delivered"]
    g.need(not delivered or list(e.ids) == delivered, "RHO-STEER-9", f"{e.ids} is applied before {delivered}")
    g.steers = tuple(s._replace(stage="applied", due=False) if s.id in e.ids else s for s in g.steers)
    g.applied = (*g.applied, *e.ids)
    g.added += len(e.ids)


def claimed(g: Ghost, e: out.ClaimAnswered, i: inp.SteerClaimed) -> None:
    """Granted exactly when the steer is staged and the attempt is open (RHO-STEER-7)."""
    steer = g.steer(e.steering_id)
    may = steer is not None and steer.stage == "staged" and is_open(g, i) and g.policy.steerable and not g.ending
    g.need(e.granted == may, "RHO-STEER-7", f"the claim of {e.steering_id} is answered {e.granted}")
    if steer is not None and e.granted:
        g.move(steer, "claimed")


def delivered(g: Ghost, i: inp.SteerDelivered) -> None:
    steer = g.steer(i.steering_id)
    if steer is not None and steer.stage == "claimed" and is_open(g, i) and not g.ending:
        g.move(steer, "delivered")
        g.owed = (*g.owed, ev.SteeringDelivered(i.steering_id))


def released(g: Ghost, i: inp.SteerReleased) -> None:
    steer = g.steer(i.steering_id)
    current = (g.turn in ("open", "returned") or recording(g)) and (i.step, i.attempt) == (g.step, g.attempt)
    if steer is None or steer.stage != "claimed" or g.ending:
        return
    if current:
        g.move(steer, "staged")
    elif _unjudged(g, i):
        g.steers = tuple(s._replace(loose=True) if s is steer else s for s in g.steers)


def _unjudged(g: Ghost, i: inp.SteerReleased) -> bool:
    """May the attempt still wait to be judged? The recorder's answer is only stored while a job's event is blocked."""
    jobs = any(c.detach for c in g.calls)
    return g.policy.recorder and jobs and g.turn == "boundary" and (i.step, i.attempt) == (g.step, g.attempt)


def announced(g: Ghost, e: ev.SteeringDelivered) -> None:
    pay(g, e, "RHO-STEER-8")


# --- compaction ------------------------------------------------------------------------------------------------------


def compaction_started(g: Ghost, e: ev.CompactionStarted) -> None:
    g.need(between(g), "RHO-ORD-11a", "CompactionStarted inside a step")
    g.need(not g.pending, "RHO-ORD-11f", "CompactionStarted while a detached call is open")
    g.need(g.compaction == "", "RHO-ORD-11a", "a second compaction at one boundary")
    limit = g.compact_at
    due = limit is not None and e.message_count >= limit
    g.need(due, "RHO-ORD-11a", f"CompactionStarted at {e.message_count} messages")
    g.compaction = "started"


def call_compactor(g: Ghost, e: out.CallCompactor) -> None:
    g.need(g.compaction == "started", "RHO-ORD-11a", "the compactor is called before CompactionStarted")
    g.need(not g.ending, "RHO-CAN-7", "the compactor is called after the end was decided")
    g.compaction = "called"


def compactor_returned(g: Ghost, i: inp.CompactorReturned) -> None:
    """A replacement is committed at once, even when the run was cancelled meanwhile (rho.md 3.4)."""
    if ("compactor",) not in g.open:
        return
    if not i.messages:
        g.compactor = g.compactor if g.ending else ErrorName.INVALID_HOST_RESPONSE
    elif _exhausted(g):
        g.abnormal = "exhausted"
    else:
        g.commits, g.compaction, g.compacted, g.applied = g.commits + 1, "owed", True, ()
        g.said = 0
        g.inputs = g.inputs[-1:] if g.collector == "taken" else ()  # a fresh input is left alone (RHO-BND-3)


def _exhausted(g: Ghost) -> bool:
    revision: int = g.config.revision
    return revision + g.commits >= 2**64 - 1


def compactor_failed(g: Ghost, i: inp.CompactorFailed) -> None:
    if ("compactor",) not in g.open or g.ending:
        return
    g.compactor = i.error.name
    if i.error.name is ErrorName.INTERRUPTED:
        g.abnormal = "compactor"


def compacted(g: Ghost, e: ev.CompactionCompleted) -> None:
    g.need(g.compaction == "owed", "RHO-ORD-11b", "CompactionCompleted without a commit")
    revision = g.config.revision + g.commits
    g.need(e.outcome.revision == revision, "RHO-ORD-11b", f"CompactionCompleted names revision {e.outcome.revision}")
    g.compaction = "done"


# --- boundary input ------------------------------------------------------------------------------------------------


def ask_boundary(g: Ghost, e: out.AskBoundary) -> None:
    g.need(between(g) and not g.pending, "RHO-BND-2", "the collector is asked inside a step or beside a detached call")
    judged(g, "the boundary request")
    g.need(g.policy.boundary, "RHO-BND-1", "the collector is asked and none is installed")
    g.need(not g.ending, "RHO-CAN-7", "the collector is asked after the end was decided")
    kind = "before" if e.boundary == "before_provider" else "after"
    g.need(
        g.collector in (("", "after", "taken") if kind == "before" else ("",)),
        "RHO-BND-2",
        f"asked {kind} after {g.collector!r}",
    )
    g.need(kind == "before" or g.step < g.policy.max_steps, "RHO-BND-3", "asked for completion at the last step")
    g.collector = kind


def replied(g: Ghost, i: inp.BoundaryReplied) -> None:
    if ("boundary",) not in g.open or g.ending or i.input is None:
        return
    if _exhausted(g):
        g.abnormal = "exhausted"
    else:
        g.commits, g.inputs, g.added = g.commits + 1, (*g.inputs, i.input), g.added + 1
        g.owed = (*g.owed, ev.BoundaryInputApplied("session", "run", i.input))
        g.collector = "before" if g.collector == "before" else "taken"


def gone(g: Ghost, i: inp.BoundaryGone) -> None:
    if ("boundary",) in g.open:
        g.abnormal = g.abnormal or "collector"


def ack(g: Ghost, e: out.AckBoundary, i: object) -> None:
    """Accepted input is acknowledged as such, and nothing else is."""
    taken = isinstance(i, inp.BoundaryReplied) and i.input is not None and g.abnormal != "exhausted"
    g.need(e.accepted == taken, "RHO-BND-3", f"the collector is told {e.accepted}")


def input_applied(g: Ghost, e: ev.BoundaryInputApplied) -> None:
    pay(g, e, "RHO-BND-4")
