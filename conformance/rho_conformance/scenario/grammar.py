"""The stimuli of scenario format §3 as tables: which keys, which values, what is Orca's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rho_conformance.scenario.patterns import message
from rho_conformance.scenario.shapes import (
    Shape,
    Where,
    anything,
    as_map,
    duration,
    empty,
    filled_list_of,
    flag,
    integer,
    is_list,
    is_map,
    known_keys,
    list_of,
    map_of,
    name,
    natural,
    natural_or,
    one_of,
    put,
    record,
    text,
    true,
    when,
)
from rho_conformance.scenario.tree import Map, ScenarioFileError
from rho_spec.names import COMPACTOR_KINDS, ORCA_PROVIDER_KINDS, PROVIDER_KINDS

START_LIKE = ("start", "start_tool", "continue")
ANSWERS = ("provider", "tool", "compactor", "boundary", "recorder")
"""Stimuli that answer an upcall: the only ones that `maybe` may hold, beside `respond`."""
RUNNER_STEPS = ("until", "check", "together", "maybe")
MAYBE_STEPS = (*ANSWERS, "respond")

_ADDRESS: dict[str, Shape] = {"session": text, "run": text}
_COMMAND: dict[str, Shape] = {**_ADDRESS, "as": name}

CALL: Shape = record({"args": anything, "async": flag}, id=text, tool=text)
USAGE: Shape = record(
    dict.fromkeys(
        (
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "total_tokens",
            "context_window",
            "cost_usd_micros",
        ),
        natural,
    )
)


def _kind(rho: tuple[str, ...]) -> Shape:
    """The kind of a failure, by the contract of the profile; common scenarios may use either's."""

    def check(value: Any, where: Where) -> None:
        one_of(*rho, *(() if where.profile == "rho" else ORCA_PROVIDER_KINDS))(value, where)

    return check


PROVIDER_ITEMS: dict[str, Shape] = {
    "delta": text,
    "reasoning": text,
    "summary": text,
    "call_delta": record({"id": text, "name": text}, index=integer, arguments=text),
    "context": record({"data": anything}, kind=text),
    "usage": USAGE,
    "generation_tokens": natural_or("unavailable"),
    "web_search": text,
    "hosted": record(name=text, detail=text),
    "physical_retry": record({"usage": USAGE}, kind=_kind(PROVIDER_KINDS)),
    "claim": text,
    "deliver": text,
    "release": text,
    "cancel_token": true,
    "drop_token": true,
    "return": record({"text": text, "calls": list_of(CALL)}),
    "fail": record(
        {
            "retryable": flag,
            "retry_after": duration,
            "retry_after_header": text,
            "message": text,
            "diagnostic": text,
        },
        kind=_kind(PROVIDER_KINDS),
    ),
    "panic": true,
}
_TEXTS = when(is_list, list_of(text), text)
SHORTHAND: dict[str, Shape] = {"reasoning": _TEXTS, "text": _TEXTS, "calls": list_of(CALL), "usage": USAGE}
SHORTHAND_ITEMS = {"reasoning": "reasoning", "text": "delta", "calls": "call_delta", "usage": "usage"}
"""Key of the shorthand -> the item that it emits."""

TOOL_ITEMS: dict[str, Shape] = {
    "prepared": true,
    "prep_fail": text,
    "authorize": one_of("allow", "deny"),
    "progress": text,
    "ask": text,
    "return": text,
    "fail": text,
    "cancelled": true,
    "panic": true,
    "cancel_token": true,
    "drop_token": true,
}
COMPACTOR_ITEMS: dict[str, Shape] = {
    "return": list_of(text),
    "fail": record(kind=_kind(COMPACTOR_KINDS)),
    "interrupted": true,
    "panic": true,
}


def is_shorthand(item: Any) -> bool:
    """Whether a provider item is the shorthand: it holds `text` or `calls`."""
    return isinstance(item, dict) and ("text" in item or "calls" in item)


def item_key(item: dict[str, Any]) -> str:
    """The key that says which item this is (for all but the shorthand)."""
    return next(key for key in item if key not in (*_ADDRESS, "id"))


def _one_item(items: dict[str, Shape], fixed: dict[str, Shape]) -> Shape:
    def check(value: Any, where: Where) -> None:
        fields = as_map(value, where)
        known_keys(fields, where, {**items, **fixed, **_ADDRESS})
        found = [key for key in fields if key in items]
        if len(found) != 1:
            where.fail(f"expected one item of {', '.join(items)}, got {', '.join(found) or 'none'}")
        if "id" in fixed and "id" not in fields:
            where.fail("the key 'id' is missing")
        record({**items, **fixed, **_ADDRESS})(fields, where)

    return check


_PROVIDER = when(is_shorthand, record({**SHORTHAND, **_ADDRESS}), _one_item(PROVIDER_ITEMS, {}))
_TOOL = _one_item(TOOL_ITEMS, {"id": text})


def _bare_or_map(bare: Shape, optional: dict[str, Shape], **required: Shape) -> Shape:
    return when(is_map, record(optional, **required), bare)


_ANSWERS: dict[str, Shape] = {"answers": map_of(list_of(text))}
_COUNT = natural_or("all")
_START_OPTIONS: dict[str, Shape] = {
    "token": text,
    "deadline": duration,
    "event_capacity": integer,
    "continue_at_step_limit": flag,
}


def _variants(*shapes: tuple[str, Shape]) -> Shape:
    """A map whose form is told by the first of these keys that it holds."""

    def check(value: Any, where: Where) -> None:
        fields = as_map(value, where)
        for key, shape in shapes:
            if key in fields:
                shape(fields, where)
                return
        expected = ", ".join(key for key, _ in shapes)
        where.fail(f"expected one of the keys {expected}, got {', '.join(fields) or 'none'}")

    return check


