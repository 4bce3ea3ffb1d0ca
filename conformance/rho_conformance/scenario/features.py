"""What a scenario needs of a driver (`spec/protocol.md`, "Capabilities"), and what of it cannot run yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rho_conformance.scenario.expectations import ORCA_KEYS, alternatives
from rho_conformance.scenario.grammar import (
    COMPACTOR_ITEMS,
    ORCA_ONLY_KEYS,
    ORCA_ONLY_STIMULI,
    PROVIDER_ITEMS,
    SHORTHAND_ITEMS,
    TOOL_ITEMS,
    is_shorthand,
)
from rho_conformance.scenario.model import Scenario
from rho_conformance.scenario.names import unfolded
from rho_conformance.scenario.patterns import pattern_name, patterns_in
from rho_conformance.scenario.settings import ORCA_ONLY_CONFIG
from rho_conformance.vocabulary import EVENTS, NOTIFICATIONS

_ITEMS = {"provider": PROVIDER_ITEMS, "tool": TOOL_ITEMS, "compactor": COMPACTOR_ITEMS}

_OBSERVABLES = {
    "outcome": "outcome",
    "outcomes": "outcome",
    "events": "events",
    "history": "history",
    "history_unordered": "history",
    "requests": "requests",
    "replies": "replies",
    "state": "state",
    "busy": "busy",
    "revision": "revision",
    "executions": "executions",
    "records": "records",
    "snapshot": "snapshot",
    "waiting_on": "waiting_on",
}
"""Key of `expect` -> the observable it asks for."""

_UPCALL_OBSERVABLES = {
    "ModelCall": "requests",
    "ToolExecute": "executions",
    "Record": "records",
    "Reply": "replies",
}
_PLAIN_CHOICES = ("compactor", "boundary", "recorder")


def features(scenario: Scenario) -> list[str]:
    """All features of a scenario, sorted. A driver that does not declare one of them cannot run it."""
    found = set(_config_features(scenario.config))
    for name, value in walk_steps(scenario):
        found.update(_step_features(name, value))
    found.update(_expect_features(scenario.expect))
    return sorted(found)


def not_yet(scenario: Scenario) -> list[str]:
    """The stimuli, configuration and expectations of a scenario that belong to Orca and are not built yet."""
    found = {f"config.{key}" for key in ORCA_ONLY_CONFIG if key in scenario.config}
    for name, value in walk_steps(scenario):
        if name in ORCA_ONLY_STIMULI or (name == "query" and value == "processes"):
            found.add(name if name != "query" else "query processes")
        elif isinstance(value, dict):
            found.update(f"{name}.{key}" for key in ORCA_ONLY_KEYS.get(name, ()) if key in value)
    for expectation in _expectations(scenario):
        found.update(f"expect.{key}" for key in expectation if key in ORCA_KEYS)
        found.update(name for name in map(pattern_name, _patterns(expectation)) if name in NOTIFICATIONS)
    return sorted(found)


def walk_steps(scenario: Scenario) -> Iterator[tuple[str, Any]]:
    """Every stimulus that the driver will get, also those inside `together` and `maybe`; lists unfolded."""
    for step in scenario.steps:
        yield from unfolded(step.name, step.value)


def _step_features(name: str, value: Any) -> Iterator[str]:
    if name == "check":
        yield from _expect_features(value)
    elif name == "until":
        yield from _pattern_features(value)
    elif name in _ITEMS:
        yield from _item_features(name, value)
    else:
        yield name
        if name == "start_tool":
            yield from _call_features([value["call"]])


def _item_features(name: str, item: dict[str, Any]) -> Iterator[str]:
    if name == "provider" and is_shorthand(item):
        yield from (f"provider.{SHORTHAND_ITEMS[key]}" for key in item if key in SHORTHAND_ITEMS)
        yield "provider.return"
        yield from _call_features(item.get("calls", []))
        return
    for key, value in item.items():
        if key in _ITEMS[name]:
            yield f"{name}.{key}"
            if name == "provider" and key == "return":
                yield from _call_features(value.get("calls", []))


def _call_features(calls: list[dict[str, Any]]) -> Iterator[str]:
    if any(call.get("async") for call in calls):
        yield "call.async"


def _config_features(config: dict[str, Any]) -> Iterator[str]:
    for key, value in config.items():
        if key == "reader":
            continue
        yield f"config.{key}"
        if key in _PLAIN_CHOICES:
            yield f"config.{key}={value}"
    for options in config.get("tools", {}).values():
        for key, value in options.items():
            yield f"config.tools.{key}={_choice(value)}"
    for key, value in config.get("provider", {}).items():
        if key != "steerable":
            yield f"config.provider.{key}={value}"
        elif value:
            yield "config.provider.steerable"
    if "compactor" in config.get("compaction", {}):
        yield f"config.compactor={config['compaction']['compactor']}"


def _choice(value: Any) -> str:
    """A choice with a parameter (`{write: […]}`, `{complete: 1s}`) is named by its key."""
    return str(next(iter(value))) if isinstance(value, dict) else str(value)


def _expectations(scenario: Scenario) -> Iterator[dict[str, Any]]:
    yield from _with_sessions(scenario.expect)
    for name, value in walk_steps(scenario):
        if name == "check":
            yield from _with_sessions(value)
        elif name == "until":
            yield {"absent": [value]}


def _with_sessions(expectation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for alternative in alternatives(expectation):
        yield alternative
        yield from alternative.get("sessions", {}).values()


def _expect_features(expectation: dict[str, Any]) -> Iterator[str]:
    for alternative in _with_sessions(expectation):
        for key in alternative:
            if key in _OBSERVABLES:
                yield f"observe.{_OBSERVABLES[key]}"
        for pattern in _patterns(alternative):
            yield from _pattern_features(pattern)


def _patterns(expectation: dict[str, Any]) -> Iterator[Any]:
    """All observation patterns of one map of `expect`."""
    yield from patterns_in(expectation.get("events"))
    for sequence in expectation.get("order", []):
        yield from patterns_in(sequence)
    for count in expectation.get("count", []):
        yield count["of"]
    yield from expectation.get("absent", [])
    for sequence in expectation.get("notes", {}).values():
        yield from patterns_in(sequence)


def _pattern_features(pattern: Any) -> Iterator[str]:
    # Without this, `absent` would hold on a driver that cannot see the thing at all.
    name = pattern_name(pattern)
    if name in EVENTS:
        yield "observe.events"
    elif name in _UPCALL_OBSERVABLES:
        yield f"observe.{_UPCALL_OBSERVABLES[name]}"
