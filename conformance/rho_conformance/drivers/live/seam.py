"""What the driver knows of the runtime it hosts: shapes alone, no import of it (design §2)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol, cast

from rho_conformance.errors import UsageError
from rho_core.config import Policy
from rho_core.messages import History

GROUP = "rho_core.runtimes"


class Clock(Protocol):
    """Virtual time, in milliseconds."""

    def now_ms(self) -> int: ...
    def wake_next(self, until_ms: int) -> bool: ...
    def pass_until(self, until_ms: int) -> None: ...


class Hosting(Protocol):
    """Builders, and the exceptions that doubles raise or the host catches."""

    rejected: type[Exception]
    run_failed: type[Exception]
    prepare_failure: type[Exception]
    tool_failure: type[Exception]
    tool_cancelled: type[Exception]
    ask_refused: type[Exception]
    compaction_failure: type[Exception]
    collector_gone: type[Exception]

    def clock(self) -> Clock: ...
    def spec(self, name: str, asynchronous: bool) -> Any: ...
    def compacted(self, messages: History) -> Any: ...
    def make(self, provider: Any, tools: Sequence[Any], policy: Policy, **parts: Any) -> Any: ...


def hosting(name: str = "anyio") -> Hosting:
    """The registered runtime of that name. Raises UsageError when there is none."""
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            try:
                return cast(Hosting, entry.load())
            except ImportError as missing:
                raise UsageError(f"the runtime {name!r} cannot be loaded: {missing} (extra [adapters])") from missing
    raise UsageError(f"no runtime {name!r} is registered in the entry-point group {GROUP!r}")
