"""A whole scenario file as a type (scenario-format.md, "The file" and "Expectations")."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StringConstraints

from rho_spec.scenario_steps import Config, Pattern, Step, Strict, V

Reply: TypeAlias = str | dict[str, Any]
Sequence: TypeAlias = list[Pattern]
Requests: TypeAlias = int | dict[Literal["min", "max"], V[int]] | list[Literal["*"] | dict[str, Any] | list[Any]]


class Count(Strict):
    of: Pattern
    is_: V[int] = Field(default=None, alias="is")
    min: V[int] = None
    max: V[int] = None


class SessionExpect(Strict):
    outcome: V[Reply] = None
    events: V[Sequence] = None
    history: V[Sequence] = None
    requests: V[Requests] = None
    state: V[str | dict[str, Any]] = None
    busy: V[bool] = None
    revision: V[int | str | dict[str, Any]] = None


class Facts(SessionExpect):
    """Everything `expect` and `check` may ask, but alternatives."""

    outcomes: V[dict[str, V[Reply]]] = None
    order: V[list[Sequence]] = None
    count: V[list[V[Count]]] = None
    absent: V[list[Pattern]] = None
    history_unordered: V[list[Any]] = None
    replies: V[dict[str, Any]] = None
    executions: V[dict[str, Any]] = None
    records: V[list[Any]] = None
    snapshot: V[dict[str, Any]] = None
    waiting_on: V[list[str]] = None
    sessions: V[dict[str, V[SessionExpect]]] = None
    pending: V[int] = None
    active: V[list[str]] = None
    running_processes: V[list[str]] = None
    live_workflows: V[list[str]] = None
    notes: V[dict[str, Any]] = None
    delivered: V[list[list[str]]] = None
    dropped_events: V[int | dict[str, Any]] = None
    token: V[dict[str, Literal["cancelled", "live"]]] = None


class Alternative(Facts):
    variant: V[str] = None


class Expect(Facts):
    any_of: V[list[V[Alternative]]] = None


class Sweep(Strict):
    perform: V[Step]
    then: V[list[V[Step]]] = None


class Scenario(Strict):
    """Scenario format 1: one file."""

    id: Annotated[str, StringConstraints(min_length=1)]
    rules: list[str]
    profile: Literal["rho", "orca", "common"]
    config: V[Config] = None
    steps: list[V[Step]]
    expect: V[Expect] = None
    cases: list[dict[str, Any]] | None = None
    sweep: Sweep | None = None
