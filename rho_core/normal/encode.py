"""Values of the core -> the normal form: messages, usage, errors, outcomes, requests of host input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from .. import messages as m
from ..asks import Answers, HostInputRequest
from ..effects import RunEnd, RunFailed
from ..errors import Error
from ..events import RunOutcome

Json = dict[str, Any]
Naming = Callable[[str], str]
"""From an id of the core to the name that the reader knows it by."""
USAGE_FIELDS = tuple(f.name for f in fields(m.Usage))


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
    """A complete call."""
    return {"id": value.id, "name": value.name, "arguments": arguments(value.arguments)}


def message(value: m.Message) -> Json:
    """One message in the normal form."""
    match value:
        case m.System(text=text):
            return {"system": text}
        case m.User(content=content):
            return {"user": m.text_of(content)}
        case m.Assistant():
            return {"assistant": _body(value.content, value.reasoning_summary)}
        case m.AbortedAssistant():
            return {"aborted": _aborted(value)}
        case m.ToolResult(id=call_id, ok=ok, content=text):
            return {"result": {"id": call_id, "ok": ok, "text": text}}


def _body(content: tuple[m.Block, ...], summary: str | None) -> Json:
    body: Json = {"text": m.text_of(content), "calls": [c.id for c in m.calls_of(content)]}
    if summary is not None:
        body["summary"] = summary
    return body


def _aborted(value: m.AbortedAssistant) -> Json:
    body = _body(value.content, value.reasoning_summary)
    body["tool_calls"] = [present(id=c.id, name=c.name, arguments=c.arguments) for c in value.tool_calls]
    if not value.usage.is_empty():
        body["usage"] = usage(value.usage)
    return body


def messages(history: Iterable[m.Message]) -> list[Json]:
    """A history in the normal form."""
    return [message(one) for one in history]


def present(**given: Any) -> Json:
    """The fields that are there: absent optional ones are left out (protocol, "Observations")."""
    return {key: value for key, value in given.items() if value is not None}


def request(value: HostInputRequest, name: Naming) -> Json:
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
    return {"id": name(value.id), "title": value.title, "questions": questions}


def answers(value: Answers) -> Json:
    """Answers by question."""
    return {question: list(given) for question, given in value}


def error(value: Error, rule: str | None = None) -> Json:
    """A refusal or a failed outcome; `retryable` and `kind` only where the provider failed."""
    out: Json = {"error": str(value.name)}
    if value.provider_kind is not None:
        out["kind"] = str(value.provider_kind)
        out["retryable"] = value.retryable
    out["message"] = value.message
    if rule is not None:
        out["rule"] = rule
    return out


def success(value: RunOutcome, name: Naming) -> Json:
    """What a run achieved, as reply of `outcome` and inside `Completed`."""
    return {
        "text": value.text,
        "stop": value.stop_reason,
        "usage": usage(value.usage),
        "revision": value.revision,
        "unapplied_steering": [name(i) for i in value.unapplied_steering],
    }


def outcome(value: RunEnd, name: Naming) -> Json:
    """The value of the reply to `outcome`."""
    if isinstance(value, RunFailed):
        unapplied = [name(i) for i in value.unapplied_steering]
        return {"retryable": value.error.retryable, **error(value.error), "unapplied_steering": unapplied}
    return {"ok": success(value, name)}
