"""What always holds, whatever a scenario expects: S1–S7 and `CORE-LIVE` (scenario format §6).

Each check reads a whole trace and collects every violation; none of them raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rho_conformance.driver import JsonMap, declares
from rho_conformance.scenario.book import PENDING, Book, read_book
from rho_conformance.scenario.calls import answer_faults, exempt_calls
from rho_conformance.scenario.normalise import show
from rho_conformance.scenario.reasoning import leaks
from rho_conformance.scenario.tool_events import tool_event_faults
from rho_conformance.trace import Observation, StepRecord, Trace, session_facts
from rho_conformance.vocabulary import TERMINAL, is_refused_again

LIVE = "CORE-LIVE"
CAPABILITY = "CORE-CAP"


class Violation(NamedTuple):
    """A standing rule was broken: which, how, and at which step."""

    rule: str
    message: str
    step: int


@dataclass(frozen=True, slots=True)
class _Case:
    trace: Trace
    book: Book
    complete: dict[str, int]
    """Run -> the step from which on its events may have been drained by `outcome` instead of read."""

    def runs(self) -> Iterator[tuple[str, list[Observation]]]:
        """The events of each run, in the order they were read."""
        events: dict[str, list[Observation]] = {}
        for seen in self.trace.events():
            if seen.run is not None:
                events.setdefault(seen.run, []).append(seen)
        yield from events.items()

    def whole(self, seen: Observation) -> bool:
        """Whether everything before this event was read too, so that what must precede it can be demanded."""
        return seen.run is None or seen.step < self.complete.get(seen.run, len(self.trace.steps) + 1)

    def sessions(self) -> list[str]:
        named = self.trace.config.get("sessions")
        found = list(named) if isinstance(named, list) else [self.trace.main_session]
        for record in self.trace.steps:
            found += [name for name in record.facts.get("sessions", {}) if name not in found]
        return found


def standing_violations(trace: Trace, implicit: frozenset[int] = frozenset()) -> list[Violation]:
    """Every violation in a trace, by rule; `implicit` are the steps that the runner added."""
    book = read_book(trace, implicit)
    case = _Case(trace, book, _drained_from(trace, book))
    found: list[Violation] = []
    for check in _CHECKS:
        found.extend(check(case))
    return found


def _drained_from(trace: Trace, book: Book) -> dict[str, int]:
    steps: dict[str, int] = {}
    for command in book.commands:
        if command.stimulus == "outcome" and command.run is not None:
            steps.setdefault(command.run, command.step)
    return steps


def _one_end(case: _Case) -> Iterator[Violation]:
    """S1: at most one terminal event per run and nothing after it."""
    for run, events in case.runs():
        ends = [index for index, seen in enumerate(events) if seen.name in TERMINAL]
        if ends and ends[0] < len(events) - 1:
            late = events[ends[0] + 1]
            yield Violation("CORE-S1", f"{run}: {late.name} after {events[ends[0]].name}", late.step)


def _answered(case: _Case) -> Iterator[Violation]:
    """S2: calls answered at most once, and exactly once in history whenever no run is active."""
    if case.trace.profile == "orca":
        return
    exempt = exempt_calls(case.trace)
    reported: set[str] = set()
    for step, session, facts in _facts(case):
        idle = facts.get("busy") is False
        for fault in answer_faults(facts.get("history", []), exempt, settled=idle):
            if f"{session}: {fault}" not in reported:
                reported.add(f"{session}: {fault}")
                yield Violation("CORE-S2", f"history of {session}: {fault}", step)
    for call in case.trace.named("ModelCall"):
        for fault in answer_faults(call.fields.get("messages", []), exempt, settled=False):
            yield Violation("CORE-S2", f"model call {call.fields.get('n')}: {fault}", call.step)


def _no_reasoning(case: _Case) -> Iterator[Violation]:
    """S3: no reasoning text in history or requests."""
    for step, where, leak in leaks(case.trace):
        yield Violation("CORE-S3", f"{where}: reasoning {show(leak)}", step)


def _revisions(case: _Case) -> Iterator[Violation]:
    """S4: within one incarnation the revision never decreases, and equal revision means equal history."""
    for session in case.sessions():
        known: JsonMap | None = None
        for step, record in enumerate(case.trace.steps, 1):
            if _new_incarnation(record, session, case.trace.main_session):
                known = None
            facts = session_facts(record.facts, session, case.trace.main_session)
            if "revision" not in facts:
                continue
            if known is not None:
                yield from _revision_faults(session, step, known, facts)
            known = facts


def _new_incarnation(record: StepRecord, session: str, main: str) -> bool:
    for stimulus in record.perform:
        ((name, value),) = stimulus.items()
        addressed = value.get("session", main) if isinstance(value, dict) else main
        # A crash takes the whole process, and with it every session.
        if name == "crash" or (name == "restore" and addressed == session):
            return True
    return False


def _revision_faults(session: str, step: int, before: JsonMap, after: JsonMap) -> Iterator[Violation]:
    old, new = before["revision"], after["revision"]
    if new < old:
        yield Violation("CORE-S4", f"{session}: the revision went from {old} back to {new}", step)
    elif new == old and before.get("history") != after.get("history"):
        yield Violation(
            "CORE-S4",
            f"{session}: another history at revision {new}: {show(after.get('history'))}, "
            f"before {show(before.get('history'))}",
            step,
        )


def _started_first(case: _Case) -> Iterator[Violation]:
    """S5: Started first. A runtime of the common profile need not map it, but then not at all."""
    mapped = any(seen.name == "Started" for seen in case.trace.events())
    if case.trace.profile == "orca" or (case.trace.profile == "common" and not mapped):
        return
    for run, events in case.runs():
        if events[0].name != "Started" and case.whole(events[0]):
            yield Violation("CORE-S5", f"{run}: the first event is {events[0].name}", events[0].step)
        for again in [seen for seen in events[1:] if seen.name == "Started"]:
            yield Violation("CORE-S5", f"{run}: Started again", again.step)


def _tool_events(case: _Case) -> Iterator[Violation]:
    """S6: per call one Proposed, at most one Started, updates, at most one Finished, in this order."""
    if case.trace.profile == "orca":
        return
    mapped = {seen.name for seen in case.trace.events()} if case.trace.profile == "common" else None
    for run, events in case.runs():
        for seen, fault in tool_event_faults(events, case.whole, mapped):
            yield Violation("CORE-S6", f"{run}: {fault}", seen.step)


def _one_outcome(case: _Case) -> Iterator[Violation]:
    """S7: a run has one outcome, never changed. Asking again may be refused as consumed."""
    runs = {command.filed: command.run for command in case.book.commands if command.stimulus == "outcome"}
    asked_first = {run: filed for filed, run in reversed(runs.items())}
    first: dict[str, Any] = {}
    for reply in case.trace.named("Reply"):
        name = str(reply.fields.get("name"))
        run = runs.get(name)
        value = reply.fields.get("value", PENDING)
        if run is None or value == PENDING or (asked_first[run] != name and is_refused_again(value)):
            continue
        if run in first and value != first[run]:
            yield Violation("CORE-S7", f"{run}: outcome {show(value)} after {show(first[run])}", reply.step)
        first.setdefault(run, value)


def is_breach(refused: Observation, hello: JsonMap) -> bool:
    """CORE-CAP: whether a `Refused` speaks of something declared; one that names no feature does."""
    feature = refused.fields.get("feature")
    return not isinstance(feature, str) or declares(hello, feature)


def is_deadlock(record: StepRecord, trace: Trace) -> bool:
    """Whether some run is unfinished and the settled runtime waits for nothing."""
    if record.waiting_on:
        return False
    main = session_facts(record.facts, trace.main_session, trace.main_session)
    return any(facts.get("busy") is True for facts in (main, *record.facts.get("sessions", {}).values()))


def _live(case: _Case) -> Iterator[Violation]:
    """CORE-LIVE: an unfinished run that waits on nothing is a deadlock, unless a second settle moves it."""
    steps = case.trace.steps
    if not declares(case.trace.hello, "observe.waiting_on"):
        return
    for number, record in enumerate(steps, 1):
        again = number < len(steps) and steps[number].perform == []
        if is_deadlock(record, case.trace) and not again:
            yield Violation(LIVE, "a run is unfinished, and the runtime waits for nothing", number)
            return
    for run in case.book.runs.values():
        if run.gone is None and case.book.outcome(run) == PENDING and not steps[-1].waiting_on:
            message = f"the outcome of {run.name} is pending, and the runtime waits for nothing"
            yield Violation(LIVE, message, len(steps))


def _facts(case: _Case) -> Iterator[tuple[int, str, JsonMap]]:
    for session in case.sessions():
        for step, record in enumerate(case.trace.steps, 1):
            facts = session_facts(record.facts, session, case.trace.main_session)
            if facts:
                yield step, session, facts


_CHECKS = (
    _one_end,
    _answered,
    _no_reasoning,
    _revisions,
    _started_first,
    _tool_events,
    _one_outcome,
    _live,
)


def first_per_rule(violations: Iterable[Violation]) -> dict[str, Violation]:
    """The first violation of each rule."""
    found: dict[str, Violation] = {}
    for violation in violations:
        found.setdefault(violation.rule, violation)
    return found
