"""What a report does not prove, from its own data: every doubt, exception and bound that stands behind the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rho_conformance.report.gathered import Cell, Gathered, Target
from rho_conformance.report.machine import machine
from rho_conformance.trace import Trace
from rho_spec.catalogue import load


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that is not proved. `subject`: a rule, a mutant or a row; "" where it concerns the targets as such."""

    subject: str
    why: str
    targets: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"subject": self.subject, "why": self.why, "targets": list(self.targets)}


@dataclass(frozen=True, slots=True)
class Section:
    """Gaps of one sort; `about` says what they have in common."""

    name: str
    title: str
    about: str
    gaps: tuple[Gap, ...]


def not_proved(gathered: Gathered) -> list[Section]:
    """The sections that hold something, in the order of how much they matter."""
    made = (Section(name, title, about, tuple(find(gathered))) for name, (title, about, find) in _SECTIONS.items())
    return [section for section in made if section.gaps]


# --- rules ----------------------------------------------------------------------------------------------------------


def _with(*verdicts: str) -> Callable[[Gathered], list[Gap]]:
    def find(gathered: Gathered) -> list[Gap]:
        return _grouped(gathered, lambda rule, cell: cell.detail if cell.verdict in verdicts else None)

    return find


def _grouped(gathered: Gathered, why: Callable[[str, Cell], str | None]) -> list[Gap]:
    """One gap for each rule and reason, with the targets that share it."""
    found: dict[tuple[str, str], list[str]] = {}
    for rule in gathered.rules:
        for target in gathered.targets:
            cell = target.verdicts.get(rule)
            reason = None if cell is None else why(rule, cell)
            if reason is not None:
                found.setdefault((rule, reason), []).append(target.label)
    return [Gap(rule, reason, tuple(labels)) for (rule, reason), labels in found.items()]


def _excused(gathered: Gathered) -> list[Gap]:
    def why(rule: str, cell: Cell) -> str | None:
        entry = cell.baseline
        if entry is None:
            return None
        link = f" ({entry.link})" if entry.link else ""
        until = f"until {entry.until}" if entry.until else "without an end"
        return f"excused {until}: {entry.reason}{link}. {cell.detail}"

    return _grouped(gathered, why)


def _variants(gathered: Gathered) -> list[Gap]:
    def why(rule: str, cell: Cell) -> str | None:
        return cell.variant if cell.verdict == "variant" and cell.baseline is None else None

    return _grouped(gathered, why)


def _thin(gathered: Gathered) -> list[Gap]:
    def why(rule: str, cell: Cell) -> str | None:
        known = gathered.rules[rule]
        wanted = 1 if known is None else known.threshold
        if cell.verdict not in ("pass", "variant") or cell.triggered >= wanted:
            return None
        return f"held in {cell.triggered} live contexts, the rule wants {wanted}. {cell.detail}".rstrip()

    return _grouped(gathered, why)


def _not_judged(gathered: Gathered) -> list[Gap]:
    """Rules that no target was judged by, and rules of a target's own profile that a filter kept away."""
    everything = load()
    found: dict[tuple[str, str], list[str]] = {}
    for target in gathered.targets:
        for rule in everything:
            if target.report.profile in rule.profiles and rule.id not in target.verdicts:
                reason = "left out of a filtered run, or newer than the report"
                found.setdefault((rule.id, reason), []).append(target.label)
    for rule in everything:
        if not any(target.report.profile in rule.profiles for target in gathered.targets):
            found[rule.id, f"of the profile {', '.join(rule.profiles)}, which no target here was judged by"] = []
    return [Gap(rule, why, tuple(labels)) for (rule, why), labels in found.items()]


def _no_history(gathered: Gathered) -> list[Gap]:
    found = [
        Gap(rule, trace, (target.label,))
        for target in gathered.targets
        for rule, trace in target.traces.items()
        if not isinstance(trace, Trace)
    ]
    return found


def _unknown(gathered: Gathered) -> list[Gap]:
    return [
        Gap(rule, "this version's catalogue has no such rule") for rule, row in gathered.rules.items() if row is None
    ]


# --- bounds ---------------------------------------------------------------------------------------------------------


def _bounds(gathered: Gathered) -> Iterator[Gap]:
    for target in gathered.targets:
        report = target.report
        played = ", ".join(f"{n} {origin}" for origin, n in report.played.items()) or "nothing is told"
        drawn = f"{report.examples} generated scripts of at most {report.steps} intents, seed {report.seed}"
        yield Gap("", f"played: {played}; {drawn}", (target.label,))


