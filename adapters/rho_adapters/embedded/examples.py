"""Worked turns that show a small model how its tools are called, made for the tools that are declared.

A model of 135M parameters calls a tool when it has seen it called: request, call, result, answer. A host may give
examples of its own; the others are made from the tool's name, description and JSON Schema. They are part of what
the provider sends and never of a history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rho_core.messages import (
    Assistant,
    History,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
    freeze_json,
    text_of,
    user,
)

from ..tool import ToolSpec
from .samples import arguments_of, spoken

TURNS = 3
"""Worked calls in a request: more of them make the prompt longer, at 140 tokens a second, and not better."""

ID = "example-"
"""What the ids of worked calls begin with."""


@dataclass(frozen=True, slots=True)
class Example:
    """One worked turn. `request`: what the user says; `arguments`: of the call; `answer`: repeats the result."""

    request: str
    arguments: Mapping[str, Any]
    result: str
    answer: str


def with_examples(messages: History, tools: Sequence[ToolSpec], given: Mapping[str, Sequence[Example]]) -> History:
    """The messages with worked turns after the system prompts; as they are when there is no tool."""
    if not tools:
        return messages
    head = 0
    while head < len(messages) and isinstance(messages[head], System):
        head += 1
    return messages[:head] + worked(tools, given, last_words(messages)) + messages[head:]


def worked(tools: Sequence[ToolSpec], given: Mapping[str, Sequence[Example]], words: str = "") -> History:
    """A greeting that needs no tool, then up to TURNS calls. `words`: of the user, to choose among many tools."""
    shown = _closest(tools, words)
    rounds = -(-TURNS // len(shown)) if len(shown) == 1 else 1
    turns: list[Any] = [user("Hello."), Assistant((Text("Hello! What can I do for you?"),))]
    for round_ in range(min(rounds, 2)):
        for spec in shown:
            turns += _turn(spec, _example(spec, given, round_), f"{ID}{len(turns)}")
    return tuple(turns)


def last_words(messages: History) -> str:
    """What the user said last."""
    return next((text_of(m.content) for m in reversed(messages) if isinstance(m, User)), "")


def _closest(tools: Sequence[ToolSpec], words: str) -> Sequence[ToolSpec]:
    """At most TURNS tools: those that share most words with the user's, in the order of their declaration."""
    if len(tools) <= TURNS:
        return tools
    said = _words([words])
    ranked = sorted(tools, key=lambda t: -len(said & _words([t.name, t.description, *_properties(t)])))
    chosen = {t.name for t in ranked[:TURNS]}
    return [t for t in tools if t.name in chosen]


def _example(spec: ToolSpec, given: Mapping[str, Sequence[Example]], round_: int) -> Example:
    own = given.get(spec.name, ())
    return own[round_ % len(own)] if own else made(spec, round_)


def made(spec: ToolSpec, variant: int) -> Example:
    """An example from the declaration alone; another one for another variant."""
    arguments = arguments_of(spec.parameters, variant)
    purpose = re.split(r"[.\n]", spec.description.strip(), maxsplit=1)[0] or spec.name.replace("_", " ")
    said = spoken(arguments)
    result = ("18 units", "7 units")[variant % 2]
    return Example(f"{purpose}: {said}." if said else f"{purpose}.", arguments, result, f"The result is {result}.")


def _turn(spec: ToolSpec, example: Example, call_id: str) -> list[Any]:
    return [
        user(example.request),
        Assistant((ToolCall(call_id, spec.name, freeze_json(dict(example.arguments))),)),
        ToolResult(call_id, True, example.result),
        Assistant((Text(example.answer),)),
    ]


def _properties(spec: ToolSpec) -> Iterable[str]:
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else ()


def _words(texts: Iterable[str]) -> set[str]:
    return {w for text in texts for w in re.findall(r"[a-z0-9]{2,}", text.lower().replace("_", " "))}
