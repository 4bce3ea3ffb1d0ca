"""Did raw reasoning get into a history or a request (S3 of scenario format §6)?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rho_conformance.trace import Trace

_SHORTEST = 4
"""Shorter texts occur by chance."""


def leaks(trace: Trace) -> Iterator[tuple[int, str, str]]:
    """Step, place and text of each leak, once for each place and text.

    A leak is a message that the driver marks with `reasoning`, or one with a text that the provider gave as
    reasoning and that nothing else in the script holds.
    """
    canaries = _canaries(trace)
    seen: set[tuple[str, str]] = set()
    for step, where, messages in _places(trace):
        for leak in _leaks_in(messages, canaries):
            if (where, leak) not in seen:
                seen.add((where, leak))
                yield step, where, leak


def _places(trace: Trace) -> Iterator[tuple[int, str, Any]]:
    for step, record in enumerate(trace.steps, 1):
        yield step, f"history of {trace.main_session}", record.facts.get("history", [])
        for name, facts in record.facts.get("sessions", {}).items():
            yield step, f"history of {name}", facts.get("history", [])
    for call in trace.named("ModelCall"):
        yield call.step, f"model call {call.fields.get('n')}", call.fields.get("messages", [])


def _leaks_in(messages: list[Any], canaries: set[str]) -> Iterator[str]:
    for message in messages:
        for body in message.values():
            if isinstance(body, dict) and body.get("reasoning"):
                yield str(body["reasoning"])
        texts = list(_texts(message))
        yield from (canary for canary in canaries if any(canary in text for text in texts))


def _canaries(trace: Trace) -> set[str]:
    """The reasoning texts that no other part of the script holds."""
    reasoning: set[str] = set()
    others = list(_texts(trace.config))
    for record in trace.steps:
        for stimulus in record.perform:
            item = stimulus.get("provider")
            if isinstance(item, dict) and "reasoning" in item:
                given = item["reasoning"]
                reasoning.update(given if isinstance(given, list) else [given])
                others += _texts({key: value for key, value in item.items() if key != "reasoning"})
            else:
                others += _texts(stimulus)
    script = json.dumps(others, ensure_ascii=False)
    return {text for text in reasoning if len(text) >= _SHORTEST and json.dumps(text)[1:-1] not in script}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
