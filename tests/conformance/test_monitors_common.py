"""The monitors of the common rules CP1 to CP16 on hand-made traces."""

from __future__ import annotations

from typing import Any

import pytest

from rho_conformance.monitors import judge, rules_of
from tests.conformance.monitorcases import Case, check_conforming, check_violating
from tests.conformance.tracebuilder import Sim

A, B, C = ({"id": name, "tool": "t"} for name in "ABC")


def common(**config: Any) -> Sim:
    """A world of the common profile."""
    return Sim("common", **config)


def cancelled_batch() -> Sim:
    """Cancelled with one call done and one open; the conversation goes on."""
    sim = common()
    sim.start()
    sim.ret("a", [A, B])
    sim.tool("A", **{"return": "a"})
    sim.cancel()
    sim.outcome()
    sim.start("again")
    sim.ret("x")
    sim.outcome()
    return sim


def batch(tool: str = "t", kind: str = "return") -> Sim:
    """Two calls that end in reverse order."""
    sim = common()
    sim.start()
    sim.ret("a", [A, {"id": "B", "tool": tool}])
    if tool == "t":
        sim.tool("B", **{kind: "b"})
    sim.tool("A", **{"return": "a"})
    sim.ret("end")
    sim.outcome()
    return sim


def at_limit() -> Sim:
    """The step limit, and a further run."""
    sim = common(max_steps=1)
    sim.start()
    sim.ret("a", [A])
    sim.tool("A", **{"return": "r"})
    sim.outcome()
    sim.start("again")
    return sim


def broken_stream() -> Sim:
    """A retryable failure after output."""
    sim = common()
    sim.start()
    sim.give(delta="one")
    sim.fail()
    sim.advance(1000)
    sim.give(delta="two")
    sim.ret("two")
    sim.outcome()
    return sim


def in_delay() -> Sim:
    """Cancelled in the back-off."""
    sim = common()
    sim.start()
    sim.fail()
    sim.cancel()
    sim.outcome()
    return sim


def busy() -> Sim:
    """A second start while the first run lives."""
    sim = common()
    run = sim.start()
    sim.runs += 1
    sim.do({"start": "second"}, wait=["model"])
    sim.reply("r2", {"error": "SessionBusy"})
    sim.ret("x")
    del run
    sim.outcome()
    return sim


def dropped() -> Sim:
    """The consumer goes away."""
    sim = common()
    run = sim.start()
    sim.do({"drop": {}})
    sim.reply("drop1", "ok", run)
    sim.sessions["s1"].update(busy=False, state="Idle")
    sim.note()
    return sim


def flood() -> Sim:
    """Capacity 1 and nobody reads."""
    sim = common(event_capacity=1)
    run = sim.start()
    sim.do({"hold_reader": {}}, wait=["model"])
    sim.do({"provider": {"delta": "0"}}, wait=["model", "reader"])
    sim.taken(run, {"delta": "0"})
    return sim


def overrun(sim: Sim) -> None:
    """Thirty items were taken although one event fits."""
    for place in range(30):
        sim.taken(sim.run(), {"web_search": str(place)})


def stale() -> Sim:
    """A cancel of a finished run, then a new run."""
    sim = common()
    sim.start()
    sim.ret("x")
    sim.outcome()
    sim.do({"cancel": {}})
    sim.reply("cancel1", "ok")
    sim.start("again")
    sim.ret("y")
    sim.outcome()
    return sim


def steered() -> Sim:
    """A steer during a batch."""
    sim = common()
    sim.start()
    sim.ret("a", [A, B])
    sim.steer("by the way", "s_one")
    sim.tool("B", **{"return": "b"})
    sim.tool("A", **{"return": "a"})
    sim.ret("end")
    sim.outcome()
    return sim


def request(change: Any, nth: int = 1) -> Any:
    """A spoiler of the messages of a request."""

    def spoil(sim: Sim) -> None:
        record, place = sim.find("ModelCall", nth)
        data = record.observations[place]["ModelCall"]
        data["messages"] = change(data["messages"])

    return spoil


def without(call: str) -> Any:
    """Messages without the result of a call."""
    return lambda messages: [m for m in messages if m.get("result", {}).get("id") != call]


def changed(call: str, **result: Any) -> Any:
    """Messages with another result of a call."""
    return lambda messages: [
        {"result": {"id": call, **result}} if m.get("result", {}).get("id") == call else m for m in messages
    ]


CASES = [
    Case("CP1", cancelled_batch, request(without("B"))),
    Case("CP2", batch, request(lambda m: [*m[:-2], m[-1], m[-2]])),
    Case("CP3", lambda: batch("nope"), request(changed("B", ok=True, text="fine"))),
    Case("CP4", lambda: batch("t", "fail"), request(without("A"))),
    Case("CP5", cancelled_batch, lambda s: s.drop("Abandoned", call_id="B").waiting(3, "tool:B")),
    Case("CP6", cancelled_batch, request(changed("A", ok=False, text="interrupted"))),
    Case("CP7", cancelled_batch, lambda s: s.edit("Reply", {"name": "r2"}, value={"error": "SessionBusy"})),
    Case("CP7", cancelled_batch, request(lambda m: m[:-1]), "input lost"),
    Case("CP8", at_limit, lambda s: s.add("ToolFinished", "ModelCall", n=2, step=2, attempt=1, messages=[])),
    Case("CP8", at_limit, request(without("A")), "unanswered"),
    Case("CP9", batch, lambda s: s.add("Completed", "Failed", message="", revision=1)),
    Case("CP9", batch, lambda s: s.drop("Reply", name="outcome1"), "pending"),
    Case("CP10", broken_stream, lambda s: s.drop("ProviderStreamReset")),
    Case(
        "CP10",
        broken_stream,
        lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {"text": "onetwo"}}),
        "twice",
    ),
    Case("CP11", in_delay, lambda s: s.waiting(2, "timer").facts(2, busy=True)),
    Case("CP12", busy, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"error": "Cancelled"})),
    Case("CP13", dropped, lambda s: s.waiting(-1, "model")),
    Case("CP14", flood, overrun),
    Case("CP15", stale, lambda s: s.edit("Reply", {"name": "outcome2"}, value={"error": "Cancelled"})),
    Case("CP16", steered, request(lambda m: [*m[:-3], m[-3], m[-1], m[-2]])),
    Case(
        "CP16",
        steered,
        lambda s: [request(lambda m: m[:-1])(s), s.facts(-2, history=[]), s.facts(-1, history=[])],
        "lost",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conforming(case: Case) -> None:
    check_conforming(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_violating(case: Case) -> None:
    check_violating(case)


def test_each_common_rule_has_a_case() -> None:
    assert {c.rule for c in CASES} == set(rules_of("common"))


def test_rules_without_revisions_states_or_streamed_events_are_judged_all_the_same() -> None:
    sim = cancelled_batch()
    for record in sim.trace.steps:
        record.facts.clear()
        kept = ("ModelCall", "ToolExecute", "Taken", "Reply", "Abandoned")
        record.observations = [o for o in record.observations if any(name in o for name in kept)]
    sim.renumber()
    assert {r: f.violations for r, f in judge(sim.done()).items() if f.violations} == {}
    request(without("B"))(sim)
    assert judge(sim.done(), ["CP1"])["CP1"].violations
