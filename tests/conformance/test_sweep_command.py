"""`rho-core sweep`: every fault at every point, raced as well; judged, counted, and the same each time."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from rho_conformance.cli import app as command_line
from rho_conformance.cli import main, sweep
from rho_conformance.driver import connect
from rho_conformance.drivers.core import CoreDriver, factory
from rho_conformance.errors import DriverError
from rho_conformance.generate.capabilities import COMMON, Allowed
from rho_conformance.generate.faults import AFTERWARDS, FAULTS, LATE, RESTORE, Point, points
from rho_conformance.generate.script import Script, play
from rho_conformance.judge.faults import HARNESS, Failure, Found, Task, complaints, fault_sweep, sweep_scenario
from rho_conformance.judge.library import library
from rho_conformance.scenario import Scenario, run_scenario
from rho_conformance.targets import resolve

if all(command.name != "sweep" for command in command_line.app.registered_commands):
    sweep.register(command_line.app)

Json = dict[str, Any]
START: Json = {"start": "hi"}
CALL: Json = {"provider": {"calls": [{"id": "A", "tool": "t"}]}}
RESULT: Json = {"tool": {"id": "A", "return": "done"}}
TEXT: Json = {"provider": {"text": "bye"}}
SCRIPT = Script({"tools": {"t": {}}}, ((START,), (CALL,), (RESULT,), (TEXT,)))

CALM = "COORD/lone-call[1]"
"""A scenario in which nobody cancels: what is wrong about cancellation shows only in its sweep."""
SWEPT = (
    CALM,
    "ORD/compactor-waits[2]",
    "common/CP4/failing-tool[3]",
    "common/CP5/running-tool-is-told[2]",
    "SHUT/other-openers[3]",
)


def scenario(name: str) -> Scenario:
    (found,) = [item.source for item in library("rho") if item.name == name]
    assert isinstance(found, Scenario)
    return found


def made(fault: str) -> dict[str, Point]:
    return {p.where: p for p in points(play(factory, SCRIPT)) if p.fault == fault}


# --- the points ------------------------------------------------------------------------------------------------


def test_every_fault_at_every_point_where_it_means_something() -> None:
    found = list(points(play(factory, SCRIPT)))
    # Anywhere: between (5) and at both ends of a perform (8). On a run: not before it begins, nor after it ended.
    anywhere, on_a_run = 5 + 8, 3 + 7
    assert Counter(p.fault for p in found) == {
        **dict.fromkeys(("shutdown", "crash", "save_crash"), anywhere),
        **dict.fromkeys(("cancel", "drop", "close_reader"), on_a_run),
        "panic_provider": 2 + 4,
        "panic_tool": 1 + 2,
    }
    assert len({(p.fault, p.where) for p in found}) == len(found) == len({p.script.key() for p in found})


def test_a_fault_comes_between_and_in_a_race() -> None:
    cancel: Json = {"cancel": {}}
    found = made("cancel")
    assert list(found) == [
        *("in 1 at 1", "after 1", "in 2 at 0", "in 2 at 1", "after 2"),
        *("in 3 at 0", "in 3 at 1", "after 3", "in 4 at 0", "in 4 at 1"),
    ]
    assert found["after 2"].script.steps == ((START,), (CALL,), (cancel,), (RESULT,), (TEXT,), *AFTERWARDS)
    assert found["in 1 at 1"].script.steps == ((START, cancel), (CALL,), (TEXT,), *AFTERWARDS)
    assert found["in 3 at 0"].script.steps == ((START,), (CALL,), (cancel, RESULT), (TEXT,), *AFTERWARDS)


def test_a_crash_is_followed_by_a_restore() -> None:
    lost: Json = {"crash": {}}
    saved: Json = {"save": {}}
    late = ((RESULT,), (TEXT,))
    assert made("crash")["after 2"].script.steps == ((START,), (CALL,), (lost,), (RESTORE,), *late, *AFTERWARDS)
    assert made("save_crash")["after 2"].script.steps[2:4] == ((saved, lost), (RESTORE,))
    assert made("save_crash")["after 2"].added == (saved, lost, RESTORE, *(one for (one,) in AFTERWARDS))


def test_a_race_is_entered_between_its_stimuli_too() -> None:
    race = Script({}, ((START,), ({"steer": "a"}, {"steer": "b"})))
    found = [p.where for p in points(play(factory, race)) if p.fault == "drop"]
    assert found == ["in 1 at 1", "after 1", "in 2 at 0", "in 2 at 1", "in 2 at 2", "after 2"]


def test_late_answers_are_bounded() -> None:
    deltas = [({"provider": {"delta": "x"}},)] * 40
    found = [p for p in points(play(factory, SCRIPT.replace([(START,), *deltas]))) if p.where == "after 1"]
    assert {len(p.script.steps) - 2 - len(AFTERWARDS) for p in found if p.fault == "drop"} == {LATE}


# --- the sweep -------------------------------------------------------------------------------------------------


def test_the_core_stands_at_every_point() -> None:
    found = fault_sweep("core", only=SWEPT, doubles=40, seed=5)
    assert found.failures == []
    assert (found.scenarios, found.skipped, found.left_out, found.truncated) == (len(SWEPT), 0, 0, 0)
    assert set(found.swept) == set(FAULTS)
    assert found.points > 400
    assert found.doubles == 40


def test_the_same_seed_finds_the_same() -> None:
    def broken(seed: int) -> Found:
        return fault_sweep("mutant:candidate-dropped", 60, 12, seed, only=[CALM])

    once = broken(3)
    assert once.failures and once == broken(3)
    assert once.failures != broken(4).failures


def test_a_sample_takes_every_nth_point_of_each_scenario() -> None:
    whole, shares = fault_sweep("core", only=[CALM]), Counter[str]()
    one = scenario(CALM)
    with connect(factory()) as driver:
        allowed = Allowed(driver.hello(), "rho")
    for number in range(2):
        part = sweep_scenario(one, Task(number, every=2), factory, allowed)
        assert part.points + part.skipped == whole.points
        shares += part.swept
    assert shares == whole.swept


def test_a_wrong_cancellation_shows_only_in_the_sweep() -> None:
    target = "mutant:candidate-dropped"
    calm = run_scenario(scenario(CALM), resolve(target), repeat=1)
    assert calm.trace is not None and complaints(calm.trace) == {}
    found = fault_sweep(target, only=[CALM])
    assert "RHO-CAN-8" in {f.rule for f in found.failures}
    # Each complaint is about a run that was told to stop, and can be found again by its point.
    assert {f.fault for f in found.failures} <= {"cancel", "shutdown"}
    again = {(p.fault, p.where): p for p in points(calm.trace)}
    for failure in found.failures:
        trace = play(resolve(target), again[failure.fault, failure.point].script)
        assert complaints(trace)[failure.rule] == failure.why


class Poor(CoreDriver):
    """A core that cannot be shut down, nor lose its process."""

    def hello(self) -> Json:
        return {**super().hello(), "capabilities": [*COMMON, "provider.*", "config.*", "observe.*"]}


def test_what_is_not_declared_is_left_out_and_counted() -> None:
    one = scenario("common/CP4/failing-tool[3]")
    with connect(Poor()) as driver:
        found = sweep_scenario(one, Task(0), Poor, Allowed(driver.hello(), "rho"))
    assert set(found.swept) == {"cancel", "drop", "close_reader", "panic_provider", "panic_tool"}
    trace = run_scenario(one, Poor, repeat=1).trace
    assert trace is not None
    assert found.left_out == sum(p.fault in ("shutdown", "crash", "save_crash") for p in points(trace)) > 0


class Breaks(CoreDriver):
    """Goes off the protocol when it is shut down."""

    def perform(self, stimuli: list[Json]) -> Json:
        if any("shutdown" in one for one in stimuli):
            raise DriverError("no answer")
        return super().perform(stimuli)


def test_a_fault_of_the_driver_is_no_verdict() -> None:
    with connect(Breaks()) as driver:
        found = sweep_scenario(scenario(CALM), Task(0), Breaks, Allowed(driver.hello(), "rho"))
    assert [(f.fault, f.rule, f.times) for f in found.failures] == [("shutdown", HARNESS, found.swept["shutdown"])]
    assert sweep.status(found) == 3


# --- the command -----------------------------------------------------------------------------------------------


def test_the_answer_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", "--only", CALM.replace("[", "[[]"), "--workers", "1", "--double", "3", "--format", "json"]
    status = main(arguments)
    answer = json.loads(capsys.readouterr().out)
    assert status == 0
    assert (answer["target"], answer["scenarios"], answer["doubles"], answer["failures"]) == ("core", 1, 3, [])
    assert answer["complete"] is True and answer["points"] == sum(answer["by_fault"].values()) > 0
    assert main([*arguments, "--every", "50"]) == 0
    sample = json.loads(capsys.readouterr().out)
    assert sample["complete"] is False and sample["points"] + sample["skipped"] == answer["points"]


def test_a_broken_target_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    only = CALM.replace("[", "[[]")
    status = main(["sweep", "--target", "mutant:candidate-dropped", "--only", only, "--workers", "1"])
    shown = capsys.readouterr().out
    assert status == 1 and "RHO-CAN-8" in shown and CALM in shown and "every point" in shown


def test_the_ways_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    good = Found(scenarios=1, swept=Counter(cancel=1))
    assert sweep.status(good) == 0
    assert sweep.status(Found(scenarios=1)) == 2
    assert sweep.status(Found(scenarios=1, swept=Counter(cancel=1), truncated=1)) == 2
    rules = [Failure("s", "after 1", "cancel", rule, "why") for rule in (HARNESS, "RHO-CAN-1")]
    assert sweep.status(Found(swept=Counter(cancel=2), failures=rules)) == 1
    assert main(["sweep", "--only", "NOTHING/*"]) == 4
    assert main(["sweep", "--target", "nothing"]) == 4
    assert "NOTHING/*" in capsys.readouterr().err
