"""Walking by hand: what is shown, the way back, and a saved walk that passes on the core as a scenario."""

from __future__ import annotations

import random
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from rho_conformance.cli.app import main
from rho_conformance.cli.walk import walk
from rho_conformance.explore.configuration import Configuration
from rho_conformance.explore.configurations import RUNS
from rho_conformance.explore.play import Play
from rho_conformance.explore.saving import STEPS, NotExpressible, scenario
from rho_conformance.scenario import parse_text, run_scenario
from rho_conformance.targets import resolve
from rho_core import inputs as inp
from rho_core.run import table
from rho_core.table import Row

BY_NAME = {c.name: c for c in RUNS}


def walked(commands: str, name: str = "async and sync") -> tuple[int, str]:
    """What a pipe of commands is answered."""
    shown = StringIO()
    status = walk(BY_NAME[name], StringIO(commands), Console(file=shown, width=200))
    return status, shown.getvalue()


# --- what is shown ---------------------------------------------------------------------------------------------


def test_the_start_shows_phase_wait_choices_and_what_is_held() -> None:
    status, shown = walked("quit\n")
    assert status == 0
    assert "phase Between" in shown
    assert "waiting for the reader (1 unread)" in shown
    assert "  1 Taken(1)" in shown
    assert "Cancel()  (free)" in shown


def test_a_number_and_a_name_take_the_same_step() -> None:
    assert walked("1\nquit\n") == walked("Taken\nquit\n") == walked("taken(1)\nquit\n")


def test_a_held_input_is_shown_with_its_reason() -> None:
    """Streaming, capacity 1: one delta fills the channel, the next is blocked, and what comes then is held."""
    _, shown = walked("1\nTextDelta\nTextDelta\nquit\n", "ends")
    assert "blocked: 1 sends wait for the reader" in shown
    assert "- ModelReturned(1, 1, text): blocked: a send waits for the reader" in shown
    assert "RHO-BUF-4" in shown


def test_undo_leads_back_and_stops_at_the_start() -> None:
    _, shown = walked("1\nundo\nundo\nquit\n")
    assert shown.count("after 1 steps") == 2
    assert "nothing to take back" in shown


def test_why_names_the_reason_of_each_input_of_that_name() -> None:
    _, shown = walked("why TimerFired\nwhy Taken\nwhy Nonsense\nquit\n")
    assert "TimerFired('x'): no row: Between has no row for TimerFired" in shown
    assert "Taken(1): it would have an effect" in shown
    assert "no input is called 'Nonsense'" in shown


def test_what_is_not_possible_is_explained_and_what_is_ambiguous_is_listed() -> None:
    _, shown = walked("Prepared\n1\n1\nModel\nquit\n")
    assert "'Prepared' is not possible now" in shown
    assert "may be any of: ModelPanicked(1, 1); ModelReturned(1, 1, text)" in shown


def test_history_and_the_end_are_shown() -> None:
    _, shown = walked("Cancel\nTaken\nTaken\nTaken\nwhy Steer\n")
    assert "over" in shown
    assert "User(content=(Text(text='hello'),))" in shown
    assert "the run is over" in shown or "no input is called" in shown


def test_the_end_of_the_pipe_is_a_quit_and_blank_lines_are_nothing() -> None:
    assert walked("\n\n1\n")[0] == 0


def test_a_step_against_a_rule_is_shown_and_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a core that is deaf to a cancel."""
    row = table.COMMON[inp.Cancel]
    monkeypatch.setitem(table.COMMON, inp.Cancel, Row(lambda run, i, fx: (run, None), row.exits, row.rules))
    status, shown = walked("Cancel\nquit\n")
    assert status == 1
    assert "AGAINST RHO-CAN-2" in shown


# --- saving ------------------------------------------------------------------------------------------------------


def test_a_saved_walk_passes_on_core(tmp_path: Path) -> None:
    file = tmp_path / "cancelled.yaml"
    _, shown = walked(f"1\n1\nCancel\nTaken\nsave {file}\nquit\n")
    assert f"saved {file}: pass on the core" in shown
    assert main(["scenario", str(file)]) == 0


def test_a_saved_walk_can_fail(tmp_path: Path) -> None:
    """Control: the file says what was seen, so another sequence of events is a failure."""
    file = tmp_path / "changed.yaml"
    walked(f"1\n1\nsave {file}\n")
    file.write_text(file.read_text().replace("StepStarted", "CompactionStarted"))
    assert main(["scenario", str(file)]) == 1


def test_a_walk_that_a_file_cannot_hold_is_not_saved(tmp_path: Path) -> None:
    file = tmp_path / "limit.yaml"
    _, shown = walked(f"save {file}\nsave\nquit\n", "step limit")
    assert "not saved: a run that fails at its step limit has no setting in the format" in shown
    assert not file.exists()


@pytest.mark.parametrize("config", RUNS, ids=lambda c: c.name)
def test_walks_at_random_are_scenarios_that_pass(config: Configuration) -> None:
    for seed in range(2):
        play = _random_walk(config, seed)
        try:
            text = scenario(play, "walk/random")
        except NotExpressible:
            assert config.policy.step_limit == "fail" or _inexpressible(play), text_of(play)
            continue
        for one in parse_text(text, "random"):
            result = run_scenario(one, resolve("core"))
            assert result.verdict == "pass", (result.detail, text)


def _random_walk(config: Configuration, seed: int) -> Play:
    chance, play = random.Random(seed), Play(config)
    while not play.over and len(play.steps) < 30:
        owed = [e for e in play.choices() if e.fair]
        every = list(play.choices())
        play.take(chance.choice(owed if owed and chance.random() < 0.75 else every))
    return play


def _inexpressible(play: Play) -> bool:
    return any(type(s.input) not in (*STEPS, inp.Retract, inp.TimerFired) for s in play.steps)


def text_of(play: Play) -> list[str]:
    return [type(s.input).__name__ for s in play.steps]


def test_every_input_of_a_run_has_a_step_or_is_known_to_have_none() -> None:
    without = {k.__name__ for k in inp.INPUT_CLASS} - {k.__name__ for k in STEPS} - {"Retract", "TimerFired"}
    assert without == {"TierFallback", "AskWithdrawn"}


# --- the command ---------------------------------------------------------------------------------------------------


def test_the_command_reads_its_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("1\nquit\n"))
    assert main(["explore", "--interactive", "--config", "host input"]) == 0


def test_an_unknown_configuration_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--interactive", "--config", "nothing"]) == 4
    assert "known: " in capsys.readouterr().err
    assert main(["explore", "--scope", "tiny", "--config", "nothing"]) == 4
