"""Mermaid pictures of the machines, drawn from the tables themselves."""

from __future__ import annotations

from collections.abc import Callable

from .run import table as run_table
from .table import mermaid


def run() -> str:
    """Phases, continuations and their rows."""
    return mermaid(run_table.WAIT, run_table.COMMON, run_table.FLOW)


def _chain(title: str, edges: tuple[tuple[str, str, str], ...]) -> str:
    lines = ["stateDiagram-v2", f"    %% {title}"]
    lines += [f"    {a} --> {b}: {label}" for a, b, label in edges]
    return "\n".join(lines) + "\n"


CALL = (
    ("[*]", "preparing", "registered tool"),
    ("[*]", "unavailable", "unknown tool"),
    ("preparing", "prepared", "Prepared"),
    ("preparing", "refused", "PrepareFailed"),
    ("prepared", "authorizing", "ToolStarted, capability wanted"),
    ("prepared", "ready", "ToolStarted"),
    ("authorizing", "ready", "Authorized"),
    ("authorizing", "returned", "Denied"),
    ("refused", "returned", "ToolStarted"),
    ("ready", "running", "Execute"),
    ("running", "returned", "ToolReturned"),
    ("returned", "done", "ToolFinished"),
    ("unavailable", "done", "ToolFinished"),
)
JOB = (
    ("[*]", "preparing", "async tool and marker"),
    ("preparing", "prepared", "Prepared"),
    ("preparing", "failed", "PrepareFailed"),
    ("prepared", "authorizing", "capability wanted"),
    ("prepared", "ready", "none wanted"),
    ("authorizing", "ready", "Authorized"),
    ("authorizing", "failed", "Denied"),
    ("ready", "started", "ToolStarted, Execute"),
    ("failed", "returned", "ToolStarted"),
    ("started", "running", "ToolDetached"),
    ("running", "returned", "ToolReturned"),
    ("running", "stopping", "the run ends, time left"),
    ("stopping", "returned", "ToolReturned or time over"),
    ("returned", "parked", "ToolFinished"),
    ("parked", "[*]", "drained into the history"),
)
STEER = (
    ("[*]", "staged", "Steer"),
    ("staged", "claimed", "SteerClaimed"),
    ("claimed", "staged", "SteerReleased or the attempt failed"),
    ("claimed", "delivered", "SteerDelivered"),
    ("delivered", "staged", "the attempt failed"),
    ("staged", "applied", "SteeringApplied"),
    ("claimed", "applied", "SteeringApplied"),
    ("delivered", "applied", "SteeringApplied"),
    ("staged", "[*]", "Retract"),
)
SESSION = (
    ("Resting", "Admitting", "Start, StartToolCall, Compact"),
    ("Admitting", "Active", "Admitted"),
    ("Admitting", "CompactingByHand", "Admitted"),
    ("Admitting", "Resting", "Refused"),
    ("Active", "Resting", "the run settled"),
    ("Active", "Leaving", "Drop"),
    ("Leaving", "Resting", "TasksGone"),
    ("CompactingByHand", "Resting", "returned, failed or dropped"),
)

MACHINES: dict[str, Callable[[], str]] = {
    "run": run,
    "call": lambda: _chain("one call of a batch", CALL),
    "job": lambda: _chain("one detached call", JOB),
    "steer": lambda: _chain("one steer", STEER),
    "session": lambda: _chain("a session", SESSION),
}
"""Name -> Mermaid text. The leaf machines' edges are checked against the code by a test."""
