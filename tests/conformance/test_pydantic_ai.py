"""The pydantic-ai driver: what the runtime really does, as the driver protocol shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rho_conformance.driver import ConnectedDriver, connect
from rho_conformance.drivers.pydantic_ai import factory
from rho_conformance.errors import UsageError
from rho_conformance.targets import resolve

Json = dict[str, Any]
TWO_TOOLS: Json = {"max_parallel_tools": 4, "tools": {"t": {}, "u": {}}}


class Play:
    """A driver with a memory: every observation of the world, and the last answer."""

    def __init__(self, driver: ConnectedDriver, config: Json) -> None:
        self.driver = driver
        assert driver.open(config) is None
        self.seen: list[Json] = []
        self.answer: Json = {}

    def do(self, *stimuli: Json) -> Play:
        for stimulus in stimuli:
            self.race(stimulus)
        return self

    def race(self, *stimuli: Json) -> Play:
        self.answer = self.driver.perform(list(stimuli))
        self.seen += self.answer["observations"]
        return self

    def all(self, name: str) -> list[Json]:
        return [observation[name] for observation in self.seen if name in observation]

    def names(self) -> list[str]:
        return [next(key for key in seen if key not in ("seq", "step", "at_ms")) for seen in self.seen]

    def reply(self, name: str) -> Any:
        (reply,) = [reply["value"] for reply in self.all("Reply") if reply["name"] == name]
        return reply

    @property
    def waiting(self) -> list[str]:
        waiting: list[str] = self.answer["waiting_on"]
        return waiting

    @property
    def facts(self) -> Json:
        facts: Json = self.answer["facts"]
        return facts

    def request(self, number: int) -> list[Json]:
        messages: list[Json] = self.all("ModelCall")[number - 1]["messages"]
        return messages


@pytest.fixture
def driver() -> Iterator[ConnectedDriver]:
    with connect(factory()) as connected:
        yield connected


def calls(*ids: str, tool: str = "t") -> Json:
    return {"provider": {"calls": [{"id": ident, "tool": tool, "args": {"x": 1}} for ident in ids]}}


def result(ident: str, ok: bool) -> Any:
    """A result message of this call, whatever its text: the wording of errors is the runtime's."""

    class Result:
        def __eq__(self, other: object) -> bool:
            body = other.get("result", {}) if isinstance(other, dict) else {}
            return bool(body) and (body["id"], body["ok"]) == (ident, ok)

        def __repr__(self) -> str:
            return f"result({ident}, ok={ok})"

    return Result()


def test_hello_names_the_installed_version(driver: ConnectedDriver) -> None:
    hello = driver.hello()
    assert (hello.name, hello.time, hello.deterministic) == ("pydantic-ai", "virtual", True)
    assert hello.profiles == ("common",)
    assert hello.supports("provider.delta") and hello.supports("config.max_steps")
    assert not hello.supports("snapshot") and not hello.supports("config.tools.mode=async")


def test_text_run(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"start": "hi"}, {"provider": {"delta": "he"}})
    assert play.waiting == ["model"] and play.facts["busy"] and play.facts["history"] == []
    play.do({"provider": {"return": {"text": "hello"}}}, {"outcome": {}})
    assert [delta["text"] for delta in play.all("AssistantTextDelta")] == ["he", "llo"]
    assert play.reply("outcome1") == {"ok": {"text": "hello", "stop": "EndTurn"}}
    assert play.names()[-3:] == ["Completed", "EventsClosed", "Reply"]
    assert play.waiting == [] and not play.facts["busy"]
    assert play.facts["history"] == [{"user": "hi"}, {"assistant": {"text": "hello", "calls": []}}]


