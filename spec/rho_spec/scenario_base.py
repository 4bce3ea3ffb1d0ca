"""What the types of scenario format 1 are made of: placeholders, maps with known keys, scalars.

The types serve the published JSON Schema. The runner has a parser of its own, which also knows lines; the two
take and refuse the same files, but for what a schema cannot say (which names clash, which entry `same_as` means).
"""

import re
from fractions import Fraction
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from typing_extensions import TypeAliasType

from rho_spec.names import MOST, NAMED_WAITS, PLAIN_WAITS

T = TypeVar("T")
PLACEHOLDER = r"\$\{[^{}]*\}"
_PLACEHOLDER = re.compile(PLACEHOLDER)
Placeholder = TypeAliasType("Placeholder", Annotated[str, StringConstraints(pattern=PLACEHOLDER)])
P: TypeAlias = T | Placeholder
"""Every value may be one that a case fills, wholly or in part."""
V: TypeAlias = T | Placeholder | None
"""The value of a key that may be missing: a key whose value is null counts as absent."""

Text: TypeAlias = str | int | float | bool  # YAML reads some unquoted texts as numbers
Name = Annotated[str, StringConstraints(pattern=r"\S")]
Natural = Annotated[int, Field(ge=0, le=MOST)]
Revision: TypeAlias = Natural | Literal["max"]
Wait = Annotated[str, StringConstraints(pattern=f"^({'|'.join(PLAIN_WAITS)})$|^({'|'.join(NAMED_WAITS)})[\\s\\S]")]

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}


def _whole(text: str) -> str:
    number, unit = text.rstrip("ms"), text.lstrip("0123456789.")
    if (Fraction(number) * _MILLISECONDS[unit]).denominator != 1:
        raise ValueError("a duration is whole milliseconds")
    return text


_FEW = "[0-9]{1,25}"
Duration = Annotated[
    str,
    StringConstraints(pattern=rf"^({_FEW}(\.0{{1,25}})?ms|{_FEW}(\.[0-9]{{1,3}}0{{0,22}})?s|{_FEW}(\.{_FEW})?m)$"),
    AfterValidator(_whole),
]


def is_placeholder(text: object) -> bool:
    """Whether a case puts something into this text."""
    return isinstance(text, str) and _PLACEHOLDER.search(text) is not None


class Strict(BaseModel):
    """A map that takes the keys of its fields and no others, with values of exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True)
    _by_case: bool = PrivateAttr(default=False)

    @model_validator(mode="wrap")
    @classmethod
    def _named_by_a_case(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        # A case names the key: what it will be, and which others must be there, only the case knows.
        if isinstance(value, dict) and any(is_placeholder(key) for key in value):
            made = cls.model_construct()
            made._by_case = True
            return made
        return handler(value)

    def given(self) -> set[str]:
        """The keys that stand in the map with a value, as the file writes them."""
        fields = type(self).model_fields
        names = [name for name in self.model_fields_set if getattr(self, name) is not None]
        return {fields[name].alias or name for name in names}


def needs(*keys: str) -> dict[str, Any]:
    """JSON Schema: the map holds all these keys, with values."""
    return {"required": list(keys), "properties": {key: {"not": {"type": "null"}} for key in keys}}


def exactly_one(*keys: str) -> dict[str, Any]:
    """JSON Schema: the map holds one of these keys and no other of them."""
    return {"oneOf": [needs(key) for key in keys]}


def unset(alias: str | None = None) -> Any:
    """A field of a map with one key: it may be missing, but has a value where it stands."""
    return Field(default=None, alias=alias)


class OneKey(Strict):
    """A map with exactly one key; it may list more only where cases leave out all but one."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "anyOf": [
                {"maxProperties": 1},
                {"additionalProperties": {"type": "string", "pattern": f"^{PLACEHOLDER}$"}},
            ],
        }
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        keys = self.model_fields_set
        chosen = all(is_placeholder(getattr(self, key)) for key in keys)
        if len(keys) != 1 and not (keys and chosen) and not self._by_case:
            raise ValueError(f"exactly one key is needed, not {sorted(keys)}")
        return self


def names(*known: str) -> Any:
    """Metadata of a text that must be one of some names."""

    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return value

    return AfterValidator(check)


def enumerated(*known: str) -> WithJsonSchema:
    """How the JSON Schema says the same."""
    return WithJsonSchema({"enum": sorted(known)})
