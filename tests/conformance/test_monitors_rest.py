"""The monitors of RHO-BUF, STATE, SHUT, DROP, PERS, BND, METR and LIM on hand-made traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rho_conformance.monitors import RULES, judge
from rho_conformance.trace import Trace
from tests.conformance.monitorcases import Case, check_conforming, check_violating
from tests.conformance.tracebuilder import Sim

A = {"id": "A", "tool": "t"}


def plain() -> Sim:
    """Text, end."""
    sim = Sim()
    sim.start()
    sim.give(delta="ab")
    sim.ret("other")
    sim.outcome()
    return sim


def two_sessions() -> Sim:
    """Two runs in two sessions at once."""
    sim = Sim(sessions=["s1", "s2"])
    sim.start()
    sim.start("yo", "s2")
    sim.give(delta="x")
    sim.ret("x")
    sim.ret("y", session="s2")
    sim.outcome()
    return sim


def flood(taken: int = 2) -> Sim:
    """Capacity 1 and nobody reads a provider that goes on."""
    sim = Sim(event_capacity=1)
    run = sim.start()
    sim.do({"hold_reader": {}}, wait=["model"])
    for place in range(taken):
        sim.do({"provider": {"delta": str(place % 10)}}, wait=["model", "reader"])
        sim.taken(run, {"delta": str(place % 10)})
    sim.do({"read": "all"}, wait=["model"])
    for place in range(taken):
        sim.see("AssistantTextDelta", run, text=str(place % 10), attempt=1)
    sim.ret("done")
    sim.outcome()
    return sim


def too_many(sim: Sim) -> None:
    """Thirty items were taken although one event fits."""
    run = sim.live["s1"]
    step = sim.trace.steps[2]
    step.observations.clear()
    for place in range(30):
        data = {"session": "s1", "run": run.name, "upcall": "ModelCall", "n": 1, "item": {"web_search": str(place)}}
        step.observations.append({"seq": 0, "step": 3, "at_ms": 0, "Taken": data})
    sim.renumber()


def goes_on(sim: Sim) -> None:
    """More work opens behind the blocked send than events can have been sent."""
    data = {"session": "s1", "run": "r1", "n": 9, "attempt": 1, "messages": []}
    for number in range(2, 9):
        obs: Any = {"seq": 0, "step": 3, "at_ms": 0, "ModelCall": {**data, "step": number}}
        sim.trace.steps[2].observations.append(obs)
    sim.renumber()


def drained() -> Sim:
    """The outcome is awaited while nobody reads."""
    sim = Sim(event_capacity=1, reader="held")
    run = sim.start(quiet=True)
    sim.drop("Started")
    sim.do({"outcome": {}}, wait=["model"])
    run.request = 1
    sim.see("ModelCall", run, n=1, step=1, attempt=1, messages=[{"user": "hi"}], tools=[])
    item = {"return": {"text": "x"}}
    sim.do({"provider": item})
    sim.taken(run, item)
    sim.sessions["s1"].update(history=[{"user": "hi"}, {"assistant": {"text": "x", "calls": []}}], revision=1)
    sim.sessions["s1"].update(state="Completed", busy=False)
    sim.note()
    sim.reply("outcome1", {"ok": {"text": "x", "stop": "EndTurn", "usage": {}, "revision": 1}}, run)
    return sim


def progress() -> Sim:
    """A tool with two progress messages."""
    sim = Sim()
    sim.start()
    sim.ret("a", [A])
    sim.tool("A", progress="p1")
    sim.tool("A", progress="p2")
    sim.tool("A", **{"return": "r"})
    sim.ret("end")
    sim.outcome()
    return sim


BUFFER = [
    Case("RHO-BUF-1", two_sessions, lambda s: s.edit("Started", 1, run_id="r1")),
    Case("RHO-BUF-2", flood, too_many),
    Case("RHO-BUF-3", flood, lambda s: s.drop("AssistantTextDelta")),
    Case("RHO-BUF-4", flood, goes_on),
    Case("RHO-BUF-5", drained, lambda s: s.drop("Reply", name="outcome1").waiting(-1, "reader").waiting(-2, "reader")),
    Case("RHO-BUF-6", progress, lambda s: s.move("ToolUpdated", "ToolUpdated", 1)),
    Case("RHO-BUF-10", plain, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {"text": "ab"}})),
]


def twice() -> Sim:
    """Two runs, one after the other, the second cancelled."""
    sim = plain()
    sim.start("again")
    sim.cancel()
    sim.outcome()
    return sim


STATE = [
    Case("RHO-STATE-1", plain, lambda s: s.facts(0, state="Thinking")),
    Case("RHO-STATE-2", plain, lambda s: s.facts(-1, state="Idle")),
    Case("RHO-STATE-3", twice, lambda s: s.facts(4, state="Completed")),
    Case("RHO-STATE-4", twice, lambda s: s.facts(-1, state="Completed")),
    Case("RHO-STATE-5", plain, lambda s: s.facts(-2, busy=True).facts(-1, busy=True)),
]


def shut() -> Sim:
    """Shutdown of a running run, then everything is refused."""
    sim = Sim()
    sim.start()
    sim.cancel({"shutdown": {}})
    sim.reply("shutdown1", {"ok": {"cancelled_runs": 1}})
    sim.outcome()
    sim.do({"shutdown": {}})
    sim.reply("shutdown2", {"ok": {"cancelled_runs": 0}})
    sim.do({"start": "again"})
    sim.reply("r2", {"error": "RuntimeShutdown"})
    return sim


def late_reply(sim: Sim) -> None:
    """Shutdown answers one step later."""
    record, place = sim.find("Reply", name="shutdown1")
    sim.trace.steps[2].observations.insert(0, record.observations.pop(place))
    sim.renumber()


SHUT = [
    Case("RHO-SHUT-1", shut, late_reply),
    Case("RHO-SHUT-2", shut, lambda s: s.edit("Reply", {"name": "r2"}, value="ok")),
    Case("RHO-SHUT-3", shut, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {}})),
    Case("RHO-SHUT-4", shut, lambda s: s.edit("Reply", {"name": "shutdown1"}, value={"ok": {"cancelled_runs": 0}})),
    Case("RHO-SHUT-5", shut, lambda s: s.edit("Reply", {"name": "shutdown2"}, value={"ok": {"cancelled_runs": 1}})),
    Case("RHO-SHUT-6", shut, lambda s: s.edit("Reply", {"name": "r2"}, value={"error": "InvalidConfiguration"})),
    Case("RHO-SHUT-8", shut, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"error": "Interrupted"})),
]


def dropped() -> Sim:
    """Dropped while streaming, then a new run."""
    sim = Sim()
    run = sim.start()
    sim.do({"drop": {}})
    sim.reply("drop1", "ok", run)
    sim.see("Abandoned", run, upcall="ModelCall", n=1, how="dropped")
    sim.sessions["s1"].update(busy=False, state="Idle")
    sim.note()
    sim.start("again")
    sim.ret("x")
    sim.outcome()
    return sim


def handles(name: str) -> Sim:
    """A handle other than the run's is dropped."""
    sim = Sim()
    run = sim.start()
    sim.do({name: {}}, wait=["model"])
    sim.reply(f"{name}1", "ok", run)
    sim.ret("x")
    sim.outcome()
    return sim


