"""Taps on what else a host lends a session: compactor, boundary collector, usage recorder."""

from __future__ import annotations

from typing import Any

import anyio

from rho_adapters.host import BoundaryCollector, Compacted, CompactionRequest, Compactor, UsageRecorder
from rho_adapters.recording.taps import Book
from rho_core import inputs as inp
from rho_core.effects import BoundaryKind, RecordUsage
from rho_core.messages import Message, System, ToolResult, text_of
from rho_core.normal import encode

Json = dict[str, Any]


class TappedCompactor:
    """A compactor; `inner` does the work."""

    def __init__(self, inner: Compactor, book: Book) -> None:
        self.inner, self._book = inner, book

    @property
    def cooperative(self) -> bool:
        return self.inner.cooperative

    async def compact(self, request: CompactionRequest) -> Compacted:
        shown = {"messages": encode.messages(request.messages), "trigger": request.trigger.capitalize()}
        self._book.opened("Compact", "", shown)
        try:
            return await self.inner.compact(request)
        except anyio.get_cancelled_exc_class():
            self._book.left("Compact", "")
            raise


class TappedCollector:
    """A boundary collector; `inner` collects."""

    def __init__(self, inner: BoundaryCollector, book: Book) -> None:
        self.inner, self._book = inner, book

    async def collect(self, boundary: BoundaryKind) -> str | None:
        self._book.opened("Collect", "", {"kind": boundary})
        try:
            return await self.inner.collect(boundary)
        except anyio.get_cancelled_exc_class():
            self._book.left("Collect", "")
            raise

    def acknowledge(self, accepted: bool) -> None:
        self._book.saw("CollectAck", {"accepted": accepted})
        self.inner.acknowledge(accepted)


class TappedRecorder:
    """A usage recorder; `inner` records."""

    def __init__(self, inner: UsageRecorder, book: Book) -> None:
        self.inner, self._book = inner, book

    async def record(self, record: RecordUsage) -> None:
        outcome: Any = {"Failed": str(record.error_kind)} if record.outcome == "Failed" else record.outcome
        shown = {"step": record.step, "attempt": record.attempt, "outcome": outcome}
        self._book.opened("Record", "", {**shown, "usage": encode.usage(record.usage)})
        await self.inner.record(record)


def item(value: Any) -> tuple[str, str, Any] | None:
    """The stimulus that an input of theirs is, the upcall that it answers, and the item."""
    match value:
        case inp.CompactorReturned(messages=messages):
            return "compactor", "Compact", {"return": [_words(m) for m in messages]}
        case inp.CompactorFailed(error=error):
            return "compactor", "Compact", {"fail": {"kind": str(error.name)}}
        case inp.CompactorPanicked():
            return "compactor", "Compact", {"panic": True}
        case inp.BoundaryReplied(input=None):
            return "boundary", "Collect", "none"
        case inp.BoundaryReplied(input=text):
            return "boundary", "Collect", {"input": text}
        case inp.BoundaryGone():
            return "boundary", "Collect", "gone"
        case inp.UsageRecorded():
            return "recorder", "Record", "ok"
        case _:
            return None


def _words(message: Message) -> str:
    """A message as the format has it: text alone."""
    match message:
        case System(text=text) | ToolResult(content=text):
            return text
        case other:
            return text_of(other.content)
