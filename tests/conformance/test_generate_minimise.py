"""Minimising and witnesses, on a core that is wrong on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from rho_conformance.drivers.core import CoreDriver, factory
from rho_conformance.errors import UsageError
from rho_conformance.generate.minimise import Minimal, ddmin, minimise
from rho_conformance.generate.script import Script, play, violated
from rho_conformance.generate.walks import walks
from rho_conformance.generate.witness import Witness, read_witness, replay, write_witness
from rho_conformance.trace import Trace, write_trace
from rho_core.effects import Deliver
from rho_core.events import ToolFinished
from rho_core.run import table
from rho_core.run.state import Schedule

Json = dict[str, Any]
LOST = "lost ToolFinished"


@contextmanager
def losing_tool_finished() -> Iterator[None]:
    """A core that sends no ToolFinished for a synchronous call."""
    row = table.FLOW[Schedule]

    def handler(run: Any, then: Any, fx: list[Any]) -> Any:
        result = row.handler(run, then, fx)
        fx[:] = [e for e in fx if not (isinstance(e, Deliver) and isinstance(e.event, ToolFinished))]
        return result

    with mock.patch.dict(table.FLOW, {Schedule: replace(row, handler=handler)}):
        yield


def wrong() -> CoreDriver:
    return CoreDriver(losing_tool_finished, "wrong")


def lost(trace: Trace) -> set[str]:
    """A judge of one thing: a started call is never finished although its run completed."""
    for end in trace.named("Completed"):
        events = list(trace.events(run=end.run))
        calls = [{seen.fields["call_id"] for seen in events if seen.name == name} for name in STARTED_AND_FINISHED]
        if calls[0] - calls[1]:
            return {LOST}
    return set()


STARTED_AND_FINISHED = ("ToolStarted", "ToolFinished")


@cache
def found() -> Trace:
    """A long script that shows the fault."""
    walk = next(walk for walk in walks() if walk.name == "prepared and authorised")
    trace = walk.play(wrong)
    assert LOST in lost(trace)
    assert len(trace.steps) > 10
    return trace


def minimised() -> Minimal:
    result = minimise(wrong, Script.from_trace(found()), LOST, judge=lost)
    assert result is not None
    return result


minimal = cache(minimised)


def test_a_long_script_becomes_the_shortest_one() -> None:
    result = minimal()
    names = [next(iter(stimulus)) for step in result.script.steps for stimulus in step]
    assert names == ["start", "provider", "tool", "provider"]
    assert not result.exhausted
    assert list(result.script.config) == ["tools"]
    assert len(result.script.config["tools"]) == 1
    assert lost(result.trace) == {LOST}
    assert LOST not in lost(play(factory, result.script))


def test_minimising_is_deterministic() -> None:
    assert minimised().script == minimised().script


def test_the_monitors_see_it_too_and_not_on_the_core() -> None:
    result = minimal()
    news = violated(result.trace) - violated(play(factory, result.script))
    assert news
    rule = min(news)
    again = minimise(wrong, result.script, rule)
    assert again is not None
    assert again.script.size <= result.script.size


def test_a_script_without_the_violation_has_no_minimum() -> None:
    assert minimise(factory, Script.from_trace(found()), LOST, judge=lost) is None


def test_the_number_of_plays_is_bounded() -> None:
    result = minimise(wrong, Script.from_trace(found()), LOST, judge=lost, max_plays=5)
    assert result is not None
    assert (result.plays, result.exhausted) == (5, True)
    assert lost(result.trace) == {LOST}


class Moody(CoreDriver):
    """Shows the fault in every third world only."""

    worlds = 0

    def open(self, config: Json) -> Json:
        type(self).worlds += 1
        self.patches = losing_tool_finished if self.worlds % 3 == 0 else CoreDriver().patches
        return super().open(config)

    def hello(self) -> Json:
        return {**super().hello(), "deterministic": False}


def test_a_fault_that_comes_and_goes_is_minimised_with_repeats() -> None:
    result = minimise(Moody, Script.from_trace(found()), LOST, judge=lost, repeat=3, max_plays=2_000)
    assert result is not None
    assert result.script.size == 4
    assert lost(result.trace) == {LOST}


def test_parts_that_cannot_be_played_are_no_violation() -> None:
    """Without the second start there is no `r2` to cancel, and the driver says so."""
    steps = (({"start": "a"},), ({"provider": {"text": "b"}},), ({"start": "c"},), ({"cancel": {"run": "r2"}},))

    def cancelled(trace: Trace) -> set[str]:
        return {"two"} if any(seen.run == "r2" for seen in trace.named("Cancelled")) else set()

    result = minimise(factory, Script({}, steps), "two", judge=cancelled)
    assert result is not None
    assert result.script.steps == steps


@pytest.mark.parametrize(
    ("needed", "total"), [((3,), 10), ((0, 9), 10), ((2, 3, 7), 16), (tuple(range(5)), 5), ((), 4)]
)
def test_ddmin_keeps_exactly_what_is_needed(needed: Sequence[int], total: int) -> None:
    assert ddmin(range(total), lambda part: set(needed) <= set(part)) == list(needed)


def test_smaller_parts_of_a_race_and_of_an_answer() -> None:
    config: Json = {"tools": {"t": {"authorize": "auto"}, "u": {}}, "history": [{"user": "x"}], "system": "s"}
    calls = [{"id": "A", "tool": "t", "async": True}, {"id": "B", "tool": "u"}]
    race: tuple[Json, ...] = ({"start": "a"}, {"snapshot": {}})
    steps = (race, ({"provider": {"text": "t", "usage": {"input_tokens": 1}, "calls": calls}},))

    def executed(trace: Trace) -> set[str]:
        return {"B"} if any(seen.fields["call_id"] == "B" for seen in trace.named("ToolExecute")) else set()

    result = minimise(factory, Script({**config, "max_parallel_tools": 2}, steps), "B", judge=executed)
    assert result is not None
    expected = (({"start": "a"},), ({"provider": {"calls": [{"id": "B", "tool": "u"}]}},))
    assert result.script == Script({"tools": {"u": {}}}, expected)


# --- witnesses ----------------------------------------------------------------------------------------------------


def test_a_witness_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = minimal()
    path = tmp_path / "deep" / "w.jsonl"
    write_witness(Witness(LOST, "wrong", "no ToolFinished", result.trace, seed=7), path)
    read = read_witness(path)
    assert (read.rule, read.target, read.message, read.seed) == (LOST, "wrong", "no ToolFinished", 7)
    assert read.script == result.script
    assert read.trace.steps == result.trace.steps
    assert result.trace.witness is None


def test_replay_judges_the_recording_first_and_then_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    write_witness(Witness(LOST, "wrong", "", minimal().trace), path)
    recording = replay(path, judge=lost)
    assert (recording.recorded, recording.reproduced, recording.runs) == (True, 0, 0)
    assert replay(path, wrong, 2, judge=lost).reproduced == 2
    sound = replay(path, factory, 2, judge=lost)
    assert (sound.recorded, sound.reproduced, sound.runs, sound.errors) == (True, 0, 2, ())
    Moody.worlds = 0
    assert replay(path, Moody, 6, judge=lost).reproduced == 2


class Broken(CoreDriver):
    def perform(self, stimuli: Any) -> Any:
        raise RuntimeError("out of order")


def test_replay_counts_faults_of_the_driver_apart(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    write_witness(Witness(LOST, "wrong", "", minimal().trace), path)
    result = replay(path, Broken, 2, judge=lost)
    assert (result.reproduced, len(result.errors)) == (0, 2)


def test_a_trace_is_no_witness(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_trace(next(walks()).play(factory), path)
    with pytest.raises(UsageError, match="no witness"):
        read_witness(path)


@pytest.mark.parametrize("about", [{"rule": 1, "target": "core"}, {"rule": "R", "target": "c", "seed": "x"}])
def test_a_malformed_witness_is_refused(about: Json, tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    write_trace(replace(next(walks()).play(factory), witness=about), path)
    with pytest.raises(UsageError, match=r"witness\.(rule|seed) must be"):
        read_witness(path)
