"""The kill matrix as a picture: a row for each deliberate fault, a column for each rule, a mark where it fired."""

from __future__ import annotations

from dataclasses import dataclass

from rho_conformance.report.gathered import Gathered, Mutants

CELL = 9
"""Side of one mark, in user units."""
NAMES, HEADS = 300, 92
"""Room for the mutants' names at the left and for the rules' at the top."""


@dataclass(frozen=True, slots=True)
class Line:
    """One mutant. `by`: the other rules that fired."""

    name: str
    intended: str
    killed: bool
    by: tuple[str, ...]
    where: str
    y: int


@dataclass(frozen=True, slots=True)
class KillGrid:
    """`own`, `others`, `survived`: paths over the marks of each sort."""

    lines: tuple[Line, ...]
    rules: tuple[str, ...]
    own: str
    others: str
    survived: str
    score: float

    @property
    def killed(self) -> int:
        return sum(line.killed for line in self.lines)

    @property
    def size(self) -> tuple[int, int]:
        return NAMES + CELL * len(self.rules), HEADS + CELL * len(self.lines)

    def x(self, rule: str) -> int:
        """The left edge of a rule's column."""
        return NAMES + CELL * self.rules.index(rule)


def kill_grid(gathered: Gathered, mutants: Mutants) -> KillGrid:
    """Rules in the order of the page's table, then others; mutants in the order of the rules they are meant for."""
    named = {k.intended for k in mutants.matrix.values()} | {r for k in mutants.matrix.values() for r in k.kills_by}
    rules = (*(r for r in gathered.rules if r in named), *sorted(named - gathered.rules.keys()))
    column = {rule: n for n, rule in enumerate(rules)}
    ordered = sorted(mutants.matrix.items(), key=lambda pair: column[pair[1].intended])
    lines: list[Line] = []
    marks: dict[str, list[str]] = {"own": [], "others": [], "survived": []}
    for n, (name, kill) in enumerate(ordered):
        y = HEADS + CELL * n
        others = tuple(rule for rule in kill.kills_by if rule != kill.intended)
        lines.append(Line(name, kill.intended, kill.killed, others, kill.where or "", y))
        marks["own" if kill.killed else "survived"].append(_mark(column[kill.intended], y))
        marks["others"] += [_mark(column[rule], y) for rule in others]
    paths = {sort: "".join(found) for sort, found in marks.items()}
    return KillGrid(tuple(lines), rules, paths["own"], paths["others"], paths["survived"], mutants.score)


def _mark(column: int, y: int) -> str:
    side = CELL - 2
    return f"M{NAMES + CELL * column + 1} {y + 1}h{side}v{side}h-{side}z"
