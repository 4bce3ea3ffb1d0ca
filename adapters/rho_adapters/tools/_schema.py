"""From a Python signature or a pydantic model to JSON Schema, and from JSON text to arguments."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from ..tool import PrepareFailure

Arguments = Mapping[str, Any]
"""Validated arguments by parameter name."""

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=False, protected_namespaces=())
_ERRORS_SHOWN = 10
_RESERVED = frozenset({"model_config", "self"})


class _Untitled(GenerateJsonSchema):
    """A title made of the field's own name tells a model nothing and costs tokens in every request."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class ArgumentsSchema:
    """What one tool takes. `strict`: no coercion at any depth; a JSON number is no string and the reverse."""

    def __init__(self, model: type[BaseModel], strict: bool = True) -> None:
        self._model = model
        self._strict = strict

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in order."""
        return tuple(self._model.model_fields)

    def json_schema(self) -> dict[str, Any]:
        """JSON Schema of one object."""
        schema = self._model.model_json_schema(schema_generator=_Untitled)
        schema.pop("title", None)
        schema.pop("description", None)
        schema.setdefault("properties", {})
        return schema

    def parse(self, text: str) -> dict[str, Any]:
        """The arguments; defaults filled in. Raises PrepareFailure that says what is wrong and where."""
        try:
            parsed = self._model.model_validate_json(text, strict=self._strict or None)
        except ValidationError as error:
            raise PrepareFailure(describe(error)) from error
        return {name: getattr(parsed, name) for name in self._model.model_fields}


def describe(error: ValidationError) -> str:
    """One line: what is wrong and where. The values themselves are not repeated: they may be long or private."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [_place(e["loc"]) + e["msg"] for e in found[:_ERRORS_SHOWN]]
    if len(found) > _ERRORS_SHOWN:
        shown.append(f"and {len(found) - _ERRORS_SHOWN} more")
    return "invalid arguments: " + "; ".join(shown)


def _place(location: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, location))}: " if location else ""


def from_parameters(name: str, parameters: Mapping[str, inspect.Parameter], strict: bool) -> ArgumentsSchema:
    """The schema of a function's parameters. Raises TypeError for a signature that JSON arguments cannot fill."""
    fields: dict[str, Any] = {key: _field(name, parameter) for key, parameter in parameters.items()}
    with warnings.catch_warnings():
        # A parameter may be called `schema` or `copy`; that BaseModel has such methods is not the author's affair.
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute", category=UserWarning)
        model: type[BaseModel] = create_model(name, __config__=_CONFIG, **fields)
    _refuse_aliases(name, model.model_fields)
    return ArgumentsSchema(model, strict)


def _field(name: str, parameter: inspect.Parameter) -> tuple[Any, Any]:
    if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
        raise TypeError(f"tool {name!r}: parameter {parameter} cannot be given by name")
    if parameter.annotation is inspect.Parameter.empty:
        raise TypeError(f"tool {name!r}: parameter {parameter.name!r} has no annotation")
    if parameter.name.startswith("_") or parameter.name in _RESERVED:
        raise TypeError(f"tool {name!r}: a parameter cannot be called {parameter.name!r}")
    return parameter.annotation, ... if parameter.default is inspect.Parameter.empty else parameter.default


def _refuse_aliases(name: str, fields: Mapping[str, FieldInfo]) -> None:
    for key, info in fields.items():
        if info.alias is not None or info.validation_alias is not None:
            raise TypeError(f"tool {name!r}: parameter {key!r} has an alias; name the parameter as the model sees it")


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """With its annotations evaluated. Raises TypeError when one names something unknown at run time."""
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise TypeError(f"an annotation of {function!r} cannot be evaluated: {error}") from error
