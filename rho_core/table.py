"""Rows of the two tables that define a run (design §3.2), and what can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from .record import record

Default = Literal["ignored", "rejected", "unreachable"]


@record
class Row:
    """`handler(run, trigger, fx) -> (run, continuation | None)`.

    `exits`: every phase it may leave the run waiting in and every continuation it may go on with, and no other.
    `rules`: ids the row serves.
    """

    handler: Callable[..., Any]
    exits: tuple[type, ...]
    rules: tuple[str, ...]


WaitTable = Mapping[tuple[type, type], Row]
FlowTable = Mapping[type, Row]

RowKey = tuple[str, str]
"""("Streaming", "TextDelta") for a wait row, ("*", "Cancel") for one of every phase, ("->", "Top") for a flow row."""


def wait_key(phase: type, trigger: type) -> RowKey:
    return (phase.__name__, trigger.__name__)


def common_key(trigger: type) -> RowKey:
    return ("*", trigger.__name__)


def flow_key(continuation: type) -> RowKey:
    return ("->", continuation.__name__)


def mermaid(wait: WaitTable, common: FlowTable, flow: FlowTable) -> str:
    """A state diagram of the tables: phases and continuations are states, rows are edges."""
    lines = ["stateDiagram-v2"]
    for (phase, trigger), row in wait.items():
        lines += [f"    {phase.__name__} --> {e.__name__}: {trigger.__name__}" for e in row.exits]
    for trigger, row in common.items():
        lines += [f"    AnyPhase --> {e.__name__}: {trigger.__name__}" for e in row.exits]
    for continuation, row in flow.items():
        lines += [f"    {continuation.__name__} --> {e.__name__}" for e in row.exits]
    return "\n".join(lines) + "\n"
