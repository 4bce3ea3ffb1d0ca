"""The parts of `rho-core chat`: what is seen of each event, answers, commands, tools, pipes, the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio
import pytest

from rho_adapters import ToolFailure, ToolHost
from rho_adapters.chat import app, asking, commands
from rho_adapters.chat.entries import Done, Ended, Entry, Note, Said, Thought, Typed
from rho_adapters.chat.plain import Lines
from rho_adapters.chat.render import safe
from rho_adapters.chat.scripted import read_script
from rho_adapters.chat.toolbox import built_in
from rho_adapters.chat.view import View
from rho_adapters.embedded import wheels
from rho_adapters.host import Authorizer
from rho_adapters.tools import AllowList
from rho_conformance.cli import app as cli
from rho_core import events as ev
from rho_core.asks import Choice, Question
from rho_core.errors import ToolErrorKind
from rho_core.messages import ToolCall, Usage
from tests.adapters.chat_kit import LAUNCH, write_script

# --- the view ------------------------------------------------------------------------------------------------------


def shown(*events: Any) -> tuple[View, list[Entry]]:
    """A view that was fed, and the entries it gave."""
    view = View()
    return view, [entry for event in events for entry in view.feed(event)]


PROPOSED = ev.ToolProposed(ToolCall("c", "t", '{"b": 1, "a": 2}'))
STARTED = ev.ToolStarted("c", "t")


def test_text_is_for_now_until_the_response_stands() -> None:
    view, entries = shown(
        ev.AssistantTextDelta("a", 1), ev.ReasoningSummaryDelta("why", 1), ev.AssistantTextDelta("b", 1)
    )
    assert (view.text, entries) == ("ab", [])
    assert view.feed(PROPOSED) == [Thought("why"), Said("ab")]
    assert view.text == ""


def test_a_reset_forgets_text_reasoning_and_call_fragments() -> None:
    view, _ = shown(ev.AssistantTextDelta("a", 1), ev.ReasoningDelta("r", 1), ev.ToolCallUpdated(0, "c", "t", "{", 1))
    entries = view.feed(ev.ProviderStreamReset(ev.RetryableFailure("RateLimit", 1_500), "detail", 1))
    assert (view.text, view.reasoning, view.calls) == ("", "", {})
    assert entries == [Note("attempt 1 is abandoned (RateLimit, asked to wait 1.5 s); trying again")]


@pytest.mark.parametrize(
    ("completion", "state"),
    [
        (ev.Success("ok"), "ok"),
        (ev.Failure(ToolErrorKind.EXECUTION, "bad"), "failed"),
        (ev.Failure(ToolErrorKind.CANCELLED, "stopped"), "interrupted"),
        (ev.Unavailable("none"), "unavailable"),
    ],
)
def test_a_card_ends_with_its_tool_finished(completion: ev.ToolCompletion, state: str) -> None:
    view, _ = shown(PROPOSED, STARTED, ev.ToolUpdated("c", "half way"))
    card = view.cards["c"]
    assert (card.state, card.progress, card.arguments, card.live) == ("running", ["half way"], '{"b": 1, "a": 2}', True)
    assert view.feed(ev.ToolFinished("c", completion)) == [Done(card)]
    assert (card.state, card.text, card.live, view.cards) == (state, completion.text, False, {})


def test_a_detached_card_outlives_steps_and_what_never_ended_is_told_at_the_end() -> None:
    other = ev.ToolProposed(ToolCall("d", "u", "{}"))
    view, _ = shown(PROPOSED, STARTED, ev.ToolDetached("c"), ev.StepStarted(2, 10), other)
    assert [card.state for card in view.cards.values()] == ["detached", "proposed"]
    entries = view.feed(ev.Cancelled(4))
    assert [(e.card.call_id, e.card.state) for e in entries if isinstance(e, Done)] == [
        ("c", "interrupted"),
        ("d", "never ran"),
    ]
    assert entries[-1] == Ended("Cancelled", Usage(), 4, ok=False)
    assert view.close() == []


def test_a_run_without_a_terminal_event_leaves_nothing_for_now() -> None:
    view, _ = shown(PROPOSED, STARTED, ev.AssistantTextDelta("half", 1))
    assert [type(entry) for entry in view.close()] == [Said, Done]


def test_steers_become_lines_where_they_are_applied() -> None:
    view = View()
    view.staged = {"s1": "first", "s2": "second"}
    assert view.feed(ev.SteeringApplied(("s1", "unknown"))) == [Typed("first", steer=True)]
    assert view.feed(ev.Failed("no", False, 1))[:1] == [Note("not taken up: second")]


def test_kinds_that_are_not_known_are_passed_over() -> None:
    assert View().feed(object()) == []


def test_a_model_cannot_steer_the_terminal() -> None:
    assert safe("\x1b]0;title\x07\x1b[2Ja\r\nb\tc\x9b\ud800") == "�]0;title��[2Ja\nb   c��"


# --- answers and commands ------------------------------------------------------------------------------------------

CHOICES = (Choice("r", "Red"), Choice("g", "Green"))


@pytest.mark.parametrize(
    ("question", "line", "answer"),
    [
        (Question("q", "?", CHOICES), "2", ("g",)),
        (Question("q", "?", CHOICES), " red ", ("r",)),
        (Question("q", "?", CHOICES), "g", ("g",)),
        (Question("q", "?", CHOICES, many=True), "2, 1 2", ("g", "r")),
        (Question("q", "?", CHOICES, allow_other=True), "2", ("2",)),
        (Question("q", "?", CHOICES, allow_other=True), "#2", ("g",)),
        (Question("q", "?", CHOICES, default="r"), "", ("r",)),
        (Question("q", "?", CHOICES, required=False), "", ()),
        (Question("q", "?", CHOICES), "3", None),
        (Question("q", "?", CHOICES), "0", None),
        (Question("q", "?", CHOICES), "", None),
        (Question("q", "?", CHOICES), "blue", None),
        (Question("q", "?", CHOICES, many=True), "1,blue", None),
    ],
)
def test_a_line_is_an_answer(question: Question, line: str, answer: tuple[str, ...] | None) -> None:
    if answer is not None:
        assert asking.parse(question, line) == answer
        return
    with pytest.raises(asking.NotAnAnswer, match="type a number from 1 to 2"):
        asking.parse(question, line)


def test_questions_are_answered_one_after_the_other_and_may_be_asked_again() -> None:
    given: list[dict[str, tuple[str, ...]]] = []
    two = asking.Asking("T", (Question("a", "?", CHOICES), Question("b", "?", CHOICES)), "c", given.append)
    assert [two.take("1"), two.take("no"), two.take("2")] == [False, False, True]
    assert given == [{"a": ("r",), "b": ("g",)}]
    assert two.summary() == "Red; Green"
    two.again("refused")
    assert (two.question.id, two.problem) == ("a", "refused")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("hello", "hello"),
        ("//etc", "/etc"),
        ("/help", commands.Command("help")),
        ("/q", commands.Command("quit")),
        ("/reset  now ", commands.Command("reset", "now")),
    ],
)
def test_a_line_is_a_command_or_meant_for_the_model(line: str, meant: object) -> None:
    assert commands.parse(line) == meant


@pytest.mark.parametrize(("line", "why"), [("/nope", "is no command"), ("/re", "/reset or /retract"), ("/", "is no")])
def test_no_command(line: str, why: str) -> None:
    with pytest.raises(commands.UnknownCommand, match=why):
        commands.parse(line)


# --- tools ---------------------------------------------------------------------------------------------------------


def use(folder: Path, name: str, arguments: dict[str, Any], allow: Authorizer | None = None) -> tuple[bool, str]:
    """One call of a built-in tool."""

    async def run() -> tuple[bool, str]:
        async with ToolHost(built_in(folder), authorizer=allow or AllowList(["fs.read:*"])) as host:
            try:
                return True, await host.call(name, arguments)
            except ToolFailure as failed:
                return False, str(failed)

    return anyio.run(run)


@pytest.mark.parametrize(
    ("expression", "result"),
    [("2+3*4", "14"), ("-(1.5)", "-1.5"), ("2**10 // 3", "341"), ("7 % 4 / 2", "1.5")],
)
def test_the_calculator(tmp_path: Path, expression: str, result: str) -> None:
    assert use(tmp_path, "calculate", {"expression": expression}) == (True, result)


@pytest.mark.parametrize(
    "expression", ["9**9**9", "1/0", "().__class__", "x", "2+", "'a'*9", "10**999*10**999", "(-1)**0.5", "True+1"]
)
def test_the_calculator_computes_nothing_else(tmp_path: Path, expression: str) -> None:
    ok, text = use(tmp_path, "calculate", {"expression": expression})
    assert not ok
    assert "cannot be computed" in text


def test_the_clock(tmp_path: Path) -> None:
    assert use(tmp_path, "clock", {})[1].endswith("UTC")
    assert use(tmp_path, "clock", {"zone": "../etc"}) == (False, "there is no time zone '../etc'")


def test_files_are_read_inside_of_the_folder_alone_and_with_leave(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "a.txt").write_text("A")
    (tmp_path / "secret").write_text("S")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "large").write_bytes(b"x" * 70_000)
    os.mkfifo(folder / "pipe")
    assert use(folder, "read_file", {"path": "a.txt"}) == (True, "A")
    assert use(folder, "read_file", {"path": "a.txt"}, AllowList()) == (
        False,
        f"fs.read:{folder}/a.txt capability denied: no policy allows it",
    )
    for path, why in (
        ("../secret", "outside"),
        ("link", "outside"),
        ("/etc/passwd", "outside"),
        ("large", "larger than"),
        ("pipe", "no file"),
        ("none", "no file"),
    ):
        ok, text = use(folder, "read_file", {"path": path})
        assert not ok
        assert why in text


# --- pipes ---------------------------------------------------------------------------------------------------------


def piped(folder: Path, turns: list[object], lines: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The program with lines in its standard input."""
    arguments = ["--provider", "scripted", "--script", str(write_script(folder, turns)), *more]
    return subprocess.run([*LAUNCH, *arguments], input=lines, capture_output=True, text=True, timeout=30, check=False)


