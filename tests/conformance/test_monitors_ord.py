"""The monitors of RHO-ORD and RHO-TERM on hand-made traces."""

from __future__ import annotations

import pytest

from rho_conformance.monitors import judge
from tests.conformance.monitorcases import Case, check_conforming, check_violating
from tests.conformance.tracebuilder import Sim

A, B = {"id": "A", "tool": "t"}, {"id": "B", "tool": "t"}
JOB = {"id": "J", "tool": "j", "async": True}


def plain() -> Sim:
    """Text, usage, end."""
    sim = Sim()
    sim.start()
    sim.give(delta="abc")
    sim.give(usage={"output_tokens": 3})
    sim.give(delta="d")
    sim.ret("abcd")
    sim.outcome()
    return sim


def two_calls() -> Sim:
    """Two calls that finish in reverse order, one with progress."""
    sim = Sim()
    sim.start()
    sim.ret("a", [A, B])
    sim.tool("A", progress="p1")
    sim.tool("A", progress="p2")
    sim.tool("B", **{"return": "b"})
    sim.tool("A", **{"return": "a"})
    sim.ret("end")
    sim.outcome()
    return sim


def unknown_tool() -> Sim:
    """A call of a tool that does not exist."""
    sim = Sim()
    sim.start()
    sim.ret("a", [{"id": "U", "tool": "nope"}])
    sim.ret("end")
    sim.outcome()
    return sim


def job() -> Sim:
    """A detached job that ends during the next request."""
    sim = Sim()
    sim.start()
    sim.ret("a", [JOB])
    sim.tool("J", **{"return": "done"})
    sim.ret("b", [A])
    sim.tool("A", **{"return": "x"})
    sim.ret("end")
    sim.outcome()
    return sim


def compaction(cancel: bool = False) -> Sim:
    """One automatic compaction before the first step."""
    sim = Sim(compaction={"messages": 1})
    run = sim.start(quiet=True)
    sim.see("CompactionStarted", run, trigger="Automatic", message_count=1)
    sim.see("Compact", run, messages=[{"user": "hi"}], trigger="Automatic")
    sim.wait("compactor")
    sim.do({"compactor": {"return": ["short"]}})
    sim.sessions["s1"].update(history=[{"user": "short"}], revision=1)
    run.candidate = []
    sim.see("CompactionCompleted", run, trigger="Automatic", outcome={"revision": 1})
    sim.next_step(run)
    sim.note()
    if cancel:
        sim.cancel()
    else:
        sim.ret("end")
    sim.outcome()
    return sim


def pending_job_with_compaction() -> Sim:
    """A policy that would fire while a job is pending."""
    sim = Sim(compaction={"messages": 100})
    sim.start()
    sim.ret("a", [JOB])
    sim.tool("J", **{"return": "done"})
    sim.ret("end")
    sim.outcome()
    return sim


def held() -> Sim:
    """Capacity 1, nobody reads: the request may not open before StepStarted can have been sent."""
    sim = Sim(event_capacity=1, reader="held")
    run = sim.start(quiet=True)
    sim.trace.steps[-1].observations.pop()
    sim.wait("reader")
    sim.do({"read": 1})
    sim.see("Started", run, run_id="r1", revision=0)
    sim.next_step(run)
    started = sim.trace.steps[-1].observations
    del started[1]
    sim.do({"read": 1}, wait=["model"])
    sim.see("StepStarted", run, step=1, estimated_context_tokens=9)
    return sim.renumber()


def too_early(sim: Sim) -> None:
    """The request already opens while Started alone fills the channel."""
    record, place = sim.find("ModelCall")
    request = record.observations.pop(place)
    sim.trace.steps[0].observations.append(request)
    sim.renumber()


def failed() -> Sim:
    """A permanent failure with a diagnostic."""
    sim = Sim()
    sim.start()
    sim.fail(retryable=False, message="no key", diagnostic="header dump")
    sim.outcome()
    return sim


def cancelled() -> Sim:
    """Cancelled while streaming."""
    sim = Sim()
    sim.start()
    sim.give(delta="par")
    sim.cancel()
    sim.outcome()
    return sim


def dropped() -> Sim:
    """Dropped while streaming."""
    sim = Sim()
    run = sim.start()
    sim.do({"drop": {}})
    sim.reply("drop1", "ok", run)
    sim.see("Abandoned", run, upcall="ModelCall", n=1, how="dropped")
    sim.sessions["s1"].update(busy=False, state="Idle")
    sim.note()
    return sim