def interrupted(compact: bool = False) -> Sim:
    """The reader goes away, the next delta interrupts; before that, perhaps, a compaction was committed."""
    sim = Sim(compaction={"messages": 1}) if compact else Sim()
    run = sim.start(quiet=compact)
    if compact:
        sim.see("CompactionStarted", run, trigger="Automatic", message_count=1)
        sim.see("Compact", run, messages=[{"user": "hi"}], trigger="Automatic")
        sim.wait("compactor")
        sim.do({"compactor": {"return": ["short"]}})
        sim.sessions["s1"].update(history=[{"user": "short"}], revision=1)
        run.candidate = []
        sim.see("CompactionCompleted", run, trigger="Automatic", outcome={"revision": 1})
        sim.next_step(run)
        sim.note()
    sim.do({"close_reader": {}}, wait=["model"])
    sim.do({"provider": {"delta": "x"}})
    sim.taken(run, {"delta": "x"})
    sim.sessions["s1"].update(state="Idle", busy=False)
    sim.note()
    run.outcome = {"error": "Interrupted"}
    sim.outcome()
    return sim


def last_facts(**facts: Any) -> Callable[[Sim], object]:
    """A spoiler of the facts of the last two steps."""
    return lambda sim: sim.facts(-2, **facts).facts(-1, **facts)


def refused(sim: Sim) -> None:
    """After drop_runtime nothing can be started any more."""
    sim.do({"start": "again"})
    sim.reply("r2", {"error": "RuntimeShutdown"})


