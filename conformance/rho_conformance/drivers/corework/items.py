"""Items of a scenario -> inputs of the core: what a provider, a tool or a compactor hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import rho_core.retry_after
from rho_conformance.drivers.corework import decode
from rho_conformance.drivers.corework.runs import Names
from rho_conformance.drivers.corework.settings import ToolHabit
from rho_conformance.drivers.corework.upcalls import STOPPED, Item, ModelUpcall, ToolUpcall
from rho_conformance.errors import DriverError
from rho_core import inputs as i
from rho_core.errors import INTERRUPTED, ProviderError, ProviderErrorKind, ToolErrorKind
from rho_core.events import Failure, NotReported, Reported, Success, Timing

EPOCH_UNIX_MS = 946_684_800_000
"""Virtual time 0, 2000-01-01T00:00:00Z, in the time of the system clock."""
TOKEN_ITEMS = ("cancel_token", "drop_token")
ADDRESS = ("session", "run", "as", "id")
SHORTHAND = ("reasoning", "text", "calls", "usage")
DENIAL = "the host said no"
TOOL_CANCELLED = "tool call cancelled"
HEEDED = ProviderError(ProviderErrorKind.INTERRUPTED, "the provider stopped", retryable=False)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a double knows beside its item: the clock, the names and the tools' habits."""

    now_ms: int
    names: Names
    tools: Mapping[str, ToolHabit]


def plain(value: Any, where: str) -> Item:
    """The one item of a stimulus, its address taken off."""
    given = {k: v for k, v in decode.fields(value, where).items() if k not in ADDRESS}
    if len(given) != 1:
        raise DriverError(f"{where}: expected one item, got {', '.join(given) or 'none'}")
    return next(iter(given.items()))


def provider(value: Any) -> list[Item]:
    """A provider item; the shorthand emits reasoning, text, calls with markers, usage, and then returns."""
    given = {k: v for k, v in decode.fields(value, "provider").items() if k not in ADDRESS}
    if "text" not in given and "calls" not in given:
        return [plain(given, "provider")]
    unknown = sorted(set(given) - set(SHORTHAND))
    if unknown:
        raise DriverError(f"provider: the shorthand has no key {unknown[0]!r}")
    items: list[Item] = [("reasoning", t) for t in decode.texts(given.get("reasoning", []), "provider.reasoning")]
    items += [("delta", t) for t in decode.texts(given.get("text", []), "provider.text")]
    for index, raw in enumerate(given.get("calls", ())):
        call = decode.call(raw, "provider.calls")
        fragment = {"index": index, "id": call.id, "name": call.name, "arguments": call.arguments}
        items.append(("call_delta", fragment))
        if raw.get("async"):
            items.append(("context", {"kind": i.ASYNC_CALL, "data": call.id}))
    if "usage" in given:
        items.append(("usage", given["usage"]))
    returned = {key: given[key] for key in ("text", "calls") if key in given}
    return [*items, ("return", returned)]


# --- the provider --------------------------------------------------------------------------------

ModelRow = Callable[[ModelUpcall, Any, Surroundings], i.ModelInput]


def _context(u: ModelUpcall, value: Any, _: Surroundings) -> i.ModelInput:
    given = decode.fields(value, "provider.context")
    data = given.get("data", "")
    text = data if isinstance(data, str) else rho_core.messages.freeze_json(data)
    kind = decode.text(decode.need(given, "kind", "provider.context"), "provider.context.kind")
    return i.ContextBlock(u.step, u.attempt, kind, text, given.get("position"))


def _call_delta(u: ModelUpcall, value: Any, _: Surroundings) -> i.ModelInput:
    given, where = decode.fields(value, "provider.call_delta"), "provider.call_delta"
    raw = decode.text(given.get("arguments", ""), where)
    return i.CallDelta(u.step, u.attempt, decode.need(given, "index", where), given.get("id"), given.get("name"), raw)


def _generation(u: ModelUpcall, value: Any, _: Surroundings) -> i.ModelInput:
    tokens = NotReported() if value == "unavailable" else Reported(value)
    return i.GenerationTokensReported(u.step, u.attempt, tokens)


def _hosted(u: ModelUpcall, value: Any, _: Surroundings) -> i.ModelInput:
    given = decode.fields(value, "provider.hosted")
    return i.HostedTool(u.step, u.attempt, given["name"], given["detail"])


def _tier(u: ModelUpcall, value: Any, _: Surroundings) -> i.ModelInput:
    given = decode.fields(value, "provider.tier_fallback")
    return i.TierFallback(u.step, u.attempt, given["requested"], given["used"])


def _physical(u: ModelUpcall, value: Any, _: Surroundings) -> i.ModelInput:
    given = decode.fields(value, "provider.physical_retry")
    used = decode.usage(given.get("usage", {}), "provider.physical_retry.usage")
    return i.PhysicalAttemptFailed(u.step, u.attempt, given["kind"], used)


def _return(u: ModelUpcall, value: Any, at: Surroundings) -> i.ModelInput:
    last = u.last_ms
    if last is None or u.first_ms is None:
        timing = Timing(at.now_ms - u.started_ms)
    else:
        timing = Timing(last - u.started_ms, u.first_ms - u.started_ms, last - u.first_ms)
    return i.ModelReturned(u.step, u.attempt, decode.blocks(value, "provider.return"), timing)


def _fail(u: ModelUpcall, value: Any, at: Surroundings) -> i.ModelInput:
    given, where = decode.fields(value, "provider.fail"), "provider.fail"
    kind = decode.text(decode.need(given, "kind", where), where)
    wait: int | None = None
    if "retry_after" in given:
        wait = decode.duration_ms(given["retry_after"], f"{where}.retry_after")
    elif "retry_after_header" in given:
        raw = decode.text(given["retry_after_header"], where)
        wait = rho_core.retry_after.parse(raw, EPOCH_UNIX_MS + at.now_ms)
    said = given.get("message", f"scripted failure: {kind}")
    error = ProviderError(kind, said, bool(given.get("retryable", False)), wait, given.get("diagnostic"))
    return i.ModelFailed(u.step, u.attempt, error)


