"""How every value of the core is built: one decorator, decided in one place (design §3.6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, slotted, hashable dataclass.

    Frozen because a state that a handler could change in place would make replay and search meaningless;
    slotted because states are built once per input.
    """
    return dataclass(frozen=True, slots=True)(cls)


def tag(kind: str) -> Any:
    """The `kind` field of a value that crosses the wire: keyword only, so that positions stay the payload's."""
    return field(default=kind, kw_only=True)
