"""The catalogue loads, holds what the contract asks, and refuses every kind of bad row."""

from collections import Counter
from pathlib import Path

import pytest

from rho_spec.catalogue import CatalogueError, Rule, by_id, load, load_file, load_folder

RULES = load()
GOOD = """
title = "T"
page = "rho"
profiles = ["rho"]

[[rule]]
id = "RHO-T-1"
title = "A title"
statement = "It holds."
check = { predicate = "t_1" }
"""
# How many rows each area of the page has.
COUNTS = {
    "BUF": 10,
    "BND": 5,
    "ORD": 18,
    "TERM": 7,
    "COORD": 5,
    "METR": 5,
    "STEER": 12,
    "HOST": 5,
    "RET": 23,
    "CAN": 16,
    "FAIL": 2,
    "DROP": 6,
    "PERS": 5,
    "SHUT": 8,
    "STATE": 5,
    "LIM": 7,
}


def write(folder: Path, text: str, name: str = "area.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_promise_of_the_page_has_a_row() -> None:
    counted = Counter(rule.id.split("-")[1] for rule in RULES if rule.id.startswith("RHO-"))
    assert counted == COUNTS
    assert {"RHO-ORD-7b", "RHO-ORD-11a", "RHO-ORD-11f"} <= {rule.id for rule in RULES}


def test_common_rules_and_standing_checks_are_there() -> None:
    ids = {rule.id for rule in RULES}
    assert {f"CP{n}" for n in range(1, 17)} <= ids
    assert {"CORE-LIVE", "CORE-CAP", *(f"CORE-S{n}" for n in range(1, 9))} <= ids


def test_profiles_share_the_standing_checks() -> None:
    assert {r.id for r in load("rho")} & {r.id for r in load("common")} == {
        rule.id for rule in RULES if rule.area == "core" and rule.id != "CORE-S8"
    }
    assert {r.id for r in load("orca")} == {r.id for r in RULES if r.area == "core"} - {"CORE-S2"}
    with pytest.raises(ValueError, match="unknown profile 'rust'"):
        load("rust")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rows_are_complete(rule: Rule) -> None:
    assert len(rule.statement) > 30
    assert rule.statement.endswith((".", ")"))
    if rule.id.startswith("RHO-"):
        assert rule.source.section
        assert rule.source.sentences
    if rule.predicate is not None:
        expected = rule.id.removeprefix("RHO-").lower().replace("-", "_")
        assert rule.predicate == expected


def test_most_rules_are_tested_and_the_rest_says_why() -> None:
    untested = [rule for rule in RULES if rule.testable == "no"]
    assert len([rule for rule in RULES if rule.id.startswith("RHO-") and rule.testable != "no"]) >= 100
    assert all(rule.why and not rule.check for rule in untested)
    assert {rule.kind for rule in untested} >= {"host-duty", "permission", "limitation"}


def test_the_erratum_is_marked() -> None:
    assert [rule.id for rule in RULES if rule.kind == "erratum"] == ["RHO-RET-23"]


def test_lookup_by_id() -> None:
    assert by_id("RHO-CAN-13").area == "cancellation"
    with pytest.raises(KeyError, match="RHO-CAN-99"):
        by_id("RHO-CAN-99")


def test_rules_are_hashable_and_turn_into_json_values() -> None:
    assert len(set(RULES)) == len(RULES)
    plain = by_id("RHO-ORD-1").as_dict()
    assert plain["source"] == {"page": "rho", "section": "Ordering rules", "sentences": [9, 25]}
    assert plain["check"]["pattern"] == "precedence"
    assert plain["needs"] == ["observe.events"]


def test_a_good_file_loads_with_defaults(tmp_path: Path) -> None:
    (rule,) = load_file(write(tmp_path, GOOD))
    assert (rule.area, rule.level, rule.kind, rule.threshold) == ("area", "must", "guarantee", 3)
    assert (rule.testable, rule.predicate, rule.pattern) == ("yes", "t_1", None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('colour = "red"', r"area.toml: RHO-T-1: unknown key 'colour'"),
        ('level = "maybe"', "level is 'maybe'; allowed: must, should, may"),
        ('kind = "wish"', "kind is 'wish'"),
        ('testable = "often"', "testable is 'often'"),
        ('origin = "rumour"', "origin is 'rumour'"),
        ("threshold = 0", "threshold is 0"),
        ('needs = ["telepathy"]', "needs names no feature of the driver protocol: telepathy"),
        ('needs = "cancel"', "needs must be a list of texts"),
        ('needs = ["cancel", "cancel"]', "needs holds a value twice"),
        ('decisions = ["D77"]', "decisions holds D77"),
        ('profiles = ["rust"]', "profiles holds rust"),
        ('testable = "no"', "not testable has a 'why' and no 'check'"),
        ('why = "because"', "'why' belongs to a rule that is not testable"),
        ('source = { chapter = "x" }', "source: unknown key 'chapter'"),
        ("source = { sentences = [0] }", "sentences must be numbers from 1"),
    ],
)
def test_bad_values_name_file_rule_and_key(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(CatalogueError, match=message) as caught:
        load_file(write(tmp_path, GOOD + line + "\n"))
    assert "area.toml: RHO-T-1" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('statement = "It holds."', 'statement = " "', "'statement' must be a non-empty text"),
        ('id = "RHO-T-1"\n', "", "a rule without id"),
        ('page = "rho"', "", "key 'page' is missing"),
        ('page = "rho"', 'page = "rho"\npages = 3', "area.toml: unknown key 'pages'"),
        ('title = "T"', "title = T", "not TOML"),
        ('{ predicate = "t_1" }', "{}", "neither a pattern nor only the name of a predicate"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(CatalogueError, match=message):
        load_file(write(tmp_path, GOOD.replace(old, new)))


def test_an_id_stands_once(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "a.toml")
    write(tmp_path, GOOD, "b.toml")
    with pytest.raises(CatalogueError, match=r"b.toml: RHO-T-1: the id stands in a.toml already"):
        load_folder(tmp_path)
