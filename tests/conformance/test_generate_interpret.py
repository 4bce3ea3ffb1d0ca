"""Intents become stimuli by what is open, and by what the target declared; else nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rho_conformance.drivers.core import CoreDriver, factory
from rho_conformance.errors import UsageError
from rho_conformance.generate import answers
from rho_conformance.generate.capabilities import COMMON, extension_of
from rho_conformance.generate.intents import ALPHABET, GROUPS, Intent, population
from rho_conformance.generate.interpret import Interpreter, perform_intents
from rho_conformance.generate.meanings import HANDLERS
from rho_conformance.generate.script import DEFAULT_BOUNDS, Player, connected
from rho_conformance.generate.search import draw_scripts
from rho_conformance.generate.situation import back_off_ms, milliseconds
from rho_conformance.generate.walks import CLASSES, read_walk, walks
from rho_conformance.scenario.features import features
from rho_conformance.scenario.grammar import ORCA_ONLY_STIMULI, STIMULI
from rho_conformance.scenario.model import Scenario, Step, parse_text
from rho_conformance.trace import Trace

Json = dict[str, Any]
TOOLS: Json = {"tools": {"t": {}, "u": {}, "job": {"mode": "async"}}, "max_parallel_tools": 2}


FAST = [walk for walk in walks() if "(slowly)" not in walk.name]


def own(trace: Trace) -> list[list[Json]]:
    return [record.perform for record in trace.steps[: trace.extra["closing"]]]


def done(text: str, config: Json = TOOLS) -> list[list[Json]]:
    return own(perform_intents(factory, config, read_walk(text)))


def test_every_letter_has_a_meaning_and_every_meaning_a_letter() -> None:
    assert {*HANDLERS, "together"} == set(ALPHABET)


def test_a_group_of_weight_zero_does_not_occur_unless_nothing_goes_without_it() -> None:
    assert {ALPHABET[name].group for name in population([0] * len(GROUPS))} == {"start", "model", "tool", "time"}
    assert set(population([1] * len(GROUPS))) == set(ALPHABET)


IN_AN_IDLE_SESSION = {"start", "start_tool", "append", "compact", "rewrite", "store", "handles", "snapshot"} | {
    "shutdown",
    "read_all",
    "hold",
    "advance",
}


@pytest.mark.parametrize(
    "name",
    sorted(set(ALPHABET) - IN_AN_IDLE_SESSION),
)
def test_what_fits_nothing_does_nothing(name: str) -> None:
    assert own(perform_intents(factory, {}, [Intent(name, 3, 2)])) == []


def test_integers_choose_among_what_is_open() -> None:
    assert done("start model_end:sync2 tool_end:3:fail")[-1] == [{"tool": {"id": "c2", "fail": "did not work"}}]


def test_together_is_one_perform() -> None:
    race = done("start model_end:sync together tool_end:ok cancel")[-1]
    assert [next(iter(stimulus)) for stimulus in race] == ["tool", "cancel"]


def test_what_was_streamed_is_what_is_returned() -> None:
    steps = done("start model_item:delta model_item:fragment model_item:fragment model_end:streamed")
    call = {"id": "c1", "tool": "u", "args": '{"a": 1}'}
    assert steps[-1] == [{"provider": {"return": {"text": "part 1 ", "calls": [call]}}}]


def test_time_passes_to_the_timer_short_of_it_and_past_it() -> None:
    steps = done("start model_end:retry advance:before advance:due model_end:rate advance:past")
    assert [s for [s] in steps if "advance" in s] == [{"advance": t} for t in ("990ms", "10ms", "5010ms")]


@pytest.mark.parametrize(
    ("failed", "fail", "wait"),
    [(1, {}, 1_000), (3, {}, 4_000), (2, {"retry_after": "5s"}, 5_000), (1, {"retry_after_header": "120"}, 60_000)],
)
def test_the_expected_back_off(failed: int, fail: Json, wait: int) -> None:
    assert back_off_ms(failed, fail) == wait


def test_durations() -> None:
    assert [milliseconds(text) for text in ("500ms", "1.5s", "2m", "soon")] == [500, 1_500, 120_000, 0]


def test_a_late_answer_goes_to_an_upcall_that_was_open() -> None:
    steps = done("start model_end:sync cancel tool_late:return")
    assert steps[-1] == [{"tool": {"id": "c1", "return": "too late"}}]


def test_winding_down_ends_the_run_and_starts_another() -> None:
    trace = perform_intents(factory, TOOLS, read_walk("start model_end:mixed tool_item:ask"), wind_down=True)
    assert [list(outcome) for name, outcome in trace.replies().items() if name.startswith("outcome")] == [["ok"]] * 2


def test_a_second_session_is_addressed() -> None:
    steps = done("start start:1:0 model_end:1:text", {"sessions": ["s1", "s2"]})
    assert steps[1:] == [[{"start": {"text": "prompt 2", "session": "s2"}}], [provider_text("s2")]]


def provider_text(session: str) -> Json:
    return {"provider": {"text": "answer 1", "session": session}}


# --- capabilities -------------------------------------------------------------------------------------------------


class Poor(CoreDriver):
    """A core that declares no more than the common profile."""

    def hello(self) -> Json:
        return {**super().hello(), "capabilities": list(COMMON)}


def played() -> Iterator[Trace]:
    for walk in FAST:
        yield walk.play(Poor, "rho")
    for drawn in draw_scripts(20, 30, 5):
        yield perform_intents(Poor, drawn.config, drawn.intents, wind_down=drawn.wind_down)


def test_only_what_was_declared_is_played() -> None:
    used: set[str] = set()
    for trace in played():
        steps = tuple(Step(*next(iter(s.items())), 0) for step in own(trace) for s in step)
        used.update(features(Scenario("x", (), "rho", trace.config, steps, {}, "x", 0)))
    with connected(Poor) as driver:
        assert [feature for feature in sorted(used) if not driver.hello().supports(feature)] == []
    assert {"provider.return", "tool.fail", "provider.call_delta", "drop", "config.tools.access=exclusive"} <= used


def test_the_common_profile_keeps_to_itself_on_a_target_that_can_do_more() -> None:
    trace = perform_intents(factory, TOOLS, read_walk("start model_end:mixed shutdown snapshot"), profile="common")
    assert own(trace) == [[{"start": "prompt 1"}]]
    assert trace.config["tools"] == {"t": {}, "u": {}, "job": {}}


# --- form ---------------------------------------------------------------------------------------------------------


def test_every_other_stimulus_and_configuration_is_of_the_scenario_format() -> None:
    traces = [walk.play(factory) for walk in FAST]
    traces += [perform_intents(factory, d.config, d.intents) for d in draw_scripts(30, 40, 9)]
    played = [stimulus for trace in traces for step in own(trace) for stimulus in step]
    assert {extension_of(s) for s in played} > {None}, "extensions are played, and are not of the format"
    stimuli = {json.dumps(stimulus) for stimulus in played if extension_of(stimulus) is None}
    head = {"id": "x", "rules": [], "profile": "rho", "expect": {}}
    for trace in traces:
        steps = [s for step in own(trace) for s in step if extension_of(s) is None]
        text = json.dumps({**head, "config": trace.config, "steps": steps or [{"cancel": {}}]})
        parse_text(text, "generated.yaml")
    not_played = {"new_session"}
    assert {next(iter(json.loads(s))) for s in stimuli} == set(STIMULI) - not_played - ORCA_ONLY_STIMULI


@pytest.mark.parametrize("text", ["strat", "model_end:nothing"])
def test_a_walk_of_words_that_mean_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"no (intent|class)"):
        list(read_walk(text))


@pytest.mark.parametrize("walk", FAST, ids=lambda walk: walk.name)
def test_every_word_of_a_walk_does_something_on_the_core(walk: Any) -> None:
    with connected(factory) as driver:
        player = Player(driver, walk.config, "rho", None, DEFAULT_BOUNDS)
        if not player.opened:
            return
        interpreter = Interpreter(player)
        idle = []
        for index, intent in enumerate(walk.intents):
            before = len(player.trace.steps)
            joined = any(other.name == "together" for other in walk.intents[max(0, index - 2) : index])
            if intent.name == "together":
                interpreter.run(walk.intents[index : index + 3])
            elif not joined:
                interpreter.run([intent])
            if len(player.trace.steps) == before and not joined:
                idle.append(str(intent))
    assert idle == []


def test_words_for_classes_are_within_their_tables() -> None:
    assert max(CLASSES["model_end"].values()) < len(answers.MODEL_ENDS)
    assert max(CLASSES["model_item"].values()) < len(answers.MODEL_ITEMS)
    assert max(CLASSES["tool_end"].values()) < len(answers.TOOL_ENDS["ToolExecute"])
    assert max(CLASSES["compactor"].values()) < len(answers.COMPACTIONS)