DROP = [
    Case("RHO-DROP-1", dropped, lambda s: s.waiting(1, "model")),
    Case("RHO-DROP-1", dropped, lambda s: s.edit("Abandoned", upcall="ToolExecute"), "untold"),
    Case("RHO-DROP-2", dropped, lambda s: s.facts(1, busy=True)),
    Case("RHO-DROP-3", dropped, lambda s: s.facts(1, revision=2)),
    Case("RHO-DROP-3", dropped, lambda s: s.facts(1, history=[{"user": "hi"}]), "part"),
    Case(
        "RHO-DROP-5",
        lambda: handles("drop_session"),
        lambda s: s.edit("Reply", {"name": "outcome1"}, value={"error": "Cancelled"}),
    ),
    Case("RHO-DROP-6", lambda: handles("drop_runtime"), refused),
    Case("RHO-PERS-1", interrupted, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {"text": "x"}})),
    Case("RHO-PERS-2", interrupted, last_facts(history=[{"user": "hi"}])),
    Case("RHO-PERS-3", lambda: interrupted(True), last_facts(history=[], revision=0)),
    Case("RHO-PERS-5", plain, lambda s: s.facts(-1, saves=1)),
]


def bounded() -> Sim:
    """A collector that gives an input before completion."""
    sim = Sim(boundary="gated")
    run = sim.start(quiet=True)
    _collect(sim, "before_provider", "none")
    sim.next_step(run)
    sim.give(delta="draft")
    item = {"return": {"text": "draft"}}
    sim.do({"provider": item})
    sim.taken(run, item)
    sim.completed_call(run)
    run.candidate.append({"assistant": {"text": "draft", "calls": []}})
    _collect(sim, "before_completion", {"input": "news"})
    run.candidate.append({"user": "news"})
    sim.sessions["s1"].update(history=list(run.candidate), revision=1)
    run.candidate = []
    sim.see("CollectAck", run, accepted=True)
    sim.see("BoundaryInputApplied", run, session_id="s1", run_id="r1", input="news")
    sim.note()
    _collect(sim, "before_provider", "none")
    sim.next_step(run)
    item = {"return": {"text": "final"}}
    sim.do({"provider": item})
    sim.taken(run, item)
    sim.completed_call(run)
    run.candidate.append({"assistant": {"text": "final", "calls": []}})
    _collect(sim, "before_completion", "none")
    sim.complete(run)
    sim.note()
    sim.outcome()
    return sim


def _collect(sim: Sim, kind: str, answer: Any) -> None:
    sim.see("Collect", sim.run(), kind=kind)
    sim.wait("collector")
    sim.do({"boundary": answer})


def unlisted(sim: Sim) -> None:
    """The input of the collector did not reach the model."""
    record, place = sim.find("ModelCall", 1)
    record.observations[place]["ModelCall"]["messages"] = [{"user": "hi"}]


BOUNDARY = [
    Case("RHO-BND-1", plain, lambda s: s.add("Started", "BoundaryInputApplied", input="x")),
    Case("RHO-BND-2", bounded, lambda s: s.move("ModelCall", "Collect")),
    Case("RHO-BND-2", bounded, lambda s: s.drop("Collect", kind="before_provider"), "not asked"),
    Case("RHO-BND-3", bounded, unlisted),
    Case("RHO-BND-3", bounded, lambda s: s.drop("Collect", 1, kind="before_completion"), "not asked"),
    Case("RHO-BND-4", bounded, lambda s: s.add("BoundaryInputApplied", "SteeringApplied", ids=["b1"])),
    Case(
        "RHO-BND-5", bounded, lambda s: s.add("BoundaryInputApplied", "ProviderStreamReset", reason="InvalidResponse")
    ),
]


def metered() -> Sim:
    """Usage in two parts and a generation count."""
    sim = Sim()
    sim.start()
    sim.give(delta="x")
    sim.give(usage={"output_tokens": 2})
    sim.give(usage={"output_tokens": 3})
    sim.give(generation_tokens=4)
    sim.ret("x")
    sim.outcome()
    return sim


METRICS = [
    Case(
        "RHO-METR-1",
        metered,
        lambda s: s.edit(
            "ModelCallCompleted", metrics={"output_tokens": 3, "generation_output_tokens": {"Reported": 4}}
        ),
    ),
    Case("RHO-METR-2", metered, lambda s: s.edit("ModelCallCompleted", metrics={"output_tokens": 5})),
    Case("RHO-METR-4", metered, lambda s: s.edit("UsageUpdated", 1, usage={"output_tokens": 4})),
    Case(
        "RHO-METR-5",
        metered,
        lambda s: s.add("UsageUpdated", "ProviderContextUpdated", kind="generation_output_tokens"),
    ),
]


