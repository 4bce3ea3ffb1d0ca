"""What every wire mapping needs: safe access to what came, whole text from fragments, adjacent results, usage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from rho_core import inputs as inp
from rho_core.events import NotReported, Reported
from rho_core.ledger import PENDING
from rho_core.messages import (
    Assistant,
    Block,
    History,
    Identity,
    Message,
    ProviderContext,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
    calls_of,
)

from ..provider import ModelRequest
from ..runtime.text import clean

T = TypeVar("T")


class Malformed(Exception):
    """What came is not of the shape that the API promises; the response is given up (RHO-RET-1)."""


# --- what came: the clients do not validate it, so any field may be absent or hold any JSON ---------------------


def get(value: Any, *path: str) -> Any:
    """The attribute at `path`; None where something on the way is absent. Plain objects of JSON will do, too."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def dispatched(on: Mapping[str, Callable[[Any], Iterable[inp.ModelInput]]], event: Any) -> Iterable[inp.ModelInput]:
    """What the handler of an event's type makes of it; kinds that are not known are passed over. Raises Malformed."""
    kind = get(event, "type")
    if not isinstance(kind, str):
        raise Malformed("an event without a type")
    handler = on.get(kind)
    return () if handler is None else handler(event)


def string(value: Any) -> str:
    """Text, absent text being none. Raises Malformed for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(type(value).__name__)
    return value


def items(value: Any) -> list[Any]:
    """A list, an absent one being empty. Raises Malformed for anything else."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(type(value).__name__)
    return value


def number(value: Any) -> int | None:
    """A count of tokens, if it is one."""
    return value if type(value) is int and value >= 0 else None


# --- text -------------------------------------------------------------------------------------------------------


class Joints:
    """Text that comes in pieces. `add` gives what may be shown by now: never half a surrogate pair."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> str:
        text = self._held + text
        self._held = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return clean(text[: len(text) - len(self._held)])


class Pieces(Joints):
    """The same, remembered."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []

    def add(self, text: str) -> str:
        text = super().add(text)
        if text:
            self._parts.append(text)
        return text

    def text(self) -> str:
        """All of it; half a pair at the very end is replaced."""
        return "".join(self._parts) + clean(self._held)

    def become(self, text: str) -> None:
        """The whole, as the server finally says it."""
        self._parts, self._held = [clean(text)], ""


class Call:
    """A tool call under assembly, in slot `index` of its response."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.arguments = Pieces()

    def grow(self, request: ModelRequest, id: str, name: str, arguments: str) -> inp.CallDelta | None:
        """Take a fragment in; what to tell of it."""
        shown = self.arguments.add(arguments)
        new_id = clean(id) if id and id != self.id else None
        new_name = clean(name) if name and name != self.name else None
        self.id, self.name = new_id or self.id, new_name or self.name
        if not (shown or new_id or new_name):
            return None
        return request.call(self.index, new_id, new_name, shown)

    def block(self) -> ToolCall:
        """The whole call. No arguments at all are an empty object; others pass as they are: the core judges."""
        return ToolCall(self.id or "", self.name or "", self.arguments.text() or "{}")


def detachments(request: ModelRequest, content: Iterable[Block]) -> Iterator[inp.ModelInput]:
    """Marks for the calls of asynchronous tools (RHO-ORD-7)."""
    asynchronous = {t.name for t in request.tools if t.asynchronous}
    for call in content:
        if isinstance(call, ToolCall) and call.name in asynchronous and call.id:
            yield request.detachable(call.id)


# --- usage ------------------------------------------------------------------------------------------------------


class Meter:
    """Reports of one attempt add up in the core; servers send totals, often twice. This gives the difference."""

    __slots__ = ("_told",)
    FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens")

    def __init__(self) -> None:
        self._told: dict[str, int] = {}

    def growth(self, total: Usage) -> Usage | None:
        """What is new in `total`; None when nothing is. A total that falls is no news."""
        more: dict[str, int] = {}
        for name in self.FIELDS:
            now = getattr(total, name)
            if now is not None and now > self._told.get(name, -1):
                more[name] = now - self._told.get(name, 0)
                self._told[name] = now
        return Usage(**more) if more else None


def generated(output: int | None, hidden: int | None, concealed: bool) -> Reported | NotReported | None:
    """Tokens of the window that was seen (RHO-METR-2): `hidden` are those of reasoning that was not shown.

    `concealed`: there was such reasoning, and perhaps nobody said how much.
    """
    if output is not None and hidden is not None:
        return Reported(max(0, output - hidden)) if hidden else None
    return NotReported() if concealed else None


# --- history ----------------------------------------------------------------------------------------------------


def adjacent(messages: History) -> Iterator[Message]:
    """The same conversation with the answer to every call directly behind its message, as the APIs demand.

    The result of a detached call may stand anywhere later. In its place comes the sentence that the
    model was shown while the call was running, so that what it has read does not change; the result itself comes
    as a user message where it was received.
    """
    names: dict[str, str] = {}
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        if isinstance(message, ToolResult):
            yield late(message, names)
            continue
        yield message
        if not isinstance(message, Assistant):
            continue
        calls = calls_of(message.content)
        names.update((c.id, c.name) for c in calls)
        found: dict[str, ToolResult] = {}
        later: list[ToolResult] = []
        while place < len(messages) and isinstance(result := messages[place], ToolResult):
            place += 1
            if any(c.id == result.id for c in calls):
                found[result.id] = result
            else:
                later.append(result)
        yield from (found.get(c.id) or ToolResult(c.id, True, PENDING) for c in calls)
        yield from (late(r, names) for r in later)


def late(result: ToolResult, names: Mapping[str, str]) -> User:
    """A result that came after the conversation had gone on."""
    what = f"{names.get(result.id, 'a tool')} (call {result.id})"
    return User((Text(f"{'Result' if result.ok else 'Failure'} of {what}:\n{result.content}"),))


def own_context(message: Assistant, identity: Identity) -> tuple[ProviderContext, ...]:
    """The provider's own material in a message; that of others is left out."""
    return tuple(c for c in message.provider_context if c.identity == identity)


def woven(content: tuple[Block, ...], context: Iterable[ProviderContext]) -> Iterator[Block | ProviderContext]:
    """Blocks with provider material before the block that it came before; without a position: at the front."""
    waiting = sorted(context, key=lambda c: c.position or 0)
    for index, block in enumerate(content):
        while waiting and (waiting[0].position or 0) <= index:
            yield waiting.pop(0)
        yield block
    yield from waiting


_SURROGATE = re.compile("[\ud800-\udfff]")


def cleaned(value: Any) -> Any:
    """JSON whose texts hold no lone surrogates: no server takes them."""
    if isinstance(value, str):
        return clean(value) if _SURROGATE.search(value) else value
    if isinstance(value, Mapping):
        return {clean(k) if isinstance(k, str) else k: cleaned(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(v) for v in value]
    return value
