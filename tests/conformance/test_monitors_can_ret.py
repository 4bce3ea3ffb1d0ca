"""The monitors of RHO-CAN, RHO-FAIL and RHO-RET on hand-made traces."""

from __future__ import annotations

from typing import Any

import pytest

from rho_conformance.monitors import judge
from tests.conformance.monitorcases import Case, check_conforming, check_violating
from tests.conformance.tracebuilder import Sim

A, B = {"id": "A", "tool": "t"}, {"id": "B", "tool": "t"}
JOB = {"id": "J", "tool": "j", "async": True}


def in_stream() -> Sim:
    """Cancelled while a model answers, after text and reasoning."""
    sim = Sim()
    sim.start()
    sim.give(reasoning="inner voice")
    sim.give(delta="par")
    sim.cancel()
    sim.outcome()
    return sim


def twice() -> Sim:
    """Cancelled twice at once."""
    sim = Sim()
    run = sim.start()
    sim.cancel()
    sim.trace.steps[-1].perform.append({"cancel": {}})
    sim.reply("cancel2", "ok", run)
    sim.outcome()
    return sim


def by_token() -> Sim:
    """The provider cancels its clone of the token."""
    sim = Sim()
    run = sim.start()
    sim.do({"provider": {"cancel_token": True}})
    sim.taken(run, {"cancel_token": True})
    sim.end(run, "Cancelled", {"error": "Cancelled"})
    sim.note()
    sim.outcome()
    return sim


def token_dropped() -> Sim:
    """The provider drops its clone of the token."""
    sim = Sim()
    sim.start()
    sim.give(drop_token=True)
    sim.ret("end")
    sim.outcome()
    return sim


def in_batch() -> Sim:
    """Cancelled with one call done and one open."""
    sim = Sim()
    sim.start()
    sim.ret("a", [A, B])
    sim.tool("A", **{"return": "a"})
    sim.cancel()
    sim.outcome()
    return sim


def queued() -> Sim:
    """Cancelled while a synchronous call is queued behind a job."""
    sim = Sim()
    run = sim.start()
    sim.ret("a", [JOB, B])
    sim.drop("ToolStarted", call_id="B").drop("ToolExecute", call_id="B").drop("ToolPrepare", call_id="B")
    sim.waiting(-1, "tool:J")
    sim.cancel()
    sim.drop("Abandoned", call_id="B").drop("ToolFinished", call_id="B")
    sim.outcome()
    del run
    return sim


def with_job() -> Sim:
    """Cancelled while a detached job is pending."""
    sim = Sim()
    sim.start()
    sim.ret("a", [JOB])
    sim.cancel()
    sim.outcome()
    return sim


def raced() -> Sim:
    """Cancel and return at once."""
    sim = Sim()
    sim.start()
    sim.cancel()
    sim.trace.steps[-1].perform.insert(0, {"provider": {"return": {"text": "x"}}})
    sim.outcome()
    return sim


def permanent() -> Sim:
    """A permanent failure after some text."""
    sim = Sim()
    sim.start()
    sim.give(delta="par")
    sim.fail(retryable=False)
    sim.outcome()
    return sim


def reader_lost() -> Sim:
    """The reader goes away, the next delta interrupts."""
    sim = Sim()
    run = sim.start()
    sim.do({"close_reader": {}}, wait=["model"])
    sim.do({"provider": {"delta": "x"}})
    sim.taken(run, {"delta": "x"})
    sim.sessions["s1"].update(state="Idle", busy=False)
    sim.note()
    run.outcome = {"error": "Interrupted"}
    sim.outcome()
    return sim


def history(**changes: Any) -> Any:
    """A spoiler that changes the committed history from the last commit on."""

    def spoil(sim: Sim) -> None:
        for step in (-2, -1):
            sim.facts(step, **changes)

    return spoil


def not_aborted(sim: Sim) -> None:
    """The aborted message tells what was never streamed."""
    history(history=[{"user": "hi"}, {"aborted": {"text": "other", "calls": []}}])(sim)


def unanswered(sim: Sim) -> None:
    """The last result is missing in the history."""
    kept = sim.trace.steps[-1].facts["history"][:-1]
    history(history=kept)(sim)


def replaced(sim: Sim) -> None:
    """The completed result was replaced by the interrupted one."""
    kept = [m for m in sim.trace.steps[-1].facts["history"] if m.get("result", {}).get("id") != "A"]
    history(history=[*kept[:2], {"result": {"id": "A", "ok": False, "text": "interrupted"}}, *kept[2:]])(sim)


