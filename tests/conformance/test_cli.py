"""The command line: JSON alone on stdout, exit statuses, clear refusals (design §7)."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import rho_core
from rho_conformance.cli import main

GOOD = """
id: T/good
rules: [RHO-ORD-1]
profile: rho
steps:
  - start: hello
  - provider: {text: hi}
expect:
  outcome: {ok: {text: hi}}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> tuple[int, Any, str]:
        status = main([*arguments, "--format", "json"])
        printed = capsys.readouterr()
        return status, json.loads(printed.out) if printed.out else None, printed.err

    return call


def scenario(folder: Path, text: str, name: str = "one.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == rho_core.__version__


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["conform"],
        ["conform", "nobody"],
        ["conform", "python:no_such_module:factory"],
        ["conform", "mutant:no-such-mutant"],
        ["conform", "core", "--rule", "RHO-NOPE-1"],
        ["conform", "core", "--profile", "orca"],
        ["conform", "core", "--examples", "-1"],
        ["rules", "RHO-NOPE-1"],
        ["rules", "--profile", "nobody"],
        ["rules", "--verify-page", "no/such/page.txt"],
        ["scenario", "no/such/file.yaml"],
        ["check", "no/such/trace.jsonl"],
        ["replay", "no/such/witness.jsonl"],
        ["mutants", "--rule", "RHO-NOPE-1"],
        ["explore", "--scope", "endless"],
        ["diagram", "toaster"],
        [],
    ],
)
def test_bad_usage_is_status_4_and_says_what(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 4
    printed = capsys.readouterr()
    assert printed.err.startswith("rho-core: ") and printed.out == ""


def test_rules_lists_and_explains(run: Any) -> None:
    status, answer, _ = run("rules", "--profile", "rho")
    assert status == 0 and len(answer["rules"]) > 120
    status, answer, _ = run("rules", "RHO-CAN-13")
    [rule] = answer["rules"]
    assert status == 0 and rule["id"] == "RHO-CAN-13" and rule["mutants"] and rule["scenarios"]


def test_a_passing_scenario(run: Any, tmp_path: Path) -> None:
    status, answer, _ = run("scenario", scenario(tmp_path, GOOD))
    assert status == 0
    assert answer == {"results": [{"id": "T/good", "verdict": "pass", "detail": ""}], "passed": 1, "failed": 0}


def test_a_failing_scenario_wins_over_a_passing_one(run: Any, tmp_path: Path) -> None:
    scenario(tmp_path, GOOD)
    bad = GOOD.replace("T/good", "T/bad").replace("outcome: {ok: {text: hi}}", "outcome: {ok: {text: ho}}")
    scenario(tmp_path, bad, "two.yaml")
    status, answer, _ = run("scenario", str(tmp_path))
    assert status == 1 and answer["passed"] == 1 and answer["failed"] == 1
    assert "ho" in answer["results"][1]["detail"] and "hi" in answer["results"][1]["detail"]


def test_a_scenario_that_cannot_be_asked_is_incomplete(run: Any, tmp_path: Path) -> None:
    text = GOOD.replace("- start: hello", "- token: {new: t1}\n  - start: {text: hello, token: t1}").replace(
        "rho", "orca"
    )
    status, answer, _ = run("scenario", scenario(tmp_path, text))
    assert status == 2 and answer["results"][0]["verdict"] == "n/a" and "not yet" in answer["results"][0]["detail"]


def test_an_unknown_key_names_file_line_and_key(run: Any, tmp_path: Path) -> None:
    path = scenario(tmp_path, GOOD + "  outcom: {}\n")
    status, answer, err = run("scenario", path)
    assert status == 4 and list(answer) == ["errors"]
    [fault] = answer["errors"]
    assert (fault["file"], fault["line"]) == (path, 10) and "unknown key 'outcom'" in fault["message"]
    assert err == f"rho-core: {path}:10: {fault['message']}\n"


def test_every_bad_file_is_named_and_none_is_run(run: Any, tmp_path: Path) -> None:
    good = scenario(tmp_path, GOOD)
    bad = [
        scenario(tmp_path, GOOD.replace("- start: hello", step), f"{step[2:5]}.yaml")
        for step in ("- cancle: {}", "- stop")
    ]
    status, answer, err = run("scenario", good, *bad)
    assert status == 4 and [fault["file"] for fault in answer["errors"]] == bad
    assert [fault["line"] for fault in answer["errors"]] == [6, 6]
    assert [line.partition(":6: ")[0] for line in err.splitlines()] == [f"rho-core: {path}" for path in bad]


def test_in_text_a_bad_file_leaves_stdout_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = scenario(tmp_path, GOOD + "  outcom: {}\n")
    assert main(["scenario", path]) == 4
    printed = capsys.readouterr()
    assert printed.out == "" and f"{path}:10: expect: unknown key 'outcom'; did you mean outcome?" in printed.err


def test_a_folder_without_scenarios_is_named(run: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("id: x")
    status, answer, err = run("scenario", str(tmp_path))
    assert status == 2 and answer == {"results": [], "passed": 0, "failed": 0}
    assert err == f"{tmp_path}: no scenario file (.yaml, .yml) in this folder\n"


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff"])
def test_half_of_a_surrogate_pair_can_be_printed(run: Any, tmp_path: Path, half: str) -> None:
    path = scenario(tmp_path, GOOD.replace("text: hi}\nexpect", f'text: "a{half}"}}\nexpect'))
    status, answer, _ = run("scenario", path)
    assert status == 1 and half.encode().decode("unicode_escape") in answer["results"][0]["detail"]
    assert main(["scenario", path]) == 1


def test_output_that_is_not_utf_8_is_json_still(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    path = scenario(tmp_path, GOOD.replace("text: hi}\nexpect", 'text: "\\U0001F600…"}\nexpect'))
    assert main(["scenario", path, "--format", "json"]) == 1
    narrow.flush()
    buffer = narrow.buffer
    assert isinstance(buffer, io.BytesIO)
    assert "\U0001f600…" in json.loads(buffer.getvalue())["results"][0]["detail"]


def test_the_details_get_the_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    long = GOOD.replace("T/good", "T/" + "long-" * 12).replace("{ok: {text: hi}}", "{ok: {text: ho}}")
    assert main(["scenario", scenario(tmp_path, long)]) == 1
    head = capsys.readouterr().out.splitlines()[1]
    _, name, _, detail, _ = head.split("┃")
    assert "detail" in detail and len(detail) > 1.5 * len(name)


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("def factory(:", "SyntaxError"),
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("import sys; sys.exit(1)", "SystemExit: 1"),
        ("1 / 0", "ZeroDivisionError"),
        ("from os import nothing_of_the_kind", "ImportError"),
    ],
)
def test_a_target_that_cannot_be_imported_is_named_with_the_cause(
    source: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"bad_target_{cause.partition(':')[0].lower()}"
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["scenario", scenario(tmp_path, GOOD), "--target", f"python:{module}:factory"]) == 4
    told = capsys.readouterr().err
    assert told.startswith("rho-core: ") and module in told and cause in told and "Traceback" not in told


@pytest.mark.parametrize("fault", [SystemExit(1), GeneratorExit(), ZeroDivisionError("oops")])
def test_what_nobody_caught_is_a_fault_and_no_verdict(
    fault: BaseException, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr("rho_conformance.cli.scenario.run_scenario", broken)
    assert main(["scenario", scenario(tmp_path, GOOD)]) == 3
    assert type(fault).__name__ in capsys.readouterr().err


def test_an_unknown_rule_is_a_warning(run: Any, tmp_path: Path) -> None:
    status, _, err = run("scenario", scenario(tmp_path, GOOD.replace("RHO-ORD-1", "RHO-NOPE-1")))
    assert status == 0 and "RHO-NOPE-1" in err


def test_conform_by_one_rule(run: Any) -> None:
    status, answer, _ = run("conform", "core", "--rule", "RHO-CAN-13", "--examples", "0")
    assert status == 0 and answer["conformant"] is True
    assert set(answer) >= {"target", "profile", "seed", "examples", "seconds", "verdicts", "summary", "conformant"}
    verdict = answer["verdicts"]["RHO-CAN-13"]
    assert verdict["verdict"] == "pass" and verdict["triggered"] >= 3 and verdict["opportunities"] >= 0


def test_conform_names_the_rule_a_mutant_breaks_and_leaves_a_witness(run: Any, tmp_path: Path) -> None:
    [rule] = run("rules", "RHO-CAN-13")[1]["rules"]
    arguments = ("--rule", "RHO-CAN-13", "--examples", "0", "--report", str(tmp_path))
    status, answer, _ = run("conform", f"mutant:{rule['mutants'][0]}", *arguments)
    verdict = answer["verdicts"]["RHO-CAN-13"]
    assert status == 1 and answer["conformant"] is False and verdict["verdict"] == "fail"
    assert (tmp_path / "report.md").is_file() and json.loads((tmp_path / "report.json").read_text())
    status, replayed, _ = run("replay", verdict["witness"])
    assert status == 1 and replayed["rule"] == "RHO-CAN-13"
    assert replayed["recorded"] is True and replayed["k"] == replayed["n"] > 0
    status, replayed, _ = run("replay", verdict["witness"], "--target", "core")
    assert status == 1 and replayed["recorded"] is True and replayed["k"] == 0, "the recording still proves the fault"
    status, checked, _ = run("check", verdict["witness"])
    assert status == 1 and checked["verdicts"]["RHO-CAN-13"]["verdict"] == "fail"


def test_a_target_that_declares_nothing_is_not_conformant(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    status, answer, _ = run("conform", "python:silent_driver:factory", "--examples", "1")
    assert status == 2 and answer["conformant"] is False
    assert "pass" not in answer["summary"] and answer["summary"]["inconclusive"] > 50


def test_a_driver_off_the_protocol_is_a_fault_of_the_harness(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    status, _, err = run("conform", "python:silent_driver:broken", "--examples", "1")
    assert status == 3 and "protocol" in err


@pytest.mark.parametrize("machine", ["run", "call", "job", "steer", "session"])
def test_diagrams(run: Any, machine: str) -> None:
    status, answer, _ = run("diagram", machine)
    assert status == 0 and answer["mermaid"].startswith("stateDiagram-v2")


def test_text_output_is_a_table_and_ends_with_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["conform", "core", "--rule", "RHO-ORD-1", "--examples", "0", "--report", str(tmp_path)])
    lines = capsys.readouterr().out.strip().splitlines()
    assert status == 0 and lines[-1] == str(tmp_path / "report.md")
    assert any("RHO-ORD-1" in line and "pass" in line for line in lines)
