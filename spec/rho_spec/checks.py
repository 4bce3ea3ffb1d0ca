"""The vocabulary of `check`: the patterns and the keys they take (pages/patterns.md says what they mean)."""

import re
from collections.abc import Mapping
from typing import Any, Final

SCOPES: Final = ("session", "run", "step", "attempt", "call", "after")
CORRELATIONS: Final = ("call_id", "id", "step")

# Pattern -> (keys it must have, further keys it may have). Every pattern may have those of _COMMON as well.
PATTERNS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "absence": (frozenset({"of"}), frozenset()),
    "existence": (frozenset({"of"}), frozenset({"closed_by"})),
    "universality": (frozenset({"of", "holds"}), frozenset()),
    "precedence": (frozenset({"first", "then"}), frozenset()),
    "response": (frozenset({"first", "then"}), frozenset({"closed_by"})),
    "sequence": (frozenset({"of"}), frozenset({"closed_by"})),
    "count": (frozenset({"of"}), frozenset({"min", "max", "closed_by"})),
    "happens_before": (frozenset({"first", "then"}), frozenset()),
}
_COMMON: Final = frozenset({"pattern", "scope", "per", "when", "unless", "predicate"})
_MATCHER_KEYS: Final = ("of", "first", "then", "after", "when", "unless", "closed_by")
_NAME: Final = re.compile(r"[A-Za-z]+")
_ELEMENT: Final = re.compile(r"[A-Za-z]+(\|[A-Za-z]+)*[?*]?")
_PREDICATE: Final = re.compile(r"[a-z]+[0-9]*(_[a-z0-9]+)*")


def check_problem(check: Mapping[str, Any]) -> str | None:
    """What is wrong with a `check` table, as one sentence; None if nothing is."""
    if "predicate" in check and not _PREDICATE.fullmatch(str(check["predicate"])):
        return f"predicate {check['predicate']!r} is no function name"
    if "pattern" not in check:
        return None if set(check) == {"predicate"} else "neither a pattern nor only the name of a predicate"
    if check["pattern"] not in PATTERNS:
        return f"unknown pattern {check['pattern']!r}; known: {', '.join(PATTERNS)}"
    return _keys_problem(check) or _values_problem(check)


def _keys_problem(check: Mapping[str, Any]) -> str | None:
    required, optional = PATTERNS[check["pattern"]]
    after = frozenset({"after"}) if check.get("scope") == "after" else frozenset()
    missing = sorted((required | after | {"scope"}) - set(check))
    if missing:
        return f"pattern {check['pattern']} lacks {', '.join(missing)}"
    unknown = sorted(set(check) - required - optional - after - _COMMON)
    if unknown:
        return f"pattern {check['pattern']} does not take {', '.join(unknown)}"
    if check["pattern"] == "count" and not {"min", "max"} & set(check):
        return "pattern count needs min or max, else it holds always"
    return None


def _values_problem(check: Mapping[str, Any]) -> str | None:
    if check["scope"] not in SCOPES:
        return f"unknown scope {check['scope']!r}; known: {', '.join(SCOPES)}"
    if check.get("per", CORRELATIONS[0]) not in CORRELATIONS:
        return f"unknown per {check['per']!r}; known: {', '.join(CORRELATIONS)}"
    if check["pattern"] == "sequence":
        wrong = [element for element in matchers(check["of"]) if not _ELEMENT.fullmatch(str(element))]
        if wrong:
            return f"no sequence element: {wrong[0]!r}"
    for key in _MATCHER_KEYS:
        if key == "of" and check["pattern"] == "sequence":
            continue
        for matcher in matchers(check.get(key, [])):
            if not _is_matcher(matcher):
                return f"{key}: no observation pattern: {matcher!r}"
    return None


def matchers(value: Any) -> tuple[Any, ...]:
    """One matcher or a list of them, as a tuple of matchers."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _is_matcher(value: Any) -> bool:
    if isinstance(value, str):
        return bool(_NAME.fullmatch(value))
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((name, fields),) = value.items()
    return bool(_NAME.fullmatch(name)) and isinstance(fields, dict)
