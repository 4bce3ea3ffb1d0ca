"""What a scenario expects, as types (scenario-format.md, "Expectations")."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from rho_spec.names import ERRORS, ORCA_ERRORS, STATES
from rho_spec.scenario_base import (
    Natural,
    P,
    Revision,
    Strict,
    Text,
    V,
    Wait,
    enumerated,
    names,
    needs,
)
from rho_spec.scenario_patterns import Events, MessagePattern, Messages, Observation, Observations, Operator, Value

State = Annotated[str, names(*STATES), enumerated(*STATES)]
_ALL_ERRORS = tuple(dict.fromkeys((*ERRORS, *ORCA_ERRORS)))
ErrorName = Annotated[str, names(*_ALL_ERRORS), enumerated(*_ALL_ERRORS)]


class OkFields(Strict):
    text: Value = None
    stop: V[Literal["EndTurn", "MaxSteps"] | Operator] = None
    usage: Value = None
    revision: V[Revision | Operator] = None
    unapplied_steering: Value = None


class OkOutcome(Strict):
    ok: P[OkFields | Operator]


class Failure(Strict):
    """At least one of the things that an error says."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    error: V[ErrorName | Operator] = None
    kind: Value = None
    retryable: V[bool | Operator] = None
    message: Value = None
    unapplied_steering: Value = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.model_fields_set and not self._by_case:
            raise ValueError("expected the key 'ok' or 'error'")
        return self


class OkReply(Strict):
    ok: Value


class Refusal(Failure):
    rule: Value = None


Outcome: TypeAlias = Literal["pending"] | OkOutcome | Failure | Operator
Reply: TypeAlias = Literal["ok", "pending"] | OkReply | Refusal | Operator


class Range(Strict):
    min: V[Natural] = None
    max: V[Natural] = None


class Count(Range):
    """How often: `is`, or `min` and `max`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {**needs("is"), "not": {"anyOf": [needs("min"), needs("max")]}},
                {"anyOf": [needs("min"), needs("max")], "not": needs("is")},
            ]
        }
    )

    of: Observation
    is_: V[Natural] = Field(default=None, alias="is")

    @model_validator(mode="after")
    def _how(self) -> Self:
        given = self.given()
        if ("is" in given) == bool({"min", "max"} & given) and not self._by_case:
            raise ValueError("expected 'is' alone, or 'min' and 'max'")
        return self


class SameAs(Strict):
    same_as: P[Annotated[int, Field(ge=1)]]


Requests: TypeAlias = Natural | Range | list[P[Literal["*"] | SameAs | Messages]]


class FailedOutcome(Strict):
    Failed: Value


class Record(Strict):
    attempt: Value = None
    outcome: V[Literal["Completed", "InvalidResponse", "Cancelled"] | FailedOutcome | Operator] = None
    usage: Value = None
    step: Value = None


class OptionalRecord(Strict):
    opt: P[Record]


class RecordSet(Strict):
    set: P[list[P[Record]]]


class SessionExpect(Strict):
    outcome: V[Outcome] = None
    events: V[Events] = None
    history: V[Messages] = None
    requests: V[Requests] = None
    state: V[State | Operator] = None
    busy: V[bool | Operator] = None
    revision: V[Revision | Operator] = None


class Facts(SessionExpect):
    """Everything `expect` and `check` may ask, but alternatives."""

    outcomes: V[dict[str, V[Outcome]]] = None
    order: V[list[P[Observations]]] = None
    count: V[list[P[Count]]] = None
    absent: V[list[Observation]] = None
    history_unordered: V[list[P[MessagePattern]]] = None
    replies: V[dict[str, V[Reply]]] = None
    executions: V[dict[str, V[Natural | Operator]]] = None
    records: V[list[P[Literal["..."] | OptionalRecord | RecordSet | Record]]] = None
    snapshot: V[Operator] = None
    waiting_on: V[list[P[Wait]]] = None
    sessions: V[dict[str, V[SessionExpect]]] = None
    pending: V[Natural | Operator] = None
    active: V[list[Text]] = None
    running_processes: V[list[Text]] = None
    live_workflows: V[list[Text]] = None
    notes: V[dict[str, V[Observations]]] = None
    delivered: V[list[P[list[Text]]]] = None
    dropped_events: V[Natural | Operator] = None
    token: V[dict[str, V[Literal["cancelled", "live"]]]] = None


class Alternative(Facts):
    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"minProperties": 2}, {"minProperties": 1, "not": {"required": ["variant"]}}]}
    )

    variant: V[Text] = None

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not self.given() - {"variant"} and not self._by_case:
            raise ValueError("an alternative that asks for nothing holds always")
        return self


class Expect(Facts):
    any_of: V[Annotated[list[P[Alternative]], Field(min_length=1)]] = None
