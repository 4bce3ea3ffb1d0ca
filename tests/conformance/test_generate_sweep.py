"""Sweeps: every action at every point, late answers behind it, within a limit."""

from __future__ import annotations

from typing import Any

from rho_conformance.drivers.core import CoreDriver, factory
from rho_conformance.generate.capabilities import COMMON
from rho_conformance.generate.script import Script, play
from rho_conformance.generate.sweep import ACTIONS, SLOW, slowly, sweep, sweep_traces
from rho_conformance.trace import Trace

Json = dict[str, Any]
START: Json = {"start": "hi"}
CALL: Json = {"provider": {"calls": [{"id": "A", "tool": "t"}]}}
RESULT: Json = {"tool": {"id": "A", "return": "done"}}
TEXT: Json = {"provider": {"text": "bye"}}
SCRIPT = Script({"tools": {"t": {}}}, ((START,), (CALL,), (RESULT,), (TEXT,)))


def recorded() -> Trace:
    return play(factory, SCRIPT)


def test_each_action_comes_at_each_point_where_a_run_is_unfinished() -> None:
    for name in ("cancel", "drop", "close_reader", "shutdown"):
        scripts = list(sweep(recorded(), actions=[name]))
        assert [script.steps.index(({name: {}},)) for script in scripts] == [1, 2, 3]


def test_panic_hits_what_is_open() -> None:
    scripts = list(sweep(recorded(), actions=["panic"]))
    panics = [script.steps[k] for k, script in enumerate(scripts, 1)]
    model, tool = {"provider": {"panic": True}}, {"tool": {"id": "A", "panic": True}}
    assert panics == [(model,), (tool,), (model,)]


def test_answers_to_what_had_been_open_follow_too_late() -> None:
    first, second, third = (script.steps for script in sweep(recorded(), actions=["cancel"]))
    cancel: Json = {"cancel": {}}
    assert first == ((START,), (cancel,), (CALL,), (TEXT,))
    assert second == ((START,), (CALL,), (cancel,), (RESULT,), (TEXT,))
    assert third == ((START,), (CALL,), (RESULT,), (cancel,), (TEXT,))


def test_the_slow_script_reads_one_event_after_the_other() -> None:
    slow = slowly(recorded())
    assert (slow.config["event_capacity"], slow.config["reader"]) == (1, "held")
    reads = ({"read": 1},)
    assert slow.steps[:4] == ((START,), reads, reads, (CALL,))  # Started, StepStarted
    assert list(sweep(recorded(), actions=[SLOW])) == [slow]
    trace = play(factory, slow)
    assert not list(trace.named("NotOpen"))
    assert max(len(list(record.seen())) for record in trace.steps) < max(
        len(list(record.seen())) for record in recorded().steps
    )


def test_the_limit_spreads_over_all_points() -> None:
    everything = list(sweep(recorded()))
    assert len(everything) == 1 + 3 * len(ACTIONS)
    few = list(sweep(recorded(), limit=4))
    assert len(few) == 4
    assert all(script in everything for script in few)
    assert few[-1].steps[:4] == SCRIPT.steps[:3] + few[-1].steps[3:4]


def test_swept_scripts_end_their_runs() -> None:
    found = list(sweep_traces(factory, recorded()))
    assert len(found) == 16
    asked = [trace.replies()["outcome1"] for trace in found if "outcome1" in trace.replies()]
    dropped = [trace for trace in found if any("drop" in s for record in trace.steps for s in record.perform)]
    assert (len(asked), len(dropped)) == (len(found) - 3, 3)
    assert {reply.get("error") for reply in asked} == {None, "Cancelled", "Interrupted"}
    assert not any(list(trace.named("NotOpen")) for trace in found)


class Poor(CoreDriver):
    """A core that declares no more than the common profile."""

    def hello(self) -> Json:
        return {**super().hello(), "capabilities": list(COMMON)}


def test_a_sweep_keeps_to_what_was_declared() -> None:
    trace = play(Poor, SCRIPT)
    found = list(sweep_traces(Poor, trace))
    played = {name for one in found for record in one.steps for stimulus in record.perform for name in stimulus}
    assert "shutdown" not in played
    assert "cancel" in played
    assert all("event_capacity" not in one.config for one in found)
