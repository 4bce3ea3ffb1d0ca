"""The anyio runtime on both loops, judged by the suite: scenarios, walks against the core's own traces, sweeps.

The whole library takes more than a minute on each loop (`rho-core scenario spec/scenarios --target asyncio`); here
each loop plays every thirteenth scenario, and not the same ones.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from rho_conformance.driver import DriverError, connect
from rho_conformance.drivers.core import factory as core
from rho_conformance.drivers.corework import interpret
from rho_conformance.drivers.live import LiveDriver, asyncio_factory, trio_factory
from rho_conformance.drivers.live.shadow import Shadow
from rho_conformance.generate.script import Script, play, violated
from rho_conformance.generate.sweep import sweep
from rho_conformance.generate.walks import Walk, walks
from rho_conformance.judge.library import scenarios
from rho_conformance.scenario.runner import run_scenario
from rho_conformance.trace import StepRecord

Json = dict[str, Any]
FACTORIES = {"asyncio": asyncio_factory, "trio": trio_factory}
BACKENDS = list(FACTORIES)
STRIDE = 13
OF_A_CALL = frozenset({"Abandoned", "Taken"})
UPCALLS = frozenset(
    {"ModelCall", "ToolPrepare", "ToolAuthorize", "ToolExecute", "HostAnswer", "AskRefused", "Compact", "Collect"}
    | {"CollectAck", "Record", "SteerClaim", "NotOpen"}
)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_scenarios_hold(backend: str) -> None:
    chosen = scenarios()[BACKENDS.index(backend) * 6 :: STRIDE]
    assert len(chosen) > 100
    results = [run_scenario(scenario, FACTORIES[backend]) for scenario in chosen]
    assert [(r.id, r.detail) for r in results if r.verdict not in ("pass", "variant")] == []


def _channels(record: StepRecord) -> dict[Any, list[Any]]:
    """The observations of one step by channel: only in a channel is there an order (design §6)."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for observation in record.observations:
        name, body = next((k, v) for k, v in observation.items() if k not in ("seq", "step", "at_ms"))
        key: tuple[Any, ...] = ("events", body.get("session"), body.get("run"))
        if name in OF_A_CALL:
            key = (name, body["upcall"], body["session"], body.get("call_id"))
        elif name in UPCALLS:
            key = (name, body["session"], body.get("call_id"))
        elif name == "Reply":
            key = (name, body["name"])
        found[key].append((name, body, observation["at_ms"]))
    return dict(found)


def _same(walk: Walk, backend: str) -> str | None:
    """The first difference between the core's trace and the hosted runtime's on the same script."""
    ours = walk.play(core, "rho")
    theirs = play(LiveDriver(backend), Script.from_trace(ours))
    for one, other in zip(ours.steps, theirs.steps, strict=True):
        left, right = _channels(one), _channels(other)
        for key in {**left, **right}:
            # A tool whose run fails with its question is taken back before it hears the refusal.
            if key[0] != "AskRefused" and left.get(key) != right.get(key):
                return f"{one.perform}: {key}: {left.get(key)} / {right.get(key)}"
        if (one.facts, sorted(one.waiting_on)) != (other.facts, sorted(other.waiting_on)):
            return f"{one.perform}: {one.facts} {one.waiting_on} / {other.facts} {other.waiting_on}"
    return None


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_trace_is_the_trace_of_the_core(backend: str) -> None:
    """Not only what the core would do with the same inputs: the same inputs come, with the same times and facts."""
    chosen = list(walks())[BACKENDS.index(backend) * 3 :: 6]
    assert len(chosen) > 40
    assert [found for walk in chosen if (found := _same(walk, backend)) is not None] == []


SWEPT = Script(
    {"max_parallel_tools": 2, "tools": {"t": {}, "job": {"mode": "async", "on_cancel": {"complete": "1s"}}}},
    (
        ({"start": "go"},),
        ({"provider": {"delta": "well"}},),
        ({"provider": {"fail": {"kind": "RateLimit", "retryable": True}}},),
        ({"advance": "1s"},),
        ({"provider": {"calls": [{"id": "A", "tool": "t"}, {"id": "J", "tool": "job", "async": True}]}},),
        ({"tool": {"id": "A", "ask": "q1"}},),
        ({"steer": "and"},),
        ({"respond": {"ref": "q1"}},),
        ({"tool": {"id": "A", "return": "a"}},),
        ({"tool": {"id": "J", "return": "j"}},),
        ({"provider": {"text": "bye"}},),
        ({"provider": {"text": "bye again"}},),
    ),
)


@pytest.mark.parametrize("backend", BACKENDS)
def test_whatever_ends_a_run_at_whatever_point_no_rule_breaks(backend: str) -> None:
    scripts = list(sweep(play(core, SWEPT)))
    assert len(scripts) > 40
    for script in scripts:
        assert violated(play(LiveDriver(backend), script)) == set()


# --- the oracle must be able to say no ------------------------------------------------------------------------------

TURN: list[Json] = [
    {"start": "go"},
    {"provider": {"delta": "a"}},
    {"provider": {"calls": [{"id": "A", "tool": "t"}]}},
    {"tool": {"id": "A", "return": "a"}},
    {"provider": {"text": "bye"}},
    {"outcome": {}},
]


def _complaint(backend: str) -> str:
    """What is said of one turn."""
    with connect(LiveDriver(backend)) as driver:
        driver.open({"tools": {"t": {}}})
        try:
            for stimulus in TURN:
                driver.perform([stimulus])
        except DriverError as found:
            return str(found)
    return ""


def _drop_effects(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica forgets effects of one kind: then the runtime seems to have done too much."""
    row = interpret.ROWS
    kind = next(k for k in row if k.__name__ == name)
    monkeypatch.setitem(row, kind, lambda port, effect: None)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["Deliver", "CallModel", "Execute", "ReportOutcome", "CloseEvents", "Prepare"])
def test_the_oracle_sees_what_the_core_did_not_ask_for(
    name: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _complaint(backend) == ""
    _drop_effects(name, monkeypatch)
    assert "strict oracle" in _complaint(backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_difference_fails_a_scenario(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a finding about the runtime (CORE-CAP), not an error of the driver."""
    scenario = next(s for s in scenarios() if s.steps and "start" in s.steps[0].name)
    assert run_scenario(scenario, FACTORIES[backend]).verdict == "pass"
    _drop_effects("Deliver", monkeypatch)
    result = run_scenario(scenario, FACTORIES[backend])
    assert (result.verdict, "CORE-CAP" in result.detail, "strict oracle" in result.detail) == ("fail", True, True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_oracle_sees_an_input_that_was_not_told(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each input counts: a journal that leaves one out is another run."""
    replay = Shadow.replay
    for left_out in range(12):
        seen = iter(range(1000))

        def short(self: Shadow, session: str | None, value: Any, n: Any = seen, k: int = left_out) -> None:
            if next(n) != k:
                replay(self, session, value)

        with monkeypatch.context() as patch:
            patch.setattr(Shadow, "replay", short)
            assert "strict oracle" in _complaint(backend), f"input {left_out} was left out"


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_end_of_a_lost_process_is_seen_by_nobody(backend: str) -> None:
    """Its collector is told nothing more, and what it tells its own core is not the next process's."""
    with connect(LiveDriver(backend)) as driver:
        driver.open({"boundary": "gated"})
        stimuli: list[Json] = [{"start": "go"}, {"crash": {}}, {"start": "again"}]
        for stimulus in stimuli:
            answer = driver.perform([stimulus])
        assert answer["waiting_on"] == ["collector"]