MODEL: dict[str, ModelRow] = {
    "delta": lambda u, v, _: i.TextDelta(u.step, u.attempt, decode.text(v, "provider.delta")),
    "reasoning": lambda u, v, _: i.RawReasoning(u.step, u.attempt, decode.text(v, "provider.reasoning")),
    "summary": lambda u, v, _: i.SummaryDelta(u.step, u.attempt, decode.text(v, "provider.summary")),
    "call_delta": _call_delta,
    "context": _context,
    "usage": lambda u, v, _: i.UsageReported(u.step, u.attempt, decode.usage(v, "provider.usage")),
    "generation_tokens": _generation,
    "web_search": lambda u, v, _: i.WebSearched(u.step, u.attempt, decode.text(v, "provider.web_search")),
    "hosted": _hosted,
    "physical_retry": _physical,
    "tier_fallback": _tier,
    "claim": lambda u, v, at: i.SteerClaimed(u.step, u.attempt, at.names.steer_id(v)),
    "deliver": lambda u, v, at: i.SteerDelivered(u.step, u.attempt, at.names.steer_id(v)),
    "release": lambda u, v, at: i.SteerReleased(u.step, u.attempt, at.names.steer_id(v)),
    "return": _return,
    "fail": _fail,
    "panic": lambda u, _v, _: i.ModelPanicked(u.step, u.attempt),
    STOPPED: lambda u, _v, _: i.ModelFailed(u.step, u.attempt, HEEDED),
}


def model_input(upcall: ModelUpcall, item: Item, at: Surroundings) -> i.ModelInput:
    """The input that a provider item is; it names the `(step, attempt)` of its own call."""
    row: ModelRow = _row(MODEL, item[0], "provider")
    return row(upcall, item[1], at)


# --- tools ---------------------------------------------------------------------------------------

ToolRow = Callable[[ToolUpcall, Any, Surroundings], i.ToolInput]


def _id(u: ToolUpcall) -> str:
    assert u.call_id is not None
    return u.call_id


def _authorize(u: ToolUpcall, value: Any, _: Surroundings) -> i.ToolInput:
    if value not in ("allow", "deny"):
        raise DriverError(f"tool.authorize: expected allow or deny, got {value!r}")
    return i.Authorized(_id(u)) if value == "allow" else i.Denied(_id(u), DENIAL)


def _ask(u: ToolUpcall, value: Any, at: Surroundings) -> i.ToolInput:
    name = decode.text(value, "tool.ask")
    return i.ToolAsked(_id(u), decode.request(at.names.ask_id(name), name))


def _ended(u: ToolUpcall, kind: ToolErrorKind, text: Any) -> i.ToolInput:
    return i.ToolReturned(_id(u), Failure(kind, decode.text(text, "tool.fail")))


TOOL: dict[str, ToolRow] = {
    "prepared": lambda u, _v, at: i.Prepared(_id(u), at.tools[u.name].plan),
    "prep_fail": lambda u, v, _: i.PrepareFailed(_id(u), decode.text(v, "tool.prep_fail")),
    "authorize": _authorize,
    "progress": lambda u, v, _: i.ToolProgress(_id(u), decode.text(v, "tool.progress")),
    "ask": _ask,
    "withdraw": lambda u, v, at: i.AskWithdrawn(_id(u), at.names.ask_id(decode.text(v, "tool.withdraw"))),
    "return": lambda u, v, _: i.ToolReturned(_id(u), Success(decode.text(v, "tool.return"))),
    "fail": lambda u, v, _: _ended(u, ToolErrorKind.EXECUTION, v),
    "cancelled": lambda u, _v, _: _ended(u, ToolErrorKind.CANCELLED, TOOL_CANCELLED),
    "panic": lambda u, _v, _: i.ToolPanicked(_id(u)),
}
PHASES = {"prepared": "ToolPrepare", "prep_fail": "ToolPrepare", "authorize": "ToolAuthorize"}
"""The upcall that an item answers, where it is not the executor."""
ANY_PHASE = ("panic", *TOKEN_ITEMS)
"""Items that concern whatever runs for the call at this moment."""


def tool_input(upcall: ToolUpcall, item: Item, at: Surroundings) -> i.ToolInput:
    """The input that a tool item is."""
    row: ToolRow = _row(TOOL, item[0], "tool")
    return row(upcall, item[1], at)


# --- the compactor -------------------------------------------------------------------------------

CompactorInput = i.CompactorReturned | i.CompactorFailed | i.CompactorPanicked
CompactorRow = Callable[[Any], CompactorInput]
COMPACTOR: dict[str, CompactorRow] = {
    "return": lambda v: i.CompactorReturned(decode.messages(v, "compactor.return")),
    "fail": lambda v: i.CompactorFailed(decode.core_error(v, "compactor.fail")),
    "interrupted": lambda _: i.CompactorFailed(INTERRUPTED),
    "panic": lambda _: i.CompactorPanicked(),
}


def compactor_input(item: Item) -> CompactorInput:
    """The input that a compactor item is."""
    row: CompactorRow = _row(COMPACTOR, item[0], "compactor")
    return row(item[1])


def _row(table: Mapping[str, Any], kind: str, who: str) -> Any:
    row = table.get(kind)
    if row is None:
        raise DriverError(f"{who}: there is no item {kind!r}; known: {', '.join((*table, *TOKEN_ITEMS))}")
    return row
