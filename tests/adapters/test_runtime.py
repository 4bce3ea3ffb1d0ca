"""The anyio runtime, on asyncio and trio: what a host sees of runs, commands, and their ends."""

from __future__ import annotations

import gc
from typing import get_args

import anyio
import pytest

from rho_adapters import (
    InvalidConfiguration,
    Rho,
    RhoConfig,
    RunCancelled,
    RunDropped,
    RunFailed,
    RunInterrupted,
    RuntimeShutdown,
    SessionBusy,
    ToolContext,
    ToolFailure,
    ToolHost,
)
from rho_adapters.clock import VirtualClock
from rho_adapters.host import Compacted, CompactionRequest
from rho_adapters.provider import failure
from rho_adapters.runtime import carry
from rho_core import effects as fx
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import wire
from rho_core.asks import Choice, HostInputRequest, Question
from rho_core.digest import digest
from rho_core.errors import ErrorName, ProviderErrorKind
from rho_core.inputs import Plan
from rho_core.messages import INTERRUPTED, AbortedAssistant, ToolResult, user
from tests.adapters.scripted import Does, Scripted, asks, call, fails, hangs, kinds, says

pytestmark = pytest.mark.anyio

QUESTION = HostInputRequest("q1", "Sure?", (Question("q", "Go on?", (Choice("yes"), Choice("no"))),))


async def all_of(run: object) -> list[ev.Event]:
    return [e async for e in run]  # type: ignore[attr-defined]


async def ok(context: ToolContext) -> str:
    return f"done {context.call.id}"


async def test_a_run_streams_and_completes() -> None:
    async with Rho(Scripted(says("Hel", "lo"))) as rho:
        session = rho.session("s1", system="Be brief.")
        async with session.start("hi") as run:
            events = await all_of(run)
            outcome = await run.outcome()
        assert kinds(events)[:4] == ["Started", "StepStarted", "AssistantTextDelta", "AssistantTextDelta"]
        assert kinds(events)[-1] == "Completed"
        assert (outcome.text, outcome.revision, session.revision) == ("Hello", 1, 1)
        assert (session.state, session.busy, len(session.history)) == ("Completed", False, 3)


async def test_a_tool_call_goes_round() -> None:
    tool = Does("t", ok)
    provider = Scripted(asks(call("A")), says("fine"))
    async with Rho(provider, [tool]) as rho:
        outcome = await rho.session().complete("go")
    assert (outcome.text, tool.ran) == ("fine", ["A"])
    assert provider.requests[1].messages[-1] == ToolResult("A", True, "done A")


async def test_a_full_channel_holds_the_provider_back() -> None:
    provider = Scripted(says(*"abcdefgh"))
    async with Rho(provider, config=RhoConfig(event_capacity=1)) as rho:
        async with rho.session().start("go") as run:
            await anyio.wait_all_tasks_blocked()
            assert [kinds([await run.next_event()])[0] for _ in range(2)] == ["Started", "StepStarted"]
            await anyio.wait_all_tasks_blocked()
            events = await all_of(run)
        assert [e.text for e in events if isinstance(e, ev.AssistantTextDelta)] == list("abcdefgh")


async def test_the_outcome_needs_no_reader() -> None:
    provider = Scripted(says(*"abcdefgh"))
    async with Rho(provider, config=RhoConfig(event_capacity=1)) as rho, rho.session().start("go") as run:
        assert (await run.outcome()).text == "abcdefgh"


async def test_a_cancel_commits_what_was_said() -> None:
    started = anyio.Event()
    async with Rho(Scripted(hangs(started, "par", "tial"), says("again"))) as rho:
        session = rho.session()
        async with session.start("go") as run:
            await started.wait()
            run.cancel()
            run.cancel()
            assert run.token.cancelled
            with pytest.raises(RunCancelled):
                await run.outcome()
        assert session.revision == 1
        aborted = session.history[-1]
        assert isinstance(aborted, AbortedAssistant)
        assert (await session.complete("more")).text == "again"


async def test_a_cancel_in_a_batch_keeps_what_was_done() -> None:
    async def waits(context: ToolContext) -> str:
        await anyio.sleep_forever()
        return ""

    tools = [Does("quick", ok), Does("slow", waits)]
    provider = Scripted(asks(call("A", "quick"), call("B", "slow")))
    async with Rho(provider, tools, RhoConfig(max_parallel_tools=2)) as rho:
        session = rho.session()
        async with session.start("go") as run:
            async for event in run:
                if isinstance(event, ev.ToolFinished):
                    run.token.cancel()
            with pytest.raises(RunCancelled):
                await run.outcome()
        results = [m for m in session.history if isinstance(m, ToolResult)]
        assert results == [ToolResult("A", True, "done A"), ToolResult("B", False, INTERRUPTED)]


