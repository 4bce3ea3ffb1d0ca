"""What is odd in a scenario file but no fault of it: it runs, and the author is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from rho_conformance.scenario.filegrammar import DEFAULT_PROFILE, judges
from rho_conformance.scenario.shapes import Where, as_list
from rho_conformance.scenario.tree import Map, Seq, names_in


def warnings(tree: Map, path: str, known_rules: Collection[str] | None) -> Iterator[str]:
    """The warnings about a checked file; `known_rules` is the catalogue, None when there is none."""
    for key, meaning in (("rules", "the scenario shows no rule"), ("profile", f"taken as {DEFAULT_PROFILE}")):
        if key not in tree:
            yield f"{path}:{tree.line}: no {key!r}; {meaning}"
    if "expect" in tree and not tree["expect"] and not judges(tree):
        yield f"{path}:{tree.lines['expect']}: expect asks for nothing; only the standing checks judge"
    rules = as_list(tree.get("rules", Seq()), Where(path, tree.line, "rules"))
    for rule, line in zip(rules, rules.lines, strict=True):
        if known_rules is not None and rule not in known_rules:
            yield f"{path}:{line}: unknown rule {rule!r}"
    for line in dict.fromkeys(_silent_markers(tree["steps"], False)):
        yield f"{path}:{line}: async inside return sends no marker; a marker is sent for calls beside it"


def unused_names(cases: Seq, body: Map, path: str) -> tuple[str, ...]:
    """A warning for each name that a case gives a value and nothing takes: misspelt, or left over."""
    used = set(names_in(body))
    found = [(case.lines[name], name) for case in cases for name in case if name not in used]
    return tuple(f"{path}:{line}: nothing in the file uses ${{{name}}}" for line, name in found)


def _silent_markers(value: Any, returned: bool) -> Iterator[int]:
    """Where a call inside `return` carries `async: true`, which only the shorthand turns into a marker."""
    if isinstance(value, Map):
        if returned and value.get("async") is True:
            yield value.lines["async"]
        for key, item in value.items():
            yield from _silent_markers(item, returned or (key == "return" and isinstance(item, Map)))
    elif isinstance(value, Seq):
        for item in value:
            yield from _silent_markers(item, returned)
