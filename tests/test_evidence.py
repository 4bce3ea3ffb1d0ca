"""What the project claims of itself, run for real: the core conforms, by every rule and every row of its tables."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from rho_conformance.judge.conform import Ask, Report, conform
from rho_conformance.judge.library import library
from rho_conformance.judge.liveness import own_mutants
from rho_spec.catalogue import load

EXAMPLES = 60


@cache
def judged() -> Report:
    return conform(Ask("core", examples=EXAMPLES))


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


def test_reports_are_json_and_say_what_was_done() -> None:
    answer: dict[str, Any] = json.loads(json.dumps(judged().to_json()))
    assert answer["conformant"] is True and answer["coverage"]["taken"] == answer["coverage"]["rows"]
    assert sum(answer["summary"].values()) == len(answer["verdicts"])
    assert sum(answer["played"].values()) > 1_000


def test_the_page_of_the_report_names_every_rule(tmp_path: Path) -> None:
    from rho_conformance.report.files import write

    text = write(judged(), tmp_path).read_text(encoding="utf-8")
    assert [rule for rule in judged().verdicts if f"| {rule} |" not in text] == []
