"""The numbers of a runtime, validated by pydantic, and the core's policy that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from rho_adapters.errors import InvalidConfiguration
from rho_adapters.host import BoundaryCollector, Compactor, UsageRecorder
from rho_adapters.provider import Provider
from rho_adapters.tool import Tool
from rho_core.config import Compaction, Policy, ToolDecl, check_policy

Positive = Annotated[int, Field(ge=1)]


class RhoConfig(BaseModel):
    """Milliseconds and counts; the defaults are the contract's (rho.md 1.6). Raises pydantic's ValidationError.

    `compact_at_messages`, `compact_at_tokens`: when to compact, of use with a compactor only. `save_grace_ms`:
    how long a save of a checkpoint may hold up what comes after it. `close_grace_ms`: how long leaving the
    runtime waits for cancelled work before it drops it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    event_capacity: Positive = 64
    max_steps: Positive = 32
    max_parallel_tools: Positive = 1
    request_budget: Positive = 4
    malformed_budget: Positive = 2
    base_delay_ms: Positive = 1_000
    retry_after_cap_ms: Positive = 60_000
    step_limit: Literal["complete", "fail"] = "complete"
    tool_spec_tokens: Annotated[int, Field(ge=0)] = 0
    compact_at_messages: Positive | None = None
    compact_at_tokens: Positive | None = None
    save_grace_ms: Positive = 5_000
    close_grace_ms: Positive = 5_000


def make_policy(
    config: RhoConfig,
    provider: Provider,
    tools: Sequence[Tool],
    compactor: Compactor | None,
    collector: BoundaryCollector | None,
    recorder: UsageRecorder | None,
) -> Policy:
    """The policy of every session. Raises InvalidConfiguration for what does not go together (RHO-BUF-2)."""
    policy = Policy(
        event_capacity=config.event_capacity,
        max_steps=config.max_steps,
        max_parallel_tools=config.max_parallel_tools,
        request_budget=config.request_budget,
        malformed_budget=config.malformed_budget,
        base_delay_ms=config.base_delay_ms,
        retry_after_cap_ms=config.retry_after_cap_ms,
        step_limit=config.step_limit,
        tools=tuple(ToolDecl(t.spec.name, t.spec.asynchronous) for t in tools),
        compaction=_compaction(config, compactor),
        boundary=collector is not None,
        steerable=provider.steerable,
        cooperative_provider=provider.cooperative,
        identity=provider.identity,
        recorder=recorder is not None,
        tool_spec_tokens=config.tool_spec_tokens,
    )
    return checked(policy)


def checked(policy: Policy) -> Policy:
    """The policy itself. Raises InvalidConfiguration."""
    fault = check_policy(policy)
    if fault is not None:
        raise InvalidConfiguration(fault)
    return policy


def _compaction(config: RhoConfig, compactor: Compactor | None) -> Compaction | None:
    if compactor is None or (config.compact_at_messages is None and config.compact_at_tokens is None):
        return None
    return Compaction(config.compact_at_messages, config.compact_at_tokens, compactor.cooperative)
