"""Keep to what a target declared, so that one alphabet serves the core, other runtimes and the common profile."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from rho_conformance.driver import Hello, JsonMap
from rho_conformance.scenario.features import features
from rho_conformance.scenario.model import Scenario, Step

COMMON = (
    *("start", "cancel", "steer", "retract", "outcome", "read", "hold_reader", "close_reader", "drop"),
    "advance",
    *(f"provider.{item}" for item in ("delta", "reasoning", "call_delta", "return", "fail", "panic")),
    *(f"tool.{item}" for item in ("return", "fail", "panic")),
    *(f"config.{key}" for key in ("max_steps", "max_parallel_tools", "sessions", "system", "tools")),
    *("config.tools.mode=sync", "config.tools.access=*", "config.tools.on_cancel=stop"),
    "config.tools.on_cancel=ignore",
)
"""What any agent runtime can be asked: the profile `common` plays nothing else."""


EXTENSIONS = {"provider": ("tier_fallback",), "tool": ("withdraw",)}
"""Items that scenario format 1 does not have (protocol, "Extensions")."""


def extension_of(stimulus: JsonMap) -> str | None:
    """The extension that a stimulus needs, or None for one of the scenario format."""
    ((name, value),) = stimulus.items()
    found = [item for item in EXTENSIONS.get(name, ()) if isinstance(value, dict) and item in value]
    return f"{name}.{found[0]}" if found else None


class Allowed:
    """Which stimuli and configurations may be played: declared by the target, and part of the profile."""

    def __init__(self, hello: Hello, profile: str) -> None:
        self.hello = hello
        self.common = profile == "common"
        self._known: dict[str, bool] = {}

    def feature(self, feature: str) -> bool:
        """Whether a feature may be used (protocol, "Capabilities")."""
        if feature not in self._known:
            wanted = not self.common or any(fnmatchcase(feature, pattern) for pattern in COMMON)
            self._known[feature] = wanted and self.hello.supports(feature)
        return self._known[feature]

    def stimulus(self, stimulus: JsonMap) -> bool:
        """Whether a stimulus may be performed."""
        extension = extension_of(stimulus)
        if extension is not None:
            # Beyond the scenario format: "*" does not speak of it.
            return not self.common and extension in self.hello.raw.get("extensions", ())
        if not self.common and "*" in self.hello.capabilities:
            return True
        ((name, value),) = stimulus.items()
        return all(map(self.feature, features(_scenario({}, (Step(name, value, 0),)))))

    def config(self, config: JsonMap) -> JsonMap:
        """The configuration without the parts that may not be used; a tool that is left may lose options."""
        kept = {key: value for key, value in config.items() if self._fits({key: value})}
        if not self._readable(config):
            del kept["reader"]
        tools = {
            name: {key: value for key, value in (options or {}).items() if self._fits(_tool({key: value}))}
            for name, options in config.get("tools", {}).items()
        }
        if tools and self.feature("config.tools"):
            kept["tools"] = tools
        return kept

    def script(self, config: JsonMap, steps: Iterable[Iterable[JsonMap]]) -> bool:
        """Whether a fixed script may be played as it stands: a world with parts left out is another script."""
        fits = self._readable(config) and self._fits(config)
        return fits and all(self.stimulus(one) for step in steps for one in step)

    def _readable(self, config: JsonMap) -> bool:
        """No capability speaks of `reader`: only a target that can hold its reader has the choice."""
        return config.get("reader") != "held" or (self.feature("hold_reader") and self.feature("read"))

    def _fits(self, config: JsonMap) -> bool:
        return all(map(self.feature, features(_scenario(config, ()))))


def _tool(options: JsonMap) -> JsonMap:
    return {"tools": {"t": options}}


def _scenario(config: JsonMap, steps: tuple[Step, ...]) -> Scenario:
    return Scenario("generated", (), "rho", config, steps, {}, "generated", 0)
