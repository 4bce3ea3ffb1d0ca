"""Judge the keys of `expect` that speak of messages: histories and model requests (scenario format §4)."""

from __future__ import annotations

from typing import Any

from rho_conformance.driver import JsonMap
from rho_conformance.scenario.match import MISSING, in_range, is_permutation, matches
from rho_conformance.scenario.normalise import show
from rho_conformance.scenario.view import View, sequence_complaint


def history(view: View, session: str, wanted: list[Any]) -> str | None:
    messages = view.trace.facts_of(session).get("history", MISSING)
    if messages is MISSING:
        return f"the driver reports no history of {session}"
    return sequence_complaint(wanted, messages, matches, show)


def history_unordered(view: View, session: str, wanted: list[Any]) -> str | None:
    messages = view.trace.facts_of(session).get("history", MISSING)
    if messages is MISSING:
        return f"the driver reports no history of {session}"
    if is_permutation(wanted, messages, matches):
        return None
    missing = [show(pattern) for pattern in wanted if not any(matches(pattern, item) for item in messages)]
    lack = f"nothing matches {', '.join(missing)}; " if missing else ""
    return f"expected {len(wanted)} messages in any order; {lack}history: {show(messages)}"


def requests(view: View, session: str, wanted: Any) -> str | None:
    calls = [seen.fields for seen in view.trace.named("ModelCall", session)]
    if not isinstance(wanted, list):
        limits = wanted if isinstance(wanted, dict) else {"min": wanted, "max": wanted}
        if not in_range(len(calls), limits):
            return f"expected {show(wanted)} model calls, got {len(calls)}"
        return None
    if len(wanted) != len(calls):
        return f"expected {len(wanted)} model calls, got {len(calls)}"
    for number, (entry, call) in enumerate(zip(wanted, calls, strict=True), 1):
        complaint = _request(entry, call, calls)
        if complaint is not None:
            return f"model call {number}: {complaint}"
    return None


def _request(entry: Any, call: JsonMap, calls: list[JsonMap]) -> str | None:
    if entry == "*":
        return None
    if isinstance(entry, list):
        return sequence_complaint(entry, call.get("messages", []), _sent, show)
    other = calls[entry["same_as"] - 1]
    for part in ("messages", "tools", "system"):
        if call.get(part) != other.get(part):
            seen = f"{show(call.get(part))}, not {show(other.get(part))}"
            return f"{part} not the same as in call {entry['same_as']}: {seen}"
    return None


def _sent(pattern: Any, message: Any) -> bool:
    """Whether a message of a request matches. The model is sent an aborted message as one of the assistant."""
    if matches(pattern, message):
        return True
    return "assistant" in pattern and "aborted" in message and matches(pattern["assistant"], message["aborted"])
