"""The committed part of a session: history, revision, compaction counters (design §3.1).

The session owns it while idle, *moves* it into a run and takes it back at the end. A run only adds a
candidate suffix, so that "nothing installed" after a drop or an interruption holds by construction.
"""

from __future__ import annotations

from .config import MAX_REVISION
from .errors import REVISION_EXHAUSTED, Error
from .messages import (
    INTERRUPTED,
    AbortedAssistant,
    Assistant,
    History,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    calls_of,
    text_of,
)
from .record import record


@record
class CompactionState:
    """Counters that a snapshot keeps; a reset clears them (rho.md 1.4)."""

    completed_compactions: int = 0
    removed_messages: int = 0
    removed_tokens: int = 0
    removed_cost_usd_micros: int = 0
    last_previous_tokens: int | None = None
    last_current_tokens: int | None = None
    last_revision: int | None = None


@record
class Ledger:
    """`revision` grows by one with each commit and is never reused for another history (RHO-CAN-11)."""

    history: History = ()
    revision: int = 0
    compaction: CompactionState = CompactionState()

    def commit(self, suffix: tuple[Message, ...]) -> Ledger | Error:
        """Append and count; a Persistence error when the revision is exhausted (D29)."""
        return self.replace((*self.history, *suffix))

    def replace(self, history: History) -> Ledger | Error:
        """Install another history as the next revision."""
        if self.revision >= MAX_REVISION:
            return REVISION_EXHAUSTED
        return Ledger(history, self.revision + 1, self.compaction)

    def compact(
        self, history: History, removed_messages: int, previous_tokens: int, current_tokens: int, usage: Usage
    ) -> Ledger | Error:
        """Install a compactor's replacement and add to the counters."""
        after = self.replace(history)
        if isinstance(after, Error):
            return after
        old = self.compaction
        counters = CompactionState(
            old.completed_compactions + 1,
            old.removed_messages + max(0, removed_messages),
            old.removed_tokens + max(0, previous_tokens - current_tokens),
            old.removed_cost_usd_micros + (usage.cost_usd_micros or 0),
            previous_tokens,
            current_tokens,
            after.revision,
        )
        return Ledger(after.history, after.revision, counters)


PENDING = "tool call is still running"


def model_view(history: History, pending: frozenset[str] = frozenset()) -> History:
    """What a model may be shown of a history (D9): every call is answered exactly once, and nothing else is.

    An aborted message keeps its prose alone, and is left out without any. A call without a result is answered in
    the view, in model order among the results that directly follow its message: as running when it is in
    `pending`, else as interrupted. A result that answers no call of the view is left out: hosts may install any
    history. The history itself is not changed.
    """
    kept, unanswered = _answers(history)
    view: list[Message] = []
    asking = -1
    order: list[str] = []
    owed: list[str] = []
    for index, message in enumerate(history):
        if isinstance(message, ToolResult):
            if index not in kept:
                continue
            if kept[index] == asking:
                before = order[: order.index(message.id)]
                view.extend(_stand_in(i, pending) for i in owed if i in before)
                owed = [i for i in owed if i not in before]
            view.append(message)
            continue
        view.extend(_stand_in(i, pending) for i in owed)
        asking, order = index, [c.id for c in _calls(message)]
        owed = [i for i in order if (index, i) in unanswered]
        view.extend(_said(message))
    view.extend(_stand_in(i, pending) for i in owed)
    return tuple(view)


def _calls(message: Message) -> tuple[ToolCall, ...]:
    """Calls that want an answer: those of an aborted message were never made."""
    return calls_of(message.content) if isinstance(message, Assistant) else ()


def _said(message: Message) -> tuple[Message, ...]:
    if not isinstance(message, AbortedAssistant):
        return (message,)
    prose = tuple(b for b in message.content if isinstance(b, Text))
    spoken = AbortedAssistant(prose, message.reasoning_summary, message.provider_context)
    return (spoken,) if text_of(prose) else ()


def _answers(history: History) -> tuple[dict[int, int], set[tuple[int, str]]]:
    """Place of a result -> place of the message whose call it answers; (place, id) of calls without a result.

    By order, not by id alone: an id may be used again once its call is answered (D14).
    """
    kept: dict[int, int] = {}
    open_calls: dict[str, int] = {}
    unanswered: set[tuple[int, str]] = set()
    for index, message in enumerate(history):
        for call in _calls(message):
            open_calls[call.id] = index
            unanswered.add((index, call.id))
        if isinstance(message, ToolResult) and message.id in open_calls:
            kept[index] = open_calls.pop(message.id)
            unanswered.discard((kept[index], message.id))
    return kept, unanswered


def _stand_in(call_id: str, pending: frozenset[str]) -> ToolResult:
    if call_id in pending:
        return ToolResult(call_id, True, PENDING)
    return ToolResult(call_id, False, INTERRUPTED)
