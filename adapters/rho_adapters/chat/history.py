"""A history as lines of text."""

from __future__ import annotations

from rho_core import messages as m


def told(history: m.History) -> str:
    """One paragraph for each message."""
    return "\n".join(_line(message) for message in history)


def _line(message: m.Message) -> str:
    match message:
        case m.System(text=text):
            return f"system: {text}"
        case m.User(content=content):
            return f"user: {m.text_of(content)}"
        case m.Assistant(content=content):
            return f"assistant: {_body(content)}"
        case m.AbortedAssistant(content=content, tool_calls=calls):
            pieces = "".join(f" [unfinished call of {c.name or 'a tool'}]" for c in calls)
            return f"assistant, cut off: {_body(content)}{pieces}"
        case m.ToolResult(id=call_id, ok=ok, content=text):
            return f"result of {call_id}{'' if ok else ', failed'}: {text}"


def _body(content: tuple[m.Block, ...]) -> str:
    calls = "".join(f" [calls {c.name} {c.arguments} as {c.id}]" for c in m.calls_of(content))
    return f"{m.text_of(content)}{calls}".strip()
