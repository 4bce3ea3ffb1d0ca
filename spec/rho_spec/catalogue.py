"""The rule catalogue: `rules/*.toml`, one file for each area, read and checked.

A rule is one promise of a source page, one common rule or one standing check, with all that the suite needs
to know about it as data. Whatever is misspelt in a file is an error that names file, rule and key.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args

from rho_spec.checks import check_problem
from rho_spec.features import is_feature
from rho_spec.paths import data_root

Level = Literal["must", "should", "may"]
Kind = Literal["guarantee", "permission", "limitation", "host-duty", "erratum"]
Testable = Literal["yes", "statistical", "no"]
Origin = Literal["page", "release"]

PROFILES: Final = ("rho", "orca", "common")
_FILE_KEYS: Final = frozenset({"title", "page", "profiles", "rule"})
_SOURCE_KEYS: Final = frozenset({"section", "sentences"})
_DECISIONS: Final = frozenset(f"D{n}" for n in range(1, 32))
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "level": get_args(Level),
    "kind": get_args(Kind),
    "testable": get_args(Testable),
    "origin": get_args(Origin),
}


class CatalogueError(ValueError):
    """A rule file that does not hold what it must; the text names file, rule and key."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a rule comes from: a page, a heading on it, the numbers of its sentences (see `sources`)."""

    page: str
    section: str = ""
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `check` is `{}` exactly when `testable` is "no"; else a pattern, a predicate's name, or both.

    `threshold` is the number of distinct live contexts that the suite wants before it calls the rule tried;
    `needs` are the capability features without which it cannot be observed; `since` is the version of this
    catalogue that brought the rule. `origin` says whether the page or only a release makes the promise;
    `release` names what in the statement of a page's promise is known from the release alone.
    """

    id: str
    title: str
    statement: str
    area: str
    profiles: tuple[str, ...]
    source: Source
    level: Level = "must"
    kind: Kind = "guarantee"
    testable: Testable = "yes"
    why: str = ""
    check: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    since: str = "0.1.0"
    threshold: int = 3
    origin: Origin = "page"
    release: str = ""
    needs: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()

    @property
    def predicate(self) -> str | None:
        """The name of the rule's function in the suite, if it has one."""
        return cast("str | None", self.check.get("predicate"))

    @property
    def pattern(self) -> str | None:
        """The name of the rule's specification pattern, if it has one."""
        return cast("str | None", self.check.get("pattern"))

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, in field order."""
        plain: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        sentences = list(self.source.sentences)
        plain["source"] = {"page": self.source.page, "section": self.source.section, "sentences": sentences}
        plain["check"] = dict(self.check)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


_RULE_KEYS: Final = frozenset(f.name for f in fields(Rule)) - {"area"}


def load(profile: str | None = None) -> tuple[Rule, ...]:
    """All rules, in the order of the files (by name) and within them; or those of one profile.

    The standing checks belong to every profile. Raises `CatalogueError` for a bad file, `ValueError` for a
    profile that does not exist.
    """
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"unknown profile {profile!r}; known: {', '.join(PROFILES)}")
    rules = _load_all(data_root() / "rules")
    return tuple(rule for rule in rules if profile is None or profile in rule.profiles)


def by_id(rule_id: str) -> Rule:
    """The rule with this id. Raises `KeyError` naming the id."""
    for rule in load():
        if rule.id == rule_id:
            return rule
    raise KeyError(f"no rule {rule_id!r} in the catalogue")


@cache
def _load_all(folder: Path) -> tuple[Rule, ...]:
    return load_folder(folder)


def load_folder(folder: Path) -> tuple[Rule, ...]:
    """The rules of every `*.toml` in a folder. Raises `CatalogueError`, also for an id that stands twice."""
    rules: list[Rule] = []
    seen: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        for rule in load_file(path):
            if rule.id in seen:
                raise CatalogueError(f"{path.name}: {rule.id}: the id stands in {seen[rule.id]} already")
            seen[rule.id] = path.name
            rules.append(rule)
    return tuple(rules)


def load_file(path: Path) -> tuple[Rule, ...]:
    """The rules of one file, in its order. Raises `CatalogueError`."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path.name}: not TOML: {error}") from error
    _no_unknown(set(document), _FILE_KEYS, path.name)
    for key in ("title", "page", "profiles", "rule"):
        if not document.get(key):
            raise CatalogueError(f"{path.name}: key {key!r} is missing or empty")
    return tuple(_rule(path, document, table) for table in document["rule"])


def _rule(path: Path, document: Mapping[str, Any], table: Mapping[str, Any]) -> Rule:
    where = f"{path.name}: {table.get('id', 'a rule without id')}"
    _no_unknown(set(table), _RULE_KEYS, where)
    for key in ("id", "title", "statement"):
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise CatalogueError(f"{where}: {key!r} must be a non-empty text")
    values = dict(table)
    values["source"] = _source(where, document["page"], table.get("source", {}))
    values["profiles"] = _texts(where, "profiles", table.get("profiles", document["profiles"]), PROFILES)
    values["needs"] = _texts(where, "needs", table.get("needs", []))
    values["decisions"] = _texts(where, "decisions", table.get("decisions", []), _DECISIONS)
    values["check"] = MappingProxyType(dict(table.get("check", {})))
    rule = Rule(area=path.stem, **values)
    _check_values(where, rule)
    return rule


def _check_values(where: str, rule: Rule) -> None:
    for key, choices in _CHOICES.items():
        if getattr(rule, key) not in choices:
            raise CatalogueError(f"{where}: {key} is {getattr(rule, key)!r}; allowed: {', '.join(choices)}")
    if not isinstance(rule.threshold, int) or rule.threshold < 1:
        raise CatalogueError(f"{where}: threshold is {rule.threshold!r}; it must be a number from 1")
    unknown = [feature for feature in rule.needs if not is_feature(feature)]
    if unknown:
        raise CatalogueError(f"{where}: needs names no feature of the driver protocol: {', '.join(unknown)}")
    if rule.testable == "no":
        if rule.check or not rule.why.strip():
            raise CatalogueError(f"{where}: a rule that is not testable has a 'why' and no 'check'")
        return
    if rule.why:
        raise CatalogueError(f"{where}: 'why' belongs to a rule that is not testable")
    problem = check_problem(rule.check)
    if problem:
        raise CatalogueError(f"{where}: check: {problem}")


def _source(where: str, page: str, table: Mapping[str, Any]) -> Source:
    _no_unknown(set(table), _SOURCE_KEYS, f"{where}: source")
    sentences = table.get("sentences", [])
    if not all(isinstance(n, int) and n > 0 for n in sentences):
        raise CatalogueError(f"{where}: source: sentences must be numbers from 1, not {sentences!r}")
    return Source(page=page, section=table.get("section", ""), sentences=tuple(sentences))


def _texts(
    where: str, key: str, value: Any, allowed: tuple[str, ...] | frozenset[str] | None = None
) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CatalogueError(f"{where}: {key} must be a list of texts, not {value!r}")
    strange = [item for item in value if allowed is not None and item not in allowed]
    if strange:
        raise CatalogueError(f"{where}: {key} holds {', '.join(strange)}, which does not exist")
    if len(set(value)) != len(value):
        raise CatalogueError(f"{where}: {key} holds a value twice")
    return tuple(value)


def _no_unknown(keys: set[str], known: frozenset[str], where: str) -> None:
    unknown = sorted(keys - known)
    if unknown:
        raise CatalogueError(f"{where}: unknown key {', '.join(map(repr, unknown))}")
