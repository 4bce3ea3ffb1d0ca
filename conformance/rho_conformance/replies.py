"""The normal form of a `Reply`: `{name, value}`, whichever of the natural spellings a driver chose.

A spelling that is not known must never pass for a refusal (or for consent): it is a fault of the driver.
"""

from __future__ import annotations

from typing import Any

from rho_conformance.errors import DriverError

Json = Any
PENDING = "pending"
EXPECTED = (
    '{name, value: V}, {name, reply: V}, {name, ok: VALUE} or {name, error: NAME}, where V is "ok", "pending", '
    "{ok: VALUE} or {error: NAME}"
)
_SPELLINGS = ("value", "reply", "ok", "error")
_ADDRESS = ("name", "session", "run")


def normal_reply(fields: dict[str, Json], where: str) -> dict[str, Json]:
    """`fields` with the answer under `value`; raises `DriverError` for what is no reply at all.

    A reply that is in the normal form already is returned as it is.
    """
    if not isinstance(fields.get("name"), str):
        raise DriverError(f"{where}.name must be the name of a command, got {fields.get('name')!r}")
    used = [key for key in _SPELLINGS if key in fields]
    if "error" in used and "value" not in used and "reply" not in used:
        told = {key: value for key, value in fields.items() if key not in _ADDRESS}
    elif len(used) != 1:
        raise DriverError(f"{where} must be {EXPECTED}; got {fields!r}")
    else:
        told = {"ok": fields["ok"]} if used == ["ok"] else fields[used[0]]
    value = _value(told, where)
    if used == ["value"] and value is fields["value"]:
        return fields
    return {key: fields[key] for key in _ADDRESS if key in fields} | {"value": value}


def _value(told: Json, where: str) -> Json:
    if told in ("ok", PENDING):
        return told
    if isinstance(told, dict) and ("ok" in told) != ("error" in told):
        if "error" in told and isinstance(told["error"], str):
            return told
        if "ok" in told and told["ok"] is not False:
            return "ok" if told["ok"] is True or told["ok"] is None else told
    raise DriverError(f"{where} must be {EXPECTED}; got {told!r}")


def check_outcome(value: Json, where: str) -> None:
    """The reply of `outcome` says how a run ended: a bare `ok` does not."""
    if value == PENDING or (isinstance(value, dict) and ("error" in value or isinstance(value.get("ok"), dict))):
        return
    raise DriverError(
        f"{where} answers `outcome`, and must be {{ok: {{text, stop, revision}}}}, {{error: NAME, …}} or pending; "
        f"got {value!r}"
    )
