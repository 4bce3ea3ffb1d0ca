"""The steps of a scenario file as types (scenario-format.md, "Configuration" and "Steps").

They serve the published JSON Schema. The runner has a parser of its own, which also knows lines.
"""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from typing_extensions import TypeAliasType

from rho_spec.features import STIMULI

T = TypeVar("T")
Placeholder = TypeAliasType("Placeholder", Annotated[str, StringConstraints(pattern=r"^\$\{[^{}]+\}$")])
# Every value may be a placeholder that a case fills; a key whose value is null counts as absent.
V: TypeAlias = T | Placeholder | None
Duration = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)?(ms|s|m)$")]
Text: TypeAlias = str | int | float | bool | None  # YAML reads some unquoted texts as numbers


class Strict(BaseModel):
    """A map that takes the keys of its fields and no others, with values of exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OneKey(Strict):
    """A map with exactly one key."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    @model_validator(mode="after")
    def _one(self) -> "OneKey":
        if len(self.model_fields_set) != 1:
            raise ValueError(f"exactly one key is needed, not {sorted(self.model_fields_set)}")
        return self


class ToolConfig(Strict):
    mode: V[Literal["sync", "async"]] = None
    access: V[Literal["shared", "exclusive"] | dict[Literal["write"], V[list[str]]]] = None
    prepare: V[Literal["auto", "gated"]] = None
    authorize: V[Literal["auto", "gated"]] = None
    on_cancel: V[Literal["stop", "ignore"] | dict[Literal["complete"], V[Duration]]] = None


class ProviderConfig(Strict):
    steerable: V[bool] = None
    mode: V[Literal["external", "cooperative"]] = None
    on_cancel: V[Literal["stop", "ignore"]] = None


class Config(Strict):
    event_capacity: V[int] = None
    max_steps: V[int] = None
    max_parallel_tools: V[int] = None
    reader: V[Literal["eager", "held"]] = None
    tools: V[dict[str, V[ToolConfig]]] = None
    provider: V[ProviderConfig] = None
    compaction: V[dict[Literal["messages", "tokens"], V[int]]] = None
    compactor: V[Literal["external", "cooperative"]] = None
    boundary: V[Literal["gated"]] = None
    recorder: V[Literal["auto", "gated"]] = None
    history: V[list[Any]] = None
    revision: V[int | Literal["max"]] = None
    system: V[str] = None
    sessions: V[list[str]] = None
    ephemeral: V[bool] = None
    background_limit: V[int] = None
    completion_capacity: V[int] = None
    deadline: V[Duration] = None
    services: V[list[str]] = None


class Call(Strict):
    id: V[str]
    tool: V[str]
    args: V[dict[str, Any] | str] = None
    async_: V[bool] = Field(default=None, alias="async")


class CallDelta(Strict):
    index: V[int]
    id: V[str] = None
    name: V[str] = None
    arguments: V[str] = None


class Response(Strict):
    text: V[Text] = None
    calls: V[list[V[Call]]] = None


class ProviderFailure(Strict):
    kind: V[str]
    retryable: V[bool] = None
    retry_after: V[Duration] = None
    retry_after_header: V[Text] = None
    message: V[Text] = None
    diagnostic: V[Text] = None


class ProviderItem(Strict):
    """One item of a model call, or the shorthand of several keys that holds `text` or `calls`."""

    delta: V[Text] = None
    reasoning: V[Text] = None
    summary: V[Text] = None
    call_delta: V[CallDelta] = None
    context: V[dict[str, Any]] = None
    usage: V[dict[str, V[int]]] = None
    generation_tokens: V[int | Literal["unavailable"]] = None
    web_search: V[Text] = None
    hosted: V[dict[Literal["name", "detail"], Text]] = None
    physical_retry: V[dict[str, Any]] = None
    claim: V[str] = None
    deliver: V[str] = None
    release: V[str] = None
    cancel_token: V[Literal[True]] = None
    drop_token: V[Literal[True]] = None
    return_: V[Response] = Field(default=None, alias="return")
    fail: V[ProviderFailure] = None
    panic: V[Literal[True]] = None
    text: V[Text] = None
    calls: V[list[V[Call]]] = None
    session: V[str] = None
    run: V[str] = None

    _shorthand: ClassVar[frozenset[str]] = frozenset({"reasoning", "text", "calls", "usage"})

    @model_validator(mode="after")
    def _one_item(self) -> "ProviderItem":
        keys = self.model_fields_set - {"session", "run"}
        if {"text", "calls"} & keys:
            if keys - self._shorthand:
                raise ValueError(f"the shorthand does not take {sorted(keys - self._shorthand)}")
        elif len(keys) != 1:
            raise ValueError(f"one item is needed, not {sorted(keys)}")
        return self


