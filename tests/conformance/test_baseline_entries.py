"""Baselines: a known failure is excused; an entry that is stale, expired, mistaken or not needed is a failure."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.cli import main
from rho_conformance.errors import UsageError
from rho_conformance.judge.baseline import apply_baseline, read_baseline
from rho_conformance.judge.conform import Ask, Report
from rho_conformance.judge.recorded import check
from tests.conformance.reportsample import BROKEN, broken_trace

TODAY = datetime.date(2027, 1, 31)
KEPT = "RHO-ORD-1"
"""A rule that the broken trace keeps."""


@pytest.fixture(scope="module")
def judged() -> Report:
    return check("hand", broken_trace(), None)


def copied(judged: Report) -> Report:
    return replace(judged, verdicts={rule: replace(v) for rule, v in judged.verdicts.items()}, notes=[])


def applied(judged: Report, folder: Path, text: str) -> Report:
    path = folder / "known.toml"
    path.write_text(text, encoding="utf-8")
    report = copied(judged)
    apply_baseline(report, read_baseline(path, report.ask), TODAY)
    return report


def test_the_sample_is_what_these_tests_need(judged: Report) -> None:
    assert judged.verdicts[BROKEN].verdict == "fail" and judged.verdicts[KEPT].verdict == "pass"


@pytest.mark.parametrize("until", ["", "until = 2027-01-31", "until = 9999-01-01"])
def test_a_known_failure_is_excused_and_stays_known(judged: Report, tmp_path: Path, until: str) -> None:
    text = f'[{BROKEN}]\nreason = "the tool is slow"\nlink = "https://example.org/1"\n{until}\n'
    report = applied(judged, tmp_path, text)
    verdict = report.verdicts[BROKEN]
    assert verdict.verdict == "variant" and "the tool is slow (https://example.org/1)" in str(verdict.variant)
    assert verdict.detail == judged.verdicts[BROKEN].detail, "what is excused is still told"
    told = report.to_json()
    assert told["verdicts"][BROKEN]["baseline"]["reason"] == "the tool is slow"
    assert told["verdicts"][BROKEN]["baseline"].get("until") == (until.partition("= ")[2] or None)
    assert BROKEN in told["notes"][0]
    assert report.verdicts[KEPT] == judged.verdicts[KEPT]


def test_the_day_after_the_last_it_is_expired(judged: Report, tmp_path: Path) -> None:
    report = applied(judged, tmp_path, f'[{BROKEN}]\nreason = "slow"\nuntil = 2027-01-30\n')
    verdict = report.verdicts[BROKEN]
    assert verdict.verdict == "fail" and "expired on 2027-01-30" in verdict.detail
    assert judged.verdicts[BROKEN].detail in verdict.detail and not report.notes


@pytest.mark.parametrize("verdict", ["pass", "variant", "n/a", "vacuous", "inconclusive", "untestable"])
def test_an_entry_that_is_not_needed_is_a_failure(judged: Report, tmp_path: Path, verdict: str) -> None:
    spoilt = copied(judged)
    spoilt.verdicts[KEPT].verdict = verdict
    report = applied(spoilt, tmp_path, f'[{KEPT}]\nreason = "slow"\n')
    assert report.verdicts[KEPT].verdict == "fail" and not report.conformant
    assert f"not needed, the rule is {verdict}" in report.verdicts[KEPT].detail


def test_an_error_stays_an_error(judged: Report, tmp_path: Path) -> None:
    spoilt = copied(judged)
    spoilt.verdicts[KEPT].verdict = "error"
    assert applied(spoilt, tmp_path, f'[{KEPT}]\nreason = "slow"\n').verdicts[KEPT].verdict == "error"


def test_another_failure_of_the_same_rule_is_news(judged: Report, tmp_path: Path) -> None:
    words = judged.verdicts[BROKEN].detail[-12:]
    entry = f"[{BROKEN}]\nreason = 'slow'\nmessage = {{}}\n"
    assert applied(judged, tmp_path, entry.format(json.dumps(words))).verdicts[BROKEN].verdict == "variant"
    verdict = applied(judged, tmp_path, entry.format('"hangs"')).verdicts[BROKEN]
    assert verdict.verdict == "fail" and "another failure ('hangs')" in verdict.detail


def test_a_rule_that_is_gone_is_refused(judged: Report, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="RHO-GONE-1"):
        applied(judged, tmp_path, '[RHO-GONE-1]\nreason = "slow"\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[RHO-ORD-5]\n", "needs a reason"),
        ('[RHO-ORD-5]\nreason = " "\n', "reason must be a text"),
        ("[RHO-ORD-5]\nreason = 1\n", "reason must be a text"),
        ('[RHO-ORD-5]\nreason = "x"\nlink = ""\n', "link must be a text"),
        ('[RHO-ORD-5]\nreason = "x"\nuntil = "2027-01-31"\n', "until must be a day"),
        ('[RHO-ORD-5]\nreason = "x"\nuntil = 2027-01-31T00:00:00\n', "until must be a day"),
        ('[RHO-ORD-5]\nreason = "x"\nexpires = 2027-01-31\n', "unknown key expires"),
        ('RHO-ORD-5 = "x"\n', "must be a table"),
        ("[RHO-ORD-5", "known.toml"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        read_baseline(path, Ask("core"))


def test_a_filtered_run_refuses_a_baseline_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "known.toml"
    path.write_text(f'[{BROKEN}]\nreason = "slow"\n')
    assert main(["conform", "core", "--rule", BROKEN, "--baseline", str(path)]) == 4
    assert "--baseline and --rule" in capsys.readouterr().err
    assert main(["conform", "core", "--baseline", str(tmp_path / "none.toml")]) == 4


def test_a_whole_run_with_a_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One entry is right, one is not needed: the run fails by the second alone, and the page tells both."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    path = tmp_path / "known.toml"
    path.write_text('[CORE-LIVE]\nreason = "it is stuck"\nmessage = "waits for nothing"\n[CP1]\nreason = "who knows"\n')
    arguments = ["conform", "python:stuckdriver:factory", "--examples", "0", "--baseline", str(path)]
    status = main([*arguments, "--report", str(tmp_path / "out"), "--format", "json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == 1 and [r for r, v in answer["verdicts"].items() if v["verdict"] == "fail"] == ["CP1"]
    assert answer["verdicts"]["CORE-LIVE"]["verdict"] == "variant"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "with 1 excused failure" in page and "it is stuck" in page
    assert "excused" in page and "breaks CORE-LIVE (excused)" in page