CANCEL = [
    Case("RHO-CAN-1", in_stream, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {"text": "par"}})),
    Case("RHO-CAN-2", twice, lambda s: s.add("Cancelled", "Cancelled", revision=2)),
    Case("RHO-CAN-3", by_token, lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {"text": ""}})),
    Case("RHO-CAN-4", token_dropped, lambda s: s.facts(1, tokens={"r1": "cancelled"})),
    Case("RHO-CAN-5", in_batch, lambda s: s.waiting(-2, "tool:B")),
    Case("RHO-CAN-7", in_stream, lambda s: s.add("Cancelled", "ModelCall", n=2, step=2, attempt=1, messages=[])),
    Case("RHO-CAN-8", in_batch, history(history=[{"user": "hi"}])),
    Case("RHO-CAN-9", in_stream, not_aborted),
    Case(
        "RHO-CAN-10",
        in_stream,
        history(history=[{"user": "hi"}, {"assistant": {"text": "", "reasoning": "inner voice"}}]),
    ),
    Case("RHO-CAN-11", in_stream, lambda s: s.edit("Cancelled", revision=3)),
    Case("RHO-CAN-12", in_batch, unanswered),
    Case("RHO-CAN-12", in_batch, replaced, "replaced"),
    Case(
        "RHO-CAN-13",
        queued,
        lambda s: history(
            history=[m for m in s.trace.steps[-1].facts["history"] if m.get("result", {}).get("id") != "B"]
        )(s),
    ),
    Case("RHO-CAN-14", with_job, lambda s: s.drop("ToolFinished", call_id="J")),
    Case("RHO-CAN-15", raced, history(revision=4)),
    Case("RHO-FAIL-1", permanent, history(history=[], revision=1)),
    Case("RHO-FAIL-2", reader_lost, history(history=[{"user": "hi"}], revision=1)),
]


def retried() -> Sim:
    """Two retryable failures after text, then success."""
    sim = Sim()
    sim.start()
    sim.give(delta="one")
    sim.give(usage={"output_tokens": 5})
    sim.fail()
    sim.advance(1000)
    sim.fail(kind="RateLimit")
    sim.advance(2000)
    sim.give(delta="two")
    sim.give(usage={"output_tokens": 2})
    sim.ret("two")
    sim.outcome()
    return sim


def hinted() -> Sim:
    """A failure with Retry-After."""
    sim = Sim()
    sim.start()
    sim.fail(retry_after="3s")
    sim.advance(3000)
    sim.ret("x")
    sim.outcome()
    return sim


def malformed(times: int) -> Sim:
    """Malformed responses."""
    sim = Sim()
    sim.start()
    for _ in range(times):
        sim.ret()
    if times < 2:
        sim.ret("x")
    sim.outcome()
    return sim


def exhausted() -> Sim:
    """Four retryable failures."""
    sim = Sim()
    sim.start()
    for wait in (1000, 2000, 4000):
        sim.fail()
        sim.advance(wait)
    sim.fail()
    sim.outcome()
    return sim


def in_delay() -> Sim:
    """Cancelled in the back-off."""
    sim = Sim()
    sim.start()
    sim.give(delta="x")
    sim.fail()
    sim.cancel()
    sim.outcome()
    return sim


def recorded() -> Sim:
    """A recorder sees a failure and a success."""
    sim = Sim(recorder="auto")
    run = sim.start()
    sim.give(usage={"output_tokens": 5})
    sim.fail()
    sim.see("Record", run, step=1, attempt=1, outcome={"Failed": "Unavailable"}, usage={"output_tokens": 5})
    sim.advance(1000)
    sim.ret("x")
    sim.see("Record", run, step=1, attempt=2, outcome="Completed", usage={})
    sim.outcome()
    return sim


def activity() -> Sim:
    """Physical retry, search, hosted tool."""
    sim = Sim()
    sim.start()
    sim.give(physical_retry={"kind": "Timeout"})
    sim.give(web_search="rust")
    sim.give(hosted={"name": "x_search", "detail": "d"})
    sim.ret("x")
    sim.outcome()
    return sim


def retried_after_tool(kind: str = "return") -> Sim:
    """A tool, then a failure and a retry in the second step."""
    sim = Sim()
    sim.start()
    sim.ret("a", [A])
    sim.tool("A", **{kind: "r"})
    sim.fail()
    sim.advance(1000)
    sim.ret("x")
    sim.outcome()
    return sim


def at_limit() -> Sim:
    """The step limit with a call."""
    sim = Sim(max_steps=1)
    sim.start()
    sim.ret("a", [A])
    sim.tool("A", **{"return": "r"})
    sim.outcome()
    return sim


def earlier(sim: Sim) -> None:
    """The first retry came at once."""
    record, place = sim.find("ModelCall", 1)
    record.observations[place]["at_ms"] = 10


