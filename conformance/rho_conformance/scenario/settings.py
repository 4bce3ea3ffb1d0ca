"""The configuration of scenario format §2 as a table."""

from __future__ import annotations

from typing import Any

from rho_conformance.scenario.grammar import exactly_one
from rho_conformance.scenario.patterns import MAX, message
from rho_conformance.scenario.shapes import (
    Shape,
    Where,
    duration,
    filled_list_of,
    flag,
    integer,
    is_map,
    list_of,
    map_of,
    name,
    natural_or,
    one_of,
    record,
    text,
    when,
)

_ON_CANCEL = one_of("stop", "ignore")
_TOOL_OPTIONS = record(
    {
        "mode": one_of("sync", "async"),
        "access": when(is_map, record(write=list_of(text)), one_of("shared", "exclusive")),
        "prepare": one_of("auto", "gated"),
        "authorize": one_of("auto", "gated"),
        "on_cancel": when(is_map, record(complete=duration), _ON_CANCEL),
    }
)
_COMPACTOR = one_of("external", "cooperative")
REVISION = natural_or(MAX)


def _sessions(value: Any, where: Where) -> None:
    filled_list_of(name)(value, where)
    for index, session in enumerate(value):
        if session in value[:index]:
            where.item(value, index).fail(f"the session {session!r} stands twice")


CONFIG: dict[str, Shape] = {
    "event_capacity": integer,
    "max_steps": integer,
    "max_parallel_tools": integer,
    "reader": one_of("eager", "held"),
    "tools": map_of(_TOOL_OPTIONS),
    "provider": record({"steerable": flag, "mode": one_of("external", "cooperative"), "on_cancel": _ON_CANCEL}),
    "compaction": exactly_one({"compactor": _COMPACTOR}, {"messages": integer, "tokens": integer}),
    "compactor": _COMPACTOR,
    "boundary": one_of("gated"),
    "recorder": one_of("auto", "gated"),
    "history": list_of(message),
    "revision": REVISION,
    "system": text,
    "sessions": _sessions,
    "ephemeral": flag,
    "background_limit": integer,
    "completion_capacity": integer,
    "deadline": duration,
    "services": list_of(one_of("subagents", "workflows", "processes")),
}
ORCA_ONLY_CONFIG = ("ephemeral", "background_limit", "completion_capacity", "deadline", "services")

config: Shape = record(CONFIG)