def test_two_calls_run_together_and_answer_in_model_order(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A", "B"))
    assert sorted(play.waiting) == ["tool:A", "tool:B"]
    play.do({"tool": {"id": "B", "return": "b"}}, {"tool": {"id": "A", "return": "a"}})
    assert [finish["call_id"] for finish in play.all("ToolFinished")] == ["B", "A"]
    assert play.request(2)[2:] == [
        {"result": {"id": "A", "ok": True, "text": "a"}},
        {"result": {"id": "B", "ok": True, "text": "b"}},
    ]


def test_one_tool_at_a_time_is_the_default_of_the_format(driver: ConnectedDriver) -> None:
    play = Play(driver, {"tools": {"t": {}}}).do({"start": "hi"}, calls("A", "B"))
    assert play.waiting == ["tool:A"]
    assert play.do({"tool": {"id": "A", "return": "a"}}).waiting == ["tool:B"]


def test_cancel_during_a_tool(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A", "B"), {"tool": {"id": "B", "return": "b"}})
    play.do({"cancel": {}}, {"outcome": {}})
    (told,) = play.all("Abandoned")
    assert (told["upcall"], told["call_id"], told["how"]) == ("ToolExecute", "A", "dropped")
    assert play.reply("outcome1") == {"error": "Cancelled"}
    assert len(play.all("Cancelled")) == 1 and not play.all("Completed")
    play.do({"start": "again"})
    assert play.request(2)[2:] == [result("A", False), result("B", True), {"user": "again"}]


def test_cancel_during_the_stream_marks_the_response_as_cut_off(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, {"provider": {"delta": "par"}})
    play.do({"provider": {"call_delta": {"index": 0, "id": "A", "name": "t", "arguments": "{}"}}}, {"cancel": {}})
    assert [told["upcall"] for told in play.all("Abandoned")] == ["ModelCall"]
    assert play.facts["history"] == [{"user": "hi"}, {"aborted": {"text": "par", "calls": ["A"]}}]
    assert not play.all("ToolExecute")
    play.do({"start": "again"})
    assert play.request(2)[2:] == [result("A", False), {"user": "again"}]


def test_first_unknown_tool_is_answered_and_the_second_ends_the_run(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A", tool="nobody"))
    assert play.waiting == ["model"] and play.request(2)[2:] == [result("A", False)]
    assert play.all("ToolFinished")[0]["result"] == "unavailable"
    play.do(calls("B", tool="nobody"), {"outcome": {}})
    assert play.reply("outcome1")["error"] == "UnexpectedModelBehavior"
    assert not play.all("ToolExecute")


def test_failing_tool_leaves_its_sibling_alone(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A", "B"), {"tool": {"id": "A", "fail": "no"}})
    assert play.waiting == ["tool:B"]
    play.do({"tool": {"id": "B", "return": "b"}})
    assert play.request(2)[2:] == [result("A", False), result("B", True)]


def test_unexpected_exception_of_a_tool_ends_the_run_and_its_sibling(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A", "B"), {"tool": {"id": "A", "panic": True}})
    assert [told["call_id"] for told in play.all("Abandoned")] == ["B"]
    play.do({"outcome": {}})
    assert play.reply("outcome1")["error"] == "ScriptedPanic"


def test_tool_that_ignores_the_cancel_holds_the_run(driver: ConnectedDriver) -> None:
    play = Play(driver, {"tools": {"t": {"on_cancel": "ignore"}}}).do({"start": "hi"}, calls("A"), {"cancel": {}})
    assert play.all("Abandoned")[0]["how"] == "token" and play.waiting == ["tool:A"] and play.facts["busy"]
    play.do({"tool": {"id": "A", "return": "late"}}, {"outcome": {}})
    assert play.reply("outcome1") == {"error": "Cancelled"}
    assert len(play.all("ModelCall")) == 1


def test_second_run_continues_the_session(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"start": "one"}, {"provider": {"text": "a"}}, {"start": "two"})
    assert play.request(2) == [{"user": "one"}, {"assistant": {"text": "a", "calls": []}}, {"user": "two"}]
    play.do({"cancel": {"run": "r1"}})
    assert play.waiting == ["model"] and not play.all("Abandoned")


def test_two_runs_at_once_conflict_when_the_later_one_is_saved(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"start": "one"}, {"start": "two"})
    play.do({"provider": {"text": "b", "run": "r2"}}, {"provider": {"text": "a", "run": "r1"}})
    play.do({"outcome": {"run": "r1"}}, {"outcome": {"run": "r2"}})
    assert play.reply("outcome1")["error"] == "ConversationConflict"
    assert "ok" in play.reply("outcome2")
    assert play.facts["history"] == [{"user": "two"}, {"assistant": {"text": "b", "calls": []}}]


@pytest.mark.parametrize("leave", ["close_reader", "drop"])
def test_leaving_the_stream_stops_the_tools(driver: ConnectedDriver, leave: str) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A", "B"), {leave: {}})
    assert [told["call_id"] for told in play.all("Abandoned")] == ["A", "B"]
    assert play.waiting == [] and not play.facts["busy"] and not play.all("EventsClosed")
    kept = [] if leave == "drop" else [{"user": "hi"}, {"assistant": {"text": "", "calls": ["A", "B"]}}]
    assert play.facts["history"] == kept


def test_held_reader_holds_the_model_after_one_event(driver: ConnectedDriver) -> None:
    play = Play(driver, {"reader": "held"}).do({"start": "hi"})
    play.do(*({"provider": {"delta": f"{number}"}} for number in range(5)))
    assert len(play.all("Taken")) == 1 and play.waiting == ["reader"] and not play.all("AssistantTextDelta")
    play.do({"read": 2})
    assert [delta["text"] for delta in play.all("AssistantTextDelta")] == ["0", "1"]
    play.do({"read": "all"})
    assert [delta["text"] for delta in play.all("AssistantTextDelta")] == ["0", "1", "2", "3", "4"]
    assert play.waiting == ["model"]


def test_outcome_drains_a_held_reader(driver: ConnectedDriver) -> None:
    play = Play(driver, {"reader": "held"}).do({"start": "hi"}, {"provider": {"text": "a"}}, {"outcome": {}})
    assert play.reply("outcome1") == {"ok": {"text": "a", "stop": "EndTurn"}}
    assert not play.all("AssistantTextDelta")


def test_steer_and_retract(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A"))
    play.do({"steer": {"text": "left", "as": "w1"}}, {"steer": {"text": "no", "as": "w2"}})
    play.do({"retract": {"ref": "w2"}}, {"tool": {"id": "A", "return": "a"}}, {"retract": {"ref": "w1"}})
    assert play.request(2)[2:] == [result("A", True), {"user": "left"}]
    assert play.all("SteeringApplied")[0]["ids"] == ["w1"]
    assert (play.reply("retract1"), play.reply("retract2")) == ({"ok": "Retracted"}, {"ok": "AlreadyApplied"})
    play.do({"provider": {"text": "end"}}, {"steer": {"text": "late", "as": "w3"}})
    assert play.reply("w3")["error"] == "UserError"


def test_step_limit_is_an_error_with_a_whole_history(driver: ConnectedDriver) -> None:
    play = Play(driver, {**TWO_TOOLS, "max_steps": 1}).do({"start": "hi"}, calls("A"))
    play.do({"tool": {"id": "A", "return": "a"}}, {"outcome": {}})
    assert play.reply("outcome1")["error"] == "UsageLimitExceeded"
    assert play.facts["history"][-1] == {"result": {"id": "A", "ok": True, "text": "a"}}


def test_provider_failure_is_not_retried(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"start": "hi"}, {"provider": {"delta": "par"}})
    play.do({"provider": {"fail": {"kind": "Unavailable", "retryable": True}}}, {"advance": "5m"}, {"outcome": {}})
    error = play.reply("outcome1")
    assert (error["error"], error["kind"]) == ("Provider", "Unavailable")
    assert len(play.all("ModelCall")) == 1 and play.seen[-1]["at_ms"] == 300_000


def test_cancel_in_the_same_breath_as_the_start(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"start": "one"}, {"provider": {"text": "a"}})
    play.race({"start": "two"}, {"cancel": {}}).do({"outcome": {}})
    assert play.reply("outcome1") == {"error": "Cancelled"} and len(play.all("ModelCall")) == 1
    assert len(play.facts["history"]) == 2


def test_drop_in_the_same_breath_as_the_start(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).race({"start": "one"}, {"drop": {}})
    assert not play.facts["busy"] and play.waiting == [] and not play.all("ModelCall")


def test_what_the_double_cannot_say_is_refused(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"start": "hi"}, {"provider": {"usage": {"input_tokens": 1}}})
    play.do({"provider": {"delta": "abc"}}, {"provider": {"return": {"text": "xyz"}}}, {"snapshot": {}})
    assert [refused["feature"] for refused in play.all("Refused")] == [
        "provider.usage",
        "provider.return=other-than-streamed",
        "snapshot",
    ]
    assert play.waiting == ["model"]


def test_items_for_a_call_that_never_opened(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"tool": {"id": "A", "return": "a"}}, {"provider": {"text": "x"}})
    assert play.names() == ["NotOpen", "NotOpen"]


