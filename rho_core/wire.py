"""JSON of everything that crosses a process: events, inputs, effects, messages, snapshots, states.

The one module of the core that imports pydantic. Records are validated strictly (no coercion, no unknown
field), every value of a union is told by its `kind`, and whatever is refused is refused with a WireError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, cast, get_args

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
    ValidationError,
    from_json,
    to_json,
)

from . import effects as fx
from .codec import WireError, dump_state, load_state
from .config import MAX_REVISION
from .events import Event
from .inputs import RuntimeInput, SessionInput
from .ledger import CompactionState
from .messages import Identity, Message
from .record import record, tag
from .snapshot import SCHEMA_VERSION, Snapshot, check, check_schema
from .tagged import told_by_kind

__all__ = [
    "NAMES",
    "WireError",
    "dump_effect",
    "dump_event",
    "dump_input",
    "dump_message",
    "dump_snapshot",
    "dump_state",
    "load_effect",
    "load_event",
    "load_input",
    "load_message",
    "load_snapshot",
    "load_state",
    "schema",
    "write_schemas",
]

Input = SessionInput | RuntimeInput


@record
class _NotReady:
    """`effects.NotReady` with its input typed: `effects` cannot name inputs, which know it in turn."""

    input: SessionInput
    kind: Literal["not_ready"] = tag("not_ready")


@dataclass
class _Snapshot:
    """The document of a snapshot. Not a record: metadata is a JSON object, and absent when empty."""

    schema_version: Literal[2]
    session_id: Annotated[str, Field(pattern=r"\S")]
    # The upper bound is judged by `check`, which says it in the words of the contract.
    revision: Annotated[int, Field(ge=0, json_schema_extra={"maximum": MAX_REVISION})]
    history: tuple[Message, ...]
    provider: Identity
    compaction: CompactionState = field(default_factory=CompactionState)
    metadata: dict[str, str] = field(default_factory=dict)
    prompt_cache_key: str | None = None


def _effects() -> Any:
    """The union of effects, with the typed stand-in."""
    members = tuple(_NotReady if e is fx.NotReady else e for e in get_args(fx.Effect))
    union = members[0]
    for member in members[1:]:
        union = union | member
    return union


_TYPES: dict[str, Any] = {
    "event": Event,
    "input": Input,
    "effect": _effects(),
    "message": Message,
    "snapshot": _Snapshot,
}
NAMES = tuple(_TYPES)


# --- text in and out ----------------------------------------------------------------------------------------


def dump_event(event: Event) -> str:
    """JSON text of an event. Raises WireError for what is no event."""
    return _dump("event", event)


def load_event(text: str | bytes) -> Event:
    """The event of a JSON text. Raises WireError."""
    return cast(Event, _load("event", text))


def dump_input(value: Input) -> str:
    """JSON text of an input of a session or the runtime. Raises WireError for what is none."""
    return _dump("input", value)


def load_input(text: str | bytes) -> Input:
    """The input of a JSON text. Raises WireError."""
    return cast(Input, _load("input", text))


def dump_effect(effect: fx.Effect) -> str:
    """JSON text of an effect. Raises WireError for what is none."""
    return _dump("effect", _NotReady(effect.input) if isinstance(effect, fx.NotReady) else effect)


def load_effect(text: str | bytes) -> fx.Effect:
    """The effect of a JSON text. Raises WireError."""
    effect = _load("effect", text)
    return fx.NotReady(effect.input) if isinstance(effect, _NotReady) else cast(fx.Effect, effect)


def dump_message(message: Message) -> str:
    """JSON text of a message. Raises WireError for what is none."""
    return _dump("message", message)


def load_message(text: str | bytes) -> Message:
    """The message of a JSON text. Raises WireError."""
    return cast(Message, _load("message", text))


def dump_snapshot(snapshot: Snapshot) -> str:
    """JSON text of a snapshot, in the newest schema. Raises WireError for one that could not be restored."""
    fault = check(snapshot)
    if fault is not None:
        raise WireError(fault.message, "snapshot", "a snapshot can be restored")
    document = _Snapshot(
        2,
        snapshot.session_id,
        snapshot.revision,
        snapshot.history,
        snapshot.provider,
        snapshot.compaction,
        dict(snapshot.metadata),
        snapshot.prompt_cache_key,
    )
    plain = _to_python("snapshot", document)
    for name in ("metadata", "prompt_cache_key"):
        if not plain[name] and plain[name] != "":
            del plain[name]
    try:
        return to_json(plain).decode()
    except (PydanticSerializationError, UnicodeEncodeError) as error:  # a lone surrogate in a text
        raise WireError(str(error), "snapshot", "what is written can be read") from None


def load_snapshot(text: str | bytes) -> Snapshot:
    """The snapshot of a JSON text of any known schema, brought to the newest. Raises WireError."""
    try:
        plain = from_json(text)
    except ValueError as error:
        raise WireError(str(error), "snapshot", "the text is JSON") from None
    document = cast(_Snapshot, _load("snapshot", to_json(_upgraded(plain))))
    snapshot = Snapshot(
        document.session_id,
        document.revision,
        document.history,
        document.provider,
        document.compaction,
        tuple(document.metadata.items()),
        document.prompt_cache_key,
    )
    fault = check(snapshot)
    if fault is not None:
        raise WireError(fault.message, "snapshot", "a snapshot can be restored")
    return snapshot


def _upgraded(plain: Any) -> Any:
    """The document in the newest schema, which alone has a validator."""
    if not isinstance(plain, dict) or type(plain.get("schema_version")) is not int:
        raise WireError("no schema_version", "snapshot.schema_version", "a snapshot is an object with a version")
    version = plain["schema_version"]
    issue = check_schema(version)
    if issue is not None:
        raise WireError(issue, "snapshot.schema_version", "only known schemas are read")
    if version < SCHEMA_VERSION:
        history = plain.get("history")
        for message in history if isinstance(history, list) else ():
            if isinstance(message, dict) and message.get("kind") == "aborted_assistant":
                message.pop("reasoning", None)  # older writers kept the raw text; it is never imported (RHO-CAN-10)
    return plain | {"schema_version": SCHEMA_VERSION}


# --- pydantic -----------------------------------------------------------------------------------------------


def _load(name: str, text: str | bytes) -> Any:
    try:
        return _codec(name)[0].validate_json(text, strict=True)
    except ValidationError as error:
        _refuse(name, error)


def _dump(name: str, value: Any) -> str:
    if not isinstance(value, get_args(_TYPES[name])):
        raise WireError(f"{type(value).__name__} is no {name}", name, "types are taken strictly")
    try:
        return _codec(name)[1].to_json(value, warnings="error").decode()
    except PydanticSerializationError as error:
        raise WireError(str(error), name, "what is written can be read") from None


def _to_python(name: str, value: Any) -> Any:
    try:
        return _codec(name)[1].to_python(value, mode="json", warnings="error")
    except PydanticSerializationError as error:
        raise WireError(str(error), name, "what is written can be read") from None


_RULES = {
    "union_tag_not_found": "every value of a union has a known kind",
    "union_tag_invalid": "every value of a union has a known kind",
    "missing": "the fields are those of the schema",
    "unexpected_keyword_argument": "the fields are those of the schema",
    "json_invalid": "the text is JSON",
}


def _refuse(name: str, error: ValidationError) -> NoReturn:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = name + "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
    raise WireError(first["msg"], where, _RULES.get(first["type"], "types are taken strictly")) from None


@cache
def _codec(name: str) -> tuple[SchemaValidator, SchemaSerializer]:
    core = _core_schema(name)
    return SchemaValidator(core), SchemaSerializer(core)


@cache
def _core_schema(name: str) -> Any:
    return told_by_kind(TypeAdapter[Any](_TYPES[name]).core_schema)


# --- schemas ------------------------------------------------------------------------------------------------


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one of `NAMES`. Raises KeyError for another name."""
    generated = GenerateJsonSchema().generate(_core_schema(name), mode="validation")
    for node in _objects(generated):
        node["additionalProperties"] = False
    return {"$schema": GenerateJsonSchema.schema_dialect, "title": name, **generated}


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every object schema that lists its properties."""
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _objects(child)


def write_schemas(folder: Path) -> None:
    """Write `NAME.schema.json` for each of `NAMES`."""
    for name in NAMES:
        text = json.dumps(schema(name), indent=1, sort_keys=True, ensure_ascii=False)
        (folder / f"{name}.schema.json").write_text(text + "\n", encoding="utf-8")
