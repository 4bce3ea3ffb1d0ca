"""A session in the middle of a run as JSON text: possible because continuations are data (design §3.7).

Every record is an object whose `kind` is its class (`run.state.Streaming`), every tuple a list. What may
stand where is read from the annotations, starting at `Session`: there is no second description that could
drift, and no class that a session cannot hold can be made from a text. Text is ASCII with escapes, so that
half a surrogate pair survives.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from sys import modules
from typing import (
    Any,
    ForwardRef,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from .session import Session

STATE_VERSION = 1
KIND = "kind"
_PACKAGE = __name__.partition(".")[0] + "."


class WireError(ValueError):
    """What was refused at the border of the process: `what` is wrong, `where`, and the `rule` it breaks."""

    def __init__(self, what: str, where: str, rule: str) -> None:
        super().__init__(f"{where}: {what} (rule: {rule})")
        self.what, self.where, self.rule = what, where, rule


def dump_state(session: Session) -> str:
    """JSON text of a session, busy or idle. Raises WireError for what is none."""
    if not isinstance(session, Session):
        raise WireError(f"not a session: {type(session).__name__}", "state", _RULES["types"])
    return json.dumps({"state_version": STATE_VERSION, "state": _encode(session, "state")}, separators=(",", ":"))


def load_state(text: str | bytes) -> Session:
    """The session of a JSON text; equal to the one that was dumped. Raises WireError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(str(error), "state", "the text is JSON") from None
    if not isinstance(document, dict) or set(document) != {"state_version", "state"}:
        raise WireError("not an object of state_version and state", "state", _RULES["fields"])
    version = document["state_version"]
    if type(version) is not int or version != STATE_VERSION:
        raise WireError(f"state_version is {version!r}, known is {STATE_VERSION}", "state_version", _RULES["version"])
    session = _decode(document["state"], Session, _Scope(Session.__module__), "state")
    assert isinstance(session, Session)
    return session


_RULES = {
    "types": "types are taken strictly",
    "fields": "the fields are those of the class",
    "kinds": "every object is of a class that a session holds",
    "version": "only known versions are read",
}


# --- out ----------------------------------------------------------------------------------------------------