async def test_failures_are_retried_with_back_off() -> None:
    slow = failure(ProviderErrorKind.RATE_LIMIT, "slow down", retryable=True, retry_after_ms=7_000)
    clock = VirtualClock()
    provider = Scripted(fails(slow, "x"), fails(slow), says("ok"))
    async with Rho(provider, clock=clock) as rho, rho.session().start("go") as run:
        for due in (7_000, 14_000):
            await anyio.wait_all_tasks_blocked()
            assert clock.next_ms == due
            assert clock.wake_next(due)
        assert (await run.outcome()).text == "ok"


async def test_a_stream_without_its_end_is_malformed_and_never_completes() -> None:
    """PB-85: text and then nothing: malformed twice, then a typed failure; the cut text is no answer."""

    async def cut(request: object) -> object:
        yield request.text("trunca")  # type: ignore[attr-defined]

    async with Rho(Scripted(cut, cut)) as rho:  # type: ignore[arg-type]
        session = rho.session()
        with pytest.raises(RunFailed) as failed:
            await session.complete("go")
        assert failed.value.error.provider_kind == ProviderErrorKind.INVALID_RESPONSE
        assert [type(m).__name__ for m in session.history] == ["User"]


async def test_a_panic_interrupts_and_installs_nothing() -> None:
    async with Rho(Scripted(fails(ZeroDivisionError("oh")), says("fine"))) as rho:
        session = rho.session()
        with pytest.raises(RunInterrupted):
            await session.complete("go")
        assert (session.revision, session.history) == (0, ())
        assert "ZeroDivisionError" in rho.diagnostics[0]
        assert (await session.complete("go")).text == "fine"


async def test_a_question_is_answered_once() -> None:
    async def curious(context: ToolContext) -> str:
        answers = dict(await context.ask(QUESTION))
        return answers["q"][0]

    async with Rho(Scripted(asks(call("A")), says("fine")), [Does("t", curious)]) as rho:
        session = rho.session()
        async with session.start("go") as run:
            async for event in run:
                if isinstance(event, ev.ToolHostInputRequested):
                    assert session.state == "WaitingForHostInput"
                    run.respond("q1", {"q": ["yes"]})
                if isinstance(event, ev.ToolFinished):
                    assert event.completion == ev.Success("yes")


async def test_steering_reaches_the_next_step() -> None:
    async def steered(context: ToolContext) -> str:
        await reached.wait()
        return "x"

    reached = anyio.Event()
    provider = Scripted(asks(call("A")), says("fine"))
    async with Rho(provider, [Does("t", steered)]) as rho:
        async with rho.session().start("go") as run:
            first, second = run.steer("also this"), run.steer("not this")
            assert run.retract_steering(second) == "Retracted"
            assert run.retract_steering(second) == "NotFound"
            reached.set()
            events = await all_of(run)
        assert [e.ids for e in events if isinstance(e, ev.SteeringApplied)] == [(first,)]


async def test_a_detached_call_outlives_its_step() -> None:
    release = anyio.Event()

    async def slow(context: ToolContext) -> str:
        assert context.detachable
        await release.wait()
        return "late"

    def second(request: object) -> object:
        release.set()
        return says("meanwhile")(request)  # type: ignore[arg-type]

    provider = Scripted(asks(call("A"), detached=True), second, says("done"))  # type: ignore[arg-type]
    async with Rho(provider, [Does("t", slow, asynchronous=True)]) as rho, rho.session().start("go") as run:
        events = kinds(await all_of(run))
    assert events.index("ToolDetached") < events.index("ToolFinished")


async def test_busy_and_shut_down_are_refused() -> None:
    started = anyio.Event()
    async with Rho(Scripted(hangs(started))) as rho:
        session = rho.session()
        async with session.start("go") as run:
            with pytest.raises(SessionBusy) as busy:
                session.start("more")
            assert busy.value.rule == "RHO-DROP-2"
            assert (rho.shutdown(), rho.shutdown()) == (1, 0)
            with pytest.raises(RunCancelled):
                await run.outcome()
        with pytest.raises(RuntimeShutdown):
            session.start("more")


async def test_leaving_the_context_drops_an_unfinished_run() -> None:
    started, undone = anyio.Event(), anyio.Event()

    async def turn(request: object) -> object:
        try:
            started.set()
            await anyio.sleep_forever()
            yield None
        finally:
            undone.set()

    async with Rho(Scripted(turn, says("fine"))) as rho:  # type: ignore[arg-type]
        session = rho.session()
        async with session.start("go") as run:
            await started.wait()
        assert undone.is_set() and not session.busy
        with pytest.raises(RunDropped):
            await run.outcome()
        assert (session.revision, (await session.complete("go")).text) == (0, "fine")


