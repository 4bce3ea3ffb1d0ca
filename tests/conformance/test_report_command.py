"""`rho-core report`, and the files that `conform --report` leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.cli import app as command_line
from rho_conformance.cli import main, report
from rho_conformance.judge.recorded import check
from rho_conformance.report import files
from tests.conformance.reportsample import BROKEN, broken_trace, cell, of_every_sort, write_mutants, write_report

if all(command.name != "report" for command in command_line.app.registered_commands):
    report.register(command_line.app)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["report", *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_the_answer_for_programs(call: Any, tmp_path: Path) -> None:
    good = {rule: c | {"verdict": "pass"} for rule, c in of_every_sort().items()}
    one = write_report(tmp_path / "a", "a", good)
    two = write_report(tmp_path / "b", "b", of_every_sort(), {BROKEN: broken_trace()}, profile="common")
    out, junit = tmp_path / "deep" / "page.html", tmp_path / "all.xml"
    arguments = (str(one), str(two), "--out", str(out), "--junit", str(junit), "--format", "json")
    status, printed, _ = call(*arguments, "--mutants", str(write_mutants(tmp_path)))
    answer = json.loads(printed)
    assert status == 0 and answer["out"] == str(out) and answer["bytes"] == out.stat().st_size
    first, second = answer["targets"]
    assert first["target"] == "a (rho)" and first["conformant"] is True and first["summary"] == {"pass": 8}
    assert second["target"] == "b (common)" and second["conformant"] is False
    assert answer["score"] == 0.5 and answer["rules"] == 8 and answer["witnesses_left_out"] == 0
    vacuous = answer["not_proved"]["vacuous"]
    assert [(g["why"], g["targets"]) for g in vacuous] == [("why it is vacuous", ["b (common)"])]
    assert junit.read_text().count("<testsuite ") == 2


def test_the_table_for_people(call: Any, tmp_path: Path) -> None:
    path = write_report(tmp_path, "hand\x1b[31m", of_every_sort())
    status, printed, _ = call(str(path), "--out", str(tmp_path / "page.html"))
    assert status == 0 and "not conformant" in printed and "not proved: " in printed and "page.html" in printed
    assert "\x1b[31m" not in printed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("no json", "not a report.json"),
        ("[" * 100_000, "not a report.json"),
        ("[1]", "not a report.json"),
        ('{"target": "x"}', "profile"),
        (
            json.dumps(
                {
                    "target": "x",
                    "profile": "rho",
                    "seed": 1,
                    "examples": 1,
                    "steps": 1,
                    "verdicts": {"R": {"verdict": "good"}},
                }
            ),
            "verdicts.R.verdict",
        ),
    ],
)
def test_what_is_no_report_is_named(call: Any, tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    status, printed, err = call(str(path), "--out", str(tmp_path / "page.html"))
    assert status == 4 and printed == "" and str(path) in err and said in err and "Traceback" not in err
    assert not (tmp_path / "page.html").exists()


def test_the_page_cannot_be_written(call: Any, tmp_path: Path) -> None:
    path = write_report(tmp_path, "hand", of_every_sort())
    status, _, err = call(str(path), "--out", str(tmp_path))
    assert status == 4 and str(tmp_path) in err
    assert call(str(path))[0] == 4 and call("--out", "x.html")[0] == 4


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(lambda path: path.unlink(), "is not there"), (lambda path: path.write_text("no"), "cannot be read")],
)
def test_a_missing_witness_is_told_and_costs_nothing_else(call: Any, tmp_path: Path, spoil: Any, said: str) -> None:
    path = write_report(tmp_path, "hand", of_every_sort(), {BROKEN: broken_trace()})
    spoil(tmp_path / "witnesses" / f"{BROKEN}.jsonl")
    out = tmp_path / "page.html"
    status, printed, _ = call(str(path), "--out", str(out), "--format", "json")
    [gap] = json.loads(printed)["not_proved"]["history"]
    assert status == 0 and gap["subject"] == BROKEN and said in gap["why"] and said in out.read_text()


def test_a_report_that_moved_finds_its_witnesses(call: Any, tmp_path: Path) -> None:
    write_report(tmp_path / "old", "hand", of_every_sort(), {BROKEN: broken_trace()})
    (tmp_path / "old").rename(tmp_path / "new")
    out = tmp_path / "page.html"
    status, printed, _ = call(str(tmp_path / "new" / "report.json"), "--out", str(out), "--format", "json")
    assert status == 0 and "history" not in json.loads(printed)["not_proved"] and 'svg class="seq"' in out.read_text()


def test_the_claim_is_derived_and_not_believed(call: Any, tmp_path: Path) -> None:
    path = write_report(tmp_path, "liar", {BROKEN: cell("fail")}, conformant=True, summary={"pass": 99})
    status, printed, _ = call(str(path), "--out", str(tmp_path / "page.html"), "--format", "json")
    [target] = json.loads(printed)["targets"]
    assert status == 0 and target["conformant"] is False and target["summary"] == {"fail": 1}


def test_a_judgement_leaves_all_four_files(tmp_path: Path) -> None:
    hostile = "<b>|`x`\ud800\x1b"
    report = check("hand", broken_trace(said=hostile), None)
    report.verdicts[BROKEN].detail = hostile
    path = files.write(report, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"report.json", "report.md", "report.html", "junit.xml"}
    assert json.loads((tmp_path / "report.json").read_text())["verdicts"][BROKEN]["detail"] == hostile
    text = path.read_text()
    assert r"&lt;b&gt;\|\`x\`\\ud800\\u001b" in text and "<b>" not in text
    assert "What is not proved" in (tmp_path / "report.html").read_text()
