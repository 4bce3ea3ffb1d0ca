"""What the parties of a run answer, as types (scenario-format.md, "What the parties answer")."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from rho_spec.features import COMPACTOR_ITEMS, PROVIDER_ITEMS, TOOL_ITEMS
from rho_spec.names import COMPACTOR_KINDS, ORCA_PROVIDER_KINDS, PROVIDER_KINDS
from rho_spec.scenario_base import Duration, Natural, P, Strict, Text, V, enumerated, exactly_one, names, needs

_PROVIDER_KINDS = (*PROVIDER_KINDS, *ORCA_PROVIDER_KINDS)
_COMPACTOR_KINDS = tuple(dict.fromkeys((*COMPACTOR_KINDS, *ORCA_PROVIDER_KINDS)))
ProviderKind = Annotated[str, names(*_PROVIDER_KINDS), enumerated(*_PROVIDER_KINDS)]
CompactorKind = Annotated[str, names(*_COMPACTOR_KINDS), enumerated(*_COMPACTOR_KINDS)]
True_ = Literal[True]


class To(Strict):
    """Any map-valued step may say which session and run it means."""

    session: V[Text] = None
    run: V[Text] = None


class Call(Strict):
    id: Text
    tool: Text
    args: Any = None
    async_: V[bool] = Field(default=None, alias="async")


class CallDelta(Strict):
    index: P[int]
    id: V[Text] = None
    name: V[Text] = None
    arguments: Text


class Response(Strict):
    text: V[Text] = None
    calls: V[list[P[Call]]] = None


class Context(Strict):
    kind: Text
    data: Any = None


class Hosted(Strict):
    name: Text
    detail: Text


class Usage(Strict):
    input_tokens: V[Natural] = None
    output_tokens: V[Natural] = None
    cache_read_tokens: V[Natural] = None
    cache_write_tokens: V[Natural] = None
    total_tokens: V[Natural] = None
    context_window: V[Natural] = None
    cost_usd_micros: V[Natural] = None


class PhysicalRetry(Strict):
    kind: P[ProviderKind]
    usage: V[Usage] = None


class ProviderFailure(Strict):
    kind: P[ProviderKind]
    retryable: V[bool] = None
    retry_after: V[Duration] = None
    retry_after_header: V[Text] = None
    message: V[Text] = None
    diagnostic: V[Text] = None


_SHORTHAND = ("reasoning", "text", "calls", "usage")


class ProviderItem(To):
    """One item of a model call, or the shorthand of several keys that holds `text` or `calls`."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"anyOf": [needs("text"), needs("calls")]},
            "then": {"propertyNames": {"enum": [*_SHORTHAND, "session", "run"]}},
            "else": {
                **exactly_one(*PROVIDER_ITEMS),
                "properties": {"reasoning": {"not": {"type": "array"}}},
            },
        }
    )

    delta: V[Text] = None
    reasoning: V[Text | list[Text]] = None
    summary: V[Text] = None
    call_delta: V[CallDelta] = None
    context: V[Context] = None
    usage: V[Usage] = None
    generation_tokens: V[Natural | Literal["unavailable"]] = None
    web_search: V[Text] = None
    hosted: V[Hosted] = None
    physical_retry: V[PhysicalRetry] = None
    claim: V[Text] = None
    deliver: V[Text] = None
    release: V[Text] = None
    cancel_token: V[True_] = None
    drop_token: V[True_] = None
    return_: V[Response] = Field(default=None, alias="return")
    fail: V[ProviderFailure] = None
    panic: V[True_] = None
    text: V[Text | list[Text]] = None
    calls: V[list[P[Call]]] = None

    @model_validator(mode="after")
    def _one_item(self) -> Self:
        keys = self.given() - {"session", "run"}
        if {"text", "calls"} & keys:
            if keys - set(_SHORTHAND):
                raise ValueError(f"the shorthand does not take {sorted(keys - set(_SHORTHAND))}")
        elif len(keys) != 1 and not self._by_case:
            raise ValueError(f"one item is needed, not {sorted(keys)}")
        elif isinstance(self.reasoning, list):
            raise ValueError("several pieces of reasoning stand beside a text or calls only")
        return self


class OneItem(To):
    """A map with one of some items beside its address."""

    _items: ClassVar[Iterable[str]] = ()

    @model_validator(mode="after")
    def _one_item(self) -> Self:
        keys = self.given() & set(self._items)
        if len(keys) != 1 and not self._by_case:
            raise ValueError(f"one item is needed, not {sorted(keys)}")
        return self


class ToolItem(OneItem):
    """One item for the call `id`."""

    model_config = ConfigDict(json_schema_extra=exactly_one(*TOOL_ITEMS))
    _items = TOOL_ITEMS

    id: Text
    prepared: V[True_] = None
    prep_fail: V[Text] = None
    authorize: V[Literal["allow", "deny"]] = None
    progress: V[Text] = None
    ask: V[Text] = None
    return_: V[Text] = Field(default=None, alias="return")
    fail: V[Text] = None
    cancelled: V[True_] = None
    panic: V[True_] = None
    cancel_token: V[True_] = None
    drop_token: V[True_] = None


class CompactorFailure(Strict):
    kind: P[CompactorKind]


class CompactorItem(OneItem):
    model_config = ConfigDict(json_schema_extra=exactly_one(*COMPACTOR_ITEMS))
    _items = COMPACTOR_ITEMS

    return_: V[list[Text]] = Field(default=None, alias="return")
    fail: V[CompactorFailure] = None
    interrupted: V[True_] = None
    panic: V[True_] = None


class BoundaryInput(To):
    input: Text
