"""What sequences are judged on (scenario format §5, "Normalisation"), and short texts for what was seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rho_conformance.trace import Observation, Trace, merged, without_unknown
from rho_conformance.vocabulary import CLOSED, COMMANDS, EVENTS, NOTIFICATIONS, UPCALLS

_NEAR = 3
_LONGEST = 300


def event_view(trace: Trace, session: str) -> list[Observation]:
    """The events read of a session: unknown kinds removed, adjacent deltas merged."""
    return merged(without_unknown(trace.events(session), keep=EVENTS))


def lanes(trace: Trace) -> list[list[Observation]]:
    """Everything observed, by channel. Within one channel the order is known; between two it is by step only.

    The events of one session are a channel, so are all upcalls, all commands, and all notifications.
    """
    sessions = sorted({seen.session or trace.main_session for seen in trace.events()})
    groups = [event_view(trace, session) for session in sessions]
    for names in (UPCALLS, COMMANDS, NOTIFICATIONS, frozenset({CLOSED})):
        groups.append([seen for seen in trace.observations() if seen.name in names])
    return [group for group in groups if group]


def show(value: Any) -> str:
    """A value in one line, cut when it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def show_observation(seen: Observation) -> str:
    """An observation as a pattern would be written."""
    fields = {key: value for key, value in seen.fields.items() if key not in ("session", "run")}
    return f"{seen.name} {show(fields)}" if fields else seen.name


def show_near(items: Sequence[str], position: int) -> str:
    """The items around a position, the one there marked."""
    if not items:
        return "nothing was seen"
    start = max(0, position - _NEAR)
    window = enumerate(items[start : position + _NEAR], start)
    shown = [f">>{item}<<" if number == position else item for number, item in window]
    if position >= len(items):
        shown.append(">>the end<<")
    before = ["…"] if start else []
    after = ["…"] if position + _NEAR < len(items) else []
    return ", ".join([*before, *shown, *after])
