"""From the events of one run to what a person sees: a part for now, and entries that stay.

The text of an attempt stays only once the attempt is known to stand; until then a ProviderStreamReset takes
it off the screen (RHO-RET-8). Kinds of events that are not known here are passed over (RHO-BUF-8).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rho_adapters.chat.entries import Card, CardState, Done, Ended, Entry, Note, Said, Thought, Typed
from rho_core import events as ev
from rho_core.errors import ToolErrorKind
from rho_core.messages import NO_USAGE, Usage

STANDS = (
    ev.ToolProposed,
    ev.StepStarted,
    ev.SteeringApplied,
    ev.BoundaryInputApplied,
    ev.CompactionStarted,
    ev.Completed,
)
"""Events that come only after a response that holds: what was streamed before them is not abandoned any more."""


class View:
    """`feed` takes an event and gives the entries that are certain from now on; the rest is for now.

    `calls`: the call fragments of the attempt that streams, by slot. `cards`: calls that are not over, in the
    order they were proposed. `staged`: steers that wait, by id. `usage`: of the
    run so far.
    """

    def __init__(self) -> None:
        self._text: list[str] = []  # joined when it is looked at: a long answer comes in very many pieces
        self._reasoning: list[str] = []
        self._summary: list[str] = []
        self.calls: dict[int, Card] = {}
        self.cards: dict[str, Card] = {}
        self.staged: dict[str, str] = {}
        self.usage: Usage = NO_USAGE
        self.step = 0
        self.cancelling = False
        self.over = False

    def feed(self, event: Any) -> list[Entry]:
        """Take one event."""
        entries = self._commit() if isinstance(event, STANDS) else []
        row = _ROWS.get(type(event))
        return entries if row is None else [*entries, *row(self, event)]

    def close(self) -> list[Entry]:
        """The stream is at its end. What is left of a run that was interrupted, which sends no terminal event."""
        if self.over:
            return []
        self.over = True
        return [*self._commit(cut_off=True), *self._leftovers()]

    @property
    def text(self) -> str:
        """What the attempt that streams has said so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """Its raw reasoning: shown for now, kept nowhere."""
        return "".join(self._reasoning)

    @property
    def summary(self) -> str:
        """The summary of its reasoning."""
        return "".join(self._summary)

    # -- the response ------------------------------------------------------------------------------------------

    def _commit(self, cut_off: bool = False) -> list[Entry]:
        entries: list[Entry] = []
        if self._summary:
            entries.append(Thought(self.summary))
        if self._text:
            entries.append(Said(self.text, cut_off))
        self._forget()
        return entries

    def _forget(self) -> None:
        self._text, self._reasoning, self._summary = [], [], []
        self.calls = {}

    def _delta(self, e: ev.AssistantTextDelta) -> list[Entry]:
        self._text.append(e.text)
        return []

    def _reasoned(self, e: ev.ReasoningDelta) -> list[Entry]:
        self._reasoning.append(e.text)
        return []

    def _summarised(self, e: ev.ReasoningSummaryDelta) -> list[Entry]:
        self._summary.append(e.text)
        return []

    def _call_updated(self, e: ev.ToolCallUpdated) -> list[Entry]:
        card = self.calls.setdefault(e.index, Card(e.id or "", e.name or "", ""))
        card.name = e.name or card.name
        card.arguments += e.arguments_delta
        return []

    def _reset(self, e: ev.ProviderStreamReset) -> list[Entry]:
        self._forget()
        why = "the response was malformed"
        if isinstance(e.reason, ev.RetryableFailure):
            after = "" if e.reason.retry_after_ms is None else f", asked to wait {e.reason.retry_after_ms / 1_000:g} s"
            why = f"{e.reason.error_kind}{after}"
        return [Note(f"attempt {e.attempt} is abandoned ({why}); trying again")]

    # -- tools -------------------------------------------------------------------------------------------------

    def _proposed(self, e: ev.ToolProposed) -> list[Entry]:
        self.cards[e.call.id] = Card(e.call.id, e.call.name, compact(e.call.arguments))
        return []

    def _state(self, call_id: str, state: CardState) -> list[Entry]:
        if call_id in self.cards:
            self.cards[call_id].state = state
        return []

    def _progress(self, e: ev.ToolUpdated) -> list[Entry]:
        card = self.cards.get(e.call_id)
        if card is not None:
            card.progress.append(e.progress)
            if card.state == "asking":  # it goes on, so it has its answer
                card.state = "running"
        return []

    def _finished(self, e: ev.ToolFinished) -> list[Entry]:
        card = self.cards.pop(e.call_id, None) or Card(e.call_id, e.call_id, "")
        match e.completion:
            case ev.Success(text=text):
                card.state, card.text = "ok", text
            case ev.Failure(error_kind=ToolErrorKind.CANCELLED, text=text):
                card.state, card.text = "interrupted", text
            case ev.Failure(text=text):
                card.state, card.text = "failed", text
            case ev.Unavailable(text=text):
                card.state, card.text = "unavailable", text
        return [Done(card)]

    def _leftovers(self) -> list[Entry]:
        left, self.cards = list(self.cards.values()), {}
        for card in left:
            card.state = "never ran" if card.state == "proposed" else "interrupted"
        return [Done(card) for card in left]

    # -- the rest ----------------------------------------------------------------------------------------------

    def _step(self, e: ev.StepStarted) -> list[Entry]:
        self.step = e.step
        return []

    def _used(self, e: ev.UsageUpdated) -> list[Entry]:
        self.usage = e.usage
        return []

    def _steered(self, e: ev.SteeringApplied) -> list[Entry]:
        return [Typed(self.staged.pop(i), steer=True) for i in e.ids if i in self.staged]

    def _compacting(self, e: ev.CompactionStarted) -> list[Entry]:
        return [Note(f"compacting {e.message_count} messages")]

    def _compacted(self, e: ev.CompactionCompleted) -> list[Entry]:
        done = e.outcome
        return [Note(f"compacted {done.previous_messages} messages into {done.current_messages}")]

    def _completed(self, e: ev.Completed) -> list[Entry]:
        self.over = True
        self.usage = e.outcome.usage
        return [*self._leftovers(), *self._unapplied(), Ended(e.outcome.stop_reason, self.usage, e.outcome.revision)]

    def _cancelled(self, e: ev.Cancelled) -> list[Entry]:
        return [*self.close(), *self._unapplied(), Ended("Cancelled", self.usage, e.revision, ok=False)]

    def _failed(self, e: ev.Failed) -> list[Entry]:
        return [*self.close(), *self._unapplied(), Ended("Failed", self.usage, e.revision, e.message, ok=False)]

    def _unapplied(self) -> list[Entry]:
        left, self.staged = list(self.staged.values()), {}
        return [Note(f"not taken up: {text}") for text in left]


