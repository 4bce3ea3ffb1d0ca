"""JUnit: what was not really tried is not green; what is skipped says why; foreign words do no harm."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

from rho_conformance.report import junit
from rho_conformance.report.gathered import gather
from tests.conformance.reportsample import BROKEN, EVERY, broken_trace, cell, of_every_sort, write_report


def written(folder: Path, *reports: Path) -> xml.Element:
    path = folder / "junit.xml"
    junit.write(gather(reports), path)
    return xml.parse(path).getroot()


def cases(root: xml.Element) -> dict[str, xml.Element]:
    return {case.get("name", "").partition(":")[0]: case for case in root.iter("testcase")}


@pytest.fixture
def suite(tmp_path: Path) -> xml.Element:
    verdicts = of_every_sort()
    verdicts[BROKEN]["detail"] = "step 3: it broke"
    return written(tmp_path, write_report(tmp_path, "hand", verdicts, {BROKEN: broken_trace()}))


COLOUR = {
    "pass": None,
    "variant": None,
    "fail": "failure",
    "vacuous": "error",
    "inconclusive": "error",
    "error": "error",
    "n/a": "skipped",
    "untestable": "skipped",
}


def test_every_verdict_has_its_colour(suite: xml.Element) -> None:
    found = cases(suite)
    rules = dict(zip(of_every_sort(), EVERY, strict=True))
    assert set(COLOUR) == set(EVERY)
    for rule, verdict in rules.items():
        outcome = [child for child in found[rule] if child.tag != "system-out"]
        assert [child.tag for child in outcome] == ([] if COLOUR[verdict] is None else [COLOUR[verdict]]), verdict
        if outcome:
            assert outcome[0].get("message"), f"{verdict} says why"
    assert "why it is n/a" in str(found[rules_of(rules, "n/a")].find("skipped").get("message"))  # type: ignore[union-attr]


def rules_of(rules: dict[str, str], verdict: str) -> str:
    return next(rule for rule, found in rules.items() if found == verdict)


def test_the_counts_are_those_of_the_cases(suite: xml.Element) -> None:
    wanted = {"tests": "9", "failures": "1", "errors": "3", "skipped": "2"}
    one = suite.find("testsuite")
    assert one is not None
    for element in (suite, one):
        assert {key: element.get(key) for key in wanted} == wanted
    assert one.get("name") == "hand: rho" and float(one.get("time", "0")) == 1.5
    told = {p.get("name"): p.get("value") for p in one.iter("property")}
    assert told["seed"] == "1" and told["conformant"] == "False"


def test_a_failure_brings_its_history(suite: xml.Element) -> None:
    log = cases(suite)[BROKEN].findtext("system-out", "")
    assert log.startswith("step 1: ") and 'ToolUpdated {"call_id": "Z"' in log


def test_a_variant_says_which(suite: xml.Element) -> None:
    assert any("variant: D1:fail" in text.text for text in suite.iter("system-out") if text.text)


@pytest.mark.parametrize("verdict", ["n/a", "untestable"])
def test_a_report_of_nothing_but_skips_is_not_green(tmp_path: Path, verdict: str) -> None:
    root = written(tmp_path, write_report(tmp_path, "hand", {"RHO-CAN-1": cell(verdict)}))
    assert (root.get("errors"), root.get("skipped")) == ("1", "1")


def test_targets_are_suites_of_one_file(tmp_path: Path) -> None:
    reports = [write_report(tmp_path / n, "same", {"RHO-CAN-1": cell("pass")}) for n in "ab"]
    root = written(tmp_path, *reports)
    assert [s.get("name") for s in root] == ["same: rho", "same #2: rho"] and root.get("tests") == "4"


HOSTILE = "</failure><x a='\"'> ]]> & \x00\x1b[31m\u202e\ufffe\ud800 \n é"


def test_hostile_words_keep_the_file_well_formed(tmp_path: Path) -> None:
    verdicts = {
        BROKEN: cell("fail", detail=HOSTILE),
        HOSTILE: cell("n/a", detail=HOSTILE),
        "RHO-CAN-1": cell("variant", variant=HOSTILE),
    }
    report = write_report(tmp_path, HOSTILE, verdicts, {BROKEN: broken_trace(said=HOSTILE)}, profile=HOSTILE)
    root = written(tmp_path, report)
    failure = root.find(".//failure")
    plain = re.sub("[\x00\x1b\u202e\ufffe\ud800]", lambda c: f"\\u{ord(c[0]):04x}", HOSTILE)
    assert failure is not None and failure.get("message") == plain
    assert root.find(".//x") is None
