"""What a stream has shown so far, kept in case its response never completes (rho.md 3.5, RHO-CAN-9).

Linear in the size of the stream whatever its chunking. Raw reasoning has no place here (RHO-CAN-10).
"""

from __future__ import annotations

import re
from typing import Literal

from . import inputs as inp
from .events import GenerationTokens
from .messages import (
    NO_USAGE,
    AbortedAssistant,
    Block,
    Identity,
    PartialCall,
    ProviderContext,
    Text,
    ToolCall,
    Usage,
    is_object,
)
from .record import record
from .rope import EMPTY, TAIL_TEXT, Items, Rope, Spine, carry, join

_STRUCTURAL = re.compile(r'["\\{}\[\]]')


@record
class Scan:
    """Where a fragmentary JSON text stands: nesting depth, inside a string, after a backslash."""

    depth: int = 0
    mode: Literal["value", "string", "escape"] = "value"


def scan(state: Scan, text: str) -> tuple[Scan, bool]:
    """Advance over `text`; True when a top-level value closed in it."""
    depth, mode = state.depth, state.mode
    closed = False
    position = 0
    while True:
        if mode == "escape" and position < len(text):
            mode, position = "string", position + 1
        match = _STRUCTURAL.search(text, position)
        if match is None:
            return Scan(depth, mode), closed
        char, position = match.group(), match.end()
        if mode == "string":
            if char == '"':
                mode = "value"
            elif char == "\\":
                mode = "escape"
        elif char == '"':
            mode = "string"
        elif char in "{[":
            depth += 1
        elif char in "}]" and depth > 0:
            depth -= 1
            closed = closed or depth == 0


CallStage = Literal["open", "closed", "placed", "broken"]


@record
class CallFragments:
    """One provider slot. `closed`: its object is complete but id or name is not known yet."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: Rope = EMPTY
    scan: Scan = Scan()
    stage: CallStage = "open"


@record
class Rest:
    """Everything of a capture but the open text block, which alone changes on the hot path."""

    blocks: Items[Block] = Items()
    summary: Rope = EMPTY
    calls: tuple[CallFragments, ...] = ()
    context: tuple[ProviderContext, ...] = ()
    usage: Usage = NO_USAGE
    generation: GenerationTokens | None = None


@record
class Capture:
    """`tail` None: no text block is open, the next text begins a new one."""

    tail: str | None = None
    spine: Spine | None = None
    rest: Rest = Rest()


NOTHING = Capture()


def text_delta(capture: Capture, text: str) -> Capture:
    """Append to the open text block, or begin one."""
    tail = (capture.tail or "") + text
    if len(tail) < TAIL_TEXT:
        return Capture(tail, capture.spine, capture.rest) if tail else capture
    return Capture("", carry(capture.spine, tail), capture.rest)


def seal(capture: Capture) -> Capture:
    """Close the open text block: what follows it is not text."""
    if capture.tail is None:
        return capture
    block = Text(join(capture.tail, capture.spine))
    return Capture(None, None, _with(capture.rest, blocks=capture.rest.blocks.append(block)))


def _with(
    rest: Rest,
    *,
    blocks: Items[Block] | None = None,
    summary: Rope | None = None,
    calls: tuple[CallFragments, ...] | None = None,
    context: tuple[ProviderContext, ...] | None = None,
    usage: Usage | None = None,
) -> Rest:
    return Rest(
        rest.blocks if blocks is None else blocks,
        rest.summary if summary is None else summary,
        rest.calls if calls is None else calls,
        rest.context if context is None else context,
        rest.usage if usage is None else usage,
        rest.generation,
    )


def summary_delta(capture: Capture, text: str) -> Capture:
    """A reasoning summary is durable; it also ends the open text block."""
    if not text:
        return capture
    sealed = seal(capture)
    return Capture(None, None, _with(sealed.rest, summary=sealed.rest.summary.append(text)))


def context_block(capture: Capture, item: inp.ContextBlock, identity: Identity) -> Capture:
    """Provider material; it parts the text only when it has a position."""
    if item.position is not None:
        capture = seal(capture)
    block = ProviderContext(identity, item.context_kind, item.data, item.position)
    rest = _with(capture.rest, context=(*capture.rest.context, block))
    return Capture(capture.tail, capture.spine, rest)


def usage_reported(capture: Capture, usage: Usage) -> Capture:
    """Usage of one attempt adds up (RHO-METR-1)."""
    return Capture(capture.tail, capture.spine, _with(capture.rest, usage=capture.rest.usage + usage))


def generation_tokens(capture: Capture, tokens: GenerationTokens | None) -> Capture:
    """The last report wins (RHO-METR-2)."""
    rest = capture.rest
    after = Rest(rest.blocks, rest.summary, rest.calls, rest.context, rest.usage, tokens)
    return Capture(capture.tail, capture.spine, after)


def physical_retry(capture: Capture) -> Capture:
    """The failed physical request takes its usage with it; text already shown stays (RHO-RET-15)."""
    cleared = generation_tokens(capture, None)
    return Capture(cleared.tail, cleared.spine, _with(cleared.rest, usage=NO_USAGE))


def call_delta(capture: Capture, item: inp.CallDelta) -> Capture:
    """Add a fragment; the call block is placed where its object first closes and is fully named."""
    capture = seal(capture)
    rest = capture.rest
    fragments, place = _grow(_slot(rest.calls, item.index), item)
    blocks = rest.blocks
    if place and fragments.id is not None and fragments.name is not None:
        blocks = blocks.append(ToolCall(fragments.id, fragments.name, fragments.arguments.text()))
    return Capture(None, None, _with(rest, blocks=blocks, calls=_replace(rest.calls, fragments)))


def _grow(old: CallFragments, item: inp.CallDelta) -> tuple[CallFragments, bool]:
    arguments = old.arguments.append(item.arguments)
    call_id = old.id if item.id is None else item.id
    name = old.name if item.name is None else item.name
    state, stage = old.scan, old.stage
    if stage == "open":
        state, closed = scan(state, item.arguments)
        if closed:
            stage = "closed" if is_object(arguments.text()) else "broken"
    place = stage == "closed" and call_id is not None and name is not None
    return CallFragments(item.index, call_id, name, arguments, state, "placed" if place else stage), place


def _slot(calls: tuple[CallFragments, ...], index: int) -> CallFragments:
    return next((c for c in calls if c.index == index), CallFragments(index))


def _replace(calls: tuple[CallFragments, ...], new: CallFragments) -> tuple[CallFragments, ...]:
    if any(c.index == new.index for c in calls):
        return tuple(new if c.index == new.index else c for c in calls)
    return (*calls, new)


def known(capture: Capture, index: int) -> tuple[str | None, str | None]:
    """Id and name of a provider slot, as far as known."""
    slot = _slot(capture.rest.calls, index)
    return slot.id, slot.name


def marked(capture: Capture) -> frozenset[str]:
    """Ids of calls the provider marked as detachable in this attempt (RHO-ORD-7)."""
    return frozenset(c.data for c in capture.rest.context if c.context_kind == inp.ASYNC_CALL)


def aborted(capture: Capture) -> AbortedAssistant | None:
    """The durable form of an abandoned response; None when nothing durable was captured (RHO-CAN-9)."""
    rest = seal(capture).rest
    blocks = rest.blocks.items()
    calls = tuple(PartialCall(c.id, c.name, c.arguments.text()) for c in rest.calls)
    if not (blocks or rest.summary or rest.context or calls or not rest.usage.is_empty()):
        return None
    return AbortedAssistant(blocks, rest.summary.text() or None, rest.context, calls, rest.usage)
