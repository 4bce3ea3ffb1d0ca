"""The keys of a whole scenario file, and the steps that only the runner judges (scenario format §1 and §3)."""

from __future__ import annotations

from typing import Any

from rho_conformance.answers import PROFILES
from rho_conformance.scenario import expectations, grammar, settings
from rho_conformance.scenario.patterns import observation_pattern
from rho_conformance.scenario.shapes import Shape, Where, filled_list_of, list_of, name, one_of, record, text
from rho_conformance.scenario.tree import Map, Seq

DEFAULT_PROFILE = "rho"
JUDGING = ("check", "until")
"""The steps that can make a scenario fail where they stand."""


def _in_a_race(value: Any, where: Where) -> None:
    if isinstance(value, Map) and "maybe" in (*value, *value.nulls) and len(value) <= 1:
        step(value, where)
    else:
        grammar.step(value, where)


def _maybe(value: Any, where: Where) -> None:
    stimulus = grammar.step(value, where)
    if stimulus not in grammar.MAYBE_STEPS:
        where.fail(f"{stimulus} answers no upcall; maybe takes one of {', '.join(grammar.MAYBE_STEPS)}")


_RUNNER_SHAPES: dict[str, Shape] = {
    "until": observation_pattern,
    "check": expectations.expect,
    "together": filled_list_of(_in_a_race),
    "maybe": _maybe,
}


def _inner_step(value: Any, where: Where) -> None:
    (stimulus,) = value
    _RUNNER_SHAPES[stimulus](value[stimulus], where.key(value, stimulus))


def step(value: Any, where: Where) -> None:
    """Check one step of a scenario."""
    grammar.step(value, where, _inner_step)


def _identity(value: Any, where: Where) -> str:
    changed = text(value, where)
    name(changed, where)
    return changed


_SWEEP = record(perform=step, then=list_of(step))
_FILE = record(
    {
        "rules": list_of(text),
        "profile": one_of(*PROFILES),
        "config": settings.config,
        "expect": expectations.expect,
        "sweep": _SWEEP,
    },
    id=_identity,
    steps=list_of(step),
)


def scenario_file(tree: Map, path: str) -> None:
    """Check a file, its cases put in already; raises `ScenarioFileError`.

    Without anything that judges it, the scenario would pass whatever the runtime does: `expect: {}` says that
    this is meant, and the standing checks are enough.
    """
    _drop_emptied(tree)
    profile = tree.get("profile", DEFAULT_PROFILE)
    _FILE(tree, Where(path, tree.line, "", profile if isinstance(profile, str) else DEFAULT_PROFILE))
    if "expect" not in tree and not judges(tree):
        Where(path, tree.nulls.get("expect", tree.line), "").fail(
            "the key 'expect' is missing, and no step is a check or an until: nothing would be judged"
        )


def judges(tree: Map) -> bool:
    """Whether some step of a checked file can make it fail, even if `expect` asks for nothing."""
    sweep = tree.get("sweep", {})
    steps = [*tree["steps"], *(sweep.get("then", ())), *([sweep["perform"]] if sweep else [])]
    return any(step[kind] for step in steps for kind in JUDGING if kind in step)


def _drop_emptied(tree: Map) -> None:
    """A step whose only key is null in this case is no step: `- cancel: ${cancel}` with `cancel: null`."""
    for owner, key in ((tree, "steps"), (tree.get("sweep"), "then")):
        if isinstance(owner, Map) and isinstance(owner.get(key), Seq):
            owner[key] = _kept(owner[key])


def _kept(steps: Seq) -> Seq:
    kept = Seq()
    kept.line = steps.line
    for item, line in zip(steps, steps.lines, strict=True):
        if not _emptied(item):
            kept.put(item, line)
    return kept


def _emptied(step: Any) -> bool:
    if not isinstance(step, Map):
        return False
    if isinstance(step.get("together"), Seq) and step["together"]:
        step["together"] = _kept(step["together"])
        return not step["together"]
    inner = step.get("maybe")
    return step.emptied or (isinstance(inner, Map) and inner.emptied)
