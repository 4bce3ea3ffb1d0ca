"""Faults: what ends or hampers a run, at every single point of a recorded script, also raced with each stimulus.

A point is a place between two performs, or a place inside one: before, between and after its stimuli, without
settling (a race). A fault is counted where it means something: nobody can cancel a run that is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from rho_conformance.driver import JsonMap
from rho_conformance.generate.script import Script
from rho_conformance.generate.situation import Situation, Upcall
from rho_conformance.generate.sweep import answers, key_of, panic_of
from rho_conformance.trace import Trace

Steps: TypeAlias = "tuple[tuple[JsonMap, ...], ...]"

RUN_FAULTS = ("cancel", "drop", "close_reader")
"""They mean something while a run is unfinished."""
WORKERS = {
    "ModelCall": "panic_provider",
    "ToolPrepare": "panic_tool",
    "ToolAuthorize": "panic_tool",
    "ToolExecute": "panic_tool",
    "Compact": "panic_compactor",
}
FAULTS = (*RUN_FAULTS, "panic_provider", "panic_tool", "panic_compactor", "shutdown", "crash", "save_crash")
"""`crash` loses what was not saved, `save_crash` saves first; both restore, as the host would, afterwards."""
RESTORE: JsonMap = {"restore": {"from": "last_save"}}
AFTERWARDS: Steps = (({"start": "afterwards"},), ({"provider": {"text": "afterwards"}},))
"""Is the session of use after the fault? A runtime that is shut down refuses, and that is judged as well."""
LATE = 12
"""So many steps of late answers at most: a runtime that still listens shows it by then."""


@dataclass(frozen=True, slots=True)
class Point:
    """One fault at one place: `where` says `after 3` (settled), or `in 4 at 0` (raced, before its first stimulus).

    `added`: the stimuli that the recorded script had not.
    """

    fault: str
    where: str
    script: Script
    added: tuple[JsonMap, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fault:
    """`stimuli` are the fault itself, and can be raced; `then` comes after it has settled."""

    name: str
    stimuli: tuple[JsonMap, ...]
    then: Steps = ()

    def added(self, tail: Steps) -> tuple[JsonMap, ...]:
        return (*self.stimuli, *(one for step in (*self.then, *tail) for one in step))


def points(trace: Trace, afterwards: bool = True) -> Iterator[Point]:
    """Every fault at every point of a recorded script, in the order of the points; the same for the same trace.

    After the fault come the answers that the recorded script gave from there on, too late now, and then, with
    `afterwards`, another run.
    """
    script = Script.from_trace(trace)
    sit, seen = Situation(script.config, trace.main_session), set[str]()
    tail = AFTERWARDS if afterwards else ()
    now = _possible(sit)
    for k in range(len(script.steps) + 1):
        before, rest = script.steps[:k], script.steps[k:]
        late = _late(rest, seen)
        for fault in now:
            steps = (*before, fault.stimuli, *fault.then, *late, *tail)
            yield Point(fault.name, f"after {k}", script.replace(steps), fault.added(tail))
        if rest:
            earlier = now
            sit.observe(trace.steps[k])
            seen.update(key_of(upcall) for upcall in (*sit.open, *sit.over))
            now = _possible(sit)
            late = _late(rest[1:], seen)
            for fault, places in _raced(earlier, now, len(rest[0])):
                for place in places:
                    race = (*rest[0][:place], *fault.stimuli, *rest[0][place:])
                    steps = (*before, race, *fault.then, *late, *tail)
                    yield Point(fault.name, f"in {k + 1} at {place}", script.replace(steps), fault.added(tail))


def _raced(earlier: list[_Fault], now: list[_Fault], stimuli: int) -> Iterator[tuple[_Fault, range]]:
    """The faults of a perform, each with its places: a run that begins in it can be hit only after its first."""
    for fault in earlier:
        yield fault, range(stimuli + 1)
    for fault in now:
        # An upcall opens only when the perform has settled: inside it there is nothing to panic.
        if fault not in earlier and fault.name not in WORKERS.values():
            yield fault, range(1, stimuli + 1)


def _late(rest: Steps, seen: set[str]) -> Steps:
    kept: list[tuple[JsonMap, ...]] = []
    for step in rest:
        found = tuple(one for one in step if answers(one, seen))
        if found:
            kept.append(found)
        if len(kept) == LATE:
            break
    return tuple(kept)


def _possible(sit: Situation) -> list[_Fault]:
    found = [_Fault(name, (_of(name),)) for name in RUN_FAULTS] if sit.unfinished() else []
    found += [_panic(upcall, sit.main) for upcall in sit.open if upcall.kind in WORKERS]
    found.append(_Fault("shutdown", (_of("shutdown"),)))
    found.append(_Fault("crash", (_of("crash"),), ((RESTORE,),)))
    found.append(_Fault("save_crash", (_of("save"), _of("crash")), ((RESTORE,),)))
    return found


def _of(name: str) -> dict[str, Any]:
    return {name: {}}


def _panic(upcall: Upcall, main: str) -> _Fault:
    return _Fault(WORKERS[upcall.kind], (panic_of(upcall, main),))
