"""`Recording` on a runtime of its own: everything a host can do, on both event loops, judged by the suite."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from rho_adapters import Rho, RhoConfig, RunCancelled, RunDropped, RunFailed, RunInterrupted, SessionBusy
from rho_adapters.chat.scripted import ScriptedProvider, read_script
from rho_adapters.host import Compacted, CompactionRequest
from rho_adapters.provider import ModelRequest
from rho_adapters.recording import Recording
from rho_adapters.recording.session import RecordedSession
from rho_adapters.recording.taps import TappedContext
from rho_adapters.stores import MemoryStore
from rho_adapters.tool import BaseTool, HostInputRequest, ToolContext, ToolFailure, ToolSpec
from rho_conformance.answers import check_hello
from rho_conformance.judge.recorded import check
from rho_conformance.trace import Trace, read_trace
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.asks import Answers, Choice, Question
from rho_core.effects import BoundaryKind, RecordUsage
from rho_core.messages import System, ToolCall, user
from tests.adapters.chat_kit import write_script

pytestmark = pytest.mark.anyio


class Asks(BaseTool):
    """Asks for a size, says so, and fails when told to."""

    spec = ToolSpec("asks")

    async def execute(self, context: ToolContext) -> str:
        question = Question("size", "Which?", (Choice("s", "small"), Choice("l", "large")))
        answers = await context.ask(HostInputRequest(f"ask-{context.call.id}", "Size", (question,)))
        await context.progress("measured")
        if answers == (("size", ("s",)),):
            raise ToolFailure("too small")
        return "fits"


class Steerable(ScriptedProvider):
    """Takes every steer it is offered into its turn before it ends."""

    steerable = True

    async def stream(self, request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        async for item in super().stream(request):
            if isinstance(item, inp.ModelReturned) and request.steering is not None:
                for offer in list(request.offers):
                    if request.steering.claim(offer.steering_id):
                        yield request.delivered(offer.steering_id)
            yield item


def provider(folder: Path, turns: list[object], kind: type[ScriptedProvider] = ScriptedProvider) -> ScriptedProvider:
    """A model that plays the turns."""
    return kind(read_script(write_script(folder, turns)))


CONFIG = RhoConfig(base_delay_ms=1)


def call(call_id: str) -> dict[str, object]:
    """An item that calls the tool that asks."""
    return {"call": {"name": "asks", "id": call_id}}


def broken(trace: Trace) -> dict[str, str]:
    """Rules that the trace breaks, and faults of the judge."""
    report = check("recording", trace, None)
    return {rule: v.detail for rule, v in report.verdicts.items() if v.verdict in ("fail", "error")}


def kept(trace: Trace) -> set[str]:
    """Rules that it shows and keeps."""
    report = check("recording", trace, None)
    return {rule for rule, v in report.verdicts.items() if v.verdict in ("pass", "variant")}


async def talk(session: RecordedSession, text: str, sizes: str = "") -> None:
    """A run to its end, its questions answered in turn."""
    answers = iter(sizes)
    async with session.start(text) as run:
        async for event in run:
            if isinstance(event, ev.ToolHostInputRequested):
                run.respond(event.request.id, {"size": [next(answers)]})
        await run.outcome()


async def test_everything_a_host_does_is_a_trace_that_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    turns: list[object] = [
        [{"delta": "lost"}, {"fail": {"kind": "RateLimit", "retryable": True, "retry_after_ms": 2}}],
        [{"reasoning": "secret"}, {"delta": "asking"}, call("a"), call("b")],
        [{"summary": "thought"}, {"delta": "so it is"}],
        "of the host's call",
        [{"delta": "endless"}, {"hold": True}],
        [{"delta": "dropped"}, {"hold": True}],
        [{"delta": "unread"}, {"wait_file": str(tmp_path / "closed")}, {"delta": "more"}, {"hold": True}],
        [{"fail": {"kind": "Other"}}],
        [{"panic": True}],
        "again",
    ]
    with Recording(path) as recording:
        model, tools = recording.provider(provider(tmp_path, turns)), recording.tools([Asks()])
        async with Rho(model, tools, CONFIG, store=MemoryStore(), journal=recording.journal) as rho:
            session = recording.session(rho.session("s1", system="Be kind."))
            await talk(session, "first", "sl")
            async with session.start_with_tool_call(ToolCall("h", "nowhere", "{}")) as run:
                with pytest.raises(SessionBusy):
                    session.start("too early")
                await run.outcome()
            await session.save()
            with pytest.raises(RunCancelled):
                await _until_text(session, "cancel")
            with pytest.raises(RunDropped):
                await _until_text(session, "drop")
            with pytest.raises(RunInterrupted):
                await _until_text(session, "close", tmp_path / "closed")
            session.append(user("appended"))
            with pytest.raises(RunFailed):
                await talk(session, "fails")
            with pytest.raises(RunInterrupted):
                await talk(session, "panics")
            session.replace_history((user("other"),))
            session.reset()
            await talk(session, "last")
    trace = read_trace(path)
    check_hello(trace.hello)
    assert broken(trace) == {}
    shown = {"RHO-RET-8", "RHO-HOST-3", "RHO-CAN-8", "RHO-DROP-1", "RHO-PERS-1", "RHO-STATE-2", "RHO-TERM-2", "CORE-S3"}
    assert shown <= kept(trace), shown - kept(trace)
    assert "secret" not in json.dumps([step.facts for step in trace.steps])


async def _until_text(session: RecordedSession, how: str, after: Path | None = None) -> None:
    """A run that is ended at its first text. `after`: a gate that is opened then."""
    run = session.start(how)
    async with run:
        async for event in run:
            if isinstance(event, ev.AssistantTextDelta):
                {"cancel": run.cancel, "drop": run.drop, "close": run.close_reader}[how]()
                if after is not None:
                    after.touch()
        await run.outcome()


async def test_claims_of_a_steerable_provider_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    turns: list[object] = [[{"delta": "one"}, {"wait_file": str(tmp_path / "go")}], "two"]
    with Recording(path) as recording:
        model = recording.provider(provider(tmp_path, turns, Steerable))
        async with Rho(model, config=CONFIG, journal=recording.journal) as rho:
            session = recording.session(rho.session("s1"))
            async with session.start("go") as run:
                async for event in run:
                    if isinstance(event, ev.AssistantTextDelta) and event.text == "one":
                        run.steer("a steer")
                        (tmp_path / "go").touch()
                await run.outcome()
    trace = read_trace(path)
    assert broken(trace) == {}
    claims = [seen.fields for seen in trace.named("SteerClaim")]
    assert claims == [{"session": "s1", "run": "r1", "n": 1, "item": "claim", "id": "steer1", "granted": True}]
    assert [seen.fields["id"] for seen in trace.named("SteeringDelivered")] == ["steer1"]


async def test_a_slow_reader_of_a_narrow_channel(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    turns: list[object] = [[*({"delta": f"{n} "} for n in range(9)), call("a")], "end"]
    with Recording(path) as recording:
        model, tools = recording.provider(provider(tmp_path, turns)), recording.tools([Asks()])
        config = RhoConfig(event_capacity=1, base_delay_ms=1)
        async with Rho(model, tools, config, journal=recording.journal) as rho:
            session = recording.session(rho.session("s1"))
            async with session.start("slowly") as run:
                async for event in run:
                    await anyio.wait_all_tasks_blocked()
                    if isinstance(event, ev.ToolHostInputRequested):
                        run.respond(event.request.id, {"size": ["l"]})
                await run.outcome()
    trace = read_trace(path)
    assert broken(trace) == {}
    text = "".join(seen.fields["text"] for seen in trace.named("AssistantTextDelta"))
    assert text == "0 1 2 3 4 5 6 7 8 end"


class Shortens:
    """A compactor."""

    cooperative = False

    async def compact(self, request: CompactionRequest) -> Compacted:
        return Compacted((System("Be kind."), user("in short")))


class Adds:
    """A collector that has something to say once, and a recorder."""

    def __init__(self) -> None:
        self.left = ["from the host"]
        self.accepted: list[bool] = []
        self.records = 0

    async def collect(self, boundary: BoundaryKind) -> str | None:
        return self.left.pop() if self.left and boundary == "before_completion" else None

    def acknowledge(self, accepted: bool) -> None:
        self.accepted.append(accepted)

    async def record(self, record: RecordUsage) -> None:
        self.records += 1


async def test_what_the_host_lends_is_shown(tmp_path: Path) -> None:
    path, lent = tmp_path / "trace.jsonl", Adds()
    with Recording(path) as recording:
        model = recording.provider(provider(tmp_path, ["one", "two", "three"]))
        async with Rho(
            model,
            config=RhoConfig(compact_at_messages=4),
            compactor=recording.compactor(Shortens()),
            collector=recording.collector(lent),
            recorder=recording.recorder(lent),
            journal=recording.journal,
        ) as rho:
            session = recording.session(rho.session("s1", system="Be kind."))
            await talk(session, "a")
            await talk(session, "b")
            await session.compact()
    trace = read_trace(path)
    assert broken(trace) == {}
    assert {"RHO-ORD-11a", "RHO-BND-2", "RHO-RET-11"} <= kept(trace)
    assert (lent.accepted, lent.records) == ([True], 3)
    assert [seen.fields["trigger"] for seen in trace.named("Compact")] == ["Automatic", "Automatic", "Manual"]


class Swapping(Asks):
    """A tool in a runtime that hands it another answer than the one that was given."""

    async def execute(self, context: ToolContext) -> str:
        assert isinstance(context, TappedContext)
        honest = context._inner
        context._inner = Swapped(honest)
        return await super().execute(context)


class Swapped:
    """A context that swaps answers."""

    def __init__(self, honest: ToolContext) -> None:
        self._honest = honest
        self.call, self.token, self.detachable, self.progress = (
            honest.call,
            honest.token,
            honest.detachable,
            honest.progress,
        )

    async def ask(self, request: HostInputRequest) -> Answers:
        await self._honest.ask(request)
        return (("size", ("l",)),)


async def test_a_tool_that_gets_another_answer_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with Recording(path) as recording:
        model, tools = recording.provider(provider(tmp_path, [[call("a")], "end"])), recording.tools([Swapping()])
        async with Rho(model, tools, CONFIG, journal=recording.journal) as rho:
            await talk(recording.session(rho.session("s1")), "go", "s")
    assert "RHO-HOST-3" in broken(read_trace(path))
