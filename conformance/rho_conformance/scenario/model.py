"""A scenario file as checked objects: cases and sweeps expanded, every key known (scenario format §1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rho_conformance.answers import PROFILES
from rho_conformance.errors import UsageError
from rho_conformance.scenario import expectations, grammar, settings
from rho_conformance.scenario.patterns import observation_pattern
from rho_conformance.scenario.shapes import (
    Shape,
    Where,
    anything,
    as_list,
    list_of,
    map_of,
    one_of,
    record,
    text,
)
from rho_conformance.scenario.tree import Map, ScenarioFileError, Seq, load_tree, parse_tree, plain, prepare

DEFAULT_PROFILE = "rho"
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


def _inner_step(value: Any, where: Where) -> None:
    """`until`, `check`, `together`, `maybe`: what only the runner can judge."""
    (name,) = value
    inside = where.key(value, name)
    _RUNNER_SHAPES[name](value[name], inside)


def _together(value: Any, where: Where) -> None:
    steps = as_list(value, where)
    if not steps:
        where.fail("the list is empty")
    for index, item in enumerate(steps):
        place = where.item(steps, index)
        if isinstance(item, Map) and set(item) == {"maybe"}:
            _maybe(item["maybe"], place.key(item, "maybe"))
        else:
            grammar.step(item, place)


def _maybe(value: Any, where: Where) -> None:
    name = grammar.step(value, where)
    if name not in grammar.MAYBE_STEPS:
        where.fail(f"{name} answers no upcall; maybe takes one of {', '.join(grammar.MAYBE_STEPS)}")


_RUNNER_SHAPES: dict[str, Shape] = {
    "until": observation_pattern,
    "check": expectations.expect,
    "together": _together,
    "maybe": _maybe,
}


def step(value: Any, where: Where) -> None:
    """Check one step of a scenario."""
    grammar.step(value, where, _inner_step)


_SWEEP = record(perform=step, then=list_of(step))
_TOP: dict[str, Shape] = {
    "rules": list_of(text),
    "profile": one_of(*PROFILES),
    "config": settings.config,
    "expect": expectations.expect,
    "sweep": _SWEEP,
}
_FILE = record(_TOP, id=text, steps=list_of(step))


def load_scenarios(paths: Iterable[Path], known_rules: Collection[str] | None = None) -> list[Scenario]:
    """All scenarios in files and folders (searched for .yaml and .yml), in order of path.

    Raises `UsageError` for a path that is not there, for a file that is not in the format, and for an id
    that two scenarios share. `known_rules` is the catalogue: ids outside of it become warnings.
    """
    seen: dict[str, Scenario] = {}
    for path in paths:
        for file in _files(path):
            for scenario in parse_file(file, known_rules):
                other = seen.get(scenario.id)
                if other is not None:
                    raise ScenarioFileError(
                        scenario.path, scenario.line, f"the id {scenario.id!r} is also that of {other.path}"
                    )
                seen[scenario.id] = scenario
    return list(seen.values())


def _files(path: Path) -> list[Path]:
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
    list_of(map_of(anything))(cases, where)
    if not cases:
        where.fail("the list is empty")
    body = Map()
    body.line = tree.line
    for key, value in tree.items():
        if key != "cases":
            body.put(key, value, tree.lines[key])
    return [
        scenario
        for number, case in enumerate(cases)
        for scenario in _scenarios(prepare(body, case, path), f"[{number}]", path, known_rules)
    ]


def _scenarios(tree: Map, suffix: str, path: str, known_rules: Collection[str] | None) -> list[Scenario]:
    where = Where(path, tree.line, "")
    for key in ("steps", "sweep"):
        _drop_emptied(tree, key)
    _FILE(tree, where)
    scenario = Scenario(
        id=tree["id"] + suffix,
        rules=tuple(tree.get("rules", ())),
        profile=tree.get("profile", DEFAULT_PROFILE),
        config=plain(tree.get("config", {})),
        steps=_steps(tree["steps"]),
        expect=tree.get("expect", Map()),
        path=path,
        line=tree.lines["id"],
        warnings=tuple(_warnings(tree, path, known_rules)),
    )
    sweep = tree.get("sweep")
    if sweep is None:
        return [scenario]
    tail = (_step(sweep["perform"], sweep.lines["perform"]), *_steps(sweep["then"]))
    return [
        replace(scenario, id=f"{scenario.id}[{k}]", steps=scenario.steps[:k] + tail)
        for k in range(1, len(scenario.steps) + 1)
    ]


def _drop_emptied(tree: Map, key: str) -> None:
    """A step whose only key was null in this case is no step: `- cancel: ${cancel}` with `cancel: null`."""
    owner, name = (tree, key) if key == "steps" else (tree.get("sweep"), "then")
    steps = owner.get(name) if isinstance(owner, Map) else None
    if not isinstance(owner, Map) or not isinstance(steps, Seq):
        return
    kept = Seq()
    kept.line = steps.line
    for item, line in zip(steps, steps.lines, strict=True):
        if not (isinstance(item, Map) and item.emptied):
            kept.put(item, line)
    owner[name] = kept


def _steps(steps: Seq) -> tuple[Step, ...]:
    return tuple(_step(item, line) for item, line in zip(steps, steps.lines, strict=True))


def _step(item: Map, line: int) -> Step:
    (name,) = item
    return Step(name, item[name] if name == "check" else plain(item[name]), line)


def _warnings(tree: Map, path: str, known_rules: Collection[str] | None) -> list[str]:
    warnings = [
        f"{path}:{tree.line}: no {key!r}; {meaning}"
        for key, meaning in (
            ("rules", "the scenario shows no rule"),
            ("profile", f"taken as {DEFAULT_PROFILE}"),
        )
        if key not in tree
    ]
    if known_rules is not None:
        rules = as_list(tree.get("rules", Seq()), Where(path, tree.line, "rules"))
        warnings += [
            f"{path}:{line}: unknown rule {rule!r}"
            for rule, line in zip(rules, rules.lines, strict=True)
            if rule not in known_rules
        ]
    return warnings


__all__ = ["Scenario", "ScenarioFileError", "Step", "load_scenarios", "parse_file", "parse_text"]
