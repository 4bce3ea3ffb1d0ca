"""The capability features of the driver protocol (protocol.md): what a target can do and show."""

from collections.abc import Mapping
from typing import Final

STIMULI: Final = (
    "start",
    "start_tool",
    "cancel",
    "steer",
    "retract",
    "respond",
    "outcome",
    "read",
    "hold_reader",
    "close_reader",
    "drop",
    "drop_session",
    "drop_runtime",
    "shutdown",
    "new_session",
    "compact",
    "reset",
    "clear",
    "reset_in_place",
    "append",
    "replace_history",
    "snapshot",
    "save",
    "restore",
    "crash",
    "provider",
    "tool",
    "compactor",
    "boundary",
    "recorder",
    "advance",
    "query",
)
PROVIDER_ITEMS: Final = (
    "delta",
    "reasoning",
    "summary",
    "call_delta",
    "context",
    "usage",
    "generation_tokens",
    "web_search",
    "hosted",
    "physical_retry",
    "claim",
    "deliver",
    "release",
    "cancel_token",
    "drop_token",
    "return",
    "fail",
    "panic",
)
TOOL_ITEMS: Final = (
    "prepared",
    "prep_fail",
    "authorize",
    "progress",
    "ask",
    "return",
    "fail",
    "cancelled",
    "panic",
    "cancel_token",
    "drop_token",
)
COMPACTOR_ITEMS: Final = ("return", "fail", "interrupted", "panic")
CONFIG_KEYS: Final = (
    "event_capacity",
    "max_steps",
    "max_parallel_tools",
    "tools",
    "provider",
    "compaction",
    "compactor",
    "boundary",
    "recorder",
    "history",
    "revision",
    "system",
    "sessions",
)
# Configuration values that are a choice: the value is a feature too, written `config.KEY=value`.
CONFIG_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "tools.mode": ("sync", "async"),
    "tools.access": ("shared", "exclusive", "write"),
    "tools.prepare": ("auto", "gated"),
    "tools.authorize": ("auto", "gated"),
    "tools.on_cancel": ("stop", "ignore", "complete"),
    "provider.mode": ("external", "cooperative"),
    "provider.on_cancel": ("stop", "ignore"),
    "compactor": ("external", "cooperative"),
    "boundary": ("gated",),
    "recorder": ("auto", "gated"),
}
OBSERVABLES: Final = (
    "events",
    "history",
    "requests",
    "state",
    "busy",
    "revision",
    "records",
    "snapshot",
    "waiting_on",
    "outcome",
    "executions",
    "replies",
)

_ALL: Final = frozenset(
    [
        *STIMULI,
        *(f"provider.{item}" for item in PROVIDER_ITEMS),
        *(f"tool.{item}" for item in TOOL_ITEMS),
        *(f"compactor.{item}" for item in COMPACTOR_ITEMS),
        *(f"config.{key}" for key in CONFIG_KEYS),
        *(f"config.{key}={value}" for key, values in CONFIG_CHOICES.items() for value in values),
        "config.provider.steerable",
        "call.async",
        *(f"observe.{name}" for name in OBSERVABLES),
    ]
)


def is_feature(name: str) -> bool:
    """Whether the protocol knows this feature (exact names; wildcards belong to what a driver declares)."""
    return name in _ALL


def all_features() -> frozenset[str]:
    """Every feature a scenario or a rule can ask for."""
    return _ALL