def compact(arguments: str) -> str:
    """Arguments on one line, with the order of their keys."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


_Row = Callable[[View, Any], list[Entry]]
_ROWS: dict[type, _Row] = {
    ev.AssistantTextDelta: View._delta,
    ev.ReasoningDelta: View._reasoned,
    ev.ReasoningSummaryDelta: View._summarised,
    ev.ToolCallUpdated: View._call_updated,
    ev.ProviderStreamReset: View._reset,
    ev.ToolProposed: View._proposed,
    ev.ToolStarted: lambda view, e: view._state(e.call_id, "running"),
    ev.ToolDetached: lambda view, e: view._state(e.call_id, "detached"),
    ev.ToolHostInputRequested: lambda view, e: view._state(e.call_id, "asking"),
    ev.ToolUpdated: View._progress,
    ev.ToolFinished: View._finished,
    ev.StepStarted: View._step,
    ev.UsageUpdated: View._used,
    ev.SteeringApplied: View._steered,
    ev.SteeringDelivered: lambda view, e: [Note("the model has the steer")],
    ev.BoundaryInputApplied: lambda view, e: [Note(f"input of the host: {e.input}")],
    ev.CompactionStarted: View._compacting,
    ev.CompactionCompleted: View._compacted,
    ev.WebSearch: lambda view, e: [Note(f"the provider searched the web: {e.detail}")],
    ev.HostedToolActivity: lambda view, e: [Note(f"the provider ran {e.name}: {e.detail}")],
    ev.ProviderServiceTierFallback: lambda view, e: [Note(f"service tier {e.used} instead of {e.requested}")],
    ev.ProviderDiagnostic: lambda view, e: [Note(f"from the provider: {e.detail}", bad=True)],
    ev.Completed: View._completed,
    ev.Cancelled: View._cancelled,
    ev.Failed: View._failed,
}
