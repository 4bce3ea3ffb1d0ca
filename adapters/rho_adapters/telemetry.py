"""OpenTelemetry: spans and metrics by the GenAI semantic conventions, as a projection of the core's steps.

Off unless it is given to a runtime: `Rho(..., observers=[Telemetry()])`, with the extra `[telemetry]` installed
and an SDK configured. No text of a conversation leaves by it unless `capture_content` is set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer, set_span_in_context

from rho_core import effects as fx
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.messages import NO_USAGE, Identity, Usage

NAME = "rho_adapters"
TOKEN_BUCKETS = tuple(4**n for n in range(14))
SECOND_BUCKETS = tuple(0.01 * 2**n for n in range(14))
Attributes = dict[str, Any]


@dataclass(slots=True)
class _Request:
    """One logical request of a run. `first`: seconds to the first thing it generated."""

    span: Span
    begun: float
    attempt: tuple[int, int]
    first: float | None = None
    usage: Usage = NO_USAGE


@dataclass(slots=True)
class _Run:
    span: Span
    id: str
    request: _Request | None = None
    tools: dict[str, Span] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


class Telemetry:
    """An observer of a runtime. `identity`: the provider, for attributes; read from the events when not given."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        identity: Identity | None = None,
        capture_content: bool = False,
    ) -> None:
        self._tracer = get_tracer(NAME, tracer_provider=tracer_provider)
        meter = get_meter(NAME, meter_provider=meter_provider)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", explicit_bucket_boundaries_advisory=TOKEN_BUCKETS
        )
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", explicit_bucket_boundaries_advisory=SECOND_BUCKETS
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk", "s", explicit_bucket_boundaries_advisory=SECOND_BUCKETS
        )
        self._identity = identity
        self._content = capture_content
        self._runs: dict[str, _Run] = {}

    def __call__(self, session_id: str | None, value: Any, effects: tuple[Any, ...]) -> None:
        """One step of the core: what came in, and what it caused."""
        if session_id is None:
            return
        run = self._runs.get(session_id)
        if run is not None:
            late = type(value) is inp.ForRun
            if not late:
                self._input(run, value, effects)
        for effect in effects:
            act = _EFFECTS.get(type(effect))
            if act is not None:
                act(self, session_id, effect)

    # -- inputs ------------------------------------------------------------------------------------------------

    def _input(self, run: _Run, value: Any, effects: tuple[Any, ...]) -> None:
        if effects and type(effects[0]) is fx.NotReady:
            return
        kind, request = type(value), run.request
        if request is not None and getattr(value, "attempt", None) == request.attempt[1]:
            if kind in inp.GENERATED and request.first is None:
                request.first = perf_counter() - request.begun
            elif kind is inp.UsageReported:
                request.usage = request.usage + value.usage
            elif kind is inp.ModelReturned:
                self._end_request(run, None)
            elif kind is inp.ModelFailed:
                self._end_request(run, str(value.error.error_kind))
            elif kind is inp.ModelPanicked:
                self._end_request(run, "panic")
        if kind is inp.ToolReturned:
            failed = isinstance(value.completion, ev.Failure)
            text = value.completion.text if self._content else None
            self._end_tool(run, value.call_id, str(value.completion.error_kind) if failed else None, text)
        elif kind is inp.ToolPanicked:
            self._end_tool(run, value.call_id, "panic")

    # -- effects -----------------------------------------------------------------------------------------------

    def _delivered(self, session_id: str, e: fx.Deliver) -> None:
        if isinstance(e.event, ev.Started):
            self._begin(session_id, e.event)
            return
        run = self._runs.get(session_id)
        if run is not None and isinstance(e.event, ev.ProviderStreamReset):
            run.span.add_event("rho.provider.stream_reset", {"rho.reset.reason": type(e.event.reason).__name__})
        elif run is not None and isinstance(e.event, ev.CompactionCompleted):
            run.span.add_event("rho.compaction", {"rho.compaction.trigger": e.event.trigger})

    def _begin(self, session_id: str, started: ev.Started) -> None:
        stale = self._runs.pop(session_id, None)
        if stale is not None:
            self._close(stale, "dropped")
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": session_id}
        attributes |= {"rho.run.id": started.run} | self._who()
        self._runs[session_id] = _Run(self._tracer.start_span("invoke_agent", attributes=attributes), started.run)

    def _who(self) -> Attributes:
        who = self._identity
        return {} if who is None else {"gen_ai.provider.name": who.provider, "gen_ai.request.model": who.model}

    def _called(self, session_id: str, e: fx.CallModel) -> None:
        run = self._runs.get(session_id)
        if run is None:
            return
        self._end_request(run, "abandoned")
        model = "" if self._identity is None else f" {self._identity.model}"
        attributes: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": session_id} | self._who()
        attributes |= {"gen_ai.request.stream": True, "rho.step": e.step, "rho.attempt": e.attempt}
        span = self._child(run, f"chat{model}", SpanKind.CLIENT, attributes)
        run.request = _Request(span, perf_counter(), (e.step, e.attempt))

    def _child(self, run: _Run, name: str, kind: SpanKind, attributes: Attributes) -> Span:
        return self._tracer.start_span(name, set_span_in_context(run.span), kind, attributes)

    def _aborted(self, session_id: str, _: fx.AbortModel) -> None:
        run = self._runs.get(session_id)
        if run is not None:
            self._end_request(run, "cancelled")

    def _end_request(self, run: _Run, error: str | None) -> None:
        request, run.request = run.request, None
        if request is None:
            return
        usage, common = request.usage, {"gen_ai.operation.name": "chat"} | self._who()
        found = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.response.time_to_first_chunk": request.first,
        }
        request.span.set_attributes({key: value for key, value in found.items() if value is not None})
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if count is not None:
                self._tokens.record(count, common | {"gen_ai.token.type": kind})
        ended = common if error is None else common | {"error.type": error}
        self._duration.record(perf_counter() - request.begun, ended)
        if request.first is not None:
            self._first.record(request.first, common)
        _end(request.span, error)

    def _prepared(self, session_id: str, e: fx.Prepare) -> None:
        run = self._runs.get(session_id)
        if run is not None:
            run.names[e.call.id] = e.call.name

    def _executed(self, session_id: str, e: fx.Execute) -> None:
        run = self._runs.get(session_id)
        if run is None:
            return
        name = run.names.get(e.call_id, "")
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        attributes |= {"gen_ai.tool.call.id": e.call_id, "gen_ai.tool.type": "function"}
        run.tools[e.call_id] = self._child(run, f"execute_tool {name}", SpanKind.INTERNAL, attributes)

    def _tool_aborted(self, session_id: str, e: fx.AbortTool) -> None:
        run = self._runs.get(session_id)
        if run is not None:
            self._end_tool(run, e.call_id, "cancelled")

    def _end_tool(self, run: _Run, call_id: str, error: str | None, text: str | None = None) -> None:
        span = run.tools.pop(call_id, None)
        if span is not None:
            if text is not None:
                span.set_attribute("gen_ai.tool.call.result", text)
            _end(span, error)

    def _reported(self, session_id: str, e: fx.ReportOutcome) -> None:
        run = self._runs.pop(session_id, None)
        if run is None:
            return
        if isinstance(e.outcome, ev.RunOutcome):
            usage = e.outcome.usage
            found = {"gen_ai.usage.input_tokens": usage.input_tokens, "gen_ai.usage.output_tokens": usage.output_tokens}
            run.span.set_attributes({key: value for key, value in found.items() if value is not None})
            run.span.set_attribute("rho.stop_reason", e.outcome.stop_reason)
            self._close(run, None)
        else:
            self._close(run, "dropped" if e.outcome is None else str(e.outcome.error.name))

    def _close(self, run: _Run, error: str | None) -> None:
        self._end_request(run, "abandoned" if error is None else error)
        for call_id in list(run.tools):
            self._end_tool(run, call_id, "abandoned" if error is None else error)
        _end(run.span, error)


def _end(span: Span, error: str | None) -> None:
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, error))
    span.end()


_EFFECTS: dict[type, Callable[[Telemetry, str, Any], None]] = {
    fx.Deliver: Telemetry._delivered,
    fx.CallModel: Telemetry._called,
    fx.AbortModel: Telemetry._aborted,
    fx.Prepare: Telemetry._prepared,
    fx.Execute: Telemetry._executed,
    fx.AbortTool: Telemetry._tool_aborted,
    fx.ReportOutcome: Telemetry._reported,
}
