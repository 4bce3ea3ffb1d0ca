"""What the project claims of itself, run for real: the core conforms, every fault is caught, every variant passes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.explore import Report as Exploration
from rho_conformance.explore import explore
from rho_conformance.judge.conform import Ask, Report, conform
from rho_conformance.judge.exhibit import examine
from rho_conformance.judge.kill import Matrix, kill_matrix
from rho_conformance.judge.library import directed, library
from rho_conformance.judge.liveness import own_mutants
from rho_conformance.targets import resolve
from rho_spec.catalogue import load

EXAMPLES = 60
SEEDS = range(5)


@cache
def judged() -> Report:
    return conform(Ask("core", examples=EXAMPLES))


@cache
def killed() -> Matrix:
    return kill_matrix()


@cache
def explored() -> Exploration:
    return explore("small")


def test_every_testable_rule_holds_on_the_core_and_was_really_tried() -> None:
    bad = {
        r: (v.verdict, v.detail)
        for r, v in judged().verdicts.items()
        if v.verdict not in ("pass", "variant", "untestable")
    }
    assert bad == {}
    assert judged().conformant
    untestable = {r for r, v in judged().verdicts.items() if v.verdict == "untestable"}
    assert untestable == {rule.id for rule in load("rho") if rule.testable == "no"}


def test_the_core_chooses_no_variant_of_a_decision() -> None:
    """Permissions and limitations say which permitted behaviour was seen; a decision of ours has one answer."""
    chosen = {r: v.variant for r, v in judged().verdicts.items() if v.variant is not None}
    kinds = {rule.id: rule.kind for rule in load("rho")}
    assert {r: v for r, v in chosen.items() if v.startswith("D") and not v.startswith("DROP")} == {}
    assert {kinds[r] for r in chosen} <= {"permission", "limitation"}


def test_the_suite_alone_takes_every_row_of_the_tables() -> None:
    coverage = judged().coverage
    assert coverage is not None and coverage.missing() == []


def test_every_testable_rule_has_a_mutant_and_a_scenario() -> None:
    testable = {rule.id for profile in ("rho", "common") for rule in load(profile) if rule.testable != "no"}
    shown = {rule for item in library() for rule in getattr(item.source, "rules", ())}
    assert sorted(testable - set(own_mutants())) == []
    assert sorted(testable - shown) == []


def test_every_mutant_is_killed_by_the_rule_it_is_meant_for() -> None:
    assert [(k.mutant, k.intended) for k in killed().kills if not k.killed] == []
    assert killed().score == 1.0


def test_no_permitted_variant_is_called_a_failure() -> None:
    assert len(killed().benign) > 30
    assert {name: fails for name, fails in killed().benign.items() if fails} == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_variants_are_not_called_failures_either(seed: int) -> None:
    """A fifth of the library for each seed; `rho-core conform chaos:SEED` plays all of it."""
    items = [*library("rho"), *directed()][seed :: len(SEEDS)]
    target = resolve(f"chaos:{seed}")
    shown = [examine(item.name, item.source, target) for item in items]
    assert {e.name: e.broken for e in shown if e.broken} == {}
    assert {e.name: e.detail for e in shown if e.verdict == "error"} == {}


def test_the_search_is_complete_and_finds_nothing() -> None:
    found = explored()
    assert found.complete and found.violations == () and found.deadlocks == ()
    assert found.transitions > 200_000
    assert found.coverage.declared_missing == () and found.coverage.undeclared == ()


def test_reports_are_json_and_say_what_was_done() -> None:
    answer: dict[str, Any] = json.loads(json.dumps(judged().to_json()))
    assert answer["conformant"] is True and answer["coverage"]["taken"] == answer["coverage"]["rows"]
    assert sum(answer["summary"].values()) == len(answer["verdicts"])
    assert sum(answer["played"].values()) > 1_000


def test_the_page_of_the_report_names_every_rule(tmp_path: Path) -> None:
    from rho_conformance.report.files import write

    text = write(judged(), tmp_path).read_text(encoding="utf-8")
    assert [rule for rule in judged().verdicts if f"| {rule} |" not in text] == []
