"""Traces of the core that a monitor once complained of, or read as a deviation, without reason.

Each is recorded anew from the core, which is right here by the contract; the outcome is named so that the trace
is sure to reach the place where the monitor went wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from rho_conformance.drivers.core import factory
from rho_conformance.generate.script import Script, play
from rho_conformance.judge.exhibit import examine_trace
from rho_conformance.trace import Trace

Json = dict[str, Any]
GO: Json = {"start": "go"}
HELD: Json = {"event_capacity": 1, "reader": "held"}
TWO: Json = {"sessions": ["s1", "s2"]}
DEAF: Json = {"provider": {"mode": "cooperative", "on_cancel": "ignore"}}
TIMED: Json = {"tools": {"job": {"mode": "async", "on_cancel": {"complete": "2s"}}}}
ASKING: Json = {"tools": {"t": {}}}
RETRYABLE: Json = {"provider": {"fail": {"kind": "Unavailable", "retryable": True}}}
PERMANENT: Json = {"provider": {"fail": {"kind": "Other"}}}


def calls(*ids: str, tool: str = "t", **more: Any) -> Json:
    """A response of calls; `more` goes into each call."""
    return {"provider": {"calls": [{"id": name, "tool": tool, **more} for name in ids]}}


def ask(question: str, call: str = "A", **where: str) -> Json:
    return {"tool": {"id": call, "ask": question, **where}}


@dataclass(frozen=True)
class Case:
    """`rules`: those that went wrong. `ends`: the outcome of r1, an error name, `ok`, or None while it runs."""

    name: str
    rules: tuple[str, ...]
    config: Json
    steps: tuple[Any, ...]
    ends: str | None = None


JOB = calls("A", tool="job", **{"async": True})
CASES = (
    Case(
        "the cancel comes when the failure is decided and a job has time left",
        ("RHO-CAN-1", "RHO-CAN-2"),
        TIMED,
        (GO, JOB, PERMANENT, {"cancel": {}}, {"tool": {"id": "A", "return": "in time"}}),
        "Cancelled",
    ),
    Case(
        "the cancel comes late in the time of that job",
        ("RHO-CAN-1", "RHO-CAN-2", "RHO-CAN-5"),
        TIMED,
        (GO, JOB, PERMANENT, {"advance": "1990ms"}, {"cancel": {}}, {"advance": "20ms"}),
        "Cancelled",
    ),
    Case(
        "shutdown finds a run at its step limit, with a job that has time left",
        ("RHO-SHUT-3", "RHO-SHUT-8"),
        TIMED | {"max_steps": 1},
        (GO, JOB, {"shutdown": {}}, {"tool": {"id": "A", "return": "in time"}}),
        "Cancelled",
    ),
    Case(
        "shutdown finds the end of a malformed response blocked",
        ("RHO-CAN-9",),
        HELD,
        (GO, {"read": 2}, calls("c1", args='{"a": '), {"shutdown": {}}),
        "Cancelled",
    ),
    Case(
        "no send was due between the loss of the reader and a permanent failure",
        ("RHO-PERS-1",),
        {},
        (GO, RETRYABLE, {"close_reader": {}}, {"advance": "1s"}, PERMANENT),
        "Provider",
    ),
    Case(
        "the reader leaves behind the commit of a compactor's Cancelled",
        ("RHO-PERS-1",),
        {"event_capacity": 2, "reader": "held", "compaction": {"messages": 1}},
        (GO, {"compactor": {"fail": {"kind": "Cancelled"}}}, {"close_reader": {}}),
        "Cancelled",
    ),
    Case(
        "the reset of a malformed response is not the boundary input's",
        ("RHO-BND-5",),
        {"boundary": "gated"},
        (GO, {"boundary": "none"}, {"outcome": {}}, calls("c1", "c1")),
    ),
    Case(
        "the host's own call stands in what the boundary input committed",
        ("RHO-LIM-2",),
        TWO | {"boundary": "gated"},
        (
            GO,
            {"start_tool": {"call": {"id": "h", "tool": "nope"}, "session": "s2"}},
            {"boundary": {"input": "news", "session": "s2"}},
            {"drop": {"session": "s2"}},
        ),
    ),
    Case(
        "the run before it ended in the step that started this one",
        ("RHO-LIM-2",),
        {},
        (GO, ({"provider": {"text": "one"}}, {"start": "at once"}), {"drop": {}}),
        "ok",
    ),
    Case(
        "a crash takes the state of every session",
        ("RHO-STATE-2", "RHO-STATE-4"),
        TWO,
        (
            {"start": {"text": "go", "session": "s2"}},
            {"provider": {"return": {"text": ""}, "session": "s2"}},
            {"crash": {}},
        ),
    ),
    Case(
        "the drop meets the last response in one race",
        ("RHO-STATE-4",),
        {"max_steps": 1},
        (GO, (calls("c1", tool="nope"), {"drop": {}})),
    ),
    Case(
        "a cancelled run waits for a deaf cooperative provider",
        ("RHO-CAN-5",),
        DEAF | {"event_capacity": 2, "reader": "held"},
        (GO, {"provider": {"delta": "ab"}}, {"cancel": {}}),
    ),
    Case(
        "a deaf provider panics after the cancel",
        ("RHO-LIM-3", "RHO-CAN-1"),
        DEAF,
        (GO, {"provider": {"delta": "ab"}}, {"cancel": {}}, {"provider": {"panic": True}}),
        "Interrupted",
    ),
    Case(
        "an applied steer is retracted through the handle of its finished run",
        ("RHO-STEER-6", "RHO-STEER-11"),
        {},
        (
            GO,
            {"steer": {"text": "more", "as": "st"}},
            {"provider": {"text": "one"}},
            {"provider": {"text": "two"}},
            {"retract": {"ref": "st", "run": "r1"}},
        ),
        "ok",
    ),
    Case(
        "a claimed steer is retracted through the handle of a later run",
        ("RHO-STEER-11",),
        {"provider": {"steerable": True}},
        (
            GO,
            {"steer": {"text": "more", "as": "st"}},
            {"provider": {"claim": "st"}},
            {"cancel": {}},
            {"start": "again"},
            {"retract": {"ref": "st"}},
        ),
        "Cancelled",
    ),
    Case(
        "the provider of another run claims a steer",
        ("RHO-STEER-7",),
        TWO,
        (
            GO,
            {"steer": {"text": "more", "as": "st"}},
            {"start": {"text": "go", "session": "s2"}},
            {"provider": {"claim": "st", "session": "s2"}},
        ),
    ),
    Case(
        "a steer that was claimed and given back is retracted",
        ("RHO-STEER-6",),
        {"provider": {"steerable": True}},
        (
            GO,
            {"steer": {"text": "more", "as": "st"}},
            {"provider": {"claim": "st"}},
            {"retract": {"ref": "st"}},
            {"provider": {"release": "st"}},
            {"retract": {"ref": "st"}},
            {"retract": {"ref": "st"}},
        ),
    ),
    Case(
        "the tool hears that its question was refused, and the run fails",
        ("RHO-COORD-3",),
        ASKING,
        (GO, calls("A"), ask("q"), ask("q")),
        "InvalidHostResponse",
    ),
    Case(
        "the same at the last revision: the failure cannot be committed",
        ("RHO-COORD-3",),
        ASKING | {"revision": "max"},
        (GO, calls("A"), ask("q"), ask("q")),
        "Persistence",
    ),
    Case(
        "a tool withdraws its question",
        ("RHO-COORD-4", "RHO-HOST-1"),
        ASKING,
        (GO, calls("A"), ask("q"), {"tool": {"id": "A", "withdraw": "q"}}),
    ),
    Case(
        "a response through the handle of another run",
        ("RHO-HOST-3", "RHO-COORD-2"),
        ASKING | TWO,
        (
            GO,
            {"start": {"text": "go", "session": "s2"}},
            {"provider": {"calls": [{"id": "A", "tool": "t"}], "session": "s2"}},
            ask("q", session="s2"),
            {"respond": {"ref": "q"}},
        ),
    ),
    Case(
        "the steps between were drained by an outcome that nobody read",
        ("RHO-BUF-6",),
        {},
        (
            GO,
            {"outcome": {}},
            calls("c", "c"),
            {"provider": {"reasoning": "hm"}},
            {"hold_reader": {}},
            calls("d", tool="nope"),
            {"provider": {"text": "done"}},
        ),
        "ok",
    ),
    Case(
        "a failed physical request is recorded while its attempt goes on",
        ("RHO-RET-11",),
        {"recorder": "auto"},
        (
            GO,
            calls("c", tool="nope"),
            {"provider": {"physical_retry": {"kind": "Unavailable", "usage": {"input_tokens": 3}}}},
        ),
    ),
    Case(
        "the usage of a failed physical request is no part of the attempt",
        ("RHO-CAN-9",),
        {},
        (
            GO,
            {"provider": {"usage": {"input_tokens": 4}}},
            {"provider": {"physical_retry": {"kind": "Unavailable", "usage": {"input_tokens": 5}}}},
            {"cancel": {}},
        ),
        "Cancelled",
    ),
    Case(
        "the cancel drops the reset of a failed attempt that had streamed",
        ("RHO-CAN-9",),
        HELD,
        (GO, {"read": 2}, {"provider": {"delta": "ab"}}, RETRYABLE, {"cancel": {}}),
        "Cancelled",
    ),
    Case(
        "the cancel comes between two proposals",
        ("RHO-ORD-8",),
        HELD | {"tools": {"t": {}, "job": {"mode": "async"}}},
        (
            GO,
            {"read": 2},
            {"provider": {"return": {"calls": [{"id": "A", "tool": "job", "async": True}, {"id": "B", "tool": "t"}]}}},
            {"read": 1},
            {"cancel": {}},
        ),
        "Cancelled",
    ),
    Case(
        "a detached job panics and nobody is left to be told",
        ("RHO-ORD-7",),
        {"tools": {"job": {"mode": "async"}}},
        (GO, JOB, {"close_reader": {}}, {"tool": {"id": "A", "panic": True}}),
        "Interrupted",
    ),
    Case(
        "read all is meant for the session of the run it names",
        ("RHO-ORD-2", "RHO-BUF-4"),
        TWO | HELD,
        (
            GO,
            {"start": {"text": "go", "session": "s2"}},
            {"read": {"n": "all", "run": "r2"}},
            {"provider": {"text": "hi", "session": "s2"}},
        ),
    ),
    Case(
        "a panic at the step limit",
        ("CP8",),
        ASKING | {"max_steps": 1},
        (GO, calls("A"), {"tool": {"id": "A", "panic": True}}),
        "Interrupted",
    ),
)


def recorded(case: Case) -> Trace:
    steps = tuple(step if isinstance(step, tuple) else (step,) for step in case.steps)
    profile = "common" if case.rules[0].startswith("CP") else "rho"
    return play(factory, Script(case.config, steps, profile))


def outcome(trace: Trace) -> str | None:
    """How the first run ended: the name of its error, or `ok`."""
    values = [
        one["Reply"]["value"]
        for step in trace.steps
        for one in step.observations
        if "Reply" in one and one["Reply"]["name"] == "outcome1" and "value" in one["Reply"]
    ]
    return None if not values else str(values[0].get("error", "ok"))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_nothing_is_said_against_the_core(case: Case) -> None:
    trace = recorded(case)
    assert outcome(trace) == case.ends
    exhibit = examine_trace(case.name, trace)
    assert exhibit.broken == {}
    assert set(case.rules) <= set(exhibit.findings)
    # Settled decisions are the core's own: it deviates from none of them.
    assert not [v for f in exhibit.findings.values() for v in f.variants if re.match(r"D\d", v)]
    assert not [f.untestable for f in exhibit.findings.values() if "monitor failed" in (f.untestable or "")]
