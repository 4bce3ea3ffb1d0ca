"""One setting of the model: the constants of a `.cfg` file, and the same setting for the reducer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rho_core.config import Policy, ToolDecl
from rho_core.errors import ProviderError
from rho_core.messages import Block, Text, ToolCall
from rho_spec.paths import data_root

from .tlc import Unavailable
from .values import Value, parse

CALLS: dict[str, tuple[str, ...]] = {
    "sync": ("B",),
    "async": ("A",),
    "pair": ("A", "B"),
    "batch": ("B", "D", "E"),
    "jobs": ("A", "C"),
}
"""What `Calls` says in the model: ids of the calls of a response, by its name."""

ASYNC = ("A", "C")
ERRORS = {
    "fail": ProviderError("Timeout", "fail", True),
    "hint": ProviderError("RateLimit", "hint", True, 2_500),
    "long": ProviderError("RateLimit", "long", True, 90_000),
    "permanent": ProviderError("Other", "permanent", False, None, "why"),
}
GRACE_MS = 5


@dataclass(frozen=True)
class Setting:
    """The constants, by their names in the model."""

    name: str
    path: Path
    constants: dict[str, Value]

    def number(self, name: str) -> int:
        value = self.constants[name]
        assert isinstance(value, int)
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """A set of strings, sorted."""
        value = self.constants[name]
        assert isinstance(value, frozenset)
        return tuple(sorted(str(v) for v in value))

    @property
    def calls(self) -> tuple[str, ...]:
        """Ids of every call that some response of the menu has."""
        return tuple(sorted({c for a in self.names("Answers") for c in CALLS.get(a, ())}))

    @property
    def policy(self) -> Policy:
        """The reducer's policy of this setting; every call has a tool of its own."""
        tools = tuple(ToolDecl(tool(c), c in ASYNC) for c in self.calls if c not in self.names("Unknown"))
        return Policy(self.number("Capacity"), self.number("MaxSteps"), self.number("MaxParallel"), tools=tools)


def tool(call_id: str) -> str:
    """The name of the tool that the call is of."""
    return f"tool {call_id}"


def content(answer: str) -> tuple[Block, ...]:
    """What a response of that name consists of."""
    if answer == "malformed":
        return ()
    calls = CALLS.get(answer)
    return (Text("text"),) if calls is None else tuple(ToolCall(c, tool(c), "{}") for c in calls)


def folder() -> Path:
    """Where the model is: `tla/` of the specification. Unavailable when the installation has none."""
    found = data_root() / "tla"
    if not (found / "RhoRun.tla").is_file():
        raise Unavailable(f"the TLA+ model is not part of this installation: there is no {found}")
    return found


def settings(where: Path | None = None) -> tuple[Setting, ...]:
    """The settings of every `.cfg` file but those for liveness, by name."""
    files = sorted((folder() if where is None else where).glob("*.cfg"))
    return tuple(read(f) for f in files if not f.stem.startswith("live"))


def read(path: Path) -> Setting:
    """The constants of one configuration file of TLC."""
    pairs = re.findall(r"^\s*(\w+)\s*=\s*(.+?)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return Setting(path.stem, path, {name: parse(value) for name, value in pairs})
