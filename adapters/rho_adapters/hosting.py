"""The runtime as something to be judged: what a conformance driver needs to build and to know it by.

Found by the entry-point group `rho_core.runtimes`; the suite never imports this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rho_adapters import errors, host, tool
from rho_adapters.clock import VirtualClock
from rho_adapters.runtime.rho import Rho
from rho_core.config import Policy
from rho_core.messages import History


class Hosting:
    """Builders and the exceptions that the doubles raise or catch."""

    rejected = errors.RhoError
    run_failed = errors.RunFailed
    prepare_failure = tool.PrepareFailure
    tool_failure = tool.ToolFailure
    tool_cancelled = tool.ToolCancelled
    ask_refused = tool.AskRefused
    compaction_failure = host.CompactionFailure
    collector_gone = host.CollectorGone

    def clock(self) -> VirtualClock:
        """A clock that moves when it is told to."""
        return VirtualClock()

    def spec(self, name: str, asynchronous: bool) -> tool.ToolSpec:
        """The declaration of a tool."""
        return tool.ToolSpec(name, asynchronous=asynchronous)

    def compacted(self, messages: History) -> host.Compacted:
        """What a compactor returns."""
        return host.Compacted(messages)

    def make(self, provider: Any, tools: Sequence[Any], policy: Policy, **parts: Any) -> Rho:
        """A runtime with exactly this policy; `parts`: what else `Rho` takes."""
        return Rho(provider, tools, policy=policy, **parts)


runtime = Hosting()
