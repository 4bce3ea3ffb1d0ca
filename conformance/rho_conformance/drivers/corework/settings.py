"""The `config` map of a scenario (format §2): a policy of the core, and the habits of the doubles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rho_core.config
from rho_conformance.drivers.corework import decode
from rho_conformance.errors import DriverError
from rho_core.config import Compaction, Policy, ToolDecl
from rho_core.inputs import Access, Plan
from rho_core.messages import History

ORCA_KEYS = ("ephemeral", "background_limit", "completion_capacity", "deadline", "services")
_KEYS = (
    "event_capacity",
    "max_steps",
    "max_parallel_tools",
    "reader",
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
CAPABILITY = "tool"
"""What a tool with `authorize: gated` asks to be allowed."""


class RefusedConfig(Exception):
    """The configuration is none that the runtime takes; `name` is the error that `open` answers."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class ToolHabit:
    """How the double of one tool behaves; `plan` is what its preparation gives."""

    name: str
    plan: Plan
    gated_prepare: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """One world: the policy of its sessions, its doubles, and the state in which the first session starts."""

    policy: Policy
    tools: Mapping[str, ToolHabit]
    eager: bool
    provider_stops: bool
    gated_recorder: bool
    sessions: tuple[str, ...]
    history: History
    revision: int
    system: str | None


def read(config: Any) -> Settings:
    """Read a `config` map. `RefusedConfig` for values the contract refuses, `DriverError` for bad form."""
    given = decode.fields(config, "config")
    for key in given:
        if key in ORCA_KEYS:
            raise DriverError(f"config.{key}: only the orca profile has it; this driver plays rho")
        if key not in _KEYS:
            raise DriverError(f"config: unknown key {key!r}; known: {', '.join(_KEYS)}")
    policy = _policy(given)
    fault = rho_core.config.check_policy(policy)
    if fault is not None:
        raise RefusedConfig(str(fault.name), fault.message)
    provider = decode.fields(given.get("provider", {}), "config.provider")
    return Settings(
        policy,
        {name: _habit(name, spec) for name, spec in decode.fields(given.get("tools", {}), "config.tools").items()},
        _choice(given.get("reader", "eager"), ("eager", "held"), "config.reader") == "eager",
        _choice(provider.get("on_cancel", "stop"), ("stop", "ignore"), "config.provider.on_cancel") == "stop",
        given.get("recorder") == "gated",
        tuple(given.get("sessions", ["s1"])),
        decode.messages(given.get("history", []), "config.history"),
        _revision(given.get("revision", 0)),
        given.get("system"),
    )


def _policy(given: dict[str, Any]) -> Policy:
    provider = decode.fields(given.get("provider", {}), "config.provider")
    mode = _choice(provider.get("mode", "external"), ("external", "cooperative"), "config.provider.mode")
    if "boundary" in given:
        _choice(given["boundary"], ("gated",), "config.boundary")
    if "recorder" in given:
        _choice(given["recorder"], ("auto", "gated"), "config.recorder")
    return Policy(
        event_capacity=_count(given.get("event_capacity", 64), "event_capacity"),
        max_steps=_count(given.get("max_steps", 32), "max_steps"),
        max_parallel_tools=_count(given.get("max_parallel_tools", 1), "max_parallel_tools"),
        tools=tuple(_declaration(n, s) for n, s in decode.fields(given.get("tools", {}), "tools").items()),
        compaction=_compaction(given),
        boundary="boundary" in given,
        steerable=bool(provider.get("steerable", False)),
        cooperative_provider=mode == "cooperative",
        recorder="recorder" in given,
    )


def _count(value: Any, key: str) -> int:
    if type(value) is not int:
        raise DriverError(f"config.{key}: expected an integer, got {value!r}")
    return value


def _choice(value: Any, choices: tuple[str, ...], where: str) -> str:
    if value not in choices:
        raise DriverError(f"{where}: expected one of {', '.join(choices)}, got {value!r}")
    return str(value)


def _compaction(given: dict[str, Any]) -> Compaction | None:
    if "compaction" not in given:
        return None
    found = decode.fields(given["compaction"], "config.compaction")
    kind = _choice(
        given.get("compactor", found.get("compactor", "external")),
        ("external", "cooperative"),
        "config.compactor",
    )
    return Compaction(found.get("messages"), found.get("tokens"), kind == "cooperative")


def _revision(value: Any) -> int:
    if value == "max":
        return rho_core.config.MAX_REVISION
    return _count(value, "revision")


_TOOL_KEYS = ("mode", "access", "prepare", "authorize", "on_cancel")


def _spec(name: str, spec: Any) -> dict[str, Any]:
    given = decode.fields(spec or {}, f"config.tools.{name}")
    unknown = sorted(set(given) - set(_TOOL_KEYS))
    if unknown:
        raise DriverError(f"config.tools.{name}: unknown key {unknown[0]!r}")
    return given


def _declaration(name: str, spec: Any) -> ToolDecl:
    mode = _choice(_spec(name, spec).get("mode", "sync"), ("sync", "async"), f"config.tools.{name}.mode")
    return ToolDecl(name, mode == "async")


def _habit(name: str, spec: Any) -> ToolHabit:
    given, where = _spec(name, spec), f"config.tools.{name}"
    access, on_cancel = given.get("access", "shared"), given.get("on_cancel", "stop")
    writes: tuple[Access, ...] = ()
    if isinstance(access, Mapping):
        writes = tuple(Access(r, shared=False) for r in decode.need(access, "write", f"{where}.access"))
    else:
        _choice(access, ("shared", "exclusive"), f"{where}.access")
    within = None
    if isinstance(on_cancel, Mapping):
        within = decode.duration_ms(decode.need(on_cancel, "complete", f"{where}.on_cancel"), f"{where}.on_cancel")
    else:
        _choice(on_cancel, ("stop", "ignore"), f"{where}.on_cancel")
    gated = _choice(given.get("authorize", "auto"), ("auto", "gated"), f"{where}.authorize") == "gated"
    plan = Plan(access == "exclusive", writes, CAPABILITY if gated else None, "", within)
    prepare = _choice(given.get("prepare", "auto"), ("auto", "gated"), f"{where}.prepare")
    return ToolHabit(name, plan, prepare == "gated")
