"""Elicitation forms as questions, and answers as their content; no server."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams

from rho_adapters.tools.mcp_forms import ACTION, InvalidAnswer, Unaskable, question_for, result_for
from rho_core.asks import Question, validate
from tests.adapters.mcp_kit import answers

WORDS = {"a": "A", "b": "B"}
TITLED = [{"const": value, "title": title} for value, title in WORDS.items()]


def form(*required: str, **properties: object) -> ElicitRequestFormParams:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ElicitRequestFormParams(message="?", requested_schema=schema)


def field(spec: object) -> Question:
    return question_for("q", "t", form(x=spec)).questions[1]


def content(spec: object, *given: str, required: bool = True) -> Any:
    """What one answer becomes."""
    params = form(*(["x"] if required else []), x=spec)
    result = result_for(params, answers(action="accept", x=given))
    assert result.content is not None
    return result.content.get("x")


@pytest.mark.parametrize(
    ("spec", "many"),
    [
        ({"type": "string", "oneOf": TITLED}, False),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, False),
        ({"type": "array", "items": {"anyOf": TITLED}}, True),
    ],
)
def test_every_way_to_write_an_enumeration_is_choices(spec: object, many: bool) -> None:
    question = field(spec)
    assert {c.value: c.label for c in question.choices} == WORDS
    assert (question.many, question.allow_other) == (many, False)
    assert content(spec, "b") == (["b"] if many else "b")
    with pytest.raises(InvalidAnswer, match="does not offer 'c'"):
        content(spec, "c")


def test_an_enumeration_may_have_no_titles() -> None:
    assert [c.value for c in field({"type": "string", "enum": ["a", "b"]}).choices] == ["a", "b"]


def test_a_default_is_offered() -> None:
    question = field({"type": "integer", "default": 4, "title": "Number", "minimum": 1})
    assert (question.prompt, question.default, question.help) == ("Number", "4", "at least 1; optional")
    assert [c.value for c in question.choices] == ["4"]
    assert field({"type": "boolean", "default": True}).default == "true"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "3", 3),
        ("integer", "3.0", 3),
        ("number", "3", 3),
        ("number", "-1.5e2", -150.0),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("string", "", ""),
    ],
)
def test_answers_take_the_type_of_the_property(kind: str, text: str, value: object) -> None:
    found = content({"type": kind}, text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "1_0"),
        ({"type": "integer"}, "٣"),
        ({"type": "integer"}, "true"),
        ({"type": "integer"}, ""),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "1e999"),
        ({"type": "number", "maximum": 2}, "2.5"),
        ({"type": "boolean"}, "yes"),
        ({"type": "string", "minLength": 1}, ""),
        ({"type": "string", "maxLength": 2}, "abc"),
        ({"type": "string"}, "\ud800"),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 1}, None),
    ],
)
def test_answers_that_do_not_fit(spec: object, text: str | None) -> None:
    with pytest.raises(InvalidAnswer, match="x"):
        content(spec, *([] if text is None else [text]))


def test_what_is_left_empty_is_left_out() -> None:
    for kind in ("string", "integer", "number", "boolean"):
        assert content({"type": kind}, "", required=False) is None
    assert content({"type": "array", "items": {"enum": ["a"]}}) == [], "no choice is an answer too"


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
        {"type": ["string", "null"]},
        {"type": []},
        {},
        "string",
        {"type": "string", "enum": ["a", "a"]},
        {"type": "string", "enum": 3},
        {"type": "string", "title": 3},
        {"type": "string", "format": []},
        {"type": "array", "items": []},
        {"type": "array", "items": {"enum": "ab"}},
    ],
)
def test_what_no_question_can_stand_for(spec: object) -> None:
    with pytest.raises(Unaskable):
        field(spec)


def test_a_property_cannot_take_the_place_of_the_action() -> None:
    with pytest.raises(Unaskable, match=ACTION):
        question_for("q", "t", form(**{ACTION: {"type": "string"}}))


def test_an_address_to_open_is_a_question_of_its_own() -> None:
    params = ElicitRequestURLParams(message="Sign in", url="https://example.org/auth")
    request = question_for("q", "t", params)
    [question] = request.questions
    assert question.required and question.prompt == "Sign in\nOpen https://example.org/auth"
    assert validate(request, answers(action="accept")) is None
    assert result_for(params, answers(action="accept")).content is None


def test_a_form_can_be_declined_with_nothing_filled_in() -> None:
    params = form("x", x={"type": "string"})
    request = question_for("q", "t", params)
    for action in ("decline", "cancel"):
        assert validate(request, answers(action=action)) is None
        assert result_for(params, answers(action=action)).action == action
    with pytest.raises(InvalidAnswer, match="x is required"):
        result_for(params, answers(action="accept"))
    with pytest.raises(InvalidAnswer, match="accept, decline or cancel"):
        result_for(params, answers(action="perhaps"))


def test_required_may_be_anything() -> None:
    for required in (None, 5, "x", [1]):
        params = ElicitRequestFormParams(
            message="?", requested_schema={"properties": {"x": {"type": "string"}}, "required": required}
        )
        assert result_for(params, answers(action="accept")).content == {}