RETRY = [
    Case(
        "RHO-RET-1",
        lambda: malformed(1),
        lambda s: s.add("ModelCall", "ModelCall", n=9, step=1, attempt=3).drop("ModelCall", 1).drop("ModelCall", 1),
    ),
    Case(
        "RHO-RET-1",
        lambda: malformed(2),
        lambda s: s.edit("Reply", {"name": "outcome1"}, value={"error": "Provider", "kind": "Timeout"}),
        "error",
    ),
    Case("RHO-RET-2", retried, earlier),
    Case("RHO-RET-3", hinted, earlier),
    Case("RHO-RET-4", exhausted, lambda s: s.add("ModelCall", "ModelCall", n=9, step=1, attempt=5, messages=[])),
    Case("RHO-RET-5", permanent, lambda s: s.add("Failed", "ModelCall", n=2, step=1, attempt=2, messages=[])),
    Case("RHO-RET-6", in_stream, lambda s: s.waiting(-2, "model")),
    Case("RHO-RET-7", in_delay, lambda s: s.add("Cancelled", "ModelCall", n=2, step=1, attempt=2, messages=[])),
    Case("RHO-RET-7", in_delay, history(history=[{"user": "hi"}, {"aborted": {"text": "x", "calls": []}}]), "aborted"),
    Case("RHO-RET-8", retried, lambda s: s.drop("ProviderStreamReset")),
    Case(
        "RHO-RET-9",
        retried,
        lambda s: s.edit("ProviderStreamReset", 1, reason={"RetryableFailure": {"kind": "Timeout"}}),
    ),
    Case(
        "RHO-RET-9",
        hinted,
        lambda s: s.edit("ProviderStreamReset", reason={"RetryableFailure": {"kind": "Unavailable"}}),
        "hint",
    ),
    Case("RHO-RET-10", retried, lambda s: s.edit("AssistantTextDelta", 1, text="onetwo")),
    Case("RHO-RET-11", recorded, lambda s: s.edit("Record", outcome="Completed")),
    Case("RHO-RET-11", recorded, lambda s: s.edit("Record", usage={"output_tokens": 9}), "usage"),
    Case(
        "RHO-RET-12",
        retried,
        lambda s: s.edit("Reply", {"name": "outcome1"}, value={"ok": {"text": "two", "usage": {"output_tokens": 7}}}),
    ),
    Case("RHO-RET-15", activity, lambda s: s.drop("ProviderRequestRetry")),
    Case("RHO-RET-16", activity, lambda s: s.edit("WebSearch", detail="other")),
    Case("RHO-RET-17", activity, lambda s: s.drop("HostedToolActivity")),
    Case("RHO-RET-18", retried, lambda s: s.edit("ModelCall", 1, messages=[{"user": "other"}])),
    Case("RHO-RET-19", retried_after_tool, lambda s: s.add("ModelCall", "ToolExecute", call_id="A", name="t")),
    Case(
        "RHO-RET-22",
        lambda: retried_after_tool("fail"),
        lambda s: s.edit("ModelCall", 1, messages=[{"result": {"id": "A", "ok": True, "text": "r"}}]),
    ),
    Case(
        "RHO-RET-23",
        at_limit,
        lambda s: s.edit("Completed", outcome={"stop": "EndTurn"}).edit(
            "Reply", {"name": "outcome1"}, value={"ok": {"stop": "EndTurn"}}
        ),
    ),
]


@pytest.mark.parametrize("case", CANCEL + RETRY, ids=str)
def test_conforming(case: Case) -> None:
    check_conforming(case)


@pytest.mark.parametrize("case", CANCEL + RETRY, ids=str)
def test_violating(case: Case) -> None:
    check_violating(case)


def test_a_clone_that_does_not_see_the_cancel_is_reported() -> None:
    sim = in_stream().facts(-2, tokens={"r1": "live"})
    assert judge(sim.done(), ["RHO-CAN-2"])["RHO-CAN-2"].violations


def test_no_aborted_message_is_a_variant() -> None:
    sim = in_stream()
    history(history=[{"user": "hi"}])(sim)
    found = judge(sim.done(), ["RHO-CAN-9"])["RHO-CAN-9"]
    assert (found.violations, found.variants) == ([], {"D24:absent"})


def test_failing_at_the_step_limit_is_a_variant() -> None:
    sim = at_limit()
    sim.drop("Completed").add("ToolFinished", "Failed", message="m", retryability="Permanent", revision=1)
    value = {"error": "Provider", "kind": "InvalidResponse", "retryable": False, "message": "m"}
    sim.edit("Reply", {"name": "outcome1"}, value=value)
    found = judge(sim.done(), ["RHO-RET-23"])["RHO-RET-23"]
    assert (found.violations, found.variants) == ([], {"D1:fail"})


def test_one_request_after_a_cancel_between_steps_is_allowed() -> None:
    sim = raced()
    record, _ = sim.find("Cancelled")
    record.observations.insert(
        1, {"seq": 0, "step": 0, "at_ms": 0, "ModelCall": {"run": "r1", "n": 2, "step": 2, "attempt": 1}}
    )
    sim.renumber()
    assert not judge(sim.done(), ["RHO-CAN-7"])["RHO-CAN-7"].violations


@pytest.mark.parametrize("usage", [{"output_tokens": 2}, {"output_tokens": 2, "cache_read_tokens": 0}])
def test_absent_and_zero_usage_are_the_same(usage: dict[str, int]) -> None:
    sim = retried().edit("Reply", {"name": "outcome1"}, value={"ok": {"text": "two", "usage": usage}})
    assert not judge(sim.done(), ["RHO-RET-12"])["RHO-RET-12"].violations
