"""A trace, sorted by what it is about: for each entity of a lifecycle, what was seen of it and in which step."""

from __future__ import annotations

from typing import Any

from rho_conformance.lifecycles.accept import NEVER, Entity, Sighting
from rho_conformance.monitors.stimuli import Stim, read_stimuli
from rho_conformance.trace import Observation, Trace
from rho_conformance.vocabulary import EVENTS, TERMINAL
from rho_spec.lifecycles import Letter
from rho_spec.observations import CLOSED

Key = tuple[str, ...]
CALL_EVENTS = frozenset(
    {"ToolProposed", "ToolStarted", "ToolUpdated", "ToolDetached", "ToolFinished", "ToolHostInputRequested"}
)
PROVIDER_EVENTS = frozenset(
    {
        "AssistantTextDelta",
        "ReasoningDelta",
        "ReasoningSummaryDelta",
        "ToolCallUpdated",
        "UsageUpdated",
        "ProviderContextUpdated",
        "ProviderRequestRetry",
        "WebSearch",
        "HostedToolActivity",
        "ProviderServiceTierFallback",
        "ModelCallCompleted",
        "ProviderStreamReset",
    }
)
STARTS = ("start", "start_tool")
TOOL_UPCALLS = frozenset({"ToolPrepare", "ToolAuthorize", "ToolExecute"})


