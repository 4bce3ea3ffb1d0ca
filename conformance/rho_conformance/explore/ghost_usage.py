"""What the usage recorder is given: one record for each physical request, in order, each awaited (RHO-RET-11)."""

from __future__ import annotations

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp

from .ghost import Ghost, Moment
from .work import RECORDER

JUDGEMENT = (
    ev.ProviderStreamReset,
    ev.ToolProposed,
    ev.SteeringApplied,
    ev.CompactionStarted,
    ev.StepStarted,
    ev.Completed,
    ev.Failed,
)
"""Events that show what became of an attempt: none of them comes before its records are written."""


def due(g: Ghost, outcome: str, error_kind: str | None = None) -> None:
    """A physical request is over."""
    if g.policy.recorder:
        g.records = (*g.records, (g.physical, outcome, error_kind))


def physical(g: Ghost, i: inp.PhysicalAttemptFailed) -> None:
    """One more physical request inside the same attempt."""
    due(g, "Failed", i.error_kind)
    if g.policy.recorder:
        g.physical += 1


def recording(g: Ghost) -> bool:
    """Is a record of an attempt that is over still to be written or to be answered?"""
    return RECORDER in g.open or (bool(g.records) and g.turn not in ("open", "returned"))


def cut_short(g: Ghost, m: Moment) -> None:
    """A run that ends does not wait for the recorder; an attempt that is aborted for it has its record all the same."""
    if m.sent(out.AbortModel) and not isinstance(m.input, inp.Drop):
        if isinstance(m.input, inp.Cancel):
            due(g, "Cancelled")
        else:
            due(g, "Failed", "Interrupted")
    if _unheard(g, m):
        g.open = tuple(w for w in g.open if w != RECORDER)


def _unheard(g: Ghost, m: Moment) -> bool:
    return g.cancelled or bool(m.sent(out.ReportOutcome))


def forgotten(g: Ghost, m: Moment, e: object) -> bool:
    """Is it a record whose answer nobody waits for?"""
    return type(e) is out.RecordUsage and _unheard(g, m)


def recorded(g: Ghost, e: out.RecordUsage) -> None:
    """The next record that is due, and not while its attempt may still be heard of."""
    found = (e.attempt, e.outcome, e.error_kind)
    g.need(g.records[:1] == (found,) and e.step == g.step, "RHO-RET-11", f"record {found}, due are {g.records}")
    over = g.turn not in ("open", "returned") or g.cancelled or not g.reader
    g.need(over, "RHO-RET-11", f"a record while the attempt is {g.turn}")
    g.records = g.records[1:]


def judged(g: Ghost, what: str) -> None:
    """Something follows the attempt: its records are written and answered."""
    g.need(g.cancelled or not recording(g), "RHO-RET-11", f"{what} before the attempt is recorded")


def all_written(g: Ghost) -> None:
    """No record is lost at the end, unless by a drop or by a worker that died."""
    excused = g.abnormal in ("drop", "panic")
    g.need(excused or not g.records, "RHO-RET-11", f"the run is over, and {g.records} were never recorded")