def _encode(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (str, int)):  # an enumeration of text is text
        return value.value if isinstance(value, Enum) else value
    if type(value) is tuple:
        return [_encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
    cls: type = type(value)
    if name_of(cls) not in _classes():
        raise WireError(f"{cls.__module__}.{cls.__qualname__} cannot be in a session", where, _RULES["kinds"])
    body = {name: _encode(getattr(value, name), f"{where}.{name}") for name in _payload(cls)}
    return {KIND: name_of(cls), **body}


# --- in -----------------------------------------------------------------------------------------------------


class _Scope(NamedTuple):
    """Where an annotation stands: its module (for names in quotes) and what its type variables stand for."""

    module: str
    variables: tuple[tuple[Any, Any], ...] = ()


def _decode(value: Any, hint: Any, scope: _Scope, where: str) -> Any:
    """`value` as the annotation `hint` wants it, or a WireError."""
    options = tuple(_options(hint, scope))
    for option, inner in options:
        origin = get_origin(option) or option
        if isinstance(value, dict):
            if is_record(origin) and value.get(KIND) == name_of(origin):
                return _decode_record(value, option, where)
        elif isinstance(value, list):
            if origin is tuple:
                return _decode_tuple(value, get_args(option), inner, where)
        elif origin is Literal:
            if any(type(value) is type(a) and value == a for a in get_args(option)):
                return value
        elif isinstance(origin, type) and issubclass(origin, Enum):
            if isinstance(value, str) and value in {m.value for m in origin}:
                return origin(value)
        elif type(value) is origin and origin in (str, int, bool, type(None)):
            return value
    _refuse(value, [o for o, _ in options], where)


def _decode_tuple(value: list[Any], args: tuple[Any, ...], scope: _Scope, where: str) -> tuple[Any, ...]:
    if len(args) == 2 and args[1] is ...:
        args = (args[0],) * len(value)
    if len(args) != len(value):
        raise WireError(f"{len(value)} items, not {len(args)}", where, _RULES["types"])
    items = zip(value, args, strict=True)
    return tuple(_decode(item, hint, scope, f"{where}[{i}]") for i, (item, hint) in enumerate(items))


def _decode_record(value: dict[str, Any], option: Any, where: str) -> Any:
    cls = get_origin(option) or option
    names = _payload(cls)
    wrong = sorted(set(names) ^ (set(value) - {KIND}))
    if wrong:
        state = "missing" if wrong[0] in names else "unknown"
        raise WireError(f"field {wrong[0]!r} is {state}", where, _RULES["fields"])
    variables = tuple(zip(getattr(cls, "__parameters__", ()), get_args(option), strict=False))
    scope, hints = _Scope(cls.__module__, variables), _hints(cls)
    return cls(**{name: _decode(value[name], hints[name], scope, f"{where}.{name}") for name in names})


def _refuse(value: Any, options: list[Any], where: str) -> NoReturn:
    wanted = ", ".join(sorted(_spelt(o) for o in options))
    if isinstance(value, dict):
        kind = value.get(KIND)
        known = isinstance(kind, str) and kind in _classes()
        state = "of a class that cannot stand here" if known else "unknown"
        raise WireError(f"kind {kind!r} is {state}; wanted: {wanted}", where, _RULES["kinds"])
    raise WireError(f"{type(value).__name__} {value!r:.60} where {wanted} is wanted", where, _RULES["types"])


# --- what the annotations say -------------------------------------------------------------------------------


def is_record(cls: Any) -> bool:
    """Is it a class made by `record`?"""
    return isinstance(cls, type) and hasattr(cls, "__dataclass_params__")


def name_of(cls: type) -> str:
    """The name of a class on the wire: its module inside the package and its own."""
    return f"{cls.__module__.removeprefix(_PACKAGE)}.{cls.__qualname__}"


def _spelt(option: Any) -> str:
    return name_of(option) if is_record(option) else getattr(option, "__name__", str(option))


@cache
def _payload(cls: type) -> tuple[str, ...]:
    """Fields that carry something: the `kind` tag of a record says what the class already says."""
    return tuple(f.name for f in fields(cls) if f.name != KIND)


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    return types.MappingProxyType(get_type_hints(cls))


def _options(hint: Any, scope: _Scope) -> Iterator[tuple[Any, _Scope]]:
    """The alternatives of an annotation: unions flattened, names in quotes and type variables resolved."""
    if isinstance(hint, ForwardRef):
        hint = hint.__forward_arg__
    if isinstance(hint, str):
        quoted = types.SimpleNamespace(__annotations__={"it": hint})
        hint = get_type_hints(quoted, globalns=vars(modules[scope.module]))["it"]
    if isinstance(hint, TypeVar):
        hint = next((known for variable, known in scope.variables if variable is hint), object)
    if get_origin(hint) in (Union, types.UnionType):
        for member in get_args(hint):
            yield from _options(member, scope)
    else:
        yield (type(None) if hint is None else hint), scope


@cache
def _classes() -> Mapping[str, type]:
    """Every record class that a session can hold, by name."""
    found: dict[str, type] = {}
    todo: list[tuple[Any, _Scope]] = [(Session, _Scope(Session.__module__))]
    seen: set[str] = set()
    while todo:
        hint, scope = todo.pop()
        if repr((hint, scope.module)) in seen:
            continue
        seen.add(repr((hint, scope.module)))
        for option, inner in _options(hint, scope):
            cls = get_origin(option) or option
            todo += [(arg, inner) for arg in get_args(option) if arg is not ... and cls is not Literal]
            if is_record(cls) and name_of(cls) not in found:
                found[name_of(cls)] = cls
                todo += [(h, _Scope(cls.__module__)) for name, h in _hints(cls).items() if name in _payload(cls)]
    return types.MappingProxyType(found)