class Sorter:
    """Reads a trace once. `step` and `resets` of a run are those of its events, `requests` that of its requests."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.found: dict[Key, Entity] = {}
        self.step: dict[str, int] = {}
        self.resets: dict[str, int] = {}
        self.requests: dict[str, int] = {}
        self.numbers: dict[tuple[str, Any], Key] = {}
        self.newest: dict[str, str] = {}
        self.ended: set[str] = set()
        stimuli = read_stimuli([record.perform for record in trace.steps], trace.main_session)
        self.commands = {s.reply: s for s in stimuli}
        self.cutting = [s for s in stimuli if s.name in ("close_reader", "outcome")]
        self.drained: dict[str, int] = {}
        self.closed: set[str] = set()

    def sort(self) -> list[Entity]:
        """Every entity but the sessions, in order of appearance."""
        for number, record in enumerate(self.trace.steps, 1):
            for stim in self.cutting:
                if stim.step == number:
                    self._cut(stim, record.seen())
            for seen in record.seen():
                self._see(seen)
        for key, entity in self.found.items():
            entity.drained = self.drained.get(key[1], NEVER)
            entity.unread = key[1] not in self.ended or entity.drained != NEVER
        return list(self.found.values())

    def _cut(self, stim: Stim, now: list[Observation]) -> None:
        """A reader that leaves sees no more; whoever awaits the outcome drains what was not read (RHO-BUF-5)."""
        started = [s.run for s in now if s.name == "Reply" and s.run and self._is_start(s)]
        run = stim.run or (started[-1] if started else self.newest.get(stim.session))
        if run is None or run in self.closed:
            return
        if stim.name == "close_reader":
            self._note(("channel", run), f"run {run}", Letter("close_reader"), stim.step, event=False)
        elif run not in self.ended:
            self.drained.setdefault(run, stim.step)

    def _is_start(self, seen: Observation) -> bool:
        stim = self.commands.get(str(seen.fields.get("name")))
        return stim is not None and stim.name in STARTS and _outcome(seen.fields.get("value")) != "error"

    def _note(self, key: Key, name: str, letter: Letter, step: int, *, event: bool) -> None:
        entity = self.found.get(key)
        if entity is None:
            entity = self.found[key] = Entity(key[0], name)
        entity.sightings.append(Sighting(letter, step, event))

    def _see(self, seen: Observation) -> None:
        run = seen.run
        if seen.name == "Reply":
            self._reply(seen)
        elif run is None:
            return
        elif seen.name in EVENTS or seen.name == CLOSED:
            self._event(seen, run)
        else:
            self._upcall(seen, run)

    # -- events ----------------------------------------------------------------------------------------------------

    def _event(self, seen: Observation, run: str) -> None:
        name, step = seen.name, seen.step
        if name in TERMINAL:
            self.ended.add(run)
        sent = name if name == CLOSED else "terminal" if name in TERMINAL else "event"
        self._note(("channel", run), f"run {run}", Letter(sent), step, event=True)
        if name == CLOSED:
            self.closed.add(run)
            return
        self.newest[seen.session or self.trace.main_session] = run
        if name == "StepStarted":
            self.step[run], self.resets[run] = int(seen.fields.get("step", self.step.get(run, 0) + 1)), 0
        self._note(("run", run), f"run {run}", Letter(name), step, event=True)
        if name in PROVIDER_EVENTS and step < self.drained.get(run, NEVER):
            # Behind a gap it is not known to which attempt an event belongs.
            key, told = self._attempt(run, self.step.get(run, 0), self.resets.get(run, 0) + 1)
            self._note(key, told, Letter(name), step, event=True)
            self.resets[run] = self.resets.get(run, 0) + (name == "ProviderStreamReset")
        elif name in CALL_EVENTS:
            self._call_event(seen, run)
        elif name in ("SteeringApplied", "SteeringDelivered"):
            for steer in seen.fields.get("ids", [seen.fields.get("id")]):
                self._note(("steering", run, str(steer)), f"run {run}, steer {steer}", Letter(name), step, event=True)

    def _attempt(self, run: str, step: int, number: int) -> tuple[Key, str]:
        return ("attempt", run, str(step), str(number)), f"run {run}, step {step}, attempt {number}"

    def _call_event(self, seen: Observation, run: str) -> None:
        fields = _fields(seen, "result") if seen.name == "ToolFinished" else ()
        self._call(run, seen.fields.get("call_id"), Letter(seen.name, fields), seen.step, event=True)
        if seen.name == "ToolHostInputRequested" and seen.step < self.drained.get(run, NEVER):
            self._ask(seen, run, self.step.get(run, 0), event=True)

    def _call(self, run: str, call: Any, letter: Letter, step: int, *, event: bool) -> None:
        self._note(("call", run, str(call)), f"run {run}, call {call}", letter, step, event=event)

    def _ask(self, seen: Observation, run: str, batch: int, *, event: bool) -> None:
        ask = seen.fields.get("ask")
        key = ("host_input", run, str(batch), str(ask))
        self._note(key, f"run {run}, step {batch}, question {ask}", Letter(seen.name), seen.step, event=event)

    # -- upcalls ---------------------------------------------------------------------------------------------------

    def _upcall(self, seen: Observation, run: str) -> None:
        name, fields = seen.name, seen.fields
        kind = _fields(seen, "kind") if name == "Collect" else ()
        self._note(("run", run), f"run {run}", Letter(name, kind), seen.step, event=False)
        if name == "ModelCall":
            step = self.requests[run] = int(fields.get("step", 0))
            key, told = self._attempt(run, step, int(fields.get("attempt", 1)))
            self.numbers[seen.session or "", fields.get("n")] = key
            self._note(key, told, Letter(name), seen.step, event=False)
        elif name in TOOL_UPCALLS:
            self._call(run, fields.get("call_id"), Letter(name), seen.step, event=False)
        elif name in ("HostAnswer", "AskRefused"):
            self._ask(seen, run, self.requests.get(run, 0), event=False)
        elif name == "SteerClaim":
            letter = Letter(name, (*_fields(seen, "granted"), *_fields(seen, "item")))
            steer = fields.get("id")
            self._note(("steering", run, str(steer)), f"run {run}, steer {steer}", letter, seen.step, event=False)
        elif name in ("Taken", "Abandoned"):
            self._answered(seen, run)

    def _answered(self, seen: Observation, run: str) -> None:
        upcall = seen.fields.get("upcall")
        letter = Letter(seen.name, (*_fields(seen, "how"), *_fields(seen, "item"), *_fields(seen, "upcall")))
        if upcall == "ModelCall":
            key = self.numbers.get((seen.session or "", seen.fields.get("n")))
            if key is not None:
                self._note(key, self.found[key].name, letter, seen.step, event=False)
        elif upcall in TOOL_UPCALLS:
            self._call(run, seen.fields.get("call_id"), letter, seen.step, event=False)

    # -- commands --------------------------------------------------------------------------------------------------

    def _reply(self, seen: Observation) -> None:
        stim = self.commands.get(str(seen.fields.get("name")))
        if stim is None:
            return
        value, run = seen.fields.get("value"), seen.run
        if run is not None and self._is_start(seen):
            self.newest[seen.session or self.trace.main_session] = run
        steer = stim.reply if stim.name == "steer" else stim.get("ref") if stim.name == "retract" else None
        if steer is None or run is None:
            return
        told = _outcome(value) if stim.name == "steer" else _answer(value)
        letter = Letter(stim.name, (("reply", told),))
        self._note(("steering", run, str(steer)), f"run {run}, steer {steer}", letter, seen.step, event=False)


def _fields(seen: Observation, key: str) -> tuple[tuple[str, str], ...]:
    """A field as text; of an item that was handed over, only what it was."""
    value = seen.fields.get(key)
    if value is None:
        return ()
    if isinstance(value, dict):
        value = next(iter(value), "")
    return ((key, str(value).lower() if isinstance(value, bool) else str(value)),)


def _outcome(value: Any) -> str:
    return "error" if isinstance(value, dict) and "error" in value else "ok"


def _answer(value: Any) -> str:
    return str(value.get("ok", "error")) if isinstance(value, dict) else str(value)


def entities(trace: Trace) -> list[Entity]:
    """Everything a trace is about, but its sessions."""
    return Sorter(trace).sort()
