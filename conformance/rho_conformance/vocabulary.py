"""What an observation may be called, and which fields each kind has (`spec/protocol.md`, "Observations")."""

from __future__ import annotations

from rho_spec import observations
from rho_spec.observations import ALWAYS, CLOSED, FIELDS

COUNTERS = frozenset({"seq", "step", "at_ms"})
"""The keys of an observation that are not its name."""

EVENTS = frozenset(observations.EVENTS) | frozenset(observations.ORCA_EVENTS)
"""The kinds of run events; what a reader sees beyond these is removed before sequences are judged."""
TERMINAL = frozenset({"Completed", "Cancelled", "Failed"})
NOTIFICATIONS = frozenset(observations.NOTIFICATIONS)
UPCALLS = frozenset(observations.UPCALLS)
COMMANDS = frozenset(observations.COMMANDS)

MESSAGE_KINDS = frozenset({"system", "user", "assistant", "aborted", "result", "completions"})
"""The one key of a message (`spec/protocol.md`, "Messages")."""


def is_refused_again(value: object) -> bool:
    """Whether a reply to `outcome` says that the outcome is another's: whoever asks twice may be told so."""
    return isinstance(value, dict) and value.get("error") == "InvalidHostResponse"


__all__ = [
    "ALWAYS",
    "CLOSED",
    "COMMANDS",
    "COUNTERS",
    "EVENTS",
    "FIELDS",
    "MESSAGE_KINDS",
    "NOTIFICATIONS",
    "TERMINAL",
    "UPCALLS",
    "is_refused_again",
]
