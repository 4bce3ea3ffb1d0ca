"""The driver of the core, played by hand: what each stimulus does and what is observed of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import rho_core.runtime
import rho_core.session
from rho_conformance.driver import ConnectedDriver, DriverError, connect
from rho_conformance.drivers.core import CoreDriver
from rho_core import effects as fx
from rho_core import events as ev
from rho_core.step import Step

Json = dict[str, Any]


class Play:
    """An open world; `do` performs each stimulus by itself and gives the observations of the last one."""

    def __init__(self, **config: Any) -> None:
        self.core = CoreDriver()
        self.driver: ConnectedDriver = connect(self.core)
        self.opened = self.driver.open(config)
        self.answer: Json = {}
        self.everything: list[tuple[str, Json]] = []

    def do(self, *stimuli: Json) -> list[tuple[str, Json]]:
        for stimulus in stimuli:
            self.race(stimulus)
        return self.seen

    def race(self, *stimuli: Json) -> list[tuple[str, Json]]:
        self.answer = self.driver.perform(list(stimuli))
        self.seen = [_split(o) for o in self.answer["observations"]]
        self.everything += self.seen
        return self.seen

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.seen]

    @property
    def waits(self) -> list[str]:
        found: list[str] = self.answer["waiting_on"]
        return found

    def fact(self, name: str) -> Any:
        return self.answer["facts"][name]

    def of(self, name: str) -> list[Json]:
        """Fields of the observations of that name, of the whole play."""
        return [fields for n, fields in self.everything if n == name]

    def order(self, *names: str) -> list[str]:
        """Those of these names that were observed, in their order."""
        return [n for n, _ in self.everything if n in names]

    def replies(self) -> dict[str, Any]:
        return {f["name"]: f["value"] for f in self.of("Reply")}


def _split(observation: Json) -> tuple[str, Json]:
    name = next(k for k in observation if k not in ("seq", "step", "at_ms"))
    return name, {"at_ms": observation["at_ms"], **observation[name]}


def calls(*given: str, tool: str = "t", **more: Any) -> Json:
    return {"provider": {"calls": [{"id": c, "tool": tool, **more} for c in given]}}


def test_hello() -> None:
    hello = connect(CoreDriver()).hello()
    assert (hello.name, hello.profiles, hello.capabilities) == ("core", ("rho", "common"), ("*",))
    assert hello.exact


def test_a_plain_run() -> None:
    play = Play()
    play.do({"start": "hello"})
    assert play.names == ["Reply", "ModelCall", "Started", "StepStarted"]
    assert play.waits == ["model"]
    play.do({"provider": {"text": "hi", "usage": {"output_tokens": 2}}}, {"outcome": {}})
    assert play.replies()["outcome1"]["ok"] == {
        "text": "hi",
        "stop": "EndTurn",
        "usage": {"output_tokens": 2},
        "revision": 1,
        "unapplied_steering": [],
    }
    assert [f["item"] for f in play.of("Taken")] == [
        {"delta": "hi"},
        {"usage": {"output_tokens": 2}},
        {"return": {"text": "hi"}},
    ]
    assert len(play.of("EventsClosed")) == 1
    assert (play.fact("state"), play.fact("busy"), play.fact("revision")) == ("Completed", False, 1)
    assert play.fact("history") == [{"user": "hello"}, {"assistant": {"text": "hi", "calls": []}}]
    assert play.waits == []


def test_start_like_steps_take_run_names_even_when_refused() -> None:
    play = Play()
    play.do({"start": "a"}, {"start": "b"}, {"provider": {"text": "x"}}, {"start": {"text": "c", "as": "third"}})
    assert play.replies()["r2"]["error"] == "SessionBusy"
    assert play.replies()["third"] == "ok"
    assert [f["run_id"] for f in play.of("Started")] == ["r1", "r3"]
    play.do({"cancel": {"run": "r2"}}, {"outcome": {"run": "r2"}})
    assert play.replies()["cancel1"] == "ok"
    assert "outcome1" not in play.replies()
    assert play.waits == ["model"], "a refused run has no handle, so nothing was cancelled"


def test_a_batch_of_tools_and_their_phases() -> None:
    gated = {"prepare": "gated", "authorize": "gated"}
    play = Play(tools={"t": {}, "g": gated}, max_parallel_tools=2)
    both = [{"id": "A", "tool": "g"}, {"id": "B", "tool": "t"}, {"id": "C", "tool": "nope"}]
    play.do({"start": "x"}, {"provider": {"calls": both}})
    assert play.waits == ["tool:A"]
    play.do({"tool": {"id": "A", "prepared": True}})
    assert [f["call_id"] for f in play.of("ToolAuthorize")] == ["A"]
    play.do({"tool": {"id": "A", "authorize": "deny"}})
    assert play.of("ToolFinished")[-1]["kind"] == "PolicyDenied"
    assert [f["call_id"] for f in play.of("ToolExecute")] == ["B"]
    play.do({"tool": {"id": "B", "progress": "half"}}, {"tool": {"id": "B", "return": "b"}})
    assert play.of("ToolUpdated")[0]["progress"] == "half"
    results = {f["call_id"]: f["result"] for f in play.of("ToolFinished")}
    assert results == {"A": "failed", "B": "ok", "C": "unavailable"}
    assert play.of("ModelCall")[1]["messages"][-3:] == [
        {"result": {"id": "A", "ok": False, "text": play.of("ToolFinished")[1]["text"]}},
        {"result": {"id": "B", "ok": True, "text": "b"}},
        {"result": {"id": "C", "ok": False, "text": "tool 'nope' is unavailable"}},
    ]


def test_a_held_reader_with_one_place_holds_everything_back() -> None:
    play = Play(event_capacity=1, reader="held")
    play.do({"start": "x"})
    assert (play.names, play.waits) == (["Reply"], ["reader"])
    play.do({"provider": {"delta": "early"}})
    assert play.names == ["NotOpen"]
    play.do({"read": 2})
    assert play.names == ["Started", "ModelCall", "StepStarted"]
    play.do({"provider": {"text": ["a", "b", "c"]}})
    assert [f["item"] for _, f in play.seen] == [{"delta": "a"}, {"delta": "b"}], "the second send is blocked"
    assert play.waits == ["reader"]
    play.do({"read": 1})
    assert play.names == ["AssistantTextDelta", "Taken"]
    play.do({"read": "all"})
    assert play.names[-2:] == ["Completed", "EventsClosed"]
    assert "".join(f["text"] for f in play.of("AssistantTextDelta")) == "abc"


def test_a_reader_takes_no_more_than_it_asked_for() -> None:
    play = Play(reader="held")
    play.do({"start": "x"}, {"read": 5})
    assert play.names == ["Started", "StepStarted"]
    play.do({"provider": {"text": "x"}})
    assert {"AssistantTextDelta", "Completed"}.isdisjoint(play.names), "what was wanted before is forgotten"
    play.do({"hold_reader": {}}, {"read": 1})
    assert play.names == ["AssistantTextDelta"]


def test_outcome_drains_a_held_reader_and_answers_later() -> None:
    play = Play(event_capacity=1, reader="held")
    play.do({"start": "x"}, {"outcome": {}})
    assert (play.waits, play.replies()) == (["model"], {"r1": "ok"})
    play.do({"provider": {"text": "x"}})
    assert play.replies()["outcome1"]["ok"]["text"] == "x"
    play.do({"read": "all"})
    assert play.names == ["Completed", "EventsClosed"], "drained events are observed by nobody, what is left is"


def test_closing_the_reader_interrupts() -> None:
    play = Play()
    play.do({"start": "x"}, {"close_reader": {}}, {"provider": {"text": "x"}}, {"outcome": {}})
    assert play.replies()["outcome1"]["error"] == "Interrupted"
    assert play.fact("history") == []
    assert play.of("EventsClosed") == []


def test_back_off_fires_exactly_when_it_is_due() -> None:
    play = Play()
    fail = {"provider": {"fail": {"kind": "RateLimit", "retryable": True}}}
    play.do({"start": "x"}, fail, {"advance": "999ms"})
    assert (play.names, play.waits) == ([], ["timer"])
    play.do({"advance": "1ms"}, fail, {"advance": "10m"})
    assert [f["at_ms"] for f in play.of("ModelCall")] == [0, 1000, 3000]
    play.do({"cancel": {}})
    assert play.seen[0][1]["at_ms"] == 601_000


def test_between_other_stimuli_time_only_makes_timers_due() -> None:
    play = Play()
    fail = {"provider": {"fail": {"kind": "RateLimit", "retryable": True}}}
    play.do({"start": "x"}, fail)
    play.race({"advance": "5s"}, {"cancel": {}})
    assert "ModelCall" not in play.names
    assert play.fact("state") == "Idle"


def test_a_question_is_answered_once_and_by_name() -> None:
    play = Play(tools={"t": {}})
    play.do({"start": "x"}, calls("A"), {"tool": {"id": "A", "ask": "Q"}})
    assert play.of("ToolHostInputRequested")[0]["ask"] == "Q"
    assert play.fact("state") == "WaitingForHostInput"
    assert sorted(play.waits) == ["host:Q", "tool:A"]
    play.do({"respond": {"ref": "Q", "answers": {"q": ["maybe"]}}}, {"respond": {"ref": "nobody"}})
    assert play.replies()["respond1"]["error"] == "InvalidHostResponse"
    assert play.replies()["respond2"]["error"] == "InvalidHostResponse"
    play.do({"respond": {"ref": "Q"}}, {"respond": {"ref": "Q"}})
    assert play.replies()["respond3"] == "ok"
    assert play.replies()["respond4"]["error"] == "InvalidHostResponse"
    assert [f["answers"] for f in play.of("HostAnswer")] == [{"q": ["yes"]}]


def test_a_clone_of_a_question_is_refused() -> None:
    play = Play(tools={"t": {}}, max_parallel_tools=2)
    play.do({"start": "x"}, calls("A", "B"), {"tool": {"id": "A", "ask": "Q"}}, {"tool": {"id": "B", "ask": "Q"}})
    assert [(f["call_id"], f["ask"]) for f in play.of("AskRefused")] == [("B", "Q")]
    assert {f["call_id"] for f in play.of("Abandoned")} == {"A", "B"}
    assert play.of("Failed")[0]["retryability"] == "Permanent"


def test_steering_shows_the_names_of_the_script() -> None:
    play = Play()
    steers: list[Json] = [{"steer": {"text": "one"}}, {"steer": {"text": "two", "as": "S"}}]
    play.do({"start": "x"}, *steers, {"retract": {"ref": "steer1"}}, {"retract": {"ref": "ghost"}})
    assert play.replies()["retract1"] == {"ok": "Retracted"}
    assert play.replies()["retract2"] == {"ok": "NotFound"}
    play.do({"provider": {"text": "a"}})
    assert play.of("SteeringApplied")[0]["ids"] == ["S"]
    assert play.of("ModelCall")[1]["messages"][-1] == {"user": "two"}


def test_a_claimed_steer_is_delivered() -> None:
    play = Play(provider={"steerable": True})
    play.do({"start": "x"}, {"steer": {"text": "one", "as": "S"}}, {"provider": {"claim": "S"}})
    play.do({"retract": {"ref": "S"}}, {"provider": {"claim": "ghost"}}, {"provider": {"deliver": "S"}})
    assert [(f["item"], f["id"], f["granted"]) for f in play.of("SteerClaim")] == [
        ("claim", "S", True),
        ("claim", "unknown:ghost", False),
        ("deliver", "S", True),
    ]
    assert play.replies()["retract1"] == {"ok": "AlreadyApplied"}
    assert play.of("SteeringDelivered")[0]["id"] == "S"


def test_cancel_abandons_and_what_comes_then_is_late() -> None:
    play = Play(tools={"t": {}})
    play.do({"start": "x"}, calls("A"), {"cancel": {}})
    assert [(f["upcall"], f["call_id"], f["how"]) for f in play.of("Abandoned")] == [("ToolExecute", "A", "dropped")]
    assert play.fact("tokens") == {"r1": "cancelled"}
    play.do({"tool": {"id": "A", "return": "late"}}, {"provider": {"text": "late"}}, {"cancel": {}})
    assert play.names == ["Reply"]
    assert play.fact("revision") == 1
    assert play.fact("history")[-1]["result"]["ok"] is False


def test_late_items_never_reach_another_run() -> None:
    play = Play()
    play.do({"start": "x"}, {"cancel": {}}, {"start": "y"}, {"cancel": {"run": "r1"}})
    assert play.waits == ["model"], "the handle of the first run cancels nothing any more"
    play.do({"steer": {"text": "s", "run": "r1"}}, {"retract": {"ref": "q", "run": "r1"}})
    assert play.replies()["steer1"]["error"] == "InvalidHostResponse"
    assert play.replies()["retract1"] == {"ok": "NotFound"}


def test_a_token_cancels_the_run_and_dropping_it_does_not() -> None:
    play = Play(tools={"t": {}, "slow": {"mode": "async"}})
    play.do({"start": "x"}, {"provider": {"drop_token": True}})
    assert play.waits == ["model"]
    play.do(calls("J", tool="slow", **{"async": True}), {"tool": {"id": "J", "cancel_token": True}})
    assert sorted(play.waits) == ["model", "tool:J"], "a job has a token of its own"
    play.do({"provider": {"cancel_token": True}}, {"outcome": {}})
    assert play.replies()["outcome1"]["error"] == "Cancelled"


@pytest.mark.parametrize(("on_cancel", "waits"), [("stop", []), ("ignore", ["model"])])
def test_a_cooperative_provider_is_told_and_awaited(on_cancel: str, waits: list[str]) -> None:
    play = Play(provider={"mode": "cooperative", "on_cancel": on_cancel})
    play.do({"start": "x"}, {"provider": {"delta": "a"}}, {"cancel": {}})
    assert [(f["upcall"], f["how"]) for f in play.of("Abandoned")] == [("ModelCall", "token")]
    assert play.waits == waits
    play.do({"provider": {"delta": "b"}}, {"provider": {"return": {"text": "b"}}})
    assert play.fact("busy") is False
    kept = "a" if on_cancel == "stop" else "ab"
    assert play.fact("history")[-1]["aborted"]["text"] == kept


def test_a_job_may_finish_in_its_time() -> None:
    tools = {"slow": {"mode": "async", "on_cancel": {"complete": "5s"}}}
    for answer, ok in (({"tool": {"id": "J", "return": "in time"}}, True), ({"advance": "3s"}, False)):
        play = Play(tools=tools)
        play.do({"start": "x"}, calls("J", tool="slow", **{"async": True}), {"cancel": {}})
        assert play.of("Abandoned")[-1]["how"] == "token"
        play.do({"advance": "1s"}, answer)
        if not ok:
            assert play.waits == ["tool:J", "timer"]
            play.do({"advance": "1s"})
        assert play.fact("history")[-1]["result"]["ok"] is ok


def test_panics() -> None:
    for last in ({"provider": {"panic": True}}, {"tool": {"id": "A", "panic": True}}):
        play = Play(tools={"t": {}})
        play.do({"start": "x"}, *([calls("A")] if "tool" in last else []), last, {"outcome": {}})
        assert play.replies()["outcome1"]["error"] == "Interrupted"
        assert (play.fact("state"), play.fact("history")) == ("Idle", [])


def test_drop_frees_the_session_once_the_work_is_gone() -> None:
    play = Play(tools={"t": {}})
    play.do({"start": "x"}, calls("A"))
    play.race({"drop": {}}, {"start": "at once"})
    assert play.names == ["Abandoned", "Reply", "Reply"]
    assert play.replies()["r2"]["error"] == "SessionBusy"
    assert (play.fact("busy"), play.fact("revision"), play.waits) == (False, 0, [])
    play.do({"outcome": {"run": "r1"}}, {"start": "y"})
    assert play.replies()["r3"] == "ok"
    assert "outcome1" not in play.replies(), "a dropped run has no outcome"


def test_shutdown_answers_first_and_reaches_every_session() -> None:
    play = Play(sessions=["s1", "s2"])
    play.do({"start": "x"}, {"start": {"text": "y", "session": "s2"}}, {"shutdown": {}})
    assert play.names[0] == "Reply"
    assert play.replies()["shutdown1"] == {"ok": {"cancelled_runs": 2}}
    assert {f["run"] for f in play.of("Cancelled")} == {"r1", "r2"}
    play.do({"shutdown": {}}, {"start": "z"}, {"new_session": {}}, {"drop_session": {}}, {"drop_runtime": {}})
    assert play.replies()["shutdown2"] == {"ok": {"cancelled_runs": 0}}
    assert play.replies()["r3"]["error"] == play.replies()["new_session1"]["error"] == "RuntimeShutdown"
    assert play.replies()["drop_session1"] == play.replies()["drop_runtime1"] == "ok"


def test_sessions_do_not_mix() -> None:
    play = Play()
    play.do({"new_session": {"as": "other"}}, {"start": "x"}, {"start": {"text": "y", "session": "other"}})
    assert play.waits == ["model", "model"]
    play.do({"provider": {"text": "for the other", "session": "other"}})
    assert play.waits == ["model"]
    assert play.fact("sessions")["other"]["revision"] == 1
    assert play.fact("sessions")["s1"]["revision"] == play.fact("revision") == 0
    assert {f["session"] for f in play.of("Completed")} == {"other"}


def test_host_mutations() -> None:
    play = Play(system="be brief")
    play.do({"append": {"message": {"user": "a"}}})
    assert play.fact("history") == [{"system": "be brief"}, {"user": "a"}]
    play.do({"replace_history": {"messages": [{"user": "b"}]}})
    assert (play.fact("revision"), play.fact("history")) == (2, [{"user": "b"}])
    play.do({"reset": {}}, {"start": "x"}, {"append": {"message": {"user": "no"}}})
    assert play.replies()["append2"]["error"] == "SessionBusy"
    assert play.fact("history") == [{"system": "be brief"}]
    assert play.of("ModelCall")[0]["messages"] == [{"system": "be brief"}, {"user": "x"}]


def test_a_compaction_by_hand_is_pending_until_it_is_done() -> None:
    play = Play(compaction={"messages": 99}, history=[{"user": "a"}, {"user": "b"}])
    play.do({"compact": {}})
    assert (play.waits, play.of("Compact")[0]["trigger"]) == (["compactor"], "Manual")
    assert play.replies() == {}
    play.do({"compactor": {"return": ["short"]}})
    assert play.replies() == {"compact1": "ok"}
    assert (play.fact("history"), play.fact("revision")) == ([{"user": "short"}], 1)


@pytest.mark.parametrize("compactor", ["external", "cooperative"])
def test_a_compaction_by_hand_is_told_of_a_shutdown_and_goes_on(compactor: str) -> None:
    play = Play(compactor=compactor, history=[{"user": "a"}, {"user": "b"}])
    play.do({"compact": {}}, {"shutdown": {}}, {"shutdown": {}})
    assert [(f["upcall"], f["how"]) for f in play.of("Abandoned")] == [("Compact", "token")]
    assert (play.waits, play.fact("state"), play.fact("busy")) == (["compactor"], "Cancelling", True)
    play.do({"compactor": {"return": ["short"]}})
    assert play.replies()["compact1"] == "ok"
    assert (play.fact("state"), play.fact("revision"), play.waits) == ("Completed", 1, [])


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"fail": {"kind": "Cancelled"}}, "Cancelled"),
        ({"fail": {"kind": "Timeout"}}, "Provider"),
        ({"interrupted": True}, "Interrupted"),
        ({"return": []}, "InvalidHostResponse"),
    ],
)
def test_the_answer_decides_how_a_compaction_by_hand_ends(answer: Json, error: str) -> None:
    play = Play(history=[{"user": "a"}])
    play.do({"compact": {}}, {"shutdown": {}}, {"compactor": answer})
    assert play.replies()["compact1"]["error"] == error
    assert (play.fact("state"), play.fact("revision"), play.fact("busy")) == ("Idle", 0, False)


def test_a_late_compaction_is_announced_before_the_end_and_keeps_its_place_in_a_full_channel() -> None:
    play = Play(compaction={"messages": 1}, compactor="cooperative", event_capacity=1, reader="held")
    play.do({"start": "x"}, {"read": 1}, {"cancel": {}})
    assert (play.waits, play.fact("revision")) == (["compactor"], 0)
    play.do({"compactor": {"return": ["short"]}})
    assert (play.waits, play.fact("revision"), play.fact("state")) == (["reader"], 1, "Cancelling")
    play.do({"read": "all"})
    assert play.order("CompactionStarted", "CompactionCompleted", "Cancelled") == [
        "CompactionStarted",
        "CompactionCompleted",
        "Cancelled",
    ]
    assert (play.fact("revision"), play.fact("history")) == (2, [{"user": "short"}])


# --- the recorder -------------------------------------------------------------------------------------------------


def test_a_gated_recorder_is_waited_for_record_by_record() -> None:
    play = Play(recorder="gated")
    play.do({"start": "x"}, {"provider": {"physical_retry": {"kind": "Timeout"}}})
    assert play.of("Record") == [], "the attempt is not over"
    play.do({"provider": {"return": {}}})
    assert (play.waits, play.order("ModelCallCompleted", "Record", "ProviderStreamReset")) == (
        ["recorder"],
        ["Record", "ModelCallCompleted"],
    )
    play.do({"recorder": "fail"})
    assert (play.waits, [f["outcome"] for f in play.of("Record")]) == (
        ["recorder"],
        [{"Failed": "Timeout"}, "InvalidResponse"],
    )
    assert play.of("ProviderStreamReset") == []
    play.do({"recorder": "ok"})
    assert (play.waits, len(play.of("ProviderStreamReset")), len(play.of("ModelCall"))) == (["model"], 1, 2)
    play.do({"recorder": "ok"}, {"provider": {"text": "fine"}}, {"recorder": "ok"}, {"recorder": "fail"})
    assert (play.fact("state"), [f["attempt"] for f in play.of("Record")]) == ("Completed", [1, 2, 3])


def test_a_recorder_that_was_never_given_anything_cannot_answer() -> None:
    play = Play(recorder="gated")
    play.do({"recorder": "ok"})
    assert [f["stimulus"] for f in play.of("NotOpen")] == ["recorder"]
    with pytest.raises(DriverError, match="expected ok or fail"):
        play.do({"recorder": "perhaps"})


@pytest.mark.parametrize("stop", ["cancel", "drop", "close_reader"])
def test_who_ends_the_run_does_not_wait_for_the_recorder(stop: str) -> None:
    play = Play(recorder="gated", event_capacity=1, tools={"t": {}})
    play.do({"start": "x"}, {"provider": {"calls": [{"id": "A", "tool": "t"}]}})
    assert play.waits == ["recorder"]
    play.do({stop: {}})
    if stop == "close_reader":
        assert play.waits == ["recorder"], "nothing is sent meanwhile"
        play.do({"recorder": "ok"})
    assert (play.waits, play.fact("busy")) == ([], False)
    kept = [{"user": "x"}, {"assistant": {"text": "", "calls": ["A"]}}] if stop == "cancel" else []
    assert play.fact("history")[:2] == kept
    play.do({"recorder": "ok"}, {"start": "y"}, {"recorder": "ok"})
    assert (play.waits, [u for u in play.of("Abandoned") if u["upcall"] == "Record"]) == (["model"], [])


def test_an_answer_for_an_earlier_run_does_not_answer_the_next_one() -> None:
    play = Play(recorder="gated")
    play.do({"start": "x"}, {"provider": {"text": "a"}}, {"cancel": {}}, {"start": "y"}, {"recorder": "ok"})
    play.do({"provider": {"text": "b"}})
    assert (play.waits, len(play.of("Record"))) == (["recorder"], 2)
    play.do({"recorder": "ok"})
    assert play.fact("state") == "Completed"


def test_steers_accepted_while_recording_get_another_step() -> None:
    play = Play(recorder="gated")
    play.do({"start": "x"}, {"provider": {"text": "a"}}, {"steer": "more"}, {"recorder": "ok"})
    assert (play.waits, play.of("ModelCall")[-1]["messages"][-1]) == (["model"], {"user": "more"})


def test_a_request_shows_an_aborted_answer_as_such_and_stands_in_for_its_calls_in_order() -> None:
    past = [{"assistant": {"calls": ["A", "B"]}}, {"result": {"id": "A", "ok": True, "text": "a"}}]
    play = Play(history=[*past, {"aborted": {"text": "half", "calls": ["C"]}}, {"aborted": {"calls": ["D"]}}])
    play.do({"start": "x"})
    shown = play.of("ModelCall")[0]["messages"]
    assert [next(iter(m)) for m in shown] == ["assistant", "result", "result", "aborted", "user"]
    assert [(m["result"]["id"], m["result"]["ok"]) for m in shown[1:3]] == [("A", True), ("B", False)]
    assert (shown[3]["aborted"]["text"], shown[3]["aborted"]["calls"]) == ("half", [])


def test_automatic_compaction_boundary_and_recorder() -> None:
    play = Play(compaction={"messages": 2}, boundary="gated", recorder="auto", history=[{"user": "a"}])
    play.do({"start": "x"})
    assert play.of("Compact")[0]["messages"] == [{"user": "a"}, {"user": "x"}]
    play.do({"compactor": {"return": ["short"]}}, {"boundary": {"input": "news"}})
    assert [f["kind"] for f in play.of("Collect")] == ["before_provider"]
    assert [f["accepted"] for f in play.of("CollectAck")] == [True]
    play.do({"provider": {"fail": {"kind": "Timeout"}}})
    assert [(f["outcome"], f["usage"]) for f in play.of("Record")] == [({"Failed": "Timeout"}, {})]
    assert play.of("CompactionCompleted")[0]["outcome"]["committed_snapshot"]["history"] == [{"user": "short"}]


def test_a_cancelled_collector_is_let_go() -> None:
    play = Play(boundary="gated")
    play.do({"start": "x"}, {"cancel": {}}, {"boundary": {"input": "late"}})
    assert [f["upcall"] for f in play.of("Abandoned")] == ["Collect"]
    assert [f["accepted"] for f in play.of("CollectAck")] == [False]
    assert play.fact("history") == [{"user": "x"}]


def test_snapshot_save_restore_and_crash() -> None:
    play = Play(history=[{"user": "a"}, {"assistant": {"text": "b"}}], revision=7)
    assert play.do({"restore": {"from": "last_save"}})[0][1]["value"]["error"] == "Persistence"
    play.do({"start": "x"}, {"provider": {"text": "y"}}, {"snapshot": {}}, {"save": {}})
    text = play.replies()["snapshot1"]["ok"]
    assert json.loads(text)["revision"] == 8
    play.do({"append": {"message": {"user": "more"}}}, {"save": {"fail": True}}, {"start": "lost"})
    assert play.replies()["save2"]["error"] == "Persistence"
    assert (play.fact("saves"), play.fact("revision")) == (1, 9)
    play.do({"restore": {"from": "last_save"}})
    assert play.replies()["restore2"]["error"] == "SessionBusy"
    play.do({"outcome": {}}, {"crash": {}})
    assert (play.fact("revision"), play.fact("busy"), play.waits) == (8, False, [])
    assert play.fact("history")[-1] == {"assistant": {"text": "y", "calls": []}}
    assert "outcome1" not in play.replies()
    play.do({"provider": {"text": "late"}}, {"start": "z"})
    assert play.of("Started")[-1]["revision"] == 8
    assert play.fact("tokens") == {"r3": "live"}


def test_a_crash_without_a_save_goes_back_to_the_beginning() -> None:
    play = Play(history=[{"user": "a"}], revision="max")
    play.do({"crash": {}})
    assert (play.fact("revision"), play.fact("history")) == (2**64 - 1, [{"user": "a"}])


def test_start_with_a_tool_call() -> None:
    play = Play(tools={"t": {}})
    bad = {"id": "A", "tool": "t", "args": "no json"}
    play.do({"start_tool": {"call": bad}}, {"start_tool": {"call": {"id": "A", "tool": "t", "args": {"n": 1}}}})
    assert play.replies()["r1"]["error"] == "InvalidConfiguration"
    assert play.of("ToolExecute")[0]["arguments"] == {"n": 1}


def test_queries_have_no_effect() -> None:
    play = Play()
    play.do({"start": "x"})
    before = list(play.core.journal)
    for value, wanted in (("state", "Running"), ("active", ["r1"]), ("processes", []), ("pending", 0)):
        play.do({"query": value})
        assert play.seen[0][1]["value"] == {"ok": wanted}
    assert play.core.journal == before


def test_a_refused_configuration_opens_no_world() -> None:
    play = Play(event_capacity=0)
    assert play.opened == "InvalidConfiguration"
    with pytest.raises(DriverError, match="no world is open"):
        play.do({"start": "x"})


@pytest.mark.parametrize(
    "stimulus",
    [{"dance": {}}, {"read": "some"}, {"tool": {"id": "A"}}, {"boundary": 3}, {"cancel": {"run": "r9"}}],
)
def test_what_the_format_does_not_know_is_an_error(stimulus: Json) -> None:
    with pytest.raises(DriverError):
        Play().do(stimulus)


@pytest.mark.parametrize(
    ("stimulus", "feature"),
    [({"worker": {"spawn": "w"}}, "worker"), ({"start": {"text": "x", "token": "t"}}, "start.token")],
)
def test_orca_features_are_refused(stimulus: Json, feature: str) -> None:
    assert Play().do(stimulus)[0][1]["feature"] == feature


# --- hooks: patches and journal ---------------------------------------------------------------------------


def test_every_method_runs_inside_the_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    original = rho_core.session.step

    def doubled(session: Any, value: Any) -> Step[Any]:
        step = original(session, value)
        again = tuple(e for e in step.effects if isinstance(e, fx.Reply))
        return Step(step.state, (*step.effects, *again))

    @contextmanager
    def patches() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(rho_core.session, "step", doubled)
            yield

    driver = connect(CoreDriver(patches, name="doubled"))
    driver.open({})
    seen = driver.perform([{"start": "x"}])["observations"]
    assert sum("Reply" in o for o in seen) == 2, "a wrong core is shown as it is"
    assert rho_core.session.step is original


def test_a_refused_command_is_offered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    original = rho_core.session.step

    def patient(session: Any, value: Any) -> Step[Any]:
        late = value.kind == "steer" and session.run is not None and session.run.blocked is not None
        return Step(session, (fx.NotReady(value),)) if late else original(session, value)

    monkeypatch.setattr(rho_core.session, "step", patient)
    play = Play(event_capacity=1, reader="held")
    play.do({"start": "x"}, {"steer": {"text": "s"}})
    assert "steer1" not in play.replies()
    play.do({"read": 2})
    assert play.replies()["steer1"] == "ok"


def test_a_core_that_feeds_itself_comes_to_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    from rho_conformance.drivers.corework import world

    original = rho_core.session.step

    def endless(session: Any, value: Any) -> Step[Any]:
        step = original(session, value)
        if value.kind != "taken":
            return step
        return Step(step.state, (*step.effects, fx.Deliver(ev.WebSearch("x"))))

    monkeypatch.setattr(world, "MOST_INPUTS", 500)
    monkeypatch.setattr(rho_core.session, "step", endless)
    play = Play()
    play.do({"start": "x"})
    assert (play.fact("busy"), play.waits) == (True, []), "busy and waiting for nothing: the runner sees a deadlock"


SCRIPT: list[Json] = [
    {"start": "x"},
    {"steer": {"text": "s"}},
    calls("A", "B", tool="t"),
    {"tool": {"id": "A", "ask": "Q"}},
    {"read": 3},
    {"respond": {"ref": "Q"}},
    {"tool": {"id": "B", "return": "b"}},
    {"tool": {"id": "A", "return": "a"}},
    {"read": "all"},
    {"provider": {"fail": {"kind": "RateLimit", "retryable": True}}},
    {"advance": "1s"},
    {"provider": {"text": "done"}},
    {"save": {}},
    {"start": "y"},
    {"crash": {}},
    {"start": "z"},
    {"shutdown": {}},
]


def test_the_journal_replays_to_the_same_state() -> None:
    play = Play(tools={"t": {}}, max_parallel_tools=2, event_capacity=1, reader="held")
    play.do(*SCRIPT)
    states: dict[str, Any] = {}
    runtime = rho_core.runtime.Runtime()
    for who, value in play.core.journal:
        if who is None:
            runtime = rho_core.runtime.step(runtime, value).state
        elif isinstance(value, rho_core.session.Session):
            states[who] = value
        else:
            states[who] = rho_core.session.step(states[who], value).state
    world = play.core._world
    assert world is not None
    assert states == {"s1": world.ports["s1"].session}
    assert runtime.shut


def test_the_same_script_gives_the_same_bytes() -> None:
    def once() -> str:
        play = Play(tools={"t": {}}, max_parallel_tools=2, event_capacity=1, reader="held")
        return json.dumps([play.driver.perform([s]) for s in SCRIPT])

    assert once() == once()


STEPS_ON: dict[str, Json] = {
    "model": {"provider": {"text": "on"}},
    "tool:A": {"tool": {"id": "A", "return": "a"}},
    "tool:B": {"tool": {"id": "B", "return": "b"}},
    "timer": {"advance": "10s"},
    "reader": {"read": 2},
    "compactor": {"compactor": {"return": ["c"]}},
    "collector": {"boundary": "none"},
    "host:Q": {"respond": {"ref": "Q"}},
}


def test_no_order_of_stimuli_breaks_the_driver() -> None:
    """Any stimulus at any time: answers that the checker takes, never a busy world that waits for nothing."""
    alphabet: list[Json] = [
        *SCRIPT,
        {"cancel": {}},
        {"drop": {}},
        {"outcome": {}},
        {"close_reader": {}},
        {"retract": {"ref": "steer1"}},
        {"provider": {"panic": True}},
        {"provider": {"return": {}}},
        {"provider": {"fail": {"kind": "Other"}}},
        {"provider": {"delta": "d"}},
        {"tool": {"id": "A", "cancel_token": True}},
        {"tool": {"id": "B", "panic": True}},
        {"compact": {}},
        {"compactor": {"return": ["c"]}},
        {"boundary": "none"},
        {"boundary": "gone"},
        {"hold_reader": {}},
        {"restore": {"from": "last_save"}},
        calls("A", tool="slow", **{"async": True}),
    ]
    kinds: set[str] = set()
    for seed in range(60):
        choose = random.Random(seed)
        play = Play(
            tools={"t": {}, "slow": {"mode": "async"}},
            event_capacity=choose.choice([1, 64]),
            reader=choose.choice(["held", "eager"]),
            compaction={"messages": 4},
            **({"boundary": "gated"} if seed % 3 == 0 else {}),
        )
        for _ in range(40):
            wanted = [STEPS_ON[w] for w in play.answer.get("waiting_on", []) if w in STEPS_ON]
            stimuli = wanted if choose.random() < 0.7 else alphabet
            play.race(*choose.choices(stimuli or [{"start": "again"}], k=choose.choice([1, 1, 1, 2])))
            assert not play.fact("busy") or play.waits, (seed, play.everything[-5:])
        kinds |= {name for name, _ in play.everything}
    assert {"Completed", "Cancelled", "Failed", "ToolDetached", "Compact", "Collect", "Abandoned"} <= kinds
