"""OpenTelemetry: real SDK exporters see spans and metrics by the GenAI conventions, and nothing of what was said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rho_adapters import ModelRequest, Rho, RunCancelled, RunFailed, ToolContext, ToolFailure
from rho_adapters.clock import VirtualClock
from rho_adapters.provider import failure
from rho_adapters.telemetry import Telemetry
from rho_core import inputs as inp
from rho_core.errors import ProviderErrorKind
from rho_core.messages import Identity, Text, Usage
from tests.adapters.scripted import Does, Scripted, asks, call, fails, hangs, says

pytestmark = pytest.mark.anyio
SECRET = "the-canary-sings"


class Seen:
    """Exporters in memory, and the observer that feeds them."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader])
        self.observer = Telemetry(provider, meters, identity=Identity("openai", "chat", "small"), **options)

    def spans(self, operation: str) -> list[ReadableSpan]:
        """Ended spans of that operation."""
        ended = self.exporter.get_finished_spans()
        return [s for s in ended if (s.attributes or {}).get("gen_ai.operation.name") == operation]

    def points(self, name: str) -> dict[str, float]:
        """Sums of a metric by token type or error."""
        data = self.reader.get_metrics_data()
        out: dict[str, float] = {}
        for resource in data.resource_metrics if data else ():
            for metric in (m for scope in resource.scope_metrics for m in scope.metrics if m.name == name):
                for point in metric.data.data_points:
                    key = (point.attributes or {}).get("gen_ai.token.type") or (point.attributes or {}).get(
                        "error.type"
                    )
                    out[str(key)] = point.sum  # type: ignore[union-attr]
        return out


def counted(request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
    async def turn() -> AsyncIterator[inp.ModelInput]:
        yield request.text(SECRET)
        yield request.usage(Usage(10, 3, cache_read_tokens=4))
        yield request.returned((Text(SECRET),))

    return turn()


async def ok(context: ToolContext) -> str:
    return SECRET


async def test_a_run_is_a_tree_of_spans() -> None:
    seen = Seen()
    async with Rho(Scripted(asks(call("A")), counted), [Does("t", ok)], observers=[seen.observer]) as rho:
        await rho.session("s1").complete(SECRET)
    (run,), chats, (tool,) = seen.spans("invoke_agent"), seen.spans("chat"), seen.spans("execute_tool")
    assert run.attributes is not None and tool.attributes is not None
    assert (run.attributes["gen_ai.conversation.id"], run.attributes["gen_ai.usage.output_tokens"]) == ("s1", 3)
    assert [s.name for s in (*chats, tool)] == ["chat small", "chat small", "execute_tool t"]
    assert run.context is not None
    assert all(s.parent is not None and s.parent.span_id == run.context.span_id for s in (*chats, tool))
    last = chats[1].attributes or {}
    assert (last["gen_ai.usage.input_tokens"], last["gen_ai.usage.cache_read.input_tokens"]) == (10, 4)
    assert float(str(last["gen_ai.response.time_to_first_chunk"])) >= 0
    assert (tool.attributes["gen_ai.tool.call.id"], run.status.is_ok) == ("A", True)
    assert seen.points("gen_ai.client.token.usage") == {"input": 10, "output": 3}
    assert SECRET not in "".join(s.to_json() for s in seen.exporter.get_finished_spans())


async def test_every_attempt_has_a_span_and_says_how_it_failed() -> None:
    clock, seen = VirtualClock(), Seen()
    slow = failure(ProviderErrorKind.RATE_LIMIT, "slow down", retryable=True)
    gone = failure(ProviderErrorKind.AUTHENTICATION, "no", retryable=False)
    provider = Scripted(fails(slow, "x"), fails(gone))
    async with Rho(provider, clock=clock, observers=[seen.observer]) as rho, rho.session().start("go") as run:
        await anyio.wait_all_tasks_blocked()
        assert clock.wake_next(1_000)
        with pytest.raises(RunFailed):
            await run.outcome()
    errors = [(s.attributes or {}).get("error.type") for s in (*seen.spans("chat"), *seen.spans("invoke_agent"))]
    assert errors == ["RateLimit", "Authentication", "Provider"]
    (whole,) = seen.spans("invoke_agent")
    assert [e.name for e in whole.events] == ["rho.provider.stream_reset"]
    assert set(seen.points("gen_ai.client.operation.duration")) == {"RateLimit", "Authentication"}


async def test_a_cancel_and_a_drop_end_every_span() -> None:
    seen, started, again = Seen(), anyio.Event(), anyio.Event()
    async with Rho(Scripted(hangs(started), hangs(again)), observers=[seen.observer]) as rho:
        session = rho.session()
        async with session.start("go") as run:
            await started.wait()
            run.cancel()
            with pytest.raises(RunCancelled):
                await run.outcome()
        async with session.start("go"):
            await again.wait()
    assert [(s.attributes or {}).get("error.type") for s in seen.spans("invoke_agent")] == ["Cancelled", "dropped"]
    assert len(seen.spans("chat")) == 2


async def test_a_failed_tool_is_marked_and_content_is_shown_on_request() -> None:
    async def bad(context: ToolContext) -> str:
        raise ToolFailure(SECRET)

    seen = Seen(capture_content=True)
    async with Rho(Scripted(asks(call("A")), says("x")), [Does("t", bad)], observers=[seen.observer]) as rho:
        await rho.session().complete("go")
    (tool,) = seen.spans("execute_tool")
    attributes = tool.attributes or {}
    assert (attributes["error.type"], attributes["gen_ai.tool.call.result"]) == ("Execution", SECRET)


async def test_an_observer_that_fails_costs_nothing() -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    async with Rho(Scripted(says("fine")), observers=[broken]) as rho:
        assert (await rho.session().complete("go")).text == "fine"
        assert "ZeroDivisionError" in rho.diagnostics[0]
