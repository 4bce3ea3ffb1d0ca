"""The patterns of scenario format 1 as types: values, observations, messages, sequences ("Patterns")."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, StringConstraints, TypeAdapter, WithJsonSchema
from typing_extensions import TypeAliasType

from rho_spec.observations import EVENTS, FIELDS, ORCA_EVENTS
from rho_spec.scenario_base import PLACEHOLDER, OneKey, P, Strict, Text, V, is_placeholder, unset

PlainKey = Annotated[str, StringConstraints(pattern=r"^([^$]|$|\$\{)")]
"""A key that is no operator."""


class Operator(OneKey):
    """A comparison in the place of a value."""

    any: P[Literal[True]] = unset("$any")
    absent: P[Literal[True]] = unset("$absent")
    one_of: "P[list[Value]]" = unset("$one_of")
    min: P[int | float] = unset("$min")
    max: P[int | float] = unset("$max")
    prefix: str = unset("$prefix")
    prefix_of: str = unset("$prefix_of")
    contains: str = unset("$contains")
    lacks: str = unset("$lacks")


Value = TypeAliasType("Value", "Text | list[Value] | Operator | dict[PlainKey, Value] | None")
"""A scalar, a list, a map (each of whose keys must be there), or an operator."""


# --- observations -------------------------------------------------------------------------------------------

EVENT_NAMES = (*EVENTS, *(name for name in ORCA_EVENTS if name not in EVENTS))
_VALUE: TypeAdapter[Any] = TypeAdapter(Value)


def _pattern(known: tuple[str, ...], what: str) -> Any:
    def check(pattern: Any) -> Any:
        if is_placeholder(pattern):
            return pattern
        name, fields = _taken_apart(pattern)
        if not is_placeholder(name) and name not in known:
            raise ValueError(f"there is no {what} {name!r}")
        if is_placeholder(fields) or (isinstance(fields, dict) and any(is_placeholder(key) for key in fields)):
            return pattern
        if not isinstance(fields, dict):
            raise ValueError(f"expected a map of fields, got {fields!r}")
        for key, value in fields.items():
            if not is_placeholder(name) and key not in FIELDS[name]:
                raise ValueError(f"{name} has no field {key!r}")
            _VALUE.validate_python(value, strict=True)
        return pattern

    return AfterValidator(check)


def _taken_apart(pattern: Any) -> tuple[Any, Any]:
    if isinstance(pattern, str):
        return pattern, {}
    if isinstance(pattern, dict) and "event" in pattern:
        return pattern["event"], {key: value for key, value in pattern.items() if key != "event"}
    if isinstance(pattern, dict) and len(pattern) == 1:
        ((name, fields),) = pattern.items()
        return name, fields
    raise ValueError("expected a name, one name with a map of fields, or event and fields")


NAMED_DEFINITION = "x-definition"
"""In the place of these patterns the schema refers to a definition of its own (`pattern_definitions`)."""

Observation = Annotated[Any, _pattern(tuple(FIELDS), "observation"), WithJsonSchema({NAMED_DEFINITION: "Observation"})]
Event = Annotated[Any, _pattern(EVENT_NAMES, "event"), WithJsonSchema({NAMED_DEFINITION: "Event"})]


def pattern_definitions() -> dict[str, Any]:
    """The JSON Schema of `Observation` and `Event`: every name with its own fields."""
    others = sorted(set(FIELDS) - set(EVENT_NAMES))
    named = {"type": "object", "propertyNames": {"enum": others}, "minProperties": 1}
    spoken_of = {"type": "object", "properties": {"event": {"enum": others}}, "required": ["event"]}
    event = {"$ref": "#/$defs/Observation", "not": {"anyOf": [{"enum": others}, named, spoken_of]}}
    return {"Observation": _observation(), "Event": event}


def _observation() -> dict[str, Any]:
    open_text = {"type": "string", "pattern": PLACEHOLDER}
    value = {"$ref": "#/$defs/Value"}
    forms = {name: _strict(dict.fromkeys(sorted(FIELDS[name]), value)) for name in FIELDS}
    name = {"anyOf": [{"enum": list(FIELDS)}, open_text]}
    named = _strict({name: {"anyOf": [form, open_text]} for name, form in forms.items()})
    fields = [
        {
            "if": {"properties": {"event": {"const": name}}},
            "then": {"propertyNames": {"anyOf": [{"enum": ["event", *sorted(known)]}, open_text]}},
        }
        for name, known in FIELDS.items()
    ]
    every = sorted({field for known in FIELDS.values() for field in known})
    event = _strict({"event": name, **dict.fromkeys(every, value)})
    return {
        "anyOf": [
            name,
            {**named, "minProperties": 1, "maxProperties": 1},
            {**event, "required": ["event"], "allOf": fields},
        ]
    }


def _strict(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


# --- messages -----------------------------------------------------------------------------------------------


class AssistantPattern(Strict):
    text: Value = None
    calls: Value = None
    summary: Value = None
    reasoning: Value = None


class AbortedPattern(AssistantPattern):
    tool_calls: Value = None
    usage: Value = None


class ResultPattern(Strict):
    id: Value = None
    ok: Value = None
    text: Value = None


class MessagePattern(OneKey):
    system: Text | Operator = unset()
    user: Text | Operator = unset()
    assistant: P[AssistantPattern | Operator] = unset()
    aborted: P[AbortedPattern | Operator] = unset()
    result: P[ResultPattern | Operator] = unset()
    completions: P[list[Text] | Operator] = unset()


class AssistantFields(Strict):
    text: V[Text] = None
    calls: V[list[Text]] = None
    summary: V[Text] = None


class AbortedFields(AssistantFields):
    tool_calls: V[list[Any]] = None
    usage: Any = None


class ResultFields(Strict):
    id: V[Text] = None
    ok: V[bool] = None
    text: V[Text] = None


class Message(OneKey):
    """A message that the host hands over: texts, and no operators."""

    system: Text = unset()
    user: Text = unset()
    assistant: P[AssistantFields] = unset()
    aborted: P[AbortedFields] = unset()
    result: P[ResultFields] = unset()
    completions: P[list[Text]] = unset()


# --- sequences ----------------------------------------------------------------------------------------------


class OptionalEvent(Strict):
    opt: Event


class EventSet(Strict):
    set: P[list[Event]]


class OptionalObservation(Strict):
    opt: Observation


class ObservationSet(Strict):
    set: P[list[Observation]]


class OptionalMessage(Strict):
    opt: P[MessagePattern]


class MessageSet(Strict):
    set: P[list[P[MessagePattern]]]


Gap: TypeAlias = Literal["..."]
Events: TypeAlias = list[Gap | OptionalEvent | EventSet | Event]
Observations: TypeAlias = list[Gap | OptionalObservation | ObservationSet | Observation]
Messages: TypeAlias = list[P[Gap | OptionalMessage | MessageSet | MessagePattern]]
