"""Elicitation forms of MCP as host questions, and the host's answers as the content of a form.

A form is a flat JSON Schema object. Each property becomes one question; one more question, `ACTION`, says whether
the form is accepted, declined or cancelled, because MCP tells these apart and a host answer does not. Questions of
properties are never `required` towards the host, so that a form can be declined with nothing filled in; what the
schema requires is checked here, when the form is accepted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from rho_core.asks import Answers, Choice, HostInputRequest, Question, check_request

ACTION = "@action"
"""Id of the question whose answer is `accept`, `decline` or `cancel`."""

_ACTIONS = (
    Choice("accept", "Accept", "send the answers"),
    Choice("decline", "Decline", "say no"),
    Choice("cancel", "Cancel", "give no answer"),
)
_FORMATS = {
    "email": "an e-mail address",
    "uri": "a URI",
    "date": "YYYY-MM-DD",
    "date-time": "an ISO 8601 date and time",
}

_READ: dict[str, type] = dict.fromkeys(("title", "description", "format"), str)
_READ |= dict.fromkeys(("enum", "enumNames", "oneOf", "anyOf"), list) | {"items": dict}

Value = str | int | float | bool | list[str] | None


class Unaskable(Exception):
    """The form has a property that no question can stand for."""


class InvalidAnswer(Exception):
    """An answer does not fit the form; the text says which and why."""


def question_for(
    request_id: str, server: str, params: ElicitRequestParams, issue: str | None = None
) -> HostInputRequest:
    """The host question for an elicitation. `issue`: what was wrong with the answer before. Raises Unaskable."""
    title = f"{server}: {params.message}"
    prompt = params.message if issue is None else f"{params.message}\nThe last answer did not do: {issue}"
    if isinstance(params, ElicitRequestFormParams):
        schema = params.requested_schema
        required = _required(schema)
        fields = tuple(_question(name, spec, name in required) for name, spec in properties(schema).items())
    else:
        prompt, fields = f"{prompt}\nOpen {params.url}", ()
    action = Question(ACTION, prompt, _ACTIONS, required=not fields, default="accept")
    request = HostInputRequest(request_id, title, (action, *fields))
    flaw = check_request(request)
    if flaw is not None:
        raise Unaskable(flaw)
    return request


def result_for(params: ElicitRequestParams, answers: Answers) -> ElicitResult:
    """What goes back to the server. Without an action, some answer accepts and none at all cancels.

    Raises InvalidAnswer.
    """
    given = dict(answers)
    action = next(iter(given.pop(ACTION, ())), "accept" if given else "cancel")
    if action == "accept":
        content = _content(params, given) if isinstance(params, ElicitRequestFormParams) else None
        return ElicitResult(action="accept", content=content)
    if action == "decline":
        return ElicitResult(action="decline")
    if action == "cancel":
        return ElicitResult(action="cancel")
    raise InvalidAnswer(f"{ACTION} is accept, decline or cancel, not {action!r}")


def properties(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The properties of a form. Raises Unaskable for what is none."""
    found = schema.get("properties", {})
    if not isinstance(found, dict):
        raise Unaskable("the form has no properties")
    for name, spec in found.items():
        if not _sound(spec) or not _sound(spec.get("items", {})):
            raise Unaskable(f"the property {name!r} has no sound JSON Schema")
    return found


def _sound(spec: object) -> bool:
    """Is everything that is read of a property here of the kind that it should be? It is the server's word."""
    return isinstance(spec, dict) and all(isinstance(spec.get(key, kind()), kind) for key, kind in _READ.items())


def _required(schema: Mapping[str, Any]) -> tuple[str, ...]:
    found = schema.get("required", ())
    return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list | tuple) else ()


def _question(name: str, spec: dict[str, Any], required: bool) -> Question:
    kind = spec.get("type")
    title, default = str(spec.get("title") or name), spec.get("default")
    many = kind == "array"
    options = _options(spec.get("items", {}) if many else spec)
    if kind not in ("string", "number", "integer", "boolean", "array") or (many and not options):
        raise Unaskable(f"the property {name!r} is not of a kind that can be asked for")
    free = not options and kind != "boolean"
    choices = (_placeholder(spec),) if free else options or (Choice("true", "Yes"), Choice("false", "No"))
    notes = [str(spec.get("description", "")), _limits(spec), "required" if required else "optional"]
    return Question(
        name,
        title,
        choices,
        many=many,
        allow_other=free,
        required=False,
        help="; ".join(note for note in notes if note),
        default=_text(default) if _simple(default) else None,
    )


