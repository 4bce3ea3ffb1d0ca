"""AG-UI messages -> messages of the core: what a client brings along of a thread that is new here."""

from __future__ import annotations

from typing import Any

from rho_core.messages import Assistant, Block, History, Message, System, Text, ToolCall, ToolResult, User


def text_of(content: Any) -> str:
    """The text of a message, whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(getattr(part, "text", "") for part in content or ())


def split(messages: list[Any]) -> tuple[list[Any], str | None]:
    """What came before, and the new user message at the end, if there is one."""
    if messages and messages[-1].role == "user":
        return messages[:-1], text_of(messages[-1].content)
    return messages, None


def history_of(messages: list[Any]) -> History:
    """The messages in the core's form. A call that has no result is left out: nobody can answer it any more."""
    answered = {m.tool_call_id for m in messages if m.role == "tool"}
    made = (_message(m, answered) for m in messages)
    return tuple(m for m in made if m is not None)


def _message(m: Any, answered: set[str]) -> Message | None:
    if m.role in ("system", "developer"):
        return System(text_of(m.content))
    if m.role == "user":
        return User((Text(text_of(m.content)),))
    if m.role == "tool":
        return ToolResult(m.tool_call_id, m.error is None, text_of(m.content))
    if m.role != "assistant":
        return None
    text = text_of(m.content)
    content: list[Block] = [Text(text)] if text else []
    calls = [c for c in m.tool_calls or () if c.id in answered]
    content += [ToolCall(c.id, c.function.name, c.function.arguments or "{}") for c in calls]
    return Assistant(tuple(content)) if content else None
