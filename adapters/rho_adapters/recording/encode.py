"""Values of the core as JSON of the driver protocol (`spec/protocol.md`, "Messages" and "Commands")."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rho_adapters.errors import RhoError, RunFailed
from rho_core import messages as m
from rho_core.asks import Answers, HostInputRequest
from rho_core.events import RunOutcome

Json = dict[str, Any]

USAGE_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "total_tokens",
    "context_window",
    "cost_usd_micros",
)


def present(**given: Any) -> Json:
    """The fields that are there: absent ones are left out."""
    return {key: value for key, value in given.items() if value is not None}


def usage(value: m.Usage) -> Json:
    """The fields that were reported."""
    return {name: n for name in USAGE_FIELDS if (n := getattr(value, name)) is not None}


def arguments(raw: str) -> Any:
    """Tool arguments as a JSON value; text that is no JSON stays text."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def call(value: m.ToolCall) -> Json:
    """A complete call, as an event has it."""
    return {"id": value.id, "name": value.name, "arguments": arguments(value.arguments)}


def given_call(value: m.ToolCall, marked: bool = False) -> Json:
    """A complete call, as the environment hands it over. `marked`: it may be detached."""
    return {
        "id": value.id,
        "tool": value.name,
        "args": arguments(value.arguments),
        **({"async": True} if marked else {}),
    }


def message(value: m.Message) -> Json:
    """One message."""
    match value:
        case m.System(text=text):
            return {"system": text}
        case m.User(content=content):
            return {"user": m.text_of(content)}
        case m.Assistant(content=content, reasoning_summary=summary):
            return {"assistant": _body(content, summary)}
        case m.AbortedAssistant():
            return {"aborted": _aborted(value)}
        case m.ToolResult(id=call_id, ok=ok, content=text):
            return {"result": {"id": call_id, "ok": ok, "text": text}}


def _body(content: tuple[m.Block, ...], summary: str | None) -> Json:
    calls = [c.id for c in m.calls_of(content)]
    return {"text": m.text_of(content), "calls": calls, **present(summary=summary)}


def _aborted(value: m.AbortedAssistant) -> Json:
    body = _body(value.content, value.reasoning_summary)
    body["tool_calls"] = [present(id=c.id, name=c.name, arguments=c.arguments) for c in value.tool_calls]
    if not value.usage.is_empty():
        body["usage"] = usage(value.usage)
    return body


def messages(history: Iterable[m.Message]) -> list[Json]:
    """A history."""
    return [message(one) for one in history]


def request(value: HostInputRequest) -> Json:
    """A question to the host."""
    questions = [
        {
            "id": q.id,
            "prompt": q.prompt,
            "choices": [present(value=c.value, label=c.label, description=c.description) for c in q.choices],
            "many": q.many,
            "allow_other": q.allow_other,
            "required": q.required,
            **present(header=q.header, help=q.help, default=q.default),
        }
        for q in value.questions
    ]
    return {"id": value.id, "title": value.title, "questions": questions}


def answers(value: Answers) -> Json:
    """Answers by question."""
    return {question: list(given) for question, given in value}


def success(value: RunOutcome, steers: dict[str, str]) -> Json:
    """What a run achieved. `steers`: the name of each steering id."""
    return {
        "text": value.text,
        "stop": value.stop_reason,
        "usage": usage(value.usage),
        "revision": value.revision,
        "unapplied_steering": [steers.get(i, i) for i in value.unapplied_steering],
    }


def refusal(fault: RhoError) -> Json:
    """The reply to a command that was refused."""
    return {"error": str(fault.name), "message": fault.error.message, **present(rule=fault.rule)}


def failure(fault: RunFailed, steers: dict[str, str]) -> Json:
    """The outcome of a run that did not complete."""
    error = fault.error
    return {
        "error": str(error.name),
        **present(kind=None if error.provider_kind is None else str(error.provider_kind)),
        "retryable": error.retryable,
        "message": error.message,
        "unapplied_steering": [steers.get(i, i) for i in fault.unapplied_steering],
    }
