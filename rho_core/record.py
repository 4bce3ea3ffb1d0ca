"""How every value of the core is built: one decorator, decided in one place (design §3.6)."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, slotted, hashable dataclass.

    Frozen because a state that a handler could change in place would make replay and search meaningless;
    slotted because states are built once per input.
    """
    return _quick_init(dataclass(frozen=True, slots=True)(cls))


def tag(kind: str) -> Any:
    """The `kind` field of a value that crosses the wire: keyword only, so that positions stay the payload's."""
    return field(default=kind, kw_only=True)


def _quick_init(cls: type[T]) -> type[T]:
    """The same constructor, through the slots' own descriptors.

    A frozen dataclass goes by `object.__setattr__`, and that lookup is half the cost of a step.
    """
    given = [f for f in fields(cls) if f.init]  # type: ignore[arg-type]
    names: dict[str, Any] = {f"_set_{f.name}": getattr(cls, f.name).__set__ for f in given}
    names |= {f"_default_{f.name}": f.default for f in given if f.default is not MISSING}

    def parameter(name: str) -> str:
        return f"{name}=_default_{name}" if f"_default_{name}" in names else name

    plain = [parameter(f.name) for f in given if not f.kw_only]
    keyword = [parameter(f.name) for f in given if f.kw_only]
    parameters = ", ".join(["self", *plain, *(["*", *keyword] if keyword else [])])
    body = "".join(f"    _set_{f.name}(self, {f.name})\n" for f in given) or "    pass\n"
    exec(f"def __init__({parameters}):\n{body}", names)
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = cls.__init__.__annotations__
    cls.__init__ = init  # type: ignore[method-assign]
    return cls
