"""Are the tool calls of a history answered (S2 of scenario format §6)?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rho_conformance.trace import Trace


def answer_faults(messages: Sequence[Any], exempt: frozenset[str], *, settled: bool) -> Iterator[str]:
    """Calls of completed assistants with more than one answer, or with none in a `settled` history.

    An id may come again in a later assistant; each answer belongs to the newest call of its id before it.
    Answers without a call are left alone: a replaced history may have lost the call.
    """
    answers: dict[str, int] = {}
    for message in messages:
        if "assistant" in message:
            for call in _calls(message):
                if settled and answers.get(call) == 0 and call not in exempt:
                    yield f"call {call} has no answer"
                answers[call] = 0
        elif "result" in message:
            call = message["result"].get("id")
            if call in answers:
                answers[call] += 1
                if answers[call] == 2 and call not in exempt:
                    yield f"call {call} is answered twice"
    if settled:
        for call, number in answers.items():
            if number == 0 and call not in exempt:
                yield f"call {call} has no answer"


def _calls(message: Any) -> list[str]:
    body = message["assistant"]
    return body.get("calls") or [] if isinstance(body, dict) else []


def exempt_calls(trace: Trace) -> frozenset[str]:
    """The calls that the host itself left unanswered, or answered twice, in a history that it supplied."""
    supplied: list[list[Any]] = [list(trace.config.get("history") or [])]
    for record in trace.steps:
        for stimulus in record.perform:
            ((name, value),) = stimulus.items()
            if name == "append":
                supplied.append([value["message"]])
            elif name == "replace_history":
                supplied.append(value["messages"])
    return frozenset(call for messages in supplied for call in _loose(messages))


def _loose(messages: list[Any]) -> Iterator[str]:
    results = [message["result"].get("id") for message in messages if "result" in message]
    calls = [call for message in messages if "assistant" in message for call in _calls(message)]
    for call in {*calls, *results}:
        if results.count(call) != calls.count(call):
            yield call
