"""A scenario file as checked objects: cases and sweeps expanded, every key known (scenario format §1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rho_conformance.errors import UsageError
from rho_conformance.scenario.filegrammar import DEFAULT_PROFILE, scenario_file
from rho_conformance.scenario.names import clash
from rho_conformance.scenario.reading import load_tree, parse_tree
from rho_conformance.scenario.shapes import Where, anything, as_list, filled_list_of, map_of
from rho_conformance.scenario.tree import (
    Map,
    ScenarioFileError,
    ScenarioFilesError,
    Seq,
    plain,
    prepare,
)
from rho_conformance.scenario.warn import unused_names, warnings

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the name of its only key, the value as plain data, and where it stands."""

    name: str
    value: Any
    line: int

    def __str__(self) -> str:
        return f"step {self.name} (line {self.line})"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario, ready to run; `expect` is the checked map of §4, `lines` where its keys stand."""

    id: str
    rules: tuple[str, ...]
    profile: str
    config: dict[str, Any]
    steps: tuple[Step, ...]
    expect: dict[str, Any]
    path: str
    line: int
    warnings: tuple[str, ...] = field(default=())

    @property
    def main_session(self) -> str:
        """The session that steps and expectations mean when they name none."""
        sessions = self.config.get("sessions")
        return str(sessions[0]) if sessions else "s1"


def load_scenarios(paths: Iterable[Path], known_rules: Collection[str] | None = None) -> list[Scenario]:
    """All scenarios in files and folders (searched for .yaml and .yml), in order of path.

    Raises `UsageError` for a path that is not there, for a file that is not in the format, and for an id
    that two scenarios share. `known_rules` is the catalogue: ids outside of it become warnings.
    """
    found, faults = read_scenarios(paths, known_rules)
    if faults:
        raise faults[0] if len(faults) == 1 else ScenarioFilesError(faults)
    return found


def read_scenarios(
    paths: Iterable[Path], known_rules: Collection[str] | None = None
) -> tuple[list[Scenario], list[ScenarioFileError]]:
    """As `load_scenarios`, but with every file that is at fault, not only the first."""
    seen: dict[str, Scenario] = {}
    faults: list[ScenarioFileError] = []
    for file in dict.fromkeys(file for path in paths for file in files_in(path)):
        try:
            for scenario in parse_file(file, known_rules):
                _take(scenario, seen)
        except ScenarioFileError as fault:
            faults.append(fault)
    return list(seen.values()), faults


def _take(scenario: Scenario, seen: dict[str, Scenario]) -> None:
    other = seen.setdefault(scenario.id, scenario)
    if other is not scenario:
        message = f"the id {scenario.id!r} is also that of {other.path}"
        raise ScenarioFileError(scenario.path, scenario.line, message)


def files_in(path: Path) -> list[Path]:
    """The scenario files that a path names, none for a folder without any; raises `UsageError`."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file or folder")
    return [path]


def parse_file(path: Path, known_rules: Collection[str] | None = None) -> list[Scenario]:
    """The scenarios of one file, `cases` and `sweep` expanded; raises `ScenarioFileError`."""
    return _expand(load_tree(path), str(path), known_rules)


def parse_text(source: str, path: str = "scenario", known_rules: Collection[str] | None = None) -> list[Scenario]:
    """The scenarios in a text; `path` names it in errors."""
    return _expand(parse_tree(source, path), path, known_rules)


def _expand(tree: Map, path: str, known_rules: Collection[str] | None) -> list[Scenario]:
    if tree.get("cases") is None:
        return _scenarios(prepare(tree, None, path), "", path, known_rules)
    where = Where(path, tree.lines["cases"], "cases")
    cases = as_list(tree["cases"], where)
    filled_list_of(map_of(anything))(cases, where)
    body = Map()
    body.line = tree.line
    for key, value in tree.items():
        if key != "cases":
            body.put(key, value, tree.lines[key])
    unused = unused_names(cases, body, path)
    return [
        replace(scenario, warnings=scenario.warnings + unused)
        for number, case in enumerate(cases)
        for scenario in _scenarios(prepare(body, case, path), f"[{number}]", path, known_rules)
    ]


def _scenarios(tree: Map, suffix: str, path: str, known_rules: Collection[str] | None) -> list[Scenario]:
    scenario_file(tree, path)
    scenario = Scenario(
        id=tree["id"] + suffix,
        rules=tuple(tree.get("rules", ())),
        profile=tree.get("profile", DEFAULT_PROFILE),
        config=plain(tree.get("config", {})),
        steps=_steps(tree["steps"]),
        expect=tree.get("expect", Map()),
        path=path,
        line=tree.lines["id"],
        warnings=tuple(warnings(tree, path, known_rules)),
    )
    sweep = tree.get("sweep")
    if sweep is None:
        return [_checked(scenario)]
    tail = (_step(sweep["perform"], sweep.lines["perform"]), *_steps(sweep["then"]))
    return [
        _checked(replace(scenario, id=f"{scenario.id}[{k}]", steps=scenario.steps[:k] + tail))
        for k in range(1, len(scenario.steps) + 1)
    ]


def _checked(scenario: Scenario) -> Scenario:
    found = clash((step.name, step.value, step.line) for step in scenario.steps)
    if found is not None:
        raise ScenarioFileError(scenario.path, *found)
    return scenario


def _steps(steps: Seq) -> tuple[Step, ...]:
    return tuple(_step(item, line) for item, line in zip(steps, steps.lines, strict=True))


def _step(item: Map, line: int) -> Step:
    (name,) = item
    return Step(name, item[name] if name == "check" else plain(item[name]), line)


__all__ = [
    "Scenario",
    "ScenarioFileError",
    "ScenarioFilesError",
    "Step",
    "files_in",
    "load_scenarios",
    "parse_file",
    "parse_text",
    "read_scenarios",
]