def exactly_one(optional: dict[str, Shape], choices: dict[str, Shape], **required: Shape) -> Shape:
    check_record = record({**optional, **choices}, **required)

    def check(value: Any, where: Where) -> None:
        check_record(value, where)
        if sum(key in choices for key in value) != 1:
            where.fail(f"expected exactly one of the keys {', '.join(choices)}")

    return check


_STAGE = record({"needs": list_of(text)}, id=text)
_END: dict[str, Shape] = {"return": text, "fail": text}

COMMANDS: dict[str, Shape] = {
    "start": _bare_or_map(text, {**_COMMAND, **_START_OPTIONS}, text=text),
    "start_tool": record(_COMMAND, call=CALL),
    "continue": record({**_COMMAND, "prompt": text, "images": list_of(anything), "token": text, "deadline": duration}),
    "cancel": record({**_COMMAND, "token": text}),
    "steer": record(_COMMAND, text=text),
    "retract": record(_COMMAND, ref=text),
    "respond": record({**_COMMAND, **_ANSWERS}, ref=text),
    "outcome": record(_COMMAND),
    "drop": record(_COMMAND),
    "drop_session": record(_COMMAND),
    "drop_runtime": record(_COMMAND),
    "shutdown": record({**_COMMAND, "grace": duration}),
    "new_session": record(_COMMAND),
    "compact": record(_COMMAND),
    "reset": record(_COMMAND),
    "clear": record(_COMMAND),
    "reset_in_place": record(_COMMAND),
    "append": record(_COMMAND, message=message),
    "replace_history": record(_COMMAND, messages=list_of(message)),
    "snapshot": record(_COMMAND),
    "save": record({**_COMMAND, "fail": true}),
    "restore": record({**_COMMAND, "from": one_of("last_save")}),
    "crash": record(_COMMAND),
    "query": one_of("state", "active", "runs", "processes", "pending"),
}
"""Host commands: each has a reply, filed under `as` or under its name and number."""

ORCA_STIMULI: dict[str, Shape] = {
    "token": record({**_ADDRESS, "parent": text}, new=text),
    "subscribe": record(_COMMAND),
    "read_notes": record(_ADDRESS, of=text),
    "worker": _variants(
        ("spawn", record({**_COMMAND, "on_cancel": one_of("stop", "ignore")}, spawn=text)),
        ("id", exactly_one(_COMMAND, {**_END, "panic": true, "cancel": true}, id=text)),
    ),
    "workers": one_of("cancel_all"),
    "foreground": record({**_COMMAND, "token": text}, spawn=text),
    "workflow": _variants(
        ("submit", record(_COMMAND, submit=text, stages=list_of(_STAGE))),
        ("stage", exactly_one(_COMMAND, _END, id=text, stage=text)),
        ("cancel", record(_COMMAND, id=text, cancel=true)),
    ),
    "process": _variants(
        ("spawn", record(_COMMAND, spawn=text)),
        ("id", exactly_one(_COMMAND, {"exit": integer, "output": text, "kill": true}, id=text)),
    ),
}

STIMULI: dict[str, Shape] = {
    **COMMANDS,
    # Not in the format, but the only way to say which run's reader is meant when there are several.
    "read": _bare_or_map(_COUNT, _ADDRESS, n=_COUNT),
    "hold_reader": record(_ADDRESS),
    "close_reader": record(_ADDRESS),
    "provider": when(is_list, filled_list_of(_PROVIDER), _PROVIDER),
    "tool": when(is_list, filled_list_of(_TOOL), _TOOL),
    "compactor": _one_item(COMPACTOR_ITEMS, {}),
    "boundary": _bare_or_map(one_of("none", "gone"), _ADDRESS, input=text),
    "recorder": one_of("ok", "fail"),
    "advance": duration,
    **ORCA_STIMULI,
}

ORCA_ONLY_STIMULI = frozenset(ORCA_STIMULI) | {"continue", "clear", "reset_in_place"}
ORCA_ONLY_KEYS: dict[str, tuple[str, ...]] = {
    "start": tuple(_START_OPTIONS),
    "cancel": ("token",),
    "shutdown": ("grace",),
}
"""Keys of a stimulus that only Orca has."""


def step(value: Any, where: Where, inner: Shape | None = None) -> str:
    """Check a one-key map with a known stimulus; its name. `inner` checks the runner's own steps."""
    fields = as_map(value, where)
    known = {**STIMULI, **dict.fromkeys(RUNNER_STEPS, empty)} if inner else STIMULI
    if len(fields) == 1 or fields.nulls:
        known_keys(fields, where, known)
    for nothing, line in fields.nulls.items():
        replace(where, line=line).fail(f"{nothing} needs a value{_without_fields(nothing, where)}")
    if len(fields) != 1:
        where.fail(f"a step is a map with one key, got {', '.join(fields) or 'none'}")
    (stimulus,) = fields
    if stimulus in RUNNER_STEPS and inner is not None:
        inner(fields, where)
    else:
        put(fields, stimulus, STIMULI[stimulus](fields[stimulus], where.key(fields, stimulus)))
    return stimulus


def _without_fields(stimulus: str, where: Where) -> str:
    """How to write a stimulus that needs no fields, for one that was left without a value."""
    try:
        STIMULI.get(stimulus, one_of())(Map(), where)
    except ScenarioFileError:
        return ""
    return f"; write {stimulus}: {{}}"
