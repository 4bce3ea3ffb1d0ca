"""The session machine over the states that a driver shows: after each step one of them, and any way between two."""

from __future__ import annotations

from collections.abc import Iterator

from rho_conformance.lifecycles.accept import Acceptor, Refusal
from rho_conformance.monitors.stimuli import Stim, read_stimuli
from rho_conformance.trace import Trace, session_facts
from rho_spec.lifecycles import Letter

STARTS = frozenset({"start", "start_tool", "compact"})
RENEWALS = frozenset({"crash", "restore"})


def session_faults(machine: Acceptor, trace: Trace) -> Iterator[Refusal]:
    """At most one refusal for each session."""
    sessions = trace.config.get("sessions")
    names = [str(name) for name in sessions] if isinstance(sessions, list) and sessions else [trace.main_session]
    stimuli = read_stimuli([record.perform for record in trace.steps], trace.main_session)
    for name in names:
        refusal = _walk(machine, trace, name, [s for s in stimuli if s.session == name])
        if refusal is not None:
            yield refusal


def _walk(machine: Acceptor, trace: Trace, session: str, stimuli: list[Stim]) -> Refusal | None:
    at = {machine.initial}
    for number, record in enumerate(trace.steps, 1):
        reached = _closure(machine, at)
        for stim in stimuli:
            if stim.step == number:
                letter = Letter("start" if stim.name in STARTS else "renew" if stim.name in RENEWALS else stim.name)
                reached |= _closure(machine, {e.dest for state in reached for e in machine.take(state, letter)})
        shown = session_facts(record.facts, session, trace.main_session).get("state")
        if shown is None:
            at = reached
        elif shown in reached:
            at = {str(shown)}
        else:
            return Refusal("session", f"session {session}", tuple(sorted(at)), f"the state {shown}", number)
    return None


def _closure(machine: Acceptor, states: set[str]) -> set[str]:
    found, todo = set(states), list(states)
    while todo:
        for edge in machine.silent(todo.pop()):
            if edge.dest not in found:
                found.add(edge.dest)
                todo.append(edge.dest)
    return found
