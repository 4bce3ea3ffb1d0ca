"""The keys of `expect` and `check` (scenario format §4) as tables: what each may hold, what is Orca's."""

from __future__ import annotations

from typing import Any

from rho_conformance.scenario.patterns import (
    message_pattern,
    observation_pattern,
    operator_only,
    or_operator,
    sequence_of,
    value_pattern,
)
from rho_conformance.scenario.settings import REVISION
from rho_conformance.scenario.shapes import (
    Shape,
    Where,
    as_list,
    as_map,
    flag,
    integer,
    is_list,
    is_map,
    known_keys,
    list_of,
    map_of,
    one_of,
    record,
    text,
    when,
)
from rho_conformance.scenario.tree import Map

_OK_OUTCOME = record(
    {
        "text": value_pattern,
        "stop": or_operator(one_of("EndTurn", "MaxSteps")),
        "usage": value_pattern,
        "revision": or_operator(REVISION),
        "unapplied_steering": value_pattern,
    }
)
_ERROR: dict[str, Shape] = {
    "kind": value_pattern,
    "retryable": or_operator(flag),
    "message": value_pattern,
    "unapplied_steering": value_pattern,
}
_PENDING = one_of("pending")


def _ok_or_error(ok: Shape, extra: dict[str, Shape]) -> Shape:
    shapes = {"ok": ok, "error": or_operator(text), **extra}

    def check(value: Any, where: Where) -> None:
        fields = as_map(value, where)
        known_keys(fields, where, {"ok"} if "ok" in fields else {"error", *extra})
        if not fields:
            where.fail("expected the key 'ok' or 'error'")
        for key, item in fields.items():
            shapes[key](item, where.key(fields, key))

    return check


OUTCOME: Shape = or_operator(when(is_map, _ok_or_error(or_operator(_OK_OUTCOME), _ERROR), _PENDING))
REPLY: Shape = or_operator(
    when(
        is_map,
        _ok_or_error(value_pattern, {**_ERROR, "rule": value_pattern}),
        one_of("ok", "pending"),
    )
)

EVENTS = sequence_of(observation_pattern)
MESSAGES = sequence_of(message_pattern)
_RANGE: dict[str, Shape] = {"min": integer, "max": integer}


def _count(value: Any, where: Where) -> None:
    record({"is": integer, **_RANGE}, of=observation_pattern)(value, where)
    if not ({"is", "min", "max"} & set(value)):
        where.fail("expected 'is', 'min' or 'max'")


def _set_of_messages(value: Any, where: Where) -> None:
    for index, item in enumerate(as_list(value, where)):
        message_pattern(item, where.item(value, index))


def _request(value: Any, where: Where) -> None:
    if is_list(value):
        MESSAGES(value, where)
    elif is_map(value):
        record(same_as=integer)(value, where)
    else:
        one_of("*")(value, where)


def _requests(value: Any, where: Where) -> None:
    if is_list(value):
        list_of(_request)(value, where)
        for index, item in enumerate(value):
            if is_map(item) and not 1 <= item["same_as"] <= len(value):
                where.item(value, index).fail(f"same_as: there is no entry {item['same_as']}")
    elif is_map(value):
        record(_RANGE)(value, where)
    else:
        integer(value, where)


_OUTCOME_OF_RECORD = ("Completed", "InvalidResponse", "Cancelled")


def _record_pattern(value: Any, where: Where) -> None:
    record(
        {
            "attempt": value_pattern,
            "outcome": or_operator(when(is_map, record(Failed=value_pattern), one_of(*_OUTCOME_OF_RECORD))),
            "usage": value_pattern,
            "step": value_pattern,
        }
    )(value, where)


_OF_SESSION: dict[str, Shape] = {
    "outcome": OUTCOME,
    "events": EVENTS,
    "history": MESSAGES,
    "requests": _requests,
    "state": or_operator(text),
    "busy": or_operator(flag),
    "revision": or_operator(REVISION),
}

ORCA_KEYS: dict[str, Shape] = {
    "pending": or_operator(integer),
    "active": list_of(text),
    "running_processes": list_of(text),
    "live_workflows": list_of(text),
    "notes": map_of(EVENTS),
    "delivered": list_of(list_of(text)),
    "dropped_events": or_operator(integer),
    "token": map_of(one_of("cancelled", "live")),
}

PLAIN_KEYS: dict[str, Shape] = {
    **_OF_SESSION,
    "outcomes": map_of(OUTCOME),
    "order": list_of(EVENTS),
    "count": list_of(_count),
    "absent": list_of(observation_pattern),
    "history_unordered": _set_of_messages,
    "replies": map_of(REPLY),
    "executions": map_of(or_operator(integer)),
    "records": sequence_of(_record_pattern),
    "snapshot": operator_only,
    "waiting_on": list_of(text),
    "sessions": map_of(record(_OF_SESSION)),
    **ORCA_KEYS,
}


def _alternatives(value: Any, where: Where) -> None:
    alternatives = as_list(value, where)
    if not alternatives:
        where.fail("the list is empty")
    for index, item in enumerate(alternatives):
        record({**PLAIN_KEYS, "variant": text})(item, where.item(alternatives, index))


expect: Shape = record({**PLAIN_KEYS, "any_of": _alternatives})


def alternatives(expectation: Map | dict[str, Any]) -> list[dict[str, Any]]:
    """The map itself (without `any_of`) and all alternatives in it."""
    plain = {key: value for key, value in expectation.items() if key != "any_of"}
    return [plain, *expectation.get("any_of", [])]


__all__ = ["OUTCOME", "PLAIN_KEYS", "alternatives", "expect"]
