"""Scripts and their player: what is performed, what closes a trace, and which bounds hold."""

from __future__ import annotations

from typing import Any

import pytest

from rho_conformance.driver import connect
from rho_conformance.drivers.core import CoreDriver, factory
from rho_conformance.errors import DriverError, UsageError
from rho_conformance.generate.script import CLOSING, TRUNCATED, Bounds, Script, play
from rho_conformance.trace import dumps_trace, loads_trace

Json = dict[str, Any]
ANSWERED = Script({}, (({"start": "hi"},), ({"provider": {"text": "yes"}},)))


def performed(script: Script, **more: Any) -> list[list[Json]]:
    return [record.perform for record in play(factory, script, **more).steps]


def test_play_performs_the_steps_and_then_closes() -> None:
    assert performed(ANSWERED) == [
        [{"start": "hi"}],
        [{"provider": {"text": "yes"}}],
        [{"read": "all"}],
        [{"outcome": {"run": "r1", "session": "s1"}}],
    ]


def test_an_unfinished_run_is_asked_for_its_outcome_and_a_dropped_one_is_not() -> None:
    unfinished = play(factory, Script({}, (({"start": "hi"},),)))
    dropped = play(factory, Script({}, (({"start": "hi"},), ({"drop": {}},))))
    assert [record.perform for record in unfinished.steps[-1:]] == [[{"outcome": {"run": "r1", "session": "s1"}}]]
    assert "outcome1" not in unfinished.replies()
    assert dropped.steps[-1].perform == [{"drop": {}}]


def test_a_closed_reader_is_not_read_but_the_outcome_is_taken() -> None:
    script = Script({}, (({"start": "hi"},), ({"close_reader": {}},)))
    assert [list(record.perform[0]) for record in play(factory, script).steps[2:]] == [["outcome"]]


def test_a_run_that_is_not_the_newest_is_addressed() -> None:
    steps = (*ANSWERED.steps, *ANSWERED.steps)
    closing = performed(Script({}, steps))[4:]
    assert closing[0] == [{"read": {"n": "all", "run": "r1", "session": "s1"}}]
    assert [{"read": "all"}] in closing


def test_several_stimuli_of_a_step_are_one_perform() -> None:
    race = Script({}, (({"start": "hi"}, {"cancel": {}}),))
    assert performed(race)[0] == [{"start": "hi"}, {"cancel": {}}]


def test_a_script_is_found_again_in_its_trace_without_the_closing_part() -> None:
    trace = loads_trace(dumps_trace(play(factory, ANSWERED)))
    assert trace.extra[CLOSING] == 2
    assert Script.from_trace(trace) == ANSWERED
    assert len(play(factory, Script.from_trace(trace)).steps) == len(trace.steps)


def test_a_refused_configuration_is_a_trace_without_steps() -> None:
    trace = play(factory, Script({"event_capacity": 0}, ANSWERED.steps))
    assert (trace.open_error, trace.steps) == ("InvalidConfiguration", [])


def test_a_driver_may_be_given_connected_and_stays_so() -> None:
    with connect(CoreDriver()) as driver:
        first, second = play(driver, ANSWERED), play(driver, ANSWERED)
    assert dumps_trace(first) == dumps_trace(second)


def test_faults_of_the_driver_are_raised() -> None:
    with pytest.raises(DriverError, match="no stimulus 'nonsense'"):
        play(factory, Script({}, (({"nonsense": {}},),)))


def test_a_script_longer_than_its_bound_is_refused() -> None:
    with pytest.raises(UsageError, match="2 steps; at most 1"):
        play(factory, ANSWERED, bounds=Bounds(steps=1))


@pytest.mark.parametrize("bounds", [Bounds(observations=1), Bounds(seconds=-1)])
def test_a_bound_ends_the_script_and_says_so(bounds: Bounds) -> None:
    trace = play(factory, ANSWERED, bounds=bounds)
    assert trace.extra[TRUNCATED] in ("observations", "seconds")
    assert trace.extra[CLOSING] < 2


def test_replace_leaves_out_empty_steps() -> None:
    assert ANSWERED.replace([[], ANSWERED.steps[0]]).steps == ANSWERED.steps[:1]
    assert ANSWERED.size == 2