def test_late_items_change_nothing(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"}, calls("A"), {"tool": {"id": "A", "return": "a"}})
    before = len(play.seen)
    play.do({"tool": {"id": "A", "return": "b"}})
    assert len(play.seen) == before


def test_refused_configuration(driver: ConnectedDriver) -> None:
    assert driver.open({"max_steps": 0}) == "InvalidConfiguration"


SCRIPT: list[list[Json]] = [
    [{"start": "hi"}],
    [calls("A", "B", "C")],
    [
        {"tool": {"id": "C", "return": "c"}},
        {"tool": {"id": "B", "fail": "b"}},
        {"tool": {"id": "A", "return": "a"}},
    ],
    [{"provider": {"delta": "x"}}, {"steer": {"text": "s", "as": "w"}}],
    [{"cancel": {}}],
    [{"start": "again"}, {"advance": "1s"}],
    [{"provider": {"text": "end"}}, {"outcome": {}}],
]


def test_the_same_script_gives_the_same_trace() -> None:
    def trace() -> list[Json]:
        with connect(factory()) as fresh:
            play = Play(fresh, TWO_TOOLS)
            return [play.race(*stimuli).answer for stimuli in SCRIPT]

    first = trace()
    assert first[2]["waiting_on"] == ["model"]
    assert [trace() for _ in range(3)] == [first] * 3


def test_worlds_are_separate(driver: ConnectedDriver) -> None:
    Play(driver, {}).do({"start": "hi"}, {"provider": {"text": "a"}})
    play = Play(driver, {"sessions": ["s1", "s2"]}).do({"start": {"text": "x", "session": "s2"}})
    assert play.request(1) == [{"user": "x"}]
    assert play.facts["sessions"]["s2"]["busy"] and not play.facts["busy"]


def test_the_name_is_a_target() -> None:
    assert resolve("pydantic-ai") is factory


def test_missing_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(UsageError, match=r"rho-core\[pydantic-ai\]"):
        factory()


def test_the_shorthand_is_taken_item_by_item(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"})
    play.do({"provider": {"reasoning": "hm", "text": ["he", "llo"], "calls": [{"id": "A", "tool": "t"}]}})
    assert [taken["item"] for taken in play.all("Taken")] == [
        {"reasoning": "hm"},
        {"delta": "he"},
        {"delta": "llo"},
        {"call_delta": {"index": 0, "id": "A", "name": "t", "arguments": "{}"}},
        {"return": {"text": "hello", "calls": [{"id": "A", "tool": "t"}]}},
    ]
    assert play.waiting == ["tool:A"]


def test_a_return_brings_the_calls_that_were_not_streamed(driver: ConnectedDriver) -> None:
    play = Play(driver, TWO_TOOLS).do({"start": "hi"})
    play.do({"provider": {"delta": "ok"}})
    play.do(
        {"provider": {"return": {"text": "ok, both", "calls": [{"id": "A", "tool": "t"}, {"id": "B", "tool": "u"}]}}}
    )
    assert sorted(play.waiting) == ["tool:A", "tool:B"]
    assert "".join(delta["text"] for delta in play.all("AssistantTextDelta")) == "ok, both"


def test_the_end_of_a_world_adds_nothing_to_its_last_answer(driver: ConnectedDriver) -> None:
    play = Play(driver, {}).do({"start": "hi"}, {"outcome": {}})
    seen = list(play.answer["observations"])
    assert driver.open({}) is None
    assert play.answer["observations"] == seen == []


def test_a_second_run_of_a_session_does_not_end_the_first() -> None:
    from rho_conformance.generate.script import Script, play
    from rho_conformance.judge.exhibit import examine_trace

    steps: list[Json] = [
        {"start": "one"},
        {"start": "two"},
        {"drop": {"run": "r2"}},
        {"provider": {"text": "done", "run": "r1"}},
    ]
    trace = play(factory, Script({}, tuple((step,) for step in steps), "common"))
    exhibit = examine_trace("two runs", trace)
    # The first waits on while the second is let go: that is no work of the run that was dropped.
    assert "CP13" not in exhibit.broken and "CP12" not in exhibit.broken
    assert exhibit.findings["CP13"].opportunities == 1
