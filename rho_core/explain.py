"""What a session can take now, and why an input would have no effect (design §3.2): asked of the tables and of `step`.

`step` is pure, so "what would happen" is found by trying it; the tables say which rule stands behind the answer.
"""

from __future__ import annotations

from typing import Literal

from . import effects as fx
from . import inputs as inp
from .record import record
from .run import state as rs
from .run import table
from .session import IDLE_ONLY, Active, Admitting, CompactingByHand, Leaving, Resting, Session, step

Why = Literal["blocked", "rejected", "late", "no row", "stale", "unknown"]


@record
class WhyNot:
    """`why`: the kind of reason; `text`: in words; `rules`: those that demand it, as far as one is named.

    blocked: a send waits for the reader, offer it again. rejected: refused under the rule. late: no run, or
    another one. no row: the phase has nothing to do with it. stale: of another step or attempt. unknown: the call,
    timer or question it names is not open.
    """

    why: Why
    text: str
    rules: tuple[str, ...] = ()


def enabled(session: Session) -> tuple[type, ...]:
    """Types of the inputs that something would be done with, in the order of the vocabulary.

    Of a type, not of a value: an input of an enabled type may still name a call that is not open. Gated types
    are left out while a send is blocked.
    """
    phase = session.phase
    if isinstance(phase, Resting):
        return tuple(IDLE_ONLY)
    if isinstance(phase, Admitting):
        return (inp.Admitted, inp.Refused)
    if isinstance(phase, Leaving):
        return (inp.TasksGone,)
    if isinstance(phase, CompactingByHand):
        return (inp.Cancel, inp.Drop, inp.CompactorReturned, inp.CompactorFailed, inp.CompactorPanicked)
    return _of_run(phase.run)


def _of_run(run: rs.Run) -> tuple[type, ...]:
    rows = {trigger for at, trigger in table.WAIT if at is type(run.phase)} | set(table.COMMON)
    blocked = run.blocked is not None
    return tuple(i for i, kind in inp.INPUT_CLASS.items() if i in rows and not (blocked and kind == "gated"))


def why_not(session: Session, value: inp.SessionInput) -> WhyNot | None:
    """Why this input would have no effect now; None when it would have one. Raises TypeError as `step` does."""
    after = step(session, value)
    for effect in after.effects:
        if isinstance(effect, fx.NotReady):
            return WhyNot("blocked", "a send waits for the reader: feed Taken, then offer it again", ("RHO-BUF-4",))
        if isinstance(effect, fx.Rejected):
            return WhyNot("rejected", str(effect.error.message), (effect.rule,))
    if after.effects or after.state != session:
        return None
    return _ignored(session, value)


def _ignored(session: Session, value: inp.SessionInput) -> WhyNot:
    phase = session.phase
    if isinstance(value, inp.ForRun) and session.run_id != value.run:
        active = "none" if session.run_id is None else session.run_id
        return WhyNot("late", f"it is for run {value.run}, and active is {active}")
    inner = value.input if isinstance(value, inp.ForRun) else value
    if not isinstance(phase, Active):
        return WhyNot("late", f"{type(phase).__name__} takes no {type(inner).__name__}")
    run = phase.run
    row = table.WAIT.get((type(run.phase), type(inner))) or table.COMMON.get(type(inner))
    if row is None:
        return WhyNot("no row", f"{type(run.phase).__name__} has no row for {type(inner).__name__}")
    open_at = (run.core.step, getattr(run.phase, "attempt", None))
    at = (getattr(inner, "step", open_at[0]), getattr(inner, "attempt", open_at[1]))
    if at != open_at:
        return WhyNot("stale", f"it is of step and attempt {at}, open is {open_at}", row.rules)
    return WhyNot("unknown", f"{type(inner).__name__} changes nothing now: what it names is not open", row.rules)
