"""The keys of `expect` and `check` (scenario format §4) as tables: what each may hold, what is Orca's."""

from __future__ import annotations

from typing import Any

from rho_conformance.scenario.patterns import (
    event_pattern,
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
    filled_list_of,
    flag,
    is_integer,
    is_list,
    is_map,
    known_keys,
    list_of,
    map_of,
    natural,
    one_of,
    record,
    said,
    text,
    when,
)
from rho_conformance.scenario.tree import Map
from rho_spec.names import ERRORS, NAMED_WAITS, ORCA_ERRORS, PLAIN_WAITS, STATES

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


def _error_name(value: Any, where: Where) -> None:
    one_of(*ERRORS, *(() if where.profile == "rho" else ORCA_ERRORS))(value, where)


def _ok_or_error(ok: Shape, extra: dict[str, Shape], *words: str) -> Shape:
    """A map with `ok` or `error`, or one of some words in its place."""
    shapes = {"ok": ok, "error": or_operator(_error_name), **extra}

    def check(value: Any, where: Where) -> None:
        if isinstance(value, str) and value in words:
            return
        if not is_map(value):
            where.fail(f"expected {', '.join(words)} or a map with 'ok' or 'error', got {said(value)}")
        fields = as_map(value, where)
        known_keys(fields, where, {"ok"} if "ok" in fields else {"error", *extra})
        if not fields:
            where.fail("expected the key 'ok' or 'error'")
        for key, item in fields.items():
            shapes[key](item, where.key(fields, key))

    return check


OUTCOME: Shape = or_operator(_ok_or_error(or_operator(_OK_OUTCOME), _ERROR, "pending"))
REPLY: Shape = or_operator(_ok_or_error(value_pattern, {**_ERROR, "rule": value_pattern}, "ok", "pending"))

EVENTS = sequence_of(event_pattern)
OBSERVATIONS = sequence_of(observation_pattern)
MESSAGES = sequence_of(message_pattern)
_RANGE: dict[str, Shape] = {"min": natural, "max": natural}


def _count(value: Any, where: Where) -> None:
    record({"is": natural, **_RANGE}, of=observation_pattern)(value, where)
    if not ({"is", "min", "max"} & set(value)):
        where.fail("expected 'is', 'min' or 'max'")
    if "is" in value and ({"min", "max"} & set(value)):
        where.fail("'is' stands alone: with it, 'min' and 'max' say nothing")


def _set_of_messages(value: Any, where: Where) -> None:
    for index, item in enumerate(as_list(value, where)):
        message_pattern(item, where.item(value, index))


ANY_REQUEST = "*"


def _request(value: Any, where: Where) -> None:
    if is_list(value):
        MESSAGES(value, where)
    elif is_map(value):
        record(same_as=natural)(value, where)
    elif value != ANY_REQUEST:
        where.fail(f"expected a message sequence, same_as or '*', got {said(value)}")


def _requests(value: Any, where: Where) -> None:
    if is_list(value):
        list_of(_request)(value, where)
        for index, item in enumerate(value):
            if is_map(item) and not 1 <= item["same_as"] <= index:
                where.item(value, index).fail(f"same_as: there is no entry {item['same_as']} before this one")
    elif is_map(value):
        record(_RANGE)(value, where)
    elif is_integer(value):
        natural(value, where)
    else:
        where.fail(f"expected an integer, a map with 'min' or 'max', or a list, got {said(value)}")


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


def _wait(value: Any, where: Where) -> None:
    named = isinstance(value, str) and any(value.startswith(start) and value != start for start in NAMED_WAITS)
    if not named and value not in PLAIN_WAITS:
        names = [*PLAIN_WAITS, *(f"{start}{'ID' if start == 'tool:' else 'ASK'}" for start in NAMED_WAITS)]
        where.fail(f"expected one of {', '.join(names)}, got {said(value)}")


_OF_SESSION: dict[str, Shape] = {
    "outcome": OUTCOME,
    "events": EVENTS,
    "history": MESSAGES,
    "requests": _requests,
    "state": or_operator(one_of(*STATES)),
    "busy": or_operator(flag),
    "revision": or_operator(REVISION),
}

ORCA_KEYS: dict[str, Shape] = {
    "pending": or_operator(natural),
    "active": list_of(text),
    "running_processes": list_of(text),
    "live_workflows": list_of(text),
    "notes": map_of(OBSERVATIONS),
    "delivered": list_of(list_of(text)),
    "dropped_events": or_operator(natural),
    "token": map_of(one_of("cancelled", "live")),
}

PLAIN_KEYS: dict[str, Shape] = {
    **_OF_SESSION,
    "outcomes": map_of(OUTCOME),
    "order": list_of(OBSERVATIONS),
    "count": list_of(_count),
    "absent": list_of(observation_pattern),
    "history_unordered": _set_of_messages,
    "replies": map_of(REPLY),
    "executions": map_of(or_operator(natural)),
    "records": sequence_of(_record_pattern),
    "snapshot": operator_only,
    "waiting_on": list_of(_wait),
    "sessions": map_of(record(_OF_SESSION)),
    **ORCA_KEYS,
}


def _alternative(value: Any, where: Where) -> None:
    record({**PLAIN_KEYS, "variant": text})(value, where)
    if not set(value) - {"variant"}:
        where.fail("an alternative that asks for nothing holds always")


_alternatives = filled_list_of(_alternative)

expect: Shape = record({**PLAIN_KEYS, "any_of": _alternatives})


def alternatives(expectation: Map | dict[str, Any]) -> list[dict[str, Any]]:
    """The map itself (without `any_of`) and all alternatives in it."""
    plain = {key: value for key, value in expectation.items() if key != "any_of"}
    return [plain, *expectation.get("any_of", [])]


__all__ = ["OUTCOME", "PLAIN_KEYS", "alternatives", "expect"]