CASES = [
    Case("RHO-ORD-1", plain, lambda s: s.move("StepStarted", "Started")),
    Case("RHO-ORD-1", plain, lambda s: s.edit("Started", revision=7), "revision"),
    Case("RHO-ORD-2", two_calls, lambda s: s.edit("StepStarted", 1, step=3), "gap"),
    Case("RHO-ORD-2", plain, lambda s: s.move("AssistantTextDelta", "StepStarted"), "delta"),
    Case("RHO-ORD-2", held, too_early, "held"),
    Case("RHO-ORD-3", plain, lambda s: s.move("AssistantTextDelta", "AssistantTextDelta", 1)),
    Case("RHO-ORD-4", two_calls, lambda s: s.move("ToolStarted", "ToolProposed")),
    Case("RHO-ORD-4", two_calls, lambda s: s.drop("ToolProposed", call_id="A"), "missing"),
    Case("RHO-ORD-5", two_calls, lambda s: s.drop("ToolFinished", call_id="A")),
    Case("RHO-ORD-5", two_calls, lambda s: s.add("ToolFinished", "ToolFinished", call_id="A", result="ok"), "twice"),
    Case("RHO-ORD-5", two_calls, lambda s: s.drop("ToolUpdated", progress="p1"), "progress"),
    Case("RHO-ORD-6", unknown_tool, lambda s: s.add("ToolProposed", "ToolStarted", call_id="U", name="nope")),
    Case("RHO-ORD-6", unknown_tool, lambda s: s.edit("ToolFinished", result="ok"), "ok"),
    Case("RHO-ORD-7", job, lambda s: s.move("ToolDetached", "ToolStarted")),
    Case("RHO-ORD-7", job, lambda s: s.drop("ToolDetached"), "missing"),
    Case("RHO-ORD-7b", job, lambda s: s.drop("ToolFinished", call_id="J")),
    Case("RHO-ORD-8", two_calls, lambda s: s.move("ToolProposed", "ToolProposed", 1)),
    Case("RHO-ORD-9", two_calls, lambda s: s.move("ToolUpdated", "ToolStarted")),
    Case("RHO-ORD-9", two_calls, lambda s: s.edit("ToolStarted", call_id=None), "no id"),
    Case(
        "RHO-ORD-10",
        two_calls,
        lambda s: s.edit("ModelCall", 1, messages=[{"result": {"id": c, "ok": True, "text": ""}} for c in "BA"]),
    ),
    Case("RHO-ORD-11a", compaction, lambda s: s.drop("CompactionStarted")),
    Case("RHO-ORD-11b", compaction, lambda s: s.edit("CompactionCompleted", outcome={"revision": 9})),
    Case("RHO-ORD-11c", lambda: compaction(cancel=True), lambda s: s.drop("CompactionCompleted")),
    Case(
        "RHO-ORD-11f",
        pending_job_with_compaction,
        lambda s: s.add("ToolDetached", "CompactionStarted", trigger="Automatic", message_count=2),
    ),
    Case("RHO-ORD-12", plain, lambda s: s.drop("Completed")),
    Case("RHO-ORD-12", cancelled, lambda s: s.add("Cancelled", "Completed", outcome={}), "two"),
    Case("RHO-TERM-1", plain, lambda s: s.add("Completed", "AssistantTextDelta", text="late", attempt=1)),
    Case("RHO-TERM-2", plain, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"error": "Cancelled"})),
    Case("RHO-TERM-2", plain, lambda s: s.drop("Reply", name="outcome1"), "pending"),
    Case("RHO-TERM-3", plain, lambda s: s.edit("Completed", outcome={"text": "other", "stop": "EndTurn"})),
    Case("RHO-TERM-4", cancelled, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"error": "Interrupted"})),
    Case("RHO-TERM-5", failed, lambda s: s.edit("Failed", retryability="Retryable")),
    Case("RHO-TERM-5", failed, lambda s: s.edit("Failed", message="provider failed: no key header dump"), "leak"),
    Case(
        "RHO-TERM-6",
        dropped,
        lambda s: s.add("Abandoned", "Failed", message="", revision=1).add("Failed", "Failed", message="", revision=1),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conforming(case: Case) -> None:
    check_conforming(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_violating(case: Case) -> None:
    check_violating(case)


def cancelled_batch() -> Sim:
    """Cancelled while one of two calls is open."""
    sim = Sim()
    sim.start()
    sim.ret("a", [A, B])
    sim.tool("A", **{"return": "a"})
    sim.cancel()
    sim.outcome()
    return sim


def test_no_finish_for_a_call_open_at_the_cancel_is_a_variant() -> None:
    found = judge(cancelled_batch().drop("ToolFinished", call_id="B").done(), ["RHO-ORD-5"])["RHO-ORD-5"]
    assert (found.violations, found.variants) == ([], {"D2:none"})


def test_the_finish_of_a_call_completed_before_the_cancel_may_not_be_lost() -> None:
    found = judge(cancelled_batch().drop("ToolFinished", call_id="A").done(), ["RHO-ORD-5"])["RHO-ORD-5"]
    assert found.violations and not found.variants


def test_a_settled_variant_binds() -> None:
    trace = cancelled_batch().drop("ToolFinished", call_id="B").done()
    assert judge(trace, ["RHO-ORD-5"], variants={"D2": "exactly-one"})["RHO-ORD-5"].violations
    assert not judge(trace, ["RHO-ORD-5"], variants={"D2": "none"})["RHO-ORD-5"].violations


def test_proposals_by_subset_are_a_variant() -> None:
    sim = Sim()
    sim.start()
    sim.ret("a", [A, JOB])
    trace = sim.move("ToolProposed", "ToolProposed", 1).done()
    found = judge(trace, ["RHO-ORD-8"])["RHO-ORD-8"]
    assert (found.violations, found.variants) == ([], {"D3:subset-order"})


def test_no_terminal_event_after_a_drop_is_no_violation() -> None:
    trace = dropped().done()
    assert all(not f.violations for f in judge(trace).values())
