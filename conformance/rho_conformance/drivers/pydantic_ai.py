"""Target `pydantic-ai`: drives the installed pydantic-ai in process, with scripted model and tools.

    rho-core conform pydantic-ai --profile common

The suite plays the model (a `FunctionModel`), the tools, the caller, its reader and the clock; the run loop
is pydantic-ai's own, entered by `Agent.run_stream_events`. Only documented interfaces are used, and nothing
is decided here: sessions are its `InMemoryConversationStore`, cancelling is its `CancellationToken`, steering
is its `enqueue`.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rho_conformance.errors import UsageError

if TYPE_CHECKING:
    from ._pydantic_ai.world import World

Json = dict[str, Any]

# What the model double cannot say, and what pydantic-ai has no notion of, is absent: text that differs from
# its deltas, usage, asynchronous calls, progress, host questions, boundary inputs, compaction, revisions,
# states, snapshots, shutdown, dropping a session.
CAPABILITIES = [
    *(
        "start",
        "cancel",
        "steer",
        "retract",
        "outcome",
        "read",
        "hold_reader",
        "close_reader",
        "drop",
        "advance",
    ),
    *(f"provider.{item}" for item in ("delta", "reasoning", "call_delta", "return", "fail", "panic")),
    *(f"tool.{item}" for item in ("return", "fail", "panic")),
    *(f"config.{key}" for key in ("max_steps", "max_parallel_tools", "sessions", "system", "tools")),
    "config.tools.mode=sync",
    "config.tools.access=shared",
    "config.tools.access=exclusive",
    "config.tools.on_cancel=stop",
    "config.tools.on_cancel=ignore",
    *(
        f"observe.{what}"
        for what in (
            "events",
            "history",
            "requests",
            "busy",
            "waiting_on",
            "outcome",
            "executions",
            "replies",
        )
    ),
]


class MissingExtra(UsageError):
    """pydantic-ai is not installed: the command ends with exit status 4."""


class PydanticAIDriver:
    """The four methods of the driver protocol; see the project's description of it for the JSON."""

    def __init__(self) -> None:
        self._world: World | None = None

    def hello(self) -> Json:
        return {
            "protocol": 1,
            "name": "pydantic-ai",
            "version": version("pydantic-ai-slim"),
            "profiles": ["common"],
            "capabilities": CAPABILITIES,
            "time": "virtual",
            "deterministic": True,
        }

    def open(self, config: Json) -> Json:
        from ._pydantic_ai.world import World

        self.close()
        for key in ("max_steps", "max_parallel_tools"):
            if config.get(key, 1) < 1:
                return {"error": "InvalidConfiguration"}
        self._world = World(config)
        return {}

    def perform(self, stimuli: list[Json]) -> Json:
        if self._world is None:
            raise RuntimeError("perform before open")
        return self._world.perform(stimuli)

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None


def factory() -> PydanticAIDriver:
    """The driver. Raises `MissingExtra`, naming the extra, when pydantic-ai is not installed."""
    try:
        # It greets the user of a terminal once; a suite that prints reports must stay silent.
        os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
        import pydantic_ai  # noqa: F401
    except ImportError as missing:
        raise MissingExtra(
            "target 'pydantic-ai' needs pydantic-ai: install the extra rho-core[pydantic-ai]"
        ) from missing
    return PydanticAIDriver()