def _options(spec: Mapping[str, Any]) -> tuple[Choice, ...]:
    """The values of an enumeration, in each of the forms in which MCP writes one."""
    titled = spec.get("oneOf") or spec.get("anyOf")
    if titled and all(isinstance(one, dict) and "const" in one for one in titled):
        return tuple(Choice(str(one["const"]), str(one.get("title", ""))) for one in titled)
    values, names = spec.get("enum", ()), spec.get("enumNames", ())
    return tuple(Choice(str(v), str(names[i]) if i < len(names) else "") for i, v in enumerate(values))


def _placeholder(spec: Mapping[str, Any]) -> Choice:
    """A question needs a choice: for free text it is the default, or to leave the answer empty."""
    default = spec.get("default")
    return Choice(_text(default)) if _simple(default) else Choice("", "leave empty")


def _limits(spec: Mapping[str, Any]) -> str:
    words = {"minimum": "at least {}", "maximum": "at most {}"}
    words |= {"minLength": "at least {} characters", "maxLength": "at most {} characters"}
    known = [phrase.format(spec[key]) for key, phrase in words.items() if key in spec]
    return ", ".join([*known, *([_FORMATS[spec["format"]]] if spec.get("format") in _FORMATS else [])])


def _simple(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _content(params: ElicitRequestFormParams, given: Mapping[str, tuple[str, ...]]) -> dict[str, Value]:
    schema = params.requested_schema
    required = _required(schema)
    content: dict[str, Value] = {}
    for name, spec in properties(schema).items():
        value = _value(name, spec, given.get(name), name in required)
        if value is not None:
            content[name] = value
        elif name in required:
            raise InvalidAnswer(f"{name} is required")
    return content


def _value(name: str, spec: Mapping[str, Any], given: tuple[str, ...] | None, required: bool) -> Value:
    """One answer as the schema's type; None when there is none."""
    kind = spec.get("type")
    if given is None or (not given and kind != "array"):
        return None
    if kind == "array":
        return _list(name, spec, given)
    text = given[0]
    if kind == "string":
        return _string(name, spec, text) if text or required else None
    if not text:
        return None
    return _boolean(name, text) if kind == "boolean" else _number(name, spec, text)


def _list(name: str, spec: Mapping[str, Any], given: tuple[str, ...]) -> list[str]:
    offered = {choice.value for choice in _options(spec.get("items", {}))}
    for value in given:
        if value not in offered:
            raise InvalidAnswer(f"{name} does not offer {value!r}")
    _within(f"the number of answers to {name}", len(given), spec.get("minItems"), spec.get("maxItems"))
    return list(given)


def _string(name: str, spec: Mapping[str, Any], text: str) -> str:
    offered = {choice.value for choice in _options(spec)}
    if offered and text not in offered:
        raise InvalidAnswer(f"{name} does not offer {text!r}")
    _within(f"the length of {name}", len(text), spec.get("minLength"), spec.get("maxLength"))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidAnswer(f"{name} has characters that cannot be sent") from None
    return text


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidAnswer(f"{name} is true or false, not {text!r}")
    return text.lower() == "true"


def _number(name: str, spec: Mapping[str, Any], text: str) -> int | float:
    """A number as JSON writes one: Python's own parsers take more."""
    try:
        number: object = json.loads(text)
    except ValueError:
        number = None
    whole = spec.get("type") == "integer"
    if whole and isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int if whole else int | float) or not math.isfinite(number):
        raise InvalidAnswer(f"{name} is a number ({spec.get('type')}), not {text!r}")
    _within(name, number, spec.get("minimum"), spec.get("maximum"))
    return number


def _within(what: str, number: int | float, least: object, most: object) -> None:
    if isinstance(least, int | float) and number < least:
        raise InvalidAnswer(f"{what} is at least {least}, not {number}")
    if isinstance(most, int | float) and number > most:
        raise InvalidAnswer(f"{what} is at most {most}, not {number}")
