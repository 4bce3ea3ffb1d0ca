"""Turn a step of a file into what the driver gets, and find answers that met no upcall (format §3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.driver import JsonMap
from rho_conformance.scenario.book import Book
from rho_conformance.scenario.grammar import START_LIKE
from rho_conformance.scenario.model import Step
from rho_conformance.scenario.normalise import show
from rho_conformance.trace import StepRecord, Trace

_LISTS = ("provider", "tool")
HOST = "host:"


@dataclass(slots=True)
class Delivery:
    """The stimuli of one `perform`. Those in `optional` stand under `maybe`."""

    stimuli: list[JsonMap] = field(default_factory=list)
    optional: list[JsonMap] = field(default_factory=list)

    def add(self, stimulus: JsonMap, *, optional: bool) -> None:
        self.stimuli.append(stimulus)
        if optional:
            self.optional.append(stimulus)


def deliveries(step: Step, trace: Trace) -> Iterator[Delivery]:
    """The performs of a step: one for each item of a list, a single one for `together`."""
    if step.name == "together":
        race = Delivery()
        for inner in step.value:
            ((name, value),) = inner.items()
            for stimulus, optional in _stimuli(name, value, trace):
                race.add(stimulus, optional=optional)
        if race.stimuli:
            yield race
        return
    for stimulus, optional in _stimuli(step.name, step.value, trace):
        single = Delivery()
        single.add(stimulus, optional=optional)
        yield single


def _stimuli(name: str, value: Any, trace: Trace) -> Iterator[tuple[JsonMap, bool]]:
    if name == "maybe":
        ((inner, inside),) = value.items()
        if inner == "respond" and not _asked(inside["ref"], trace):
            return
        for stimulus, _ in _stimuli(inner, inside, trace):
            yield stimulus, True
    elif name in _LISTS and isinstance(value, list):
        for item in value:
            yield {name: item}, False
    else:
        yield {name: value}, False


def _asked(ask: str, trace: Trace) -> bool:
    """Whether a question is open: `respond` answers one, but a driver refuses it as any other command."""
    return bool(trace.steps) and f"{HOST}{ask}" in trace.steps[-1].waiting_on


def lost_address(delivery: Delivery, trace: Trace, book: Book) -> str | None:
    """What is wrong with the first stimulus that names a run or a session which does not exist yet."""
    starts = len(book.runs)
    sessions = _sessions(trace)
    for stimulus in delivery.stimuli:
        ((name, value),) = stimulus.items()
        fields = value if isinstance(value, dict) else {}
        session, run = fields.get("session"), fields.get("run")
        if session is not None and sessions is not None and session not in sessions:
            return f"there is no session {session}"
        if name in START_LIKE:
            starts += 1
        elif run is not None and run not in [f"r{number}" for number in range(1, starts + 1)]:
            return f"there is no run {run}"
        if name == "new_session" and sessions is not None:
            # The driver names one that the file does not name, and says how only in its facts.
            sessions = [*sessions, fields["as"]] if "as" in fields else None
    return None


def _sessions(trace: Trace) -> list[str] | None:
    """The sessions so far; None where they are not known, because the driver names them and does not tell."""
    known = list(trace.config.get("sessions") or [trace.main_session])
    for record in trace.steps:
        if "sessions" not in record.facts:
            for stimulus in record.perform:
                fields = stimulus.get("new_session")
                if fields is not None and "as" not in fields:
                    return None
                known += [fields["as"]] if fields is not None else []
        known += record.facts.get("sessions", {})
    return known


def unopened(delivery: Delivery, record: StepRecord) -> str | None:
    """The first answer that addressed an upcall which never opened, unless it stood under `maybe`."""
    excused = list(delivery.optional)
    for seen in record.seen():
        if seen.name != "NotOpen":
            continue
        excuse = next((stimulus for stimulus in excused if _speaks_of(seen.fields, stimulus)), None)
        if excuse is None:
            meant = [stimulus for stimulus in delivery.stimuli if _speaks_of(seen.fields, stimulus)]
            return show(meant[0] if meant else seen.fields.get("stimulus"))
        excused.remove(excuse)
    return None


def _speaks_of(fields: JsonMap, stimulus: JsonMap) -> bool:
    """Whether a `NotOpen` is about this stimulus; a driver may repeat it whole, or give its name and call."""
    told = fields.get("stimulus")
    ((name, value),) = stimulus.items()
    call = value.get("id") if isinstance(value, dict) else None
    return bool(told == stimulus or (told == name and fields.get("call_id", call) == call))
