"""pydantic-ai's stream events as events of the protocol, one to one; what has no counterpart is left out.

Not mapped, because pydantic-ai says nothing of the kind: Started, StepStarted, ToolStarted (the start of a
call is announced once, before its execution: ToolProposed), UsageUpdated, ToolUpdated, resets and retries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import messages as pm

from . import normal
from .normal import Json

Named = tuple[str, Json]


def translate(event: Any, known_tools: set[str], steer_name: Callable[[str], str | None]) -> Named | None:
    """`(name, fields)` of an event, or `None`."""
    match event:
        case pm.PartStartEvent():
            return _start(event)
        case pm.PartDeltaEvent():
            return _delta(event)
        case pm.FunctionToolCallEvent():
            call = event.part
            body = {"id": call.tool_call_id, "name": call.tool_name, "arguments": normal.arguments(call.args)}
            return "ToolProposed", {"call_id": call.tool_call_id, "call": body}
        case pm.FunctionToolResultEvent():
            return _finished(event.part, known_tools)
        case pm.EnqueuedMessagesEvent():
            return "SteeringApplied", {"ids": [steer_name(event.enqueue_id) or event.enqueue_id]}
        case _:
            return None


def _start(event: pm.PartStartEvent) -> Named | None:
    match event.part:
        case pm.TextPart(content=text) if text:
            return "AssistantTextDelta", {"text": text, "attempt": 1}
        case pm.ThinkingPart(content=text) if text:
            return "ReasoningDelta", {"text": text, "attempt": 1}
        case pm.ToolCallPart() as call:
            return "ToolCallUpdated", {
                "index": event.index,
                "id": call.tool_call_id,
                "name": call.tool_name,
                "arguments_delta": call.args if isinstance(call.args, str) else "",
                "attempt": 1,
            }
        case _:
            return None


def _delta(event: pm.PartDeltaEvent) -> Named | None:
    match event.delta:
        case pm.TextPartDelta(content_delta=text) if text:
            return "AssistantTextDelta", {"text": text, "attempt": 1}
        case pm.ThinkingPartDelta(content_delta=str(text)) if text:
            return "ReasoningDelta", {"text": text, "attempt": 1}
        case pm.ToolCallPartDelta(args_delta=str(text)):
            return "ToolCallUpdated", {"index": event.index, "arguments_delta": text, "attempt": 1}
        case _:
            return None


def _finished(part: pm.ToolReturnPart, known_tools: set[str]) -> Named:
    fields: Json = {"call_id": part.tool_call_id, "text": normal.result_text(part)}
    if part.outcome == "success":
        return "ToolFinished", {**fields, "result": "ok"}
    if part.tool_name not in known_tools:
        return "ToolFinished", {**fields, "result": "unavailable"}
    # "retried" is the runtime's own answer to arguments that do not validate (or to ModelRetry).
    kind = "InvalidArguments" if part.outcome == "retried" else "Execution"
    return "ToolFinished", {**fields, "result": "failed", "kind": kind}