def panicked() -> Sim:
    """The provider panics."""
    sim = Sim()
    run = sim.start()
    sim.do({"provider": {"panic": True}})
    sim.taken(run, {"panic": True})
    sim.see("EventsClosed", run)
    sim.sessions["s1"].update(state="Idle", busy=False)
    sim.note()
    run.outcome = {"error": "Interrupted"}
    sim.outcome()
    return sim


def lost_terminal() -> Sim:
    """The reader goes away while only the terminal event is still to come."""
    sim = Sim()
    run = sim.start()
    sim.do({"close_reader": {}}, wait=["model", "reader"])
    sim.ret("x")
    del sim.trace.steps[-1].observations[1:]
    del run
    sim.outcome()
    return sim


LIMITS = [
    Case("RHO-LIM-1", plain, lambda s: s.add("Completed", "Failed", message="", revision=1)),
    Case("RHO-LIM-2", dropped, lambda s: s.add("Abandoned", "Completed", outcome={})),
    Case("RHO-LIM-3", panicked, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {"text": ""}})),
    Case("RHO-LIM-4", lost_terminal, last_facts(history=[])),
]

CASES = BUFFER + STATE + SHUT + DROP + BOUNDARY + METRICS + LIMITS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conforming(case: Case) -> None:
    check_conforming(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_violating(case: Case) -> None:
    check_violating(case)


def test_capacity_zero_must_be_refused() -> None:
    sim = plain()
    sim.trace.config["event_capacity"] = 0
    assert judge(sim.done(), ["RHO-BUF-2"])["RHO-BUF-2"].violations
    refused_open = Trace(sim.trace.hello, {"event_capacity": 0}, "rho", open_error="InvalidConfiguration")
    assert judge(refused_open, ["RHO-BUF-2"])["RHO-BUF-2"].episodes


def test_a_committed_failure_on_reader_loss_is_a_variant() -> None:
    sim = interrupted().edit("Reply", {"name": "outcome1"}, value={"error": "Provider", "kind": "Interrupted"})
    found = judge(sim.done(), ["RHO-PERS-1"])["RHO-PERS-1"]
    assert (found.violations, found.variants) == ([], {"D4:failed"})


def test_a_typed_failure_after_a_panic_is_a_variant() -> None:
    sim = panicked().edit("Reply", {"name": "outcome1"}, value={"error": "Provider", "kind": "Other"})
    found = judge(sim.done(), ["RHO-LIM-3"])["RHO-LIM-3"]
    assert (found.violations, found.variants) == ([], {"D30:failed"})


def test_coalesced_deltas_do_not_count_against_the_channel() -> None:
    sim = flood(30)
    texts = sim.trace.steps[-3].observations
    texts[:] = [texts[0]]
    texts[0]["AssistantTextDelta"]["text"] = "".join(str(n % 10) for n in range(30))
    assert not judge(sim.done(), ["RHO-BUF-2"])["RHO-BUF-2"].violations
    assert judge(flood(30).done(), ["RHO-BUF-2"])["RHO-BUF-2"].violations


def test_without_facts_nothing_is_held_against_anyone() -> None:
    for build in (plain, twice, bounded, metered, dropped, interrupted, flood):
        trace = build().done()
        for record in trace.steps:
            record.facts.clear()
        assert {r: f.violations for r, f in judge(trace).items() if f.violations} == {}


def test_unknown_observations_and_fields_are_ignored() -> None:
    sim = plain().add("Started", "Fireworks", 0, colour="red").edit("Started", mood="good")
    assert {r: f.violations for r, f in judge(sim.done()).items() if f.violations} == {}


def test_a_fault_in_a_monitor_is_untestable_and_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(view: object, report: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("rho_conformance.monitors.RULES", {**RULES, "RHO-ORD-1": broken})
    found = judge(plain().done(), ["RHO-ORD-1"])["RHO-ORD-1"]
    assert found.untestable is not None and "boom" in found.untestable
    assert not found.violations


def test_a_rule_without_a_monitor_says_so() -> None:
    assert judge(plain().done(), ["RHO-NONE-1"])["RHO-NONE-1"].untestable
