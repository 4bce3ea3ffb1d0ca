"""Between pydantic-ai's messages and errors and the normal forms of the driver protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_ai import messages as pm
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, RunCancelled

Json = dict[str, Any]

# The statuses that stand for the error kinds of the scenario format. Which of them a runtime may retry
# is its own affair: `retryable` has no place on this wire, as on a real provider's.
STATUS = {
    "Authentication": 401,
    "Timeout": 408,
    "RateLimit": 429,
    "Other": 500,
    "InvalidResponse": 502,
    "Unavailable": 503,
}
KIND = {status: kind for kind, status in STATUS.items()}


def arguments(value: Any) -> Any:
    """Tool arguments as a JSON value; text that is no JSON stays text."""
    if not isinstance(value, str):
        return value if value is not None else {}
    try:
        return json.loads(value)
    except ValueError:
        return value


def history(kept: Iterable[pm.ModelMessage]) -> list[Json]:
    """The messages a caller was handed. A response that the runtime marks as cut off is `aborted`."""
    return _messages(kept, "aborted")


def request(shown: Iterable[pm.ModelMessage]) -> list[Json]:
    """The messages a model is shown.

    A `FunctionModel` sits above the step that makes a provider's request of them. That step sends no cut-off
    mark, so every response is an `assistant`; and no response without parts, so those are left out.
    """
    sent = (message for message in shown if message.parts or not isinstance(message, pm.ModelResponse))
    return _messages(sent, "assistant")


def _messages(history: Iterable[pm.ModelMessage], cut_off: str) -> list[Json]:
    # Run ids, timestamps and usage are left out: they differ between two runs of one script.
    out: list[Json] = []
    for message in history:
        if isinstance(message, pm.ModelResponse):
            out.append({cut_off if message.state == "interrupted" else "assistant": _assistant(message.parts)})
        else:
            out.extend(item for part in message.parts if (item := _request_part(part)) is not None)
    return out


def _assistant(parts: Sequence[pm.ModelResponsePart]) -> Json:
    body: Json = {
        "text": "".join(part.content for part in parts if isinstance(part, pm.TextPart)),
        "calls": [part.tool_call_id for part in parts if isinstance(part, pm.ToolCallPart)],
    }
    reasoning = "".join(part.content for part in parts if isinstance(part, pm.ThinkingPart))
    if reasoning:
        body["reasoning"] = reasoning
    return body


def _request_part(part: pm.ModelRequestPart) -> Json | None:
    match part:
        case pm.SystemPromptPart():
            return {"system": str(part.content)}
        case pm.UserPromptPart():
            return {"user": _user_text(part.content)}
        case pm.ToolReturnPart():
            return {
                "result": {
                    "id": part.tool_call_id,
                    "ok": part.outcome == "success",
                    "text": result_text(part),
                }
            }
        case _:
            return None


def _user_text(content: str | Sequence[pm.UserContent]) -> str:
    return content if isinstance(content, str) else "".join(item for item in content if isinstance(item, str))


def result_text(part: pm.ToolReturnPart) -> str:
    """The content that was put in; other content as the runtime renders it for a model."""
    return part.content if isinstance(part.content, str) else part.model_response_str()


def provider_error(fail: Json, model_name: str) -> ModelAPIError:
    """What a model class of pydantic-ai raises for a `fail` item; without a status, the general exception."""
    if fail["kind"] not in STATUS:
        return ModelAPIError(model_name, str(fail.get("message", fail["kind"])))
    hint = fail.get("retry_after_header") or (seconds(fail["retry_after"]) if "retry_after" in fail else None)
    return ModelHTTPError(
        STATUS[fail["kind"]],
        model_name,
        str(fail.get("message", fail["kind"])),
        headers=None if hint is None else {"retry-after": str(hint)},
    )


def outcome_error(error: BaseException) -> Json:
    """`{error: NAME, …}`: the contract's name where the meaning is the same, else the exception's own."""
    if isinstance(error, RunCancelled):
        return {"error": "Cancelled"}
    if isinstance(error, asyncio.CancelledError):
        return {"error": "Interrupted"}
    if isinstance(error, ModelAPIError):
        kind = KIND.get(error.status_code) if isinstance(error, ModelHTTPError) else None
        return {"error": "Provider", **({"kind": kind} if kind else {}), "message": str(error)}
    return {"error": type(error).__name__, "message": str(error)}


def milliseconds(duration: str) -> int:
    """A duration of the scenario format. Raises `ValueError` for anything else."""
    for suffix, factor in (("ms", 1), ("s", 1000), ("m", 60_000)):
        if duration.endswith(suffix):
            return round(float(duration.removesuffix(suffix)) * factor)
    raise ValueError(f"not a duration: {duration!r} (expected like 500ms, 1.5s, 2m)")


def seconds(duration: str) -> str:
    return f"{milliseconds(duration) / 1000:g}"
