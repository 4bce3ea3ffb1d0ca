"""The events of one call in order (S6 of scenario format §6): Proposed, Started, Updated…, Finished."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from rho_conformance.trace import Observation

PROPOSED, STARTED, UPDATED, FINISHED = "ToolProposed", "ToolStarted", "ToolUpdated", "ToolFinished"
_KINDS = (PROPOSED, STARTED, UPDATED, FINISHED)


def tool_event_faults(
    events: Iterable[Observation], whole: Callable[[Observation], bool], mapped: Collection[str] | None
) -> Iterator[tuple[Observation, str]]:
    """The faults in the events of one run. `whole` says whether everything before an event was read.

    `mapped` are the kinds that the runtime has at all: what it never shows cannot be demanded before another
    kind; None demands all of them. An id that is proposed again after it finished begins a new call.
    """
    calls: dict[str, list[str]] = {}
    for seen in events:
        if seen.name not in _KINDS:
            continue
        call = call_of(seen)
        past = calls.setdefault(call, [])
        if seen.name == PROPOSED and FINISHED in past:
            past.clear()
        fault = _fault(seen, past, whole(seen), mapped)
        if fault is not None:
            yield seen, f"call {call}: {fault}"
        past.append(seen.name)


def call_of(seen: Observation) -> str:
    """The id of the call that an event speaks of."""
    call: Any = seen.fields.get("call_id")
    inner = seen.fields.get("call")
    return str(inner.get("id") if call is None and isinstance(inner, dict) else call)


def _fault(seen: Observation, past: list[str], whole: bool, mapped: Collection[str] | None) -> str | None:
    if seen.name != UPDATED and seen.name in past:
        return f"{seen.name} twice"
    later = [kind for kind in past if _KINDS.index(kind) > _KINDS.index(seen.name)]
    if later:
        return f"{seen.name} after {later[0]}"
    if not whole:
        return None
    for kind in _needed(seen):
        if kind not in past and (mapped is None or kind in mapped):
            return f"{seen.name} without {kind} before it"
    return None


def _needed(seen: Observation) -> tuple[str, ...]:
    if seen.name == PROPOSED:
        return ()
    if seen.name == STARTED or (seen.name == FINISHED and seen.fields.get("result") == "unavailable"):
        return (PROPOSED,)
    return (PROPOSED, STARTED)
