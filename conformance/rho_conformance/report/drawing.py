"""A sequence chart in user units: where each arrow, word and mark goes. The template turns it into SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rho_conformance.report.sequence import LANES, Break, Chart, Part, Row
from rho_conformance.report.visible import visible

WIDTH, PITCH, HEAD = 1060, 18, 24
"""Width of a chart, height of a row, height of the lanes' names."""
FIRST, GAP, TEXT = 52, 72, 378
"""The first lane, the distance between lanes, the left edge of the words."""
MESSAGE, LINES = 92, 4
"""The message of a rule is wrapped at so many characters, into so many lines at most."""

LANE_X = tuple(FIRST + GAP * n for n in range(len(LANES)))


@dataclass(frozen=True, slots=True)
class Arrow:
    """One row: `path` of the arrow, words at the height `y`. `step`: its number where a step begins."""

    kind: str
    path: str
    y: int
    text: str
    more: str
    step: str
    broken: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """The broken edge: its path between two rows (or from the top, where its start is elsewhere), and the message."""

    path: str
    cross: str
    lines: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One part of a chart, one SVG. `left_out`: its rows found no room on the page."""

    height: int
    folded: bool
    count: int
    head: bool
    arrows: tuple[Arrow, ...]
    mark: Mark | None = None
    left_out: bool = False


def draw(chart: Chart, rule: str, folds: bool = True) -> tuple[Drawn, ...]:
    """Every part in order. Without `folds`, what is folded is counted and not drawn."""
    begun = next(part.first for part in chart.parts if folds or not part.folded)
    return tuple(_part(chart, part, rule, folds, part.first == begun) for part in chart.parts)


def _part(chart: Chart, part: Part, rule: str, folds: bool, head: bool) -> Drawn:
    count = part.last - part.first + 1
    if part.folded and not folds:
        return Drawn(0, True, count, False, (), left_out=True)
    y = HEAD if head else 0
    arrows: list[Arrow] = []
    heights: dict[int, int] = {}
    mark = None
    for n in range(part.first, part.last + 1):
        heights[n] = y + PITCH // 2
        broken = n == chart.broken.at and not chart.broken.missing
        arrows.append(_arrow(chart.rows, n, y, broken))
        y += PITCH
        if n == chart.broken.at:
            mark = _mark(chart, heights, y, rule)
            y += PITCH * len(mark.lines)
    return Drawn(y + 4, part.folded, count, head, tuple(arrows), mark)


def _arrow(rows: Sequence[Row], n: int, y: int, broken: bool) -> Arrow:
    row = rows[n]
    path = f"M{LANE_X[row.source]} {y + PITCH // 2}H{LANE_X[row.target]}"
    begins = n == 0 or rows[n - 1].step != row.step
    return Arrow(row.kind, path, y, row.text, row.more, str(row.step) if begins else "", broken)


def _mark(chart: Chart, heights: dict[int, int], y: int, rule: str) -> Mark:
    """`y`: where the message goes, below the row at fault."""
    broken = chart.broken
    end = y + PITCH // 2 if broken.missing else heights[broken.at]
    x = TEXT - 8
    path = ""
    if broken.after is not None:
        start = heights.get(broken.after, 0)  # from the top, where the neighbour stands in a part above
        path = f"M{x} {start}C{x - 34} {start} {x - 34} {end} {x} {end}"
    cross = f"M{x - 4} {end - 4}l8 8m0 -8l-8 8"
    words = _message(chart.rows, broken, rule, heights)
    return Mark(path, cross, tuple((y + PITCH * k, line) for k, line in enumerate(words)))


def _message(rows: Sequence[Row], broken: Break, rule: str, heights: dict[int, int]) -> Iterator[str]:
    said = f"{rule}: {visible(broken.message)}" if not broken.missing else f"{rule}, by here: {visible(broken.message)}"
    lines = wrap(said, MESSAGE, break_long_words=True) or [rule]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], lines[LINES - 1][: MESSAGE - 1] + "…"]
    yield from lines
    if broken.after is not None and broken.after not in heights:
        row = rows[broken.after]
        yield f"(after step {row.step}: {row.text})"[:MESSAGE]
