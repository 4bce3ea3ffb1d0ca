"""The monitors of RHO-STEER, RHO-HOST and RHO-COORD on hand-made traces."""

from __future__ import annotations

import pytest

from rho_conformance.monitors import judge
from tests.conformance.monitorcases import Case, check_conforming, check_violating
from tests.conformance.tracebuilder import Sim

A, B = {"id": "A", "tool": "t"}, {"id": "B", "tool": "t"}


def steered() -> Sim:
    """Two steers during the stream; the end-turn answer is not the last."""
    sim = Sim()
    sim.start()
    sim.give(delta="x")
    sim.steer("first thing", "s_one")
    sim.steer("second thing", "s_two")
    sim.ret("x")
    sim.ret("y")
    sim.outcome()
    return sim


def in_batch() -> Sim:
    """A steer while two tools run."""
    sim = Sim()
    sim.start()
    sim.ret("a", [A, B])
    sim.steer("first thing", "s_one")
    sim.tool("B", **{"return": "b"})
    sim.tool("A", **{"return": "a"})
    sim.ret("end")
    sim.outcome()
    return sim


def steer_then_cancel() -> Sim:
    """A steer that never reaches a boundary."""
    sim = Sim()
    sim.start()
    sim.give(delta="x")
    sim.steer("first thing", "s_one")
    sim.cancel()
    sim.outcome()
    return sim


def retracted() -> Sim:
    """A staged steer is pulled back, then pulled back again."""
    sim = Sim()
    sim.start()
    sim.give(delta="x")
    sim.steer("first thing", "s_one")
    sim.retract("s_one")
    sim.retract("s_one", "NotFound")
    sim.ret("x")
    sim.outcome()
    return sim


def claimed() -> Sim:
    """A provider claims and delivers; the host is too late."""
    sim = Sim(provider={"steerable": True})
    sim.start()
    sim.give(delta="x")
    sim.steer("first thing", "s_one")
    sim.claim("claim", "s_one")
    sim.claim("deliver", "s_one")
    sim.retract("s_one", "AlreadyApplied")
    sim.ret("x")
    sim.ret("y")
    sim.outcome()
    return sim


def late_steer() -> Sim:
    """A steer to a run that is over is refused."""
    sim = steered()
    sim.steer("too late", "s_late", {"error": "InvalidHostResponse"})
    return sim


def without(text: str, name: str = "ModelCall", nth: int = 1) -> object:
    """A spoiler that takes a user message out of a request."""

    def spoil(sim: Sim) -> None:
        record, place = sim.find(name, nth)
        data = record.observations[place][name]
        data["messages"] = [m for m in data["messages"] if m.get("user") != text]

    return spoil


def kept_in_history(text: str) -> object:
    """A spoiler that leaves a user message in the history of the last steps."""

    def spoil(sim: Sim) -> None:
        for step in (-2, -1):
            history = sim.trace.steps[step].facts["history"]
            sim.facts(step, history=[*history, {"user": text}])

    return spoil


def unanswered_steer(sim: Sim) -> None:
    """The acceptance comes one step later."""
    record, place = sim.find("Reply", name="s_one")
    reply = record.observations.pop(place)
    sim.trace.steps[-2].observations.insert(0, reply)
    sim.renumber()


def between(sim: Sim) -> None:
    """The steer stands between two results."""
    record, place = sim.find("ModelCall", 1)
    messages = record.observations[place]["ModelCall"]["messages"]
    messages.insert(-2, messages.pop())


STEER = [
    Case("RHO-STEER-1", steered, unanswered_steer),
    Case("RHO-STEER-1", late_steer, lambda s: s.edit("Reply", {"name": "s_late"}, value="ok"), "over"),
    Case("RHO-STEER-2", steered, without("first thing")),  # type: ignore[arg-type]
    Case("RHO-STEER-2", steered, lambda s: s.edit("SteeringApplied", ids=["s_two", "s_one"]), "order"),
    Case("RHO-STEER-3", steer_then_cancel, kept_in_history("first thing")),  # type: ignore[arg-type]
    Case("RHO-STEER-3", steer_then_cancel, lambda s: s.facts(2, history=[{"user": "first thing"}]), "at once"),
    Case("RHO-STEER-4", retracted, lambda s: s.edit("Reply", {"name": "retract1"}, value={"ok": "NotFound"})),
    Case("RHO-STEER-5", retracted, lambda s: s.edit("Reply", {"name": "retract1"}, value={"ok": "AlreadyApplied"})),
    Case("RHO-STEER-5", retracted, kept_in_history("first thing"), "kept"),  # type: ignore[arg-type]
    Case("RHO-STEER-6", retracted, lambda s: s.add("ModelCallCompleted", "SteeringApplied", ids=["s_one"])),
    Case("RHO-STEER-7", claimed, lambda s: s.edit("SteerClaim", granted=False)),
    Case("RHO-STEER-8", claimed, lambda s: s.add("SteeringDelivered", "SteeringDelivered", id="s_one")),
    Case("RHO-STEER-9", claimed, lambda s: s.drop("SteeringApplied")),
    Case("RHO-STEER-10", steered, lambda s: s.add("AssistantTextDelta", "SteeringDelivered", id="s_one")),
    Case("RHO-STEER-11", claimed, lambda s: s.edit("Reply", {"name": "retract1"}, value={"ok": "Retracted"})),
]