async def test_a_forgotten_run_is_dropped() -> None:
    started = anyio.Event()
    async with Rho(Scripted(hangs(started))) as rho:
        session = rho.session()
        run = session.start("go")
        await started.wait()
        with pytest.warns(ResourceWarning, match="forgotten"):
            del run
            gc.collect()
        await anyio.wait_all_tasks_blocked()
        assert not session.busy


async def test_a_lost_reader_interrupts() -> None:
    async with Rho(Scripted(says(*"abc"))) as rho:
        session = rho.session()
        run = session.start("go")
        run.close_reader()
        with pytest.raises(RunInterrupted):
            await run.outcome()
        assert (session.history, await run.next_event()) == ((), None)


async def test_the_end_of_the_runtime_ends_everything() -> None:
    started = anyio.Event()
    async with Rho(Scripted(hangs(started))) as rho:
        session = rho.session()
        run = session.start("go")
        await started.wait()
    assert session.history[-1] is not None and session.revision == 1
    with pytest.raises(RunCancelled):
        await run.outcome()


async def test_an_exception_of_the_host_comes_out_as_it_is() -> None:
    started = anyio.Event()
    with pytest.raises(ZeroDivisionError):
        async with Rho(Scripted(hangs(started))) as rho:
            run = rho.session().start("go")
            await started.wait()
            raise ZeroDivisionError
    with pytest.raises(RunCancelled):
        await run.outcome()
    with pytest.raises(ToolFailure):
        async with ToolHost([]) as host:
            await host.call("unknown")


async def test_a_runtime_must_be_open() -> None:
    rho = Rho(Scripted(says("x")))
    with pytest.raises(InvalidConfiguration, match="async with"):
        rho.session().start("go")


async def test_a_tool_host_calls_tools_without_a_model() -> None:
    async def refuses(context: ToolContext) -> str:
        raise ToolFailure("no such thing")

    async with ToolHost([Does("t", ok), Does("bad", refuses)]) as host:
        assert await host.call("t", {"a": 1}) == "done call-1"
        with pytest.raises(ToolFailure, match="no such thing"):
            await host.call("bad")
        with pytest.raises(ToolFailure, match="unavailable"):
            await host.call("unknown")


async def test_configuration_is_checked() -> None:
    with pytest.raises(ValueError, match="event_capacity"):
        RhoConfig(event_capacity=0)
    with pytest.raises(InvalidConfiguration) as twice:
        Rho(Scripted(), [Does("t", ok), Does("t", ok)])
    assert twice.value.name == ErrorName.INVALID_CONFIGURATION


class Shortens:
    """A compactor that keeps the last message; `gate`: what it waits for."""

    cooperative = False

    def __init__(self, gate: anyio.Event | None = None) -> None:
        self.gate = gate
        self.begun = anyio.Event()
        self.asked: list[CompactionRequest] = []

    async def compact(self, request: CompactionRequest) -> Compacted:
        self.asked.append(request)
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        return Compacted(request.messages[-1:])


async def test_compaction_by_itself_and_by_hand() -> None:
    compactor = Shortens()
    async with Rho(Scripted(says("a"), says("b"), says("c")), compactor=compactor) as rho:
        session = rho.session()
        await session.complete("one")
        assert await session.compact() == 2
        assert [len(session.history), compactor.asked[0].trigger] == [1, "manual"]
        session.set_compaction(messages=2)
        await session.complete("two")
        assert len(session.history) == 2
        assert compactor.asked[1].trigger == "automatic"


async def test_a_compaction_that_is_given_up_installs_nothing() -> None:
    compactor = Shortens(anyio.Event())
    async with Rho(Scripted(says("a")), compactor=compactor) as rho:
        session = rho.session()
        await session.complete("one")
        async with anyio.create_task_group() as group:
            group.start_soon(session.compact)
            await compactor.begun.wait()
            assert session.busy
            with pytest.raises(SessionBusy):
                session.start("no")
            group.cancel_scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert (session.busy, session.revision, len(session.history)) == (False, 1, 2)


async def test_there_must_be_a_compactor() -> None:
    async with Rho(Scripted()) as rho:
        with pytest.raises(InvalidConfiguration, match="no compactor"):
            await rho.session().compact()


