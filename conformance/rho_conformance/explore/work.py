"""What the core has set going outside: begun by an effect, ended exactly once by an answer or by an effect.

The one list of obligations that world and ghost share. It is built from inputs and effects alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_core import effects as out
from rho_core import inputs as inp

Work = tuple[str | int, ...]
Open = tuple[Work, ...]
Issue = tuple[str, str]
"""A rule id and what went against it."""

BEGINS: dict[type, Callable[[Any], Work]] = {
    out.CallModel: lambda e: ("model", e.step, e.attempt),
    out.Prepare: lambda e: ("prepare", e.call.id),
    out.Authorize: lambda e: ("authorize", e.call_id),
    out.Execute: lambda e: ("execute", e.call_id),
    out.StartTimer: lambda e: ("timer", e.timer_id),
    out.CallCompactor: lambda e: ("compactor",),
    out.AskBoundary: lambda e: ("boundary",),
    out.RecordUsage: lambda e: RECORDER,
}
RECORDER: Work = ("recorder",)
TOOL = ("prepare", "authorize", "execute")
ANSWERS: dict[type, Callable[[Any], tuple[Work, ...]]] = {
    inp.ModelReturned: lambda i: (("model", i.step, i.attempt),),
    inp.ModelFailed: lambda i: (("model", i.step, i.attempt),),
    inp.ModelPanicked: lambda i: (("model", i.step, i.attempt),),
    inp.Prepared: lambda i: (("prepare", i.call_id),),
    inp.PrepareFailed: lambda i: (("prepare", i.call_id),),
    inp.Authorized: lambda i: (("authorize", i.call_id),),
    inp.Denied: lambda i: (("authorize", i.call_id),),
    inp.ToolReturned: lambda i: (("execute", i.call_id),),
    inp.ToolPanicked: lambda i: tuple((kind, i.call_id) for kind in TOOL),
    inp.TimerFired: lambda i: (("timer", i.timer_id),),
    inp.CompactorReturned: lambda i: (("compactor",),),
    inp.CompactorFailed: lambda i: (("compactor",),),
    inp.CompactorPanicked: lambda i: (("compactor",),),
    inp.BoundaryReplied: lambda i: (("boundary",),) if i.input is None else (),
    inp.BoundaryGone: lambda i: (("boundary",),),
    inp.UsageRecorded: lambda i: (RECORDER,),
}
STOPS: dict[type, Callable[[Any], tuple[Work, ...]]] = {
    out.AbortModel: lambda e: (("model", e.step, e.attempt),),
    out.AbortTool: lambda e: tuple((kind, e.call_id) for kind in TOOL),
    out.CancelTimer: lambda e: (("timer", e.timer_id),),
    out.AbortCompactor: lambda e: (("compactor",),),
    out.AckBoundary: lambda e: (("boundary",),),
}
RULE: dict[str | int, str] = {
    "model": "RHO-RET-4",
    "prepare": "RHO-ORD-4",
    "authorize": "RHO-ORD-5",
    "execute": "RHO-ORD-5",
    "timer": "RHO-RET-2",
    "compactor": "RHO-ORD-11a",
    "boundary": "RHO-BND-2",
    "recorder": "RHO-RET-11",
}


def refused(effects: tuple[Any, ...]) -> bool:
    """Was the input held back (NotReady)? Then nothing has happened."""
    return bool(effects) and type(effects[0]) is out.NotReady


def answer(open_work: Open, i: Any) -> Open:
    """What is still open after the input."""
    named = ANSWERS.get(type(i))
    if named is None:
        return open_work
    gone = named(i)
    return tuple(w for w in open_work if w not in gone)


def effect(open_work: Open, e: Any, issues: list[Issue]) -> Open:
    """What is open after the effect; beginning twice and stopping what is not there are violations."""
    begins = BEGINS.get(type(e))
    if begins is not None:
        work = begins(e)
        if work in open_work:
            issues.append((RULE[work[0]], f"{work} is begun while it is open"))
        return (*open_work, work)
    stops = STOPS.get(type(e))
    if stops is None:
        return open_work
    gone = stops(e)
    left = tuple(w for w in open_work if w not in gone)
    if len(left) != len(open_work) - 1:
        issues.append(("RHO-CAN-7", f"{type(e).__name__} stops {gone[-1][1:] or gone[-1]}, which is not open"))
    return left
