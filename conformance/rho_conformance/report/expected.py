"""What the core does where another implementation broke a rule: the same script, the same step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.errors import DriverError, UsageError
from rho_conformance.generate.script import Script, play
from rho_conformance.report.sequence import Chart, Row, rows_of
from rho_conformance.trace import Trace

MOST = 24
"""Lines of a comparison; the rest is counted."""
LONGEST = 60
"""Steps of a script that the core is still asked to play: a page of many long witnesses must not take minutes."""


@dataclass(frozen=True, slots=True)
class Line:
    """An observation. `where`: `both`, `core` (this implementation did not show it), `target` (the core does not)."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The step in which the rule broke, beside what the core shows there. `left_out`: lines that found no room."""

    step: int
    lines: tuple[Line, ...]
    left_out: int

    @property
    def same(self) -> bool:
        """Nothing differs in this step: the fault lies in what led to it, or in what both leave open."""
        return all(line.where == "both" for line in self.lines)


def compare(trace: Trace, chart: Chart) -> Comparison | None:
    """None where the script is too long, the core cannot play it, or its play ends before that step."""
    if len(trace.steps) > LONGEST:
        return None
    try:
        played = play(core_factory, Script.from_trace(trace))
    except (DriverError, UsageError):
        return None
    if played.open_error is not None or len(played.steps) < chart.step or chart.step < 1:
        return None
    lines = _merged(_texts(rows_of(played), chart.step), _texts(chart.rows, chart.step))
    return Comparison(chart.step, tuple(lines[:MOST]), max(0, len(lines) - MOST))


def _texts(rows: Sequence[Row], step: int) -> list[str]:
    """What was seen in one step. When an item was taken is a matter of each implementation, and left out."""
    return [row.text for row in rows if row.step == step and row.kind not in ("stimulus", "taken")]


def _merged(core: list[str], target: list[str]) -> list[Line]:
    found: list[Line] = []
    for tag, a, b, c, d in SequenceMatcher(None, core, target, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [Line("both", text) for text in core[a:b]]
        else:
            found += [Line("core", text) for text in core[a:b]]
            found += [Line("target", text) for text in target[c:d]]
    return found
