"""The numbers and labels of one run machine (`Policy`) and the constants of the contract (rho.md 1.6)."""

from __future__ import annotations

from typing import Literal

from .errors import Error, ErrorName
from .messages import Identity
from .record import record

MAX_REVISION = 2**64 - 1


@record
class ToolDecl:
    """A registered tool. `asynchronous`: it may be detached when the provider marks the call as well."""

    name: str
    asynchronous: bool = False


@record
class Compaction:
    """When to compact: at `messages` messages, or at `tokens` estimated tokens, whichever is set."""

    messages: int | None = None
    tokens: int | None = None
    cooperative: bool = False


@record
class Policy:
    """Everything of a run that is a number or a label. Milliseconds and counts; nothing may be zero."""

    event_capacity: int = 64
    max_steps: int = 32
    max_parallel_tools: int = 1
    request_budget: int = 4
    malformed_budget: int = 2
    base_delay_ms: int = 1_000
    retry_after_cap_ms: int = 60_000
    step_limit: Literal["complete", "fail"] = "complete"
    tools: tuple[ToolDecl, ...] = ()
    compaction: Compaction | None = None
    boundary: bool = False
    steerable: bool = False
    cooperative_provider: bool = False
    identity: Identity = Identity()
    recorder: bool = False
    tool_spec_tokens: int = 0


_POSITIVE = (
    "event_capacity",
    "max_steps",
    "max_parallel_tools",
    "request_budget",
    "malformed_budget",
    "base_delay_ms",
    "retry_after_cap_ms",
)


def check_policy(policy: Policy) -> Error | None:
    """InvalidConfiguration for a number that is not at least one or a tool declared twice (RHO-BUF-2)."""
    for name in _POSITIVE:
        if getattr(policy, name) < 1:
            return Error(ErrorName.INVALID_CONFIGURATION, f"{name} must be at least 1 (RHO-BUF-2)")
    if policy.tool_spec_tokens < 0:
        return Error(ErrorName.INVALID_CONFIGURATION, "tool_spec_tokens must not be negative")
    if policy.compaction is not None:
        thresholds = (policy.compaction.messages, policy.compaction.tokens)
        if all(t is None for t in thresholds) or any(t is not None and t < 1 for t in thresholds):
            return Error(ErrorName.INVALID_CONFIGURATION, "compaction needs a threshold of at least 1")
    names = [t.name for t in policy.tools]
    for name in names:
        if not name or names.count(name) > 1:
            return Error(ErrorName.INVALID_CONFIGURATION, f"tool name {name!r} is blank or used twice")
    return None
