"""What a trace is about: observations, runs, attempts, calls, questions, steers. Filled by ``view``, read
by rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .stimuli import PROVIDER_ENDS, TOOL_ENDS, Item, Stim

Json = Any
TERMINALS = ("Completed", "Cancelled", "Failed")
DELTAS = {"AssistantTextDelta": "delta", "ReasoningDelta": "reasoning", "ReasoningSummaryDelta": "summary"}
PROVIDER_EVENTS = frozenset(
    {
        *DELTAS,
        "ToolCallUpdated",
        "UsageUpdated",
        "ProviderContextUpdated",
        "ProviderRequestRetry",
        "WebSearch",
    }
    | {"HostedToolActivity", "ProviderServiceTierFallback"}
)
CALL_EVENTS = frozenset(
    {"ToolProposed", "ToolStarted", "ToolUpdated", "ToolDetached", "ToolFinished", "ToolHostInputRequested"}
)
EVENTS = PROVIDER_EVENTS | CALL_EVENTS | {*TERMINALS, "Started", "StepStarted", "SteeringApplied"}
EVENTS |= {"SteeringDelivered", "BoundaryInputApplied", "CompactionStarted", "CompactionCompleted"}
EVENTS |= {"ProviderDiagnostic", "ProviderStreamReset", "ModelCallCompleted", "HostInputRequested"}
UPCALLS = frozenset(
    {"ModelCall", "ToolPrepare", "ToolAuthorize", "ToolExecute", "HostAnswer", "AskRefused", "Compact"}
    | {"Collect", "CollectAck", "Record", "Abandoned", "Taken", "SteerClaim"}
)
COUNTERS = ("seq", "step", "at_ms")
NEVER = 1 << 60
"""A step later than any step of any trace."""


@dataclass(frozen=True, slots=True)
class Obs:
    """One observation: its name, its fields and the counters beside it."""

    name: str
    data: Mapping[str, Json]
    step: int
    seq: int
    at_ms: int | None
    session: str
    run: str | None

    def get(self, key: str, default: Json = None) -> Json:
        """A field, or ``default`` when it is left out."""
        return self.data.get(key, default)

    @property
    def call_id(self) -> str | None:
        """The call it is about."""
        found = self.data.get("call_id")
        return found if isinstance(found, str) else None


def is_malformed(response: Json, open_ids: Iterable[str] = ()) -> bool:
    """Contract §1.5 and decision D14: no block, or a call with an empty id or name, arguments that are no
    object, an id used twice."""
    if not isinstance(response, Mapping) or (response.get("text") is None and not response.get("calls")):
        return True
    seen = set(open_ids)
    for call in response.get("calls") or ():
        if not isinstance(call, Mapping) or not call.get("id") or not call.get("tool") or call["id"] in seen:
            return True
        seen.add(call["id"])
        if not _is_object(call.get("args", {})):
            return True
    return False


def _is_object(args: Json) -> bool:
    if isinstance(args, str):
        try:
            return isinstance(json.loads(args), Mapping)
        except ValueError:
            return False
    return args is None or isinstance(args, Mapping)  # a null in a file means that the key is absent


@dataclass(slots=True)
class Attempt:
    """One logical model request and what came of it."""

    run: Run
    step_no: int
    number: int
    opened: Obs
    items: list[Item] = field(default_factory=list)
    end: Item | None = None
    abandoned: Obs | None = None
    events: list[Obs] = field(default_factory=list)
    completed: Obs | None = None
    reset: Obs | None = None
    malformed: bool = False

    @property
    def returned(self) -> Json:
        """The response, ``None`` unless the provider returned one that the runtime took."""
        return self.end.value if self.end is not None and self.end.kind == "return" else None

    @property
    def good(self) -> bool:
        """A well-formed response was returned."""
        return self.end is not None and self.end.kind == "return" and not self.malformed

    @property
    def failure(self) -> Mapping[str, Json] | None:
        """The ``fail`` item that ended it."""
        if self.end is None or self.end.kind != "fail":
            return None
        return self.end.value if isinstance(self.end.value, Mapping) else {}

    @property
    def retryable(self) -> bool:
        """It ended by a failure that the provider called retryable."""
        failure = self.failure
        return failure is not None and bool(failure.get("retryable", False))

    @property
    def response_calls(self) -> list[Mapping[str, Json]]:
        """Call blocks of a well-formed response in model order."""
        response = self.returned if self.good else None
        return [c for c in (response or {}).get("calls") or () if isinstance(c, Mapping)]

    @property
    def response_text(self) -> str:
        """Text blocks of the response."""
        value = (self.returned or {}).get("text") or ""
        return "".join(value) if isinstance(value, list) else str(value)

    def taken_text(self, kind: str) -> str:
        """All text of one kind (``delta``, ``reasoning``, ``summary``) that the runtime took."""
        return "".join(i.value for i in self.items if i.kind == kind and isinstance(i.value, str))

    def shown_text(self, name: str) -> str:
        """All text of one event kind that the reader got."""
        return "".join(e.get("text") or "" for e in self.events if e.name == name)

    def take(self, item: Item) -> None:
        """File an item that the runtime took."""
        self.items.append(item)
        if item.kind in PROVIDER_ENDS and self.end is None:
            self.end = item


@dataclass(slots=True)
class Call:
    """One tool call of one response (or of the host)."""

    run: Run
    id: str
    tool: str
    order: int
    attempt: Attempt | None
    marked: bool
    honoured: bool
    available: bool
    born: int
    events: list[Obs] = field(default_factory=list)
    prepares: list[Obs] = field(default_factory=list)
    executes: list[Obs] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    end: Item | None = None
    abandoned: Obs | None = None

    def of(self, name: str) -> list[Obs]:
        """Its events of one kind."""
        return [e for e in self.events if e.name == name]

    def first(self, name: str) -> Obs | None:
        """Its first event of one kind."""
        return next((e for e in self.events if e.name == name), None)

    @property
    def ended_step(self) -> int:
        """The step at which its tool ended by itself, ``NEVER`` if it did not."""
        return self.end.step if self.end is not None else NEVER

    def take(self, item: Item) -> None:
        """File an item that the runtime took."""
        self.items.append(item)
        if item.kind in TOOL_ENDS and self.end is None:
            self.end = item


@dataclass(slots=True)
class Ask:
    """One question, by the name the file gave it."""

    name: str
    run: Run
    posed: list[tuple[Call, Item]] = field(default_factory=list)
    requested: list[Obs] = field(default_factory=list)
    responds: list[tuple[Stim, Obs | None]] = field(default_factory=list)
    answers: list[Obs] = field(default_factory=list)
    refused: list[Obs] = field(default_factory=list)


@dataclass(slots=True)
class Steer:
    """One steer, by the name its reply is filed under."""

    name: str
    text: str
    run: Run
    stim: Stim
    reply: Obs | None = None
    retracts: list[tuple[Stim, Obs | None]] = field(default_factory=list)
    applied: list[Obs] = field(default_factory=list)
    delivered: list[Obs] = field(default_factory=list)
    claims: list[Obs] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """The runtime said ok."""
        return self.reply is not None and is_ok(self.reply)

    @property
    def retracted_step(self) -> int:
        """The step of the first reply ``Retracted``, ``NEVER`` if there is none."""
        return min((o.step for _, o in self.retracts if o and ok_value(o) == "Retracted"), default=NEVER)


@dataclass(slots=True)
class Run:
    """One accepted or refused run."""

    name: str
    session: str
    stim: Stim
    capacity: int
    reply: Obs | None = None
    events: list[Obs] = field(default_factory=list)
    index: dict[int, int] = field(default_factory=dict)
    upcalls: list[Obs] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    asks: dict[str, Ask] = field(default_factory=dict)
    steers: list[Steer] = field(default_factory=list)
    stims: list[Stim] = field(default_factory=list)
    closed: Obs | None = None
    outcome_reply: Obs | None = None
    cancels: list[int] = field(default_factory=list)
    token_cancels: list[int] = field(default_factory=list)
    shutdowns: list[int] = field(default_factory=list)
    drops: list[int] = field(default_factory=list)
    closes: list[int] = field(default_factory=list)
    panics: list[int] = field(default_factory=list)
    outcomes_asked: list[int] = field(default_factory=list)
    end_step: int = NEVER
    crashed: int = NEVER

    @property
    def accepted(self) -> bool:
        """It really began."""
        return bool(self.events or self.upcalls) or (self.reply is not None and is_ok(self.reply))

    @property
    def start_step(self) -> int:
        """Step of the start stimulus."""
        return self.stim.step

    @property
    def terminals(self) -> list[Obs]:
        """Its terminal events."""
        return [e for e in self.events if e.name in TERMINALS]

    @property
    def terminal(self) -> Obs | None:
        """Its first terminal event."""
        return next(iter(self.terminals), None)

    @property
    def cancel_step(self) -> int:
        """First step at which anything asked for its cancellation, a drop included."""
        every = self.cancels + self.token_cancels + self.shutdowns + self.drops
        return min(every, default=NEVER)

    @property
    def gap(self) -> bool:
        """Events may be missing, since ``outcome`` drained the channel before the end of the stream was
        read."""
        end = self.terminal or self.closed
        return any(end is None or s < end.step for s in self.outcomes_asked)

    @property
    def severed(self) -> bool:
        """Somebody cut it off: dropped, reader closed, process lost."""
        return bool(self.drops or self.closes) or self.crashed != NEVER

    @property
    def whole(self) -> bool:
        """All its events were read: the stream ended, nothing was drained away, nobody cut it off."""
        return (self.terminal is not None or self.closed is not None) and not self.gap and not self.severed

    @property
    def outcome(self) -> Json:
        """``{ok: …}`` or ``{error: NAME, …}``, ``None`` while unknown."""
        return self.outcome_reply.get("value") if self.outcome_reply is not None else None

    @property
    def error(self) -> str | None:
        """Name of the error it ended with."""
        value = self.outcome
        found = value.get("error") if isinstance(value, Mapping) else None
        return found if isinstance(found, str) else None

    @property
    def ended_ok(self) -> Mapping[str, Json] | None:
        """The success outcome."""
        value = self.outcome
        found = value.get("ok") if isinstance(value, Mapping) else None
        return found if isinstance(found, Mapping) else None

    @property
    def ending(self) -> str | None:
        """``Completed``, ``Cancelled``, ``Failed``, ``Interrupted``, ``Persistence``: from the outcome,
        else the event."""
        if self.ended_ok is not None:
            return "Completed"
        if self.error is not None:
            return self.error if self.error in ("Cancelled", "Interrupted", "Persistence") else "Failed"
        return self.terminal.name if self.terminal is not None else None

    def of(self, name: str) -> list[Obs]:
        """Its events of one kind."""
        return [e for e in self.events if e.name == name]

    def up(self, name: str) -> list[Obs]:
        """Its upcalls of one kind."""
        return [u for u in self.upcalls if u.name == name]

    def place(self, event: Obs) -> int:
        """The position of an event in the run's own order."""
        return self.index[event.seq]

    def steps_of(self) -> dict[int, list[Attempt]]:
        """Attempts by model step."""
        out: dict[int, list[Attempt]] = {}
        for attempt in self.attempts:
            out.setdefault(attempt.step_no, []).append(attempt)
        return out


def is_ok(reply: Obs) -> bool:
    """A reply ``ok`` or ``{ok: value}``."""
    value = reply.get("value")
    return value == "ok" or (isinstance(value, Mapping) and "ok" in value)


def ok_value(reply: Obs) -> Json:
    """The value of a positive reply, else ``None``."""
    value = reply.get("value")
    return value.get("ok") if isinstance(value, Mapping) else None


def error_name(reply: Obs) -> str | None:
    """The error of a negative reply."""
    value = reply.get("value")
    found = value.get("error") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else None
