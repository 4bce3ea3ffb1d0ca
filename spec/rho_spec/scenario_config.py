"""The configuration of a scenario as types (scenario-format.md, "Configuration")."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from rho_spec.scenario_base import Duration, Name, P, Revision, Strict, Text, V, exactly_one
from rho_spec.scenario_patterns import Message


class Write(Strict):
    write: P[list[Text]]


class Complete(Strict):
    complete: P[Duration]


class ToolConfig(Strict):
    mode: V[Literal["sync", "async"]] = None
    access: V[Literal["shared", "exclusive"] | Write] = None
    prepare: V[Literal["auto", "gated"]] = None
    authorize: V[Literal["auto", "gated"]] = None
    on_cancel: V[Literal["stop", "ignore"] | Complete] = None


class ProviderConfig(Strict):
    steerable: V[bool] = None
    mode: V[Literal["external", "cooperative"]] = None
    on_cancel: V[Literal["stop", "ignore"]] = None


class Compaction(Strict):
    """The threshold of automatic compaction."""

    model_config = ConfigDict(json_schema_extra=exactly_one("messages", "tokens"))

    messages: V[int] = None
    tokens: V[int] = None
    compactor: V[Literal["external", "cooperative"]] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len({"messages", "tokens"} & self.given()) != 1 and not self._by_case:
            raise ValueError("expected one of messages and tokens")
        return self


def _each_once(sessions: list[str]) -> list[str]:
    if len(set(sessions)) < len(sessions):
        raise ValueError("a session stands twice")
    return sessions


Sessions = Annotated[
    list[Name], Field(min_length=1, json_schema_extra={"uniqueItems": True}), AfterValidator(_each_once)
]


class Config(Strict):
    event_capacity: V[int] = None
    max_steps: V[int] = None
    max_parallel_tools: V[int] = None
    reader: V[Literal["eager", "held"]] = None
    tools: V[dict[str, V[ToolConfig]]] = None
    provider: V[ProviderConfig] = None
    compaction: V[Compaction] = None
    compactor: V[Literal["external", "cooperative"]] = None
    boundary: V[Literal["gated"]] = None
    recorder: V[Literal["auto", "gated"]] = None
    history: V[list[P[Message]]] = None
    revision: V[Revision] = None
    system: V[Text] = None
    sessions: V[Sessions] = None
    ephemeral: V[bool] = None
    background_limit: V[int] = None
    completion_capacity: V[int] = None
    deadline: V[Duration] = None
    services: V[list[P[Literal["subagents", "workflows", "processes"]]]] = None
