"""`rho-core tla`: TLC checks the TLA+ model, and the model's state graph is compared with the reducer, edge by edge.

The model (`spec/tla/`) is written from the prose. What ties it to `rho_core` is the comparison alone: see `bisim`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import tlc
from .bisim import Bisimulation, Comparison, Mismatch
from .setting import Setting, folder, read, settings
from .tlc import Unavailable

__all__ = [
    "Bisimulation",
    "Checked",
    "Mismatch",
    "Report",
    "Setting",
    "Unavailable",
    "check",
    "live",
    "names",
    "prepare",
]

RULES, LIVE = "RhoRules", "RhoLive"
"""The modules that TLC is started with: for safety and the comparison, and for liveness."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Checked:
    """One setting. `transitions`: labelled edges; `cores`: states that differ in more than the effects that led to
    them; `violation`: what TLC says against the model; `comparison`: None for liveness and after a violation."""

    name: str
    states: int
    cores: int
    transitions: int
    violation: str | None
    comparison: Comparison | None
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As the command prints it."""
        c = self.comparison
        return {
            "name": self.name,
            "states": self.states,
            "cores": self.cores,
            "transitions": self.transitions,
            "violation": self.violation,
            "compared": c is not None,
            "pairs": 0 if c is None else c.pairs,
            "steps": 0 if c is None else c.steps,
            "missed": 0 if c is None else c.missed,
            "mismatches": [] if c is None else [_mismatch(m) for m in c.mismatches],
            "seconds": round(self.seconds, 2),
        }


def _mismatch(m: Mismatch) -> dict[str, Any]:
    return {
        "action": m.action,
        "variables": list(m.variables),
        "input": m.input,
        "state": list(m.state),
        "only_model": list(m.only_model),
        "only_reducer": list(m.only_reducer),
    }


@dataclass(frozen=True)
class Report:
    """All settings; `holds` when nothing was violated and the two graphs are the same."""

    checked: tuple[Checked, ...]

    @property
    def mismatches(self) -> int:
        return sum(len(c.comparison.mismatches) + c.comparison.missed for c in self.checked if c.comparison)

    @property
    def violations(self) -> tuple[Checked, ...]:
        return tuple(c for c in self.checked if c.violation is not None)

    @property
    def holds(self) -> bool:
        return not self.mismatches and not self.violations

    def to_json(self) -> dict[str, Any]:
        """As the command prints it."""
        compared = [c for c in self.checked if c.comparison is not None]
        return {
            "states": sum(c.states for c in compared),
            "cores": sum(c.cores for c in compared),
            "transitions": sum(c.transitions for c in compared),
            "steps": sum(c.comparison.steps for c in compared if c.comparison),
            "mismatches": self.mismatches,
            "violations": len(self.violations),
            "seconds": round(sum(c.seconds for c in self.checked), 2),
            "settings": [c.to_json() for c in self.checked],
        }


def names() -> tuple[str, ...]:
    """The settings there are, the one for liveness last."""
    return (*(s.name for s in settings()), "live")


def prepare(setting: Setting, where: Path | None = None) -> tuple[tlc.Tlc, Bisimulation | None]:
    """Let TLC check a setting and dump its graph; no graph after a violation. `where`: another folder of modules.

    Unavailable without Java or the jar; RuntimeError when TLC cannot use the model.
    """
    ran = tlc.run(folder() if where is None else where, RULES, setting.path)
    return ran, None if ran.graph is None else Bisimulation(setting, ran.graph)


def live(where: Path | None = None) -> tlc.Tlc:
    """Check that every run settles, under weak fairness (CORE-LIVE)."""
    place = folder() if where is None else where
    return tlc.run(place, LIVE, place / "live.cfg", dump=False)


def check(chosen: Iterable[str] | None = None, on_progress: Progress | None = None) -> Report:
    """Check the named settings, or all. ValueError for a name that does not exist; Unavailable as `prepare`."""
    wanted = names() if chosen is None else tuple(chosen)
    unknown = [n for n in wanted if n not in names()]
    if unknown:
        raise ValueError(f"no setting {unknown[0]!r}; there are: {', '.join(names())}")
    done: list[Checked] = []
    for number, name in enumerate(wanted):
        if on_progress is not None:
            on_progress("tla", number, len(wanted))
        done.append(_liveness() if name == "live" else _compared(read(folder() / f"{name}.cfg")))
    return Report(tuple(done))


def _liveness() -> Checked:
    begun = time.monotonic()
    ran = live()
    return Checked("live", ran.states, ran.states, ran.generated, ran.violation, None, time.monotonic() - begun)


def _compared(setting: Setting) -> Checked:
    begun = time.monotonic()
    ran, both = prepare(setting)
    if both is None:
        return Checked(setting.name, ran.states, 0, 0, ran.violation, None, time.monotonic() - begun)
    comparison = both.compare()
    seconds = time.monotonic() - begun
    return Checked(setting.name, ran.states, both.cores, both.graph.transitions, None, comparison, seconds)
