"""What reports are made of: the JSON reports of several targets with their witnesses, and the mutants' JSON.

The files come from other machines and other versions. So they are validated when they are read, and what can be
derived from the verdicts (the summary, the claim to conform) is derived, not believed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from rho_conformance.errors import DriverError, UsageError
from rho_conformance.generate.witness import read_witness
from rho_conformance.judge.tally import BAD, VERDICTS
from rho_conformance.trace import Trace
from rho_spec.catalogue import Rule, load

VerdictName = Literal["pass", "variant", "fail", "vacuous", "inconclusive", "error", "n/a", "untestable"]
Count = Annotated[int, Field(ge=0)]


class Excuse(BaseModel):
    """The entry of a baseline that turned a failure into a variant."""

    reason: str
    link: str | None = None
    until: date | None = None


class Cell(BaseModel):
    """The verdict of one rule on one target (design §6, "Verdicts")."""

    verdict: VerdictName
    triggered: Count = 0
    opportunities: Count = 0
    detail: str = ""
    variant: str | None = None
    witness: str | None = None
    baseline: Excuse | None = None


class Row(BaseModel):
    """A row of the core's tables: whether it was taken, and which of its exits."""

    taken: bool
    exits: dict[str, bool] = {}


class Coverage(BaseModel):
    """Rows of the core's tables. Older reports have no `transitions`."""

    rows: Count
    taken: Count
    missing: list[str] = []
    transitions: dict[str, Row] = {}


class TargetReport(BaseModel):
    """`report.json` of one target."""

    target: str
    profile: str
    seed: int
    examples: Count
    steps: Count
    seconds: float = 0.0
    verdicts: dict[str, Cell]
    implementation: dict[str, Any] = {}
    played: dict[str, Count] = {}
    coverage: Coverage | None = None
    notes: list[str] = []


class Kill(BaseModel):
    """What the rules said of one mutant."""

    kills_by: list[str]
    intended: str
    killed: bool
    where: str | None = None


class Harm(BaseModel):
    """Rules that called a permitted variant a failure, and why."""

    fails: list[str]
    why: dict[str, str] = {}


class Mutants(BaseModel):
    """The answer of `rho-core mutants --format json`."""

    matrix: dict[str, Kill]
    benign: dict[str, Harm] = {}

    @property
    def score(self) -> float:
        """Killed by the intended rule, over all."""
        return sum(k.killed for k in self.matrix.values()) / len(self.matrix) if self.matrix else 0.0


@dataclass(eq=False)
class Target:
    """One target of a page. `label` is unique on the page; `traces`: rule -> its witness, or why there is none."""

    label: str
    report: TargetReport
    traces: dict[str, Trace | str] = field(default_factory=dict)

    @property
    def verdicts(self) -> Mapping[str, Cell]:
        return self.report.verdicts

    @property
    def summary(self) -> dict[str, int]:
        """Verdict -> number of rules, in the order of severity."""
        counts = Counter(str(cell.verdict) for cell in self.verdicts.values())
        return {name: counts[name] for name in VERDICTS if counts[name]}

    @property
    def conformant(self) -> bool:
        """No failure, no doubt, and at least one rule that held."""
        return "pass" in self.summary and not any(name in BAD for name in self.summary)

    @property
    def excused(self) -> list[str]:
        """Rules whose failure a baseline excuses."""
        return [rule for rule, cell in self.verdicts.items() if cell.baseline is not None]


@dataclass
class Gathered:
    """Everything one page shows. `rules`: those that some target was judged by, in the order of the catalogue."""

    targets: list[Target]
    rules: dict[str, Rule | None]
    mutants: Mutants | None = None


Model = TypeVar("Model", bound=BaseModel)


def gather(reports: Sequence[Path], mutants: Path | None = None) -> Gathered:
    """Read the files and the witnesses beside them. Raises `UsageError` for one that is not what it must be."""
    targets = _labelled([_target(path) for path in reports])
    read = None if mutants is None else _read(Mutants, mutants, "the answer of `rho-core mutants --format json`")
    return Gathered(targets, _rules(targets), read)


def _target(path: Path) -> Target:
    report = _read(TargetReport, path, "a report.json of `rho-core conform --report`")
    target = Target(report.target, report)
    for rule, cell in report.verdicts.items():
        if cell.verdict == "fail" or cell.baseline is not None:
            target.traces[rule] = _witness(rule, cell, path.parent)
    return target


def _witness(rule: str, cell: Cell, folder: Path) -> Trace | str:
    """The trace of a witness: beside the report, else where the report says it is."""
    if cell.witness is None:
        return "no witness was recorded"
    written = Path(cell.witness)
    for path in (folder / "witnesses" / written.name, folder / written, written):
        if path.is_file():
            try:
                return read_witness(path).trace
            except (UsageError, DriverError) as fault:
                return f"the witness cannot be read: {fault}"
    return f"the witness file is not there: {cell.witness}"


def _labelled(targets: list[Target]) -> list[Target]:
    """Labels that tell the targets apart: the profile where it helps, a number where nothing else does."""
    if len({t.report.profile for t in targets}) > 1:
        for target in targets:
            target.label += f" ({target.report.profile})"
    seen: Counter[str] = Counter()
    for target in targets:
        seen[target.label] += 1
        if seen[target.label] > 1:
            target.label += f" #{seen[target.label]}"
    return targets


def _rules(targets: Iterable[Target]) -> dict[str, Rule | None]:
    """Rule id -> its row in the catalogue; ids that this catalogue does not know come last, with None."""
    judged = dict.fromkeys(rule for target in targets for rule in target.verdicts)
    known: dict[str, Rule | None] = {rule.id: rule for rule in load() if rule.id in judged}
    return known | {rule: None for rule in judged if rule not in known}


def _read(model: type[Model], path: Path, what: str) -> Model:
    try:
        return model.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as fault:
        raise UsageError(f"{path}: {fault.strerror or fault}") from fault
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise UsageError(f"{path}: not {what}: {where}: {first['msg']}") from fault
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{path}: not {what}: {fault}") from fault