def asked() -> Sim:
    """Two questions, one bad answer, both answered in reverse order."""
    sim = Sim()
    sim.start()
    sim.ret("a", [A, B])
    sim.tool("A", ask="q_one")
    sim.tool("B", ask="q_two")
    sim.respond("q_two", "B", {"q": ["maybe"]}, {"error": "InvalidHostResponse"})
    sim.respond("q_two", "B")
    sim.respond("q_two", "B", None, {"error": "InvalidHostResponse"})
    sim.respond("q_one", "A")
    sim.tool("A", **{"return": "a"})
    sim.tool("B", **{"return": "b"})
    sim.ret("end")
    sim.outcome()
    return sim


def reused() -> Sim:
    """The same question again in the same batch: the run fails."""
    sim = Sim()
    run = sim.start()
    sim.ret("a", [A, B])
    sim.tool("A", ask="q_one")
    sim.do({"tool": {"id": "B", "ask": "q_one"}})
    sim.taken(run, {"ask": "q_one"}, "B")
    error = {"error": "InvalidHostResponse", "retryable": False, "message": "reused"}
    sim.end(run, "Failed", error)
    sim.note()
    sim.outcome()
    return sim


HOST = [
    Case("RHO-HOST-1", asked, lambda s: s.facts(2, state="Running")),
    Case("RHO-HOST-2", asked, lambda s: s.add("ToolHostInputRequested", "HostInputRequested", request={})),
    Case("RHO-HOST-3", asked, lambda s: s.edit("Reply", {"name": "respond1"}, value="ok")),
    Case("RHO-HOST-3", asked, lambda s: s.edit("HostAnswer", answers={"q": ["no"]}), "other answer"),
    Case("RHO-HOST-3", asked, lambda s: s.add("HostAnswer", "HostAnswer", 0, call_id="B", ask="q_two"), "twice"),
    Case("RHO-HOST-4", asked, lambda s: s.facts(7, state="WaitingForHostInput")),
    Case("RHO-HOST-5", asked, lambda s: s.edit("Reply", {"name": "respond3"}, value={"error": "Cancelled"})),
    Case("RHO-COORD-1", in_batch, unanswered_steer),
    Case("RHO-COORD-2", asked, lambda s: s.drop("ToolHostInputRequested", ask="q_one")),
    Case(
        "RHO-COORD-3",
        reused,
        lambda s: s.add("ToolHostInputRequested", "ToolHostInputRequested", call_id="B", ask="q_one"),
    ),
    Case("RHO-COORD-3", reused, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"error": "Provider"}), "error"),
    Case("RHO-COORD-4", asked, lambda s: s.facts(5, state="Running")),
    Case("RHO-COORD-5", in_batch, between),
    Case("RHO-COORD-5", in_batch, lambda s: s.move("SteeringApplied", "ToolFinished"), "event"),
]


@pytest.mark.parametrize("case", STEER + HOST, ids=str)
def test_conforming(case: Case) -> None:
    check_conforming(case)


@pytest.mark.parametrize("case", STEER + HOST, ids=str)
def test_violating(case: Case) -> None:
    check_violating(case)


def test_a_second_retracted_is_a_variant() -> None:
    sim = retracted().edit("Reply", {"name": "retract2"}, value={"ok": "Retracted"})
    found = judge(sim.done(), ["RHO-STEER-6"])["RHO-STEER-6"]
    assert (found.violations, found.variants) == ([], {"D27:Retracted"})


def test_a_command_pending_behind_a_full_channel_is_no_violation() -> None:
    sim = steered()
    sim.trace.steps[2].waiting_on.append("reader")
    unanswered_steer(sim)
    assert not judge(sim.done(), ["RHO-STEER-1"])["RHO-STEER-1"].violations