def test_a_pipe_has_lines_in_and_the_models_words_out(tmp_path: Path) -> None:
    turns: list[object] = ["one", [{"delta": "bad"}, {"malformed": True}], "two\x1b[31m"]
    done = piped(tmp_path, turns, "first\n\nsecond")
    assert (done.stdout, done.returncode) == ("one\ntwo�[31m\n", 0)
    assert "attempt 1 is abandoned" in done.stderr
    assert "revision 2" in done.stderr


def test_in_a_pipe_the_next_line_answers_and_a_failed_run_is_a_status(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A")
    read = [{"call": {"name": "read_file", "arguments": {"path": "a.txt"}}}]
    turns: list[object] = [read, "done", [{"fail": {"message": "down"}}]]
    more = ("--tools", "--folder", str(tmp_path), "--event-capacity", "1")
    done = piped(tmp_path, turns, "read it\nwhat?\n1\nagain\n", *more)
    assert done.returncode == 3
    assert done.stdout.startswith("? Allow read_file?\n")
    assert done.stdout.count("type a number from 1 to 4") == 2
    assert done.stdout.endswith("\ndone\n")
    assert '[read_file {"path": "a.txt"}] ok: A' in done.stderr
    assert "provider failed: down" in done.stderr


def test_the_end_of_the_pipe_answers_no_question(tmp_path: Path) -> None:
    read = [{"call": {"name": "read_file", "arguments": {"path": "a.txt"}}}]
    done = piped(tmp_path, [read, "not said"], "read it\n", "--tools", "--folder", str(tmp_path))
    assert done.returncode == 3
    assert "Cancelled" in done.stderr
    assert "not said" not in done.stdout


def test_a_signal_cancels_the_run_of_a_pipe_and_a_second_one_leaves(tmp_path: Path) -> None:
    look = [{"call": {"name": "calculate", "arguments": {"expression": "1+1"}}}]
    script = write_script(tmp_path, [look, [{"delta": "endless"}, {"hold": True}]])
    arguments = [*LAUNCH, "--provider", "scripted", "--script", str(script), "--tools"]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write("begin\n")
        child.stdin.flush()
        assert "calculate" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        assert "Cancelled" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 3


def test_a_session_goes_on_from_the_store(tmp_path: Path) -> None:
    more = ("--store", str(tmp_path / "sessions.db"), "--session", "s7", "--system", "Be kind.")
    assert piped(tmp_path, ["one"], "first\n", *more).returncode == 0
    trace = tmp_path / "trace.jsonl"
    done = piped(tmp_path, ["two"], "second\n/history\n", *more, "--record", str(trace))
    for line in ("system: Be kind.", "user: first", "assistant: one", "user: second", "assistant: two"):
        assert line in done.stderr
    assert "revision 2" in done.stderr
    head = json.loads(trace.read_text().splitlines()[0])
    assert [next(iter(m)) for m in head["config"]["history"]] == ["system", "user", "assistant"]
    assert head["config"]["revision"] == 1


@pytest.mark.parametrize("data", [b"a\r\nb", b"a\nb\n"])
def test_lines_of_a_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "lines"
    path.write_bytes(data)

    async def read() -> list[str | None]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            lines = Lines(descriptor)
            return [await lines.next() for _ in range(4)]
        finally:
            os.close(descriptor)

    assert anyio.run(read) == ["a", "b", None, None]


# --- the command line ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("[", "Invalid JSON"),
        ("[]", "at least one turn"),
        ('[[{"delta": "a", "hold": true}]]', "exactly one key"),
        ('[[{"dleta": "a"}]]', "0.0.dleta: Extra inputs"),
    ],
)
def test_what_is_no_script(tmp_path: Path, script: str, why: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(script)
    with pytest.raises(ValueError, match=why):
        read_script(path)


def test_without_its_wheels_the_default_model_names_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheels, "find_spec", lambda name: None)
    assert app.chat() == 4
    assert "`make model`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--provider", "nobody"], "'nobody' is none of embedded, openai"),
        (["--provider", "openai"], "needs --model"),
        (["--provider", "anthropic", "--model", "m"], "no API key"),
        (["--provider", "compatible", "--model", "m"], "needs --base-url"),
        (["--provider", "scripted"], "needs --script"),
        (["--record", "/nowhere/trace", "--provider", "scripted", "--script", "SCRIPT"], "--record /nowhere/trace"),
        (["--mcp", "/nowhere/server", "--provider", "scripted", "--script", "SCRIPT"], "--mcp '/nowhere/server'"),
        (["--store", "/nowhere/db", "--provider", "scripted", "--script", "SCRIPT"], "session 'chat' cannot be opened"),
    ],
)
def test_what_cannot_start_says_why(
    arguments: list[str],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("RHO_PROVIDER", "RHO_MODEL", "RHO_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    script = str(write_script(tmp_path, ["one"]))
    plugged(monkeypatch, "rho_adapters.chat.app:chat")
    assert cli.main(["chat", *(script if a == "SCRIPT" else a for a in arguments)]) == 4
    assert why in capsys.readouterr().err


def test_the_command_is_plugged_in(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.app, "registered_commands", list(cli.app.registered_commands))
    assert cli.main(["chat", "--provider", "scripted"]) == 4
    assert "needs --script" in capsys.readouterr().err


def test_a_missing_package_is_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.delitem(sys.modules, "rho_adapters.providers.anthropic_messages", raising=False)
    assert app.chat(provider="anthropic", model="m") == 4
    assert "'anthropic'; install it with: pip install 'rho-core[chat]'" in capsys.readouterr().err


def plugged(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """The command line with one extension, `chat`."""
    monkeypatch.setattr(cli, "entry_points", lambda group: [EntryPoint("chat", value, group)])
    others = [command for command in cli.app.registered_commands if command.name != "chat"]
    monkeypatch.setattr(cli.app, "registered_commands", others)


@pytest.mark.parametrize("value", ["no.such.module:chat", "rho_adapters.chat.app:nothing", "math:pi"])
def test_an_extension_that_cannot_be_loaded_says_so_and_hurts_nobody(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugged(monkeypatch, value)
    assert cli.main(["chat", "--whatever", "1"]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "the command 'chat'" in said
    assert "cannot be loaded" in said
    assert cli.main(["--help"]) == 0
    assert "cannot be loaded" in capsys.readouterr().out
    assert cli.main(["rules", "RHO-ORD-1"]) == 0


def test_an_extension_takes_no_command_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda group: [EntryPoint("rules", "math:pi", group)])
    assert cli.main(["rules", "RHO-ORD-1"]) == 0
