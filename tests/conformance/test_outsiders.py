"""Drivers written from the fixed text alone: the correct ones are not accused, and each fault is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.cli import main
from rho_conformance.defaults import Defaults
from rho_conformance.driver import Hello, connect
from rho_conformance.errors import DriverError
from rho_conformance.generate.capabilities import Allowed
from rho_conformance.generate.script import Script, play
from rho_conformance.generate.sweep import sweep
from rho_conformance.judge.exhibit import examine, examine_trace
from rho_conformance.judge.library import scenarios
from rho_conformance.judge.recorded import check
from rho_conformance.judge.tally import unanswered
from rho_conformance.replies import normal_reply
from rho_conformance.trace import Trace, completed, dumps_trace, loads_trace
from tests.conformance import outsiders

Json = dict[str, Any]
CALL: Json = {"provider": {"calls": [{"id": "A", "tool": "t"}]}}
DOWN: Json = {"provider": {"fail": {"kind": "Unavailable", "retryable": True}}}
MINUTE: Json = {"advance": "1m"}
TOOLS: Json = {"tools": {"t": {}}}
SCRIPTS: dict[str, list[Json]] = {
    "plain": [{"start": "go"}, {"provider": {"text": "hi"}}, {"start": "on"}, {"provider": {"text": "ho"}}],
    "tool": [{"start": "go"}, CALL, {"tool": {"id": "A", "return": "a"}}, {"provider": {"text": "hi"}}],
    "cancelled": [{"start": "go"}, CALL, {"cancel": {}}, {"start": "on"}, {"provider": {"text": "ho"}}],
    "down": [{"start": "go"}, *(one for _ in range(5) for one in (DOWN, MINUTE))],
    "stale": [
        {"start": "go"},
        {"provider": {"text": "hi"}},
        {"start": "on"},
        {"cancel": {"run": "r1"}},
        {"provider": {"text": "ho"}},
    ],
}


def script(name: str, profile: str = "common") -> Script:
    return Script(TOOLS, tuple((stimulus,) for stimulus in SCRIPTS[name]), profile)


def broken(driver: Callable[[], Any], name: str, profile: str = "common") -> dict[str, str]:
    return examine_trace(name, play(driver, script(name, profile))).broken


# ---- what is left out ----------------------------------------------------------------------------------------------


def test_what_is_left_out_is_filled_in() -> None:
    trace = play(outsiders.Small, script("plain"))
    assert {(seen.session, seen.run) for seen in trace.upcalls()} == {("s1", "r1"), ("s1", "r2")}
    assert [seen.name for seen in trace.events("s1", "r2")] == [
        "Started",
        "StepStarted",
        "AssistantTextDelta",
        "Completed",
    ]
    trace = play(outsiders.Small, script("tool"))
    assert [seen.fields["call_id"] for seen in trace.named("ToolProposed")] == ["A"]
    trace = play(outsiders.Small, script("cancelled"))
    assert [seen.fields.get("call_id") for seen in trace.named("Abandoned")] == ["A"]


def requests(driver: Callable[[], Any], name: str) -> list[tuple[int, int, int]]:
    found = play(driver, script(name)).named("ModelCall")
    return [(seen.fields["n"], seen.fields["step"], seen.fields["attempt"]) for seen in found]


class Mute(outsiders.Small):
    """Shows no event at all."""

    def see(self, what: str, /, **fields: Any) -> None:
        if what in ("ModelCall", "ToolExecute", "Reply", "Abandoned"):
            super().see(what, **fields)


class LateEvents(outsiders.Small):
    """Tells its events behind the upcalls of a step, as the order of the two is free."""

    def perform(self, stimuli: list[Json]) -> Json:
        answer = super().perform(stimuli)
        order = sorted(self.seen, key=lambda one: not {"ModelCall", "ToolExecute", "Reply"} & set(one))
        first = self.seq - len(order)
        return {**answer, "observations": [{**one, "seq": first + k} for k, one in enumerate(order, 1)]}


@pytest.mark.parametrize("driver", [outsiders.Small, Mute, LateEvents])
def test_requests_are_counted(driver: Callable[[], Any]) -> None:
    assert requests(driver, "tool") == [(1, 1, 1), (2, 2, 1)]
    assert requests(driver, "plain") == [(1, 1, 1), (2, 1, 1)]
    assert requests(driver, "down") == [(k, 1, k) for k in range(1, 5)]


def test_what_a_driver_says_itself_is_kept() -> None:
    said = {"session": "s1", "run": "r7", "n": 3, "step": 2, "attempt": 4}
    answer = {"observations": [{"seq": 1, "step": 1, "at_ms": 0, "ModelCall": said}], "facts": {"busy": True}}
    assert Defaults({}).fill([{"start": "go"}], answer) is answer


def test_a_manual_compaction_belongs_to_no_run() -> None:
    seen = {"seq": 1, "step": 1, "at_ms": 0, "Compact": {"trigger": "Manual"}}
    defaults = Defaults({})
    defaults.fill([{"start": "go"}], {"observations": [], "facts": {"busy": False}})
    [filled] = defaults.fill([{"compact": {}}], {"observations": [seen], "facts": {}})["observations"]
    assert filled["Compact"] == {"trigger": "Manual", "session": "s1"}


def test_events_of_a_race_go_to_the_run_that_ends_and_then_to_the_next() -> None:
    race: list[list[Json]] = [[{"start": "one"}], [{"cancel": {}}, {"start": "two"}], [{"provider": {"text": "x"}}]]
    trace = play(outsiders.Small, Script({}, tuple(tuple(step) for step in race), "common"))
    ends = [(seen.name, seen.run) for seen in trace.events() if seen.name in ("Cancelled", "Completed")]
    assert ends == [("Cancelled", "r1"), ("Completed", "r2")]
    assert examine_trace("race", trace).broken == {}


# ---- replies and facts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"value": "ok"}, "ok"),
        ({"ok": True}, "ok"),
        ({"ok": {"cancelled_runs": 1}}, {"ok": {"cancelled_runs": 1}}),
        ({"error": "SessionBusy"}, {"error": "SessionBusy"}),
        ({"error": "Provider", "kind": "Timeout"}, {"error": "Provider", "kind": "Timeout"}),
        ({"reply": {"error": "SessionBusy"}}, {"error": "SessionBusy"}),
        ({"value": "pending"}, "pending"),
    ],
)
def test_natural_spellings_of_a_reply(given: Json, value: Any) -> None:
    assert normal_reply({"name": "r1", **given}, "here") == {"name": "r1", "value": value}


@pytest.mark.parametrize(
    "given",
    [{}, {"value": "accepted"}, {"ok": False}, {"ok": 1, "error": "X"}, {"value": {}}, {"value": None}, {"error": 3}],
)
def test_anything_else_is_off_the_protocol(given: Json) -> None:
    with pytest.raises(DriverError, match=r"here must be \{name, value: V\}"):
        normal_reply({"name": "r1", **given}, "here")


def test_a_reply_of_its_own_making_is_no_refusal() -> None:
    with pytest.raises(DriverError, match=r"observations\[0\].Reply must be .* got 'accepted'"):
        play(outsiders.Bare, script("plain"))


@pytest.mark.parametrize("driver", [outsiders.Small, outsiders.Spelled, outsiders.Wrapped])
@pytest.mark.parametrize("name", ["plain", "tool", "cancelled", "down", "stale"])
def test_a_correct_driver_is_not_accused(driver: Callable[[], Any], name: str) -> None:
    assert broken(driver, name) == {}
    facts = play(driver, script(name)).facts_of("s1")
    assert facts["busy"] is False and facts["revision"] >= 1


def test_facts_of_nobody_are_refused() -> None:
    class Odd(outsiders.Small):
        def facts(self) -> Json:
            return {"session": {"is_busy": True}}

    with pytest.raises(DriverError, match=r"facts\.session is neither a fact nor the facts of a session"):
        play(Odd, script("plain"))


# ---- outcomes that were asked for too early ------------------------------------------------------------------------

EARLY = Script({}, (({"start": "go"},), ({"outcome": {}},), ({"provider": {"text": "hi"}},)), "common")


def test_pending_asks_for_a_second_reply() -> None:
    assert examine_trace("early", play(outsiders.Wrapped, EARLY)).broken == {}
    with pytest.raises(DriverError, match=r"'outcome1' was `pending`, and r1 has ended since: .* second Reply"):
        play(outsiders.Forgetful, EARLY)


def test_an_outcome_that_never_comes_is_a_failure_with_a_hint() -> None:
    class Hangs(outsiders.Small):
        def on_outcome(self, value: Json) -> None:
            self.filed("outcome", value)

    shown = examine("early", EARLY, Hangs)
    assert "CP9" in shown.broken
    assert "Completed of r1 was shown and outcome1 has no Reply" in unanswered("CP9", shown)
    assert unanswered("CP1", shown) == ""


# ---- faults --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("driver", "name", "rules"),
    [
        (outsiders.TwoTerminals, "plain", {"CORE-S1", "CP9"}),
        (outsiders.FinishedTwice, "tool", {"CORE-S6"}),
        (outsiders.BeforeStarted, "plain", {"CORE-S5"}),
        (outsiders.Unanswered, "cancelled", {"CORE-S2", "CP1"}),
        (outsiders.StaleCancel, "stale", {"CP15"}),
    ],
)
def test_a_fault_is_seen(driver: Callable[[], Any], name: str, rules: set[str]) -> None:
    assert rules <= set(broken(driver, name))
    assert not rules & set(broken(outsiders.Small, name))


def test_a_fifth_request_is_seen() -> None:
    assert "RHO-RET-4" in broken(outsiders.FifthRequest, "down", "rho")
    assert "RHO-RET-4" not in broken(outsiders.Small, "down", "rho")


def test_a_recorded_trace_is_read_in_the_same_way() -> None:
    """What a driver said, before anything was filled in."""
    driver = outsiders.TwoTerminals()
    driver.open(TOOLS)
    trace = Trace(driver.hello(), TOOLS, "common")
    lines = [dumps_trace(trace)]
    for stimulus in [*SCRIPTS["plain"], {"outcome": {"run": "r1"}}]:
        lines.append(json.dumps({"perform": [stimulus], **driver.perform([stimulus])}) + "\n")
    read = loads_trace("".join(lines))
    assert all(seen.run is None for seen in read.events())
    assert {seen.run for seen in completed(read).events()} == {"r1", "r2"}
    assert check("trace", read, None).verdicts["CORE-S1"].verdict == "fail"


# ---- only what was declared ----------------------------------------------------------------------------------------


def test_a_sweep_keeps_to_what_was_declared() -> None:
    """`Small` itself refuses everything else."""
    with connect(outsiders.Small()) as driver:
        hello: Hello = driver.hello()
    trace = play(outsiders.Small, script("tool"))
    found = list(sweep(trace, allowed=Allowed(hello, "common")))
    added = {name for one in found for step in one.steps for stimulus in step for name in stimulus}
    assert added == {"start", "provider", "tool", "cancel"}
    assert all("event_capacity" not in one.config for one in found)
    for one in found:
        assert examine("swept", one, outsiders.Small).verdict == "pass"


def test_a_held_reader_is_for_those_who_can_hold_it() -> None:
    with connect(outsiders.Small()) as driver:
        hello = driver.hello()
    assert Allowed(hello, "rho").config({"reader": "held", "max_steps": 2}) == {"max_steps": 2}


def test_common_scenarios_ask_for_no_observation_beyond_the_format() -> None:
    driver = outsiders.Small
    for one in scenarios("common"):
        shown = examine(one.id, one, driver)
        assert shown.verdict in ("pass", "variant", "n/a"), f"{one.id}: {shown.detail}"


# ---- hello ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": None}, r"hello lacks time \(one of virtual, auto, real\)"),
        ({"protocol": None, "name": None}, r"hello lacks protocol \(the number 1\), name \(a text\)"),
        ({"version": 3}, "hello.version must be a text, got 3"),
        ({"capabilities": "*"}, "hello.capabilities must be a list"),
        ({"deterministic": "yes"}, "hello.deterministic must be true or false"),
        ({"profiles": ["core"]}, "hello.profiles must name some of rho, orca, common"),
    ],
)
def test_hello_says_what_is_wrong(change: Json, message: str) -> None:
    told = {**outsiders.Small().hello(), **change}
    with pytest.raises(DriverError, match=message):
        Hello.parse({key: value for key, value in told.items() if value is not None})


def test_a_version_may_be_left_out() -> None:
    assert Hello.parse(outsiders.Small().hello()).version == "0"


# ---- the command line ----------------------------------------------------------------------------------------------

PROTOCOL = Path(__file__).parents[2] / "spec" / "protocol.md"


def conform(capsys: pytest.CaptureFixture[str], target: str, folder: Path) -> tuple[int, Json]:
    status = main(
        ["conform", target, "--profile", "common", "--examples", "20", "--report", str(folder), "--format", "json"]
    )
    printed = capsys.readouterr()
    assert printed.out, printed.err
    return status, json.loads(printed.out)


def test_the_driver_of_the_protocol_text_is_conformant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """End to end, and with nothing but its own words: what does not apply is n/a, everything else is kept."""
    section = PROTOCOL.read_text(encoding="utf-8").partition("## Write a driver")[2]
    [code] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (tmp_path / "toy_of_the_protocol.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    status, answer = conform(capsys, "python:toy_of_the_protocol:Toy", tmp_path / "report")
    assert (status, set(answer["summary"])) == (0, {"pass", "n/a"}), answer["verdicts"]
    assert answer["summary"]["pass"] >= 16
    kept = {rule for rule, verdict in answer["verdicts"].items() if verdict["verdict"] == "pass"}
    assert {"CP1", "CP2", "CP5", "CP7", "CP9", "CP12", "CP15", "CORE-S1", "CORE-S2", "CORE-S4", "CORE-LIVE"} <= kept
