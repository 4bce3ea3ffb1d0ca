"""`rho-core chat` as a person meets it: a pseudo-terminal, a screen that interprets it, and pipes."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.cli import app as cli
from rho_conformance.judge.recorded import check
from rho_conformance.trace import read_trace
from tests.adapters.chat_kit import CTRL_C, CTRL_D, Person, gate, write_script


def scripted(folder: Path, turns: list[object], *more: str) -> list[str]:
    """The command line for a script."""
    return ["--provider", "scripted", "--script", str(write_script(folder, turns)), *more]


def call(name: str, **arguments: object) -> dict[str, object]:
    """An item that calls a tool."""
    return {"call": {"name": name, "arguments": arguments}}


# --- streaming, resets, cards ------------------------------------------------------------------------------------


def test_text_is_seen_while_it_streams_and_stays_when_it_stands(tmp_path: Path) -> None:
    wait, open_gate = gate(tmp_path)
    turn = [
        {"delta": "first half, "},
        wait,
        {"delta": "second half"},
        {"usage": {"input_tokens": 7, "output_tokens": 3}},
    ]
    with Person(*scripted(tmp_path, [turn])) as person:
        person.say("go on")
        person.see("first half,")
        assert "second half" not in person.shown
        open_gate()
        person.see("EndTurn · tokens: 7 in, 3 out · revision 1")
        assert "› go on\nfirst half, second half\n" in person.shown
        person.type(CTRL_D)
        assert person.leave() == 0


def test_a_reset_erases_the_abandoned_text_from_screen_and_scrollback(tmp_path: Path) -> None:
    wait, open_gate = gate(tmp_path)
    flood = "abandoned words\n" * 60  # twice the height of the screen
    turns: list[object] = [[{"delta": flood}, wait, {"malformed": True}], "what stands"]
    with Person(*scripted(tmp_path, turns)) as person:
        person.say("try")
        person.see("abandoned words")
        open_gate()
        person.see("what stands")
        person.see("revision 1")
        assert "abandoned words" not in person.shown + person.scrolled
        assert "attempt 1 is abandoned" in person.shown
        person.type(CTRL_D)
        assert person.leave() == 0


def test_a_long_answer_is_whole_in_the_scrollback(tmp_path: Path) -> None:
    lines = [f"line {n} of the answer" for n in range(100)]
    turn = [{"delta": line + "\n"} for line in lines]
    with Person(*scripted(tmp_path, [turn])) as person:
        person.say("much")
        person.see("revision 1")
        every = f"{person.scrolled}\n{person.shown}".splitlines()
        assert [line for line in every if line.startswith("line ")] == lines
        person.type(CTRL_D)
        assert person.leave() == 0


def test_a_card_lives_until_its_call_is_finished(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the content of the note")
    turns: list[object] = [[{"delta": "I look."}, call("read_file", path="note.txt")], "Read."]
    arguments = scripted(tmp_path, turns, "--tools", "--folder", str(tmp_path))
    with Person(*arguments) as person:
        person.say("what does it say?")
        person.see("? Allow read_file?")
        person.see("? read_file asking")
        assert "it wants" in person.shown and "fs.read:/" in person.shown  # a long path begins a line of its own
        assert '{"path": "note.txt"}' in person.shown
        person.say("1")
        person.see("revision 1")
        assert "read_file asking" not in person.shown
        assert "✓ read_file ok" in person.shown
        assert "the content of the note" in person.shown
        assert person.shown.index("I look.") < person.shown.index("✓ read_file ok") < person.shown.index("Read.")
        person.type(CTRL_D)
        assert person.leave() == 0


# --- questions and approvals ---------------------------------------------------------------------------------------


def test_always_is_remembered_and_no_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A")
    ask = [call("read_file", path="a.txt")]
    turns: list[object] = [ask, "one", ask, "two", ask, "three"]
    arguments = scripted(tmp_path, turns, "--tools", "--folder", str(tmp_path))
    with Person(*arguments) as person:
        person.say("first")
        person.see("type a number from 1 to 4")
        person.say("7")
        person.see("type a number from 1 to 4")
        person.say("no")
        person.see("revision 1")
        assert "✗ read_file failed" in person.shown
        person.say("second")
        person.see("? Allow read_file?\nit wants")
        person.say("always")
        person.see("revision 2")
        person.say("third")
        person.see("revision 3")
        assert person.shown.count("→") == 2
        person.type(CTRL_D)
        assert person.leave() == 0


MCP = f"{sys.executable} {Path(__file__).with_name('mcp_server.py')}"


def test_a_tools_question_is_answered_in_place(tmp_path: Path) -> None:
    turns: list[object] = [[call("order")], "Served."]
    with Person(*scripted(tmp_path, turns, "--mcp", MCP)) as person:
        person.say("order something")
        person.see("? Allow order?\nit wants mcp:mcp:order")
        person.say("once")
        person.see("1. Accept")
        assert "? order asking" in person.shown
        person.say("perhaps")
        person.see("type a number from 1 to 3; empty means accept")
        person.say("")
        person.see("2. large")
        person.say("2")
        person.see("at least 1, at most 9")
        person.say("1")  # an amount, not the first choice
        person.see("#1. leave empty")
        person.say("#1")
        person.see("Name")
        person.say("soup")
        person.see("2. corn")
        person.say("corn, ham")
        person.see("revision 1")
        assert '{"size":"large","amount":1,"price":null,"name":"soup","toppings":["corn","ham"]}' in person.shown
        assert "? mcp: What shall it be? → Accept; large; 1;" in person.shown
        person.type(CTRL_D)
        assert person.leave() == 0


# --- steering and cancelling -------------------------------------------------------------------------------------


def test_a_line_typed_while_the_model_works_is_a_steer(tmp_path: Path) -> None:
    wait, open_gate = gate(tmp_path)
    turns: list[object] = [[{"delta": "working"}, wait], "as you wish"]
    with Person(*scripted(tmp_path, turns)) as person:
        person.say("start")
        person.see("working")
        person.say("be brief")
        person.see("↳ waits: be brief")
        person.say("and polite")
        person.see("↳ waits: and polite")
        person.say("/retract")
        person.see("taken back: and polite")
        open_gate()
        person.see("revision 1")
        assert "↳ be brief\nas you wish\n" in person.shown
        assert "↳ waits" not in person.shown
        person.type(CTRL_D)
        assert person.leave() == 0


def test_ctrl_c_cancels_and_the_session_goes_on(tmp_path: Path) -> None:
    turns: list[object] = [[{"delta": "endless"}, {"hold": True}], "usable"]
    with Person(*scripted(tmp_path, turns)) as person:
        person.say("begin")
        person.see("endless")
        person.type(CTRL_C)
        person.see("Cancelled · tokens: not reported · revision 1")
        assert "endless ⋯ cut off" in person.shown
        person.say("and now?")
        person.see("usable")
        person.see("revision 2")
        person.say("/history")
        person.see("assistant, cut off: endless")
        person.type(CTRL_C)  # nothing runs
        assert person.leave() == 0


SIGNALS = {"sigterm": signal.SIGTERM, "sighup": signal.SIGHUP}


@pytest.mark.parametrize("how", ["ctrl-d", "quit", "double ctrl-c", "sigterm", "sighup", "mid-run ctrl-d"])
def test_the_terminal_is_as_it_was_on_every_exit(tmp_path: Path, how: str) -> None:
    turns: list[object] = [[{"delta": "endless"}, {"hold": True}]]
    with Person(*scripted(tmp_path, turns)) as person:
        assert not person.as_it_was()  # else nothing would be shown here
        if how not in ("ctrl-d", "quit"):
            person.say("begin")
            person.see("endless")
        if how == "quit":
            person.say("/quit")
        elif how == "double ctrl-c":
            person.type(CTRL_C + CTRL_C)
        elif how in SIGNALS:
            person.kill(SIGNALS[how])
        else:
            person.type(CTRL_D)
        assert person.leave() == (128 + SIGNALS[how] if how in SIGNALS else 0)
        assert person.as_it_was()


def test_a_second_ctrl_c_leaves_a_run_that_does_not_end(tmp_path: Path) -> None:
    turns: list[object] = [[{"delta": "endless"}, {"deaf": True}]]
    with Person(*scripted(tmp_path, turns)) as person:
        person.say("begin")
        person.see("endless")
        person.type(CTRL_C)
        person.see("cancelling; Ctrl-C again leaves")
        person.type(CTRL_C)
        assert person.leave() == 0
        assert person.as_it_was()


# --- recordings ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with all that a person can do, recorded."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "a.txt").write_text("A")
    wait, open_gate = gate(folder)
    turns: list[object] = [
        [{"reasoning": "hm"}, {"delta": "I read."}, call("read_file", path="a.txt"), {"usage": {"input_tokens": 3}}],
        [{"delta": "half"}, {"malformed": True}],
        [{"delta": "whole"}, wait, call("read_file", path="../etc/passwd"), call("clock"), call("nowhere")],
        "as you wish",
        [{"delta": "half an order"}, call("order")],
        "ordered",
        [{"delta": "endless"}, {"hold": True}],
        [{"delta": "some"}, {"fail": {"kind": "Authentication", "message": "no key"}}],
        [call("calculate", expression="6*7")],
        "done",
    ]
    trace = folder / "trace.jsonl"
    more = ("--tools", "--folder", str(folder), "--mcp", MCP, "--system", "Be kind.", "--record", str(trace))
    with Person(*scripted(folder, turns, *more)) as person:
        person.say("first")
        person.see("? Allow read_file?")
        person.say("always")
        person.see("whole")
        person.say("a steer")
        person.say("another")
        person.see("↳ waits: another")
        person.say("/retract")
        person.see("taken back")
        open_gate()
        person.see("revision 1")
        person.say("second")
        person.see("? Allow order?")
        person.say("1")
        person.see("2. Decline")
        person.say("2")
        for field in ("Size", "Amount", "Price", "Name", "Toppings"):
            person.see(f"\n{field}\n")
            person.say("")
        person.see("revision 2")
        person.say("third")
        person.see("endless")
        person.type(CTRL_C)
        person.see("revision 3")
        person.say("fourth")
        person.see("Failed: provider failed: no key")
        person.say("/reset")
        person.see("revision 5")
        person.say("fifth")
        person.see("revision 6")
        person.type(CTRL_D)
        assert person.leave() == 0
    return trace


def test_a_recorded_session_keeps_every_rule_that_it_shows(recorded: Path) -> None:
    trace = read_trace(recorded)
    report = check(str(recorded), trace, None)
    verdicts = {rule: v.verdict for rule, v in report.verdicts.items()}
    broken = {rule: report.verdicts[rule].detail for rule, v in verdicts.items() if v in ("fail", "error")}
    assert broken == {}
    kept = {rule for rule, v in verdicts.items() if v in ("pass", "variant")}
    # Of each family something is shown: a recording that says nothing would break nothing either.
    shown = {"CORE-LIVE", "CORE-S6", "RHO-ORD-1", "RHO-ORD-5", "RHO-RET-8", "RHO-CAN-8", "RHO-STEER-2", "RHO-HOST-3"}
    assert shown <= kept, shown - kept
    assert cli.main(["check", str(recorded)]) == 2  # nothing broken, and not every rule shown


def _lines(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_text().splitlines()]


def _second_end(lines: list[dict[str, Any]]) -> None:
    step = next(line for line in lines[1:] if any("Completed" in o for o in line["observations"]))
    step["observations"].append({**step["observations"][-2], "seq": 10_000})


def _unfinished_call(lines: list[dict[str, Any]]) -> None:
    for line in lines[1:]:
        line["observations"] = [o for o in line["observations"] if "ToolFinished" not in o]


def _executed_twice(lines: list[dict[str, Any]]) -> None:
    step = next(line for line in lines[1:] if any("ToolExecute" in o for o in line["observations"]))
    found = next(o for o in step["observations"] if "ToolExecute" in o)
    step["observations"].append({**found, "seq": step["observations"][-1]["seq"] + 0})


def _other_answer(lines: list[dict[str, Any]]) -> None:
    step = next(line for line in lines[1:] if any("HostAnswer" in o for o in line["observations"]))
    next(o for o in step["observations"] if "HostAnswer" in o)["HostAnswer"]["answers"] = {"q": ["no"]}


def _lost_message(lines: list[dict[str, Any]]) -> None:
    facts = lines[-1]["facts"]
    facts["history"] = facts["history"][:-1]


@pytest.mark.parametrize(
    ("corrupt", "rule"),
    [
        (_second_end, "CORE-S1"),
        (_unfinished_call, "RHO-ORD-5"),
        (_executed_twice, "RHO-RET-19"),
        (_other_answer, "RHO-HOST-3"),
        (_lost_message, "CORE-S4"),
    ],
)
def test_a_corrupted_recording_is_found_out(recorded: Path, corrupt: Any, rule: str, tmp_path: Path) -> None:
    lines = _lines(recorded)
    corrupt(lines)
    path = tmp_path / "corrupted.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert cli.main(["check", str(path)]) == 1
    report = check("corrupted", read_trace(path), None)
    assert {r for r, v in report.verdicts.items() if v.verdict == "fail"} >= {rule}