def _targets(gathered: Gathered) -> Iterator[Gap]:
    for target in gathered.targets:
        about = target.report.implementation
        if about.get("deterministic") is not True:
            yield Gap("", "not deterministic: another run of the same scripts may show something else", (target.label,))
        if about.get("time") != "virtual":
            time = about.get("time") or "unknown"
            yield Gap(
                "", f"time is {time}: what waits on a clock is judged only as it happened to come", (target.label,)
            )
        for note in target.report.notes:
            yield Gap("", note, (target.label,))


# --- rows and mutants -----------------------------------------------------------------------------------------------


def _rows(gathered: Gathered) -> Iterator[Gap]:
    covered = [target for target in gathered.targets if target.report.coverage is not None]
    if not covered:
        yield Gap("", "no target here is built on the core in this process: nothing is known of its tables")
    found: dict[tuple[str, str], list[str]] = {}
    for target in covered:
        for missing in _missing(target):
            found.setdefault(missing, []).append(target.label)
    yield from (Gap(row, why, tuple(labels)) for (row, why), labels in found.items())


def _missing(target: Target) -> Iterator[tuple[str, str]]:
    coverage = target.report.coverage
    assert coverage is not None
    yield from ((row, "this row was never taken") for row in coverage.missing)
    diagram = machine(coverage)
    if diagram is not None:
        yield from ((edge, "this exit was never taken") for edge in diagram.exits_missing)


def _mutants(gathered: Gathered) -> Iterator[Gap]:
    mutants = gathered.mutants
    if mutants is None:
        yield Gap("", "no answer of `rho-core mutants` was given: that these rules can see a fault is not shown here")
        return
    for name, kill in mutants.matrix.items():
        if not kill.killed:
            yield Gap(name, f"this deliberate fault is not seen by {kill.intended}, which is there to see it")
    meant = {kill.intended for kill in mutants.matrix.values()}
    for rule, row in gathered.rules.items():
        if rule not in meant and (row is None or row.testable != "no"):
            yield Gap(rule, "no mutant of the answer given is meant for this rule")
    for name, harm in mutants.benign.items():
        for rule in harm.fails:
            why = harm.why.get(rule, "")
            yield Gap(rule, f"a permitted variant, {name}, is called a failure: {why}".rstrip(": "))


def _scope(gathered: Gathered) -> Iterable[Gap]:
    return (
        Gap("", "A verdict speaks of the scripts that were played. No fault seen is not the absence of faults."),
        Gap(
            "",
            "The suite plays the model, the tools, the host, the reader and the clock. Nothing is said of real "
            "providers, of load, of speed or of memory.",
        ),
        Gap("", "Between two channels (events, upcalls, replies) order is known across steps only, not within one."),
        Gap(
            "",
            "What a driver leaves out is filled in by the protocol's defaults; a driver that tells wrongly is not "
            "found out by that.",
        ),
    )


_SECTIONS: dict[str, tuple[str, str, Callable[[Gathered], Iterable[Gap]]]] = {
    "error": ("Errors of the harness", "The suite or the driver failed: there is no verdict.", _with("error")),
    "inconclusive": (
        "Inconclusive",
        "What the rule speaks of never happened, or the profile demands what is not declared.",
        _with("inconclusive"),
    ),
    "vacuous": ("Vacuous", "The rule was not provoked in enough live contexts.", _with("vacuous")),
    "excused": ("Excused failures", "The rule is broken; a baseline lets it pass.", _excused),
    "history": ("Failures without a history", "The rule is broken, and this page cannot show how.", _no_history),
    "variant": (
        "Permitted variants",
        "The rule held in another form than the core's, which the spec permits.",
        _variants,
    ),
    "thin": ("Thin evidence", "The rule held, in fewer live contexts than it wants.", _thin),
    "na": ("Not applicable", "An optional capability is not declared, or its subject is never shown.", _with("n/a")),
    "untestable": ("Untestable", "No observation can decide these rules.", _with("untestable")),
    "unjudged": ("Not judged", "Rules of the catalogue for which this page has no verdict.", _not_judged),
    "unknown": ("Unknown rules", "Ids in a report that the catalogue of this version does not have.", _unknown),
    "mutants": ("What the rules might not see", "A rule is trusted because it catches a deliberate fault.", _mutants),
    "rows": (
        "Rows of the core's tables",
        "What no script takes is exercised by no rule here; `rho-core explore` searches the tables exhaustively.",
        _rows,
    ),
    "targets": ("Targets", "Properties of a target that weaken all its verdicts.", _targets),
    "bounds": ("Bounds of the search", "How much was played.", _bounds),
    "scope": ("Limits of scope", "What no run of this suite can show.", _scope),
}
