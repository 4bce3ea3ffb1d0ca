"""Classes of answers: what `b` of an intent means for a model, a tool, a compactor, a collector.

A class is a builder and the features that it needs beyond those of its items: some answers are of a kind that a
model double may be unable to give, though it can give others (`provider.return=other`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rho_conformance.driver import JsonMap
from rho_conformance.generate.situation import Situation, Upcall

CANARY = "canary-raw-reasoning"
"""Raw reasoning that must show up nowhere but in its own events (RHO-CAN-10)."""
UNKNOWN_TOOL = "nope"
FLOOD = 80
"""More deltas than the default channel takes (64): with a held reader production has to stop (RHO-BUF-2)."""

Build = Callable[[Situation, Upcall], "list[JsonMap] | None"]


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """`build` gives the items, None where the class means nothing here; `needs` are extra features."""

    build: Build
    needs: tuple[str, ...] = ()


ZERO = ("provider.return=zero-blocks",)
OTHER = ("provider.return=other-than-streamed",)
DOUBLE = ("provider.return=same-id-twice",)
BROKEN = ("provider.return=broken-arguments",)
PARTIAL = ("provider.call_delta=partial",)

# --- calls ------------------------------------------------------------------------------------------------------------


def tools_of(sit: Situation, mode: str) -> list[str]:
    """Names of the configured tools of a mode."""
    return [name for name, options in sit.tools.items() if options.get("mode", "sync") == mode]


def a_call(sit: Situation, tool: str, *, marked: bool = False, args: Any = None) -> JsonMap:
    """A call with a fresh id; `marked` adds the asynchronous marker."""
    call: JsonMap = {"id": f"c{sit.number('call')}", "tool": tool, "args": {} if args is None else args}
    return {**call, "async": True} if marked else call


def _pick(sit: Situation, mode: str) -> str | None:
    names = tools_of(sit, mode)
    return names[sit.number(f"pick {mode}") % len(names)] if names else None


def _calls(*modes: str) -> Build:
    """Calls of these kinds in this order: sync, async (marked), unmarked (async tool), odd (marked sync), unknown."""

    def build(sit: Situation, model: Upcall) -> list[JsonMap] | None:
        calls: list[JsonMap] = []
        for mode in modes:
            kind = {"unmarked": "async", "odd": "sync"}.get(mode, mode)
            tool = UNKNOWN_TOOL if mode == "unknown" else _pick(sit, kind)
            if tool is None:
                return None
            calls.append(a_call(sit, tool, marked=mode in ("async", "odd")))
        return [{"calls": calls}]

    return build


# --- the end of a model call ------------------------------------------------------------------------------------------


def _text(sit: Situation, model: Upcall) -> list[JsonMap]:
    if model.text or model.fragments:
        return _streamed(sit, model)
    return [{"text": f"answer {sit.number('answer')}"}]


def _streamed(sit: Situation, model: Upcall) -> list[JsonMap]:
    """Return exactly what was streamed."""
    calls = [
        {"id": slot["id"] or f"c{sit.number('call')}", "tool": slot["tool"] or UNKNOWN_TOOL, "args": slot["args"]}
        for slot in model.fragments.values()
    ]
    blocks: JsonMap = {"text": model.text} if model.text or not calls else {}
    return [{"return": {**blocks, "calls": calls} if calls else blocks}]


def _chunks(sit: Situation, model: Upcall) -> list[JsonMap]:
    number = sit.number("answer")
    return [{"text": [f"answer {number}", ", in ", "three parts"], "usage": {"output_tokens": number}}]


def _text_and_call(sit: Situation, model: Upcall) -> list[JsonMap] | None:
    tool = _pick(sit, "sync")
    return None if tool is None else [{"text": "let me look", "calls": [a_call(sit, tool)]}]


def _thinking(sit: Situation, model: Upcall) -> list[JsonMap]:
    return [{"reasoning": f"{CANARY} {sit.number('canary')}", "text": "thought over"}]


def _same_id(sit: Situation, model: Upcall) -> list[JsonMap] | None:
    tool = _pick(sit, "sync")
    if tool is None:
        return None
    call = a_call(sit, tool)
    return [{"calls": [call, dict(call)]}]


def _open_id(sit: Situation, model: Upcall) -> list[JsonMap] | None:
    tool = _pick(sit, "sync")
    ids = [u.call_id for u in sit.opened("ToolExecute") if u.session == model.session]
    return None if tool is None or not ids else [{"calls": [{"id": ids[0], "tool": tool, "args": {}}]}]


def _broken(sit: Situation, model: Upcall) -> list[JsonMap] | None:
    tool = _pick(sit, "sync")
    return None if tool is None else [{"calls": [a_call(sit, tool, args='{"a": ')]}]


def _items(*items: JsonMap) -> Build:
    return lambda sit, model: [dict(item) for item in items]


def _fail(kind: str, **more: Any) -> Build:
    return _items({"fail": {"kind": kind, **more}})


MODEL_ENDS: tuple[AnswerClass, ...] = (
    AnswerClass(_text),
    AnswerClass(_calls("sync")),
    AnswerClass(_calls("sync", "sync")),
    AnswerClass(_calls("async")),
    AnswerClass(_calls("async", "sync")),
    AnswerClass(_fail("Unavailable", retryable=True)),
    AnswerClass(_text),
    AnswerClass(_streamed),
    AnswerClass(_calls("sync", "async", "sync")),
    AnswerClass(_calls("async", "async")),
    AnswerClass(_calls("unknown")),
    AnswerClass(_calls("sync", "unknown", "sync")),
    AnswerClass(_fail("RateLimit", retryable=True, retry_after="5s")),
    AnswerClass(_items({"return": {}}), ZERO),
    AnswerClass(_text_and_call),
    AnswerClass(_chunks),
    AnswerClass(_thinking),
    AnswerClass(_fail("Other", diagnostic="the backend said 500", message="no luck")),
    AnswerClass(_same_id, DOUBLE),
    AnswerClass(_fail("Timeout", retryable=True, retry_after_header="120")),
    AnswerClass(_calls("unmarked", "odd", "sync")),
    AnswerClass(_items({"panic": True})),
    AnswerClass(_items({"return": {"text": "not what was streamed"}}), OTHER),
    AnswerClass(_open_id, DOUBLE),
    AnswerClass(_broken, BROKEN),
    AnswerClass(_items({"text": ""}), ZERO),
    AnswerClass(_fail("Authentication")),
    AnswerClass(_fail("Interrupted")),
    AnswerClass(_fail("InvalidResponse", retryable=True, retry_after="0ms")),
    AnswerClass(_fail("RateLimit", retryable=True, retry_after="500ms")),
    AnswerClass(_fail("RateLimit", retryable=True, retry_after_header="Sat, 01 Jan 2000 00:00:30 GMT")),
)
"""How a model call may end. Common ones stand first, so that small integers are ordinary lives."""

# --- what a model streams ---------------------------------------------------------------------------------------------


def _delta(sit: Situation, model: Upcall) -> list[JsonMap]:
    return [{"delta": f"part {sit.number('part')} "}]


def _fragment(sit: Situation, model: Upcall) -> list[JsonMap] | None:
    """Begin a call, or go on with the one that has begun, so that two of these make a whole one."""
    unfinished = [i for i, slot in model.fragments.items() if not slot["args"].endswith("}")]
    if unfinished:
        return [{"call_delta": {"index": unfinished[0], "arguments": "1}"}}]
    tool = _pick(sit, "sync")
    if tool is None:
        return None
    head = {"id": f"c{sit.number('call')}", "name": tool, "arguments": '{"a": '}
    return [{"call_delta": {"index": len(model.fragments), **head}}]


def _claim(step: str) -> Build:
    def build(sit: Situation, model: Upcall) -> list[JsonMap] | None:
        if not sit.config.get("provider", {}).get("steerable"):
            return None
        return [{step: sit.steers[-1]}] if sit.steers else None

    return build


def _reasoning(sit: Situation, model: Upcall) -> list[JsonMap]:
    return [{"reasoning": f"{CANARY} {sit.number('canary')}"}]


def _usage(sit: Situation, model: Upcall) -> list[JsonMap]:
    number = sit.number("usage")
    return [{"usage": {"input_tokens": 10 + number, "output_tokens": number}}]


MODEL_ITEMS: tuple[AnswerClass, ...] = (
    AnswerClass(_delta),
    AnswerClass(lambda sit, model: _delta(sit, model) + _delta(sit, model) + _delta(sit, model)),
    AnswerClass(_fragment, PARTIAL),
    AnswerClass(_claim("claim")),
    AnswerClass(_reasoning),
    AnswerClass(_usage),
    AnswerClass(_claim("deliver")),
    AnswerClass(_items({"summary": "a summary of thoughts"})),
    AnswerClass(_items({"physical_retry": {"kind": "Unavailable", "usage": {"input_tokens": 3}}})),
    AnswerClass(_items({"web_search": "weather"})),
    AnswerClass(_items({"generation_tokens": 7})),
    AnswerClass(_claim("release")),
    AnswerClass(_items({"hosted": {"name": "code", "detail": "ran"}})),
    AnswerClass(_items({"context": {"kind": "vendor.note", "data": "x"}})),
    AnswerClass(_items({"generation_tokens": "unavailable"})),
    AnswerClass(_items({"cancel_token": True})),
    AnswerClass(_items({"drop_token": True})),
    AnswerClass(_items({"tier_fallback": {"requested": "priority", "used": "standard"}})),
)


def model_late(sit: Situation) -> tuple[JsonMap, ...]:
    """What a model says after its call is over."""
    said: tuple[JsonMap, ...] = ({"delta": "too late"}, {"text": "too late"}, {"fail": {"kind": "Other"}})
    steerable = sit.steers and sit.config.get("provider", {}).get("steerable")
    return (*said, {"release": sit.steers[-1]}) if steerable else said


# --- tools, compactor, collector --------------------------------------------------------------------------------------

TOOL_ENDS: dict[str, tuple[JsonMap, ...]] = {
    "ToolPrepare": ({"prepared": True}, {"prepared": True}, {"prep_fail": "not like that"}, {"panic": True}),
    "ToolAuthorize": ({"authorize": "allow"}, {"authorize": "allow"}, {"authorize": "deny"}, {"panic": True}),
    "ToolExecute": (
        {"return": "done"},
        {"return": "done, too"},
        {"fail": "did not work"},
        {"return": ""},
        {"cancelled": True},
        {"panic": True},
    ),
}
TOOL_LATE: dict[str, tuple[JsonMap, ...]] = {
    "ToolPrepare": ({"prepared": True}, {"prep_fail": "too late"}),
    "ToolAuthorize": ({"authorize": "allow"}, {"authorize": "deny"}),
    "ToolExecute": ({"return": "too late"}, {"progress": "too late"}, {"ask": "late"}, {"panic": True}),
}
TOOL_ITEMS = ("progress", "ask", "ask_again", "progress", "ask", "cancel_token", "drop_token", "withdraw")


def tool_item(sit: Situation, tool: Upcall, kind: str) -> JsonMap:
    """An item that does not end the execution; `ask_again` is a clone of the call's last question, if it had one."""
    if kind == "progress":
        return {"progress": f"{sit.number('progress')} done"}
    asked = [ask for ask, call in sit.asks if call == tool.call_id]
    if kind == "ask_again" and asked:
        return {"ask": asked[-1]}
    if kind == "withdraw":
        return {"withdraw": asked[-1]} if asked else {"progress": "nothing asked"}
    if kind in ("ask", "ask_again"):
        return {"ask": f"q{sit.number('ask')}"}
    return {kind: True}


COMPACTIONS: tuple[JsonMap, ...] = (
    {"return": ["what happened so far"]},
    {"return": ["what happened so far"]},
    {"return": []},
    {"fail": {"kind": "Unavailable"}},
    {"interrupted": True},
    {"fail": {"kind": "Cancelled"}},
    {"panic": True},
)
BOUNDARIES = ("none", "input", "none", "gone")
ANSWERS: tuple[JsonMap, ...] = ({}, {"answers": {"q": ["no"]}}, {"answers": {"q": ["maybe"]}}, {"answers": {}})
"""How a question may be answered: as it should be, twice; with a choice that there is not; not at all."""