class ToolItem(Strict):
    """One item for the call `id`."""

    id: V[str]
    prepared: V[Literal[True]] = None
    prep_fail: V[Text] = None
    authorize: V[Literal["allow", "deny"]] = None
    progress: V[Text] = None
    ask: V[str] = None
    return_: V[Text] = Field(default=None, alias="return")
    fail: V[Text] = None
    cancelled: V[Literal[True]] = None
    panic: V[Literal[True]] = None
    cancel_token: V[Literal[True]] = None
    drop_token: V[Literal[True]] = None
    session: V[str] = None
    run: V[str] = None

    @model_validator(mode="after")
    def _one_item(self) -> "ToolItem":
        keys = self.model_fields_set - {"id", "session", "run"}
        if len(keys) != 1:
            raise ValueError(f"one item beside the id is needed, not {sorted(keys)}")
        return self


class CompactorItem(Strict):
    return_: V[list[V[Text]]] = Field(default=None, alias="return")
    fail: V[dict[str, Any]] = None
    interrupted: V[Literal[True]] = None
    panic: V[Literal[True]] = None
    session: V[str] = None
    run: V[str] = None


class Addressed(Strict):
    """What any map-valued host command may carry."""

    as_: V[str] = Field(default=None, alias="as")
    session: V[str] = None
    run: V[str] = None


class Start(Addressed):
    text: V[Text]
    token: V[str] = None
    deadline: V[Duration] = None
    event_capacity: V[int] = None
    continue_at_step_limit: V[bool] = None


class StartTool(Addressed):
    call: V[Call]


class Cancel(Addressed):
    token: V[str] = None


class Steer(Addressed):
    text: V[Text]


class Retract(Addressed):
    ref: V[str]


class Respond(Addressed):
    ref: V[str]
    answers: V[dict[str, V[list[V[Text]]]]] = None


class Shutdown(Addressed):
    grace: V[Duration] = None


class Append(Addressed):
    message: V[dict[str, Any]]


class ReplaceHistory(Addressed):
    messages: V[list[Any]]


class Save(Addressed):
    fail: V[bool] = None


class Restore(Addressed):
    from_: V[Literal["last_save"]] = Field(default=None, alias="from")


class Boundary(Addressed):
    input: V[Text] = None
    none: V[Literal[True]] = None
    gone: V[Literal[True]] = None


Pattern: TypeAlias = str | dict[str, Any]


class Step(OneKey):
    """One step: a stimulus, or `until`, `check`, `together`, `maybe`."""

    start: V[Start | Text] = None
    start_tool: V[StartTool] = None
    cancel: V[Cancel] = None
    steer: V[Steer | Text] = None
    retract: V[Retract] = None
    respond: V[Respond] = None
    outcome: V[Addressed] = None
    read: V[int | Literal["all"] | dict[str, Any]] = None
    hold_reader: V[Addressed] = None
    close_reader: V[Addressed] = None
    drop: V[Addressed] = None
    drop_session: V[Addressed] = None
    drop_runtime: V[Addressed] = None
    shutdown: V[Shutdown] = None
    new_session: V[Addressed] = None
    compact: V[Addressed] = None
    reset: V[Addressed] = None
    clear: V[Addressed] = None
    reset_in_place: V[Addressed] = None
    append: V[Append] = None
    replace_history: V[ReplaceHistory] = None
    snapshot: V[Addressed] = None
    save: V[Save] = None
    restore: V[Restore] = None
    crash: V[Addressed] = None
    provider: V[ProviderItem | list[V[ProviderItem]]] = None
    tool: V[ToolItem | list[V[ToolItem]]] = None
    compactor: V[CompactorItem] = None
    boundary: V[Boundary | Literal["none", "gone"]] = None
    recorder: V[Literal["ok", "fail"]] = None
    advance: V[Duration] = None
    query: V[str] = None
    until: V[Pattern] = None
    check: V[dict[str, Any]] = None
    together: "V[list[V[Step]]]" = None
    maybe: "V[Step]" = None
    # The stimuli of the orca profile, whose inner form this schema leaves open.
    continue_: V[dict[str, Any]] = Field(default=None, alias="continue")
    token: V[dict[str, Any]] = None
    subscribe: V[dict[str, Any]] = None
    read_notes: V[dict[str, Any]] = None
    worker: V[dict[str, Any]] = None
    workers: V[str] = None
    foreground: V[dict[str, Any]] = None
    workflow: V[dict[str, Any]] = None
    process: V[dict[str, Any]] = None


_MISSING = [name for name in STIMULI if name not in Step.model_fields]
if _MISSING:
    raise TypeError(f"stimuli of the protocol without a type here: {_MISSING}")