async def test_complete_has_nobody_to_answer_questions() -> None:
    async def curious(context: ToolContext) -> str:
        await context.ask(QUESTION)
        return ""

    async with Rho(Scripted(asks(call("A"))), [Does("t", curious)]) as rho:
        session = rho.session()
        with pytest.raises(RunFailed) as failed:
            await session.complete("go")
        assert failed.value.name == ErrorName.INVALID_HOST_RESPONSE
        assert not session.busy


async def test_another_model_takes_over() -> None:
    other = Scripted(says("from the other"))
    async with Rho(Scripted(says("a"))) as rho:
        session = rho.session()
        await session.complete("one")
        session.replace_provider(other)
        assert (await session.complete("two")).text == "from the other"
        assert [len(other.requests[0].messages), session.provider is other] == [3, True]
        steerable = Scripted()
        steerable.steerable = True
        with pytest.raises(InvalidConfiguration, match="steerable"):
            session.replace_provider(steerable)


async def test_nothing_that_needs_leave_runs_without_a_policy() -> None:
    class Dangerous(Does):
        async def prepare(self, call: object) -> Plan:
            return Plan(capability="danger")

    tool = Dangerous("t", ok)
    provider = Scripted(asks(call("A")), says("fine"))
    async with Rho(provider, [tool]) as rho:
        session = rho.session()
        await session.complete("go")
    assert tool.ran == []
    assert any(isinstance(m, ToolResult) and not m.ok and "danger" in m.content for m in session.history)


async def test_a_tool_that_panics_interrupts_the_run() -> None:
    async def broken(context: ToolContext) -> str:
        raise ZeroDivisionError("oh")

    async with Rho(Scripted(asks(call("A"))), [Does("t", broken)]) as rho:
        session = rho.session()
        with pytest.raises(RunInterrupted):
            await session.complete("go")
        assert (session.history, "tool t: ZeroDivisionError: oh" in rho.diagnostics) == ((), True)


async def test_a_session_is_changed_between_runs() -> None:
    async with Rho(Scripted(says("a"))) as rho:
        session = rho.session(system="Be brief.")
        assert session.append(user("before")) == 1
        assert session.replace_history((user("other"),)) == 2
        assert session.reset() == 3
        assert kinds(session.history) == ["System"]
        with pytest.raises(InvalidConfiguration, match="is open"):
            rho.session(session.id)
        rho.forget(session)
        again = rho.restore(session.snapshot(), system="Be brief.")
        assert (again.revision, again.history) == (3, session.history)


async def test_lone_surrogates_do_not_get_in() -> None:
    async def odd(context: ToolContext) -> str:
        return "\ud800!"

    provider = Scripted(asks(call("A")), says("fine"))
    async with Rho(provider, [Does("t", odd)]) as rho:
        session = rho.session()
        await session.complete("\ud83d\ude00 \udfff")
    assert wire.load_snapshot(wire.dump_snapshot(session.snapshot())) == session.snapshot()
    assert session.history[0] == user("😀 �")


async def test_no_task_is_left_behind() -> None:
    started = anyio.Event()
    async with Rho(Scripted(hangs(started))) as rho:
        session = rho.session()
        async with session.start("go"):
            await started.wait()
            assert rho._alive == 1
        assert rho._alive == 0


async def test_every_effect_that_a_session_may_ask_for_has_a_row() -> None:
    of_the_runtime = {fx.Admitted, fx.Refused, fx.CancelOperation}
    assert set(carry.ROWS) == set(get_args(fx.Effect)) - of_the_runtime


@pytest.mark.parametrize("capacity", [1, 2, 3, 64])
@pytest.mark.parametrize("pause", [1, 2, 5, 1_000])
async def test_the_short_way_of_a_delta_is_the_long_way(capacity: int, pause: int) -> None:
    """With a journal every input goes by `apply`; without one, text deltas do not: nobody can tell."""

    async def play(journal: list[object] | None) -> tuple[list[ev.Event], str]:
        provider = Scripted(asks(call("A")), says(*"abcdefghijklmnop"))
        note = None if journal is None else lambda _, value: journal.append(value)
        config = RhoConfig(event_capacity=capacity)
        seen: list[ev.Event] = []
        async with Rho(provider, [Does("t", ok)], config, journal=note, clock=VirtualClock()) as rho:
            session = rho.session("s1")
            async with session.start("go", run_id="r1") as run:
                async for event in run:
                    seen.append(event)
                    if len(seen) % pause == 0:
                        await anyio.wait_all_tasks_blocked()
            return seen, digest(session.core)

    journal: list[object] = []
    assert await play(None) == await play(journal)
    assert sum(isinstance(value, inp.TextDelta) for value in journal) >= 16
