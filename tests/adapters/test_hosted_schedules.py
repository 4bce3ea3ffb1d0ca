"""Interleavings of the hosted runtime, drawn: whatever the scheduler does, the strict oracle and all rules hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_conformance.generate.script import Script, play, violated
from tests.adapters.hosted_kit import BACKENDS, scheduled

Json = dict[str, Any]


def tool(call_id: str, **item: Any) -> Json:
    return {"tool": {"id": call_id, **item}}


def calls(*ids: str, asynchronous: bool = False) -> Json:
    return {"provider": {"calls": [{"id": i, "tool": "t", **({"async": True} if asynchronous else {})} for i in ids]}}


PARALLEL: Json = {"max_parallel_tools": 3, "tools": {"t": {}}}
JOBS: Json = {"tools": {"t": {"mode": "async", "on_cancel": {"complete": "1s"}}}}
NARROW: Json = {**PARALLEL, "event_capacity": 1}
TEXT: Json = {"provider": {"text": "bye"}}
GO: Json = {"start": "go"}
CANCEL: Json = {"cancel": {}}
RACES: dict[str, Script] = {
    "a batch ends while it is cancelled": Script(
        PARALLEL,
        (
            (GO,),
            (calls("A", "B", "C"),),
            (tool("A", **{"return": "a"}), tool("B", fail="b"), CANCEL, tool("C", cancelled=True)),
        ),
    ),
    "the end and the next start": Script(
        {}, ((GO,), (TEXT, {"start": "again"}), ({"start": "once more"}, TEXT), (TEXT,), (TEXT,))
    ),
    "steer, retract and the end": Script(
        {},
        ((GO,), ({"steer": {"text": "more", "as": "x"}}, {"retract": {"ref": "x"}}, TEXT, {"steer": "late"}), (TEXT,)),
    ),
    "progress through a narrow channel": Script(
        NARROW,
        (
            (GO,),
            (calls("A", "B"),),
            (tool("A", progress="1"), tool("B", progress="1"), tool("A", progress="2"), tool("B", **{"return": "b"})),
            (tool("A", **{"return": "a"}), {"steer": "and"}),
            (TEXT, {"shutdown": {}}),
        ),
    ),
    "a question, its answer, and a drop": Script(
        PARALLEL,
        (
            (GO,),
            (calls("A", "B"),),
            (tool("A", ask="q1"), tool("B", ask="q2")),
            ({"respond": {"ref": "q1"}}, tool("B", **{"return": "b"}), {"drop": {}}, {"start": "again"}),
            ({"start": "and again"},),
            (TEXT,),
        ),
    ),
    "jobs that are interrupted": Script(
        JOBS,
        (
            (GO,),
            (calls("A", "B", asynchronous=True),),
            (CANCEL, tool("A", **{"return": "a"}), {"start": "busy"}),
            ({"advance": "1s"},),
            ({"start": "free"},),
        ),
    ),
    "two sessions and the end of all": Script(
        {"sessions": ["s1", "s2"], "tools": {"t": {}}},
        (
            (GO, {"start": {"text": "go", "session": "s2"}}),
            (TEXT, {"provider": {"text": "x", "session": "s2"}}, {"shutdown": {}}),
        ),
    ),
    "a retry, a panic and a closed reader": Script(
        PARALLEL,
        (
            (GO,),
            ({"provider": {"fail": {"kind": "RateLimit", "retryable": True}}}, {"advance": "1s"}),
            (calls("A", "B"),),
            (tool("A", panic=True), tool("B", **{"return": "b"}), {"close_reader": {}}),
        ),
    ),
}


def clean(backend: str, script: Script, drawn: list[int]) -> None:
    """Play under that schedule; the oracle raises, the monitors list."""
    with scheduled(backend, drawn) as driver:
        assert violated(play(driver, script)) == set()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", RACES)
@settings(max_examples=12)
@given(drawn=st.lists(st.integers(0, 3), max_size=60))
def test_no_schedule_breaks_a_rule(backend: str, name: str, drawn: list[int]) -> None:
    clean(backend, RACES[name], drawn)
