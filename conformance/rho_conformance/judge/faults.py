"""The fault sweep: every fault at every point of every scenario's recorded run, each result judged by every rule.

A scenario is one task: played once as it stands, then once for each point. Tasks share nothing, so they may run in
several processes; what they find does not depend on how many.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

from rho_conformance.driver import DriverFactory, connect
from rho_conformance.errors import DriverError
from rho_conformance.generate.capabilities import Allowed
from rho_conformance.generate.faults import Point, points
from rho_conformance.generate.script import TRUNCATED, play
from rho_conformance.judge.library import library
from rho_conformance.judge.profiles import profile_for
from rho_conformance.judge.tally import MONITOR_FAULT
from rho_conformance.monitors import judge
from rho_conformance.scenario import Scenario, run_scenario, standing_violations
from rho_conformance.targets import resolve
from rho_conformance.trace import Trace

Progress = Callable[[str, int, int], None]
HARNESS = "harness"
"""In place of a rule: the driver went off the protocol, or a monitor failed. No verdict on the target."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule broken by a fault in a scenario: at which point first, how, and at how many points in all."""

    scenario: str
    point: str
    fault: str
    rule: str
    why: str
    times: int = 1

    def to_json(self) -> dict[str, Any]:
        names = ("scenario", "point", "fault", "rule", "why", "times")
        return {name: getattr(self, name) for name in names}


@dataclass
class Found:
    """What a sweep found, of one scenario or of all. `swept`: fault -> points; `skipped` by `every`, and `left_out`
    because the target does not declare what they need; `truncated`: plays that a bound ended."""

    scenarios: int = 0
    swept: Counter[str] = field(default_factory=Counter)
    doubles: int = 0
    skipped: int = 0
    left_out: int = 0
    truncated: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def points(self) -> int:
        return self.swept.total()

    def add(self, other: Found) -> None:
        """Take in what another one found."""
        self.scenarios += other.scenarios
        self.swept += other.swept
        self.doubles += other.doubles
        self.skipped += other.skipped
        self.left_out += other.left_out
        self.truncated += other.truncated
        self.failures += other.failures


@dataclass(frozen=True, slots=True)
class Task:
    """One scenario (number `number` of the library), every `every`-th point of it, and `doubles` double faults."""

    number: int
    every: int = 1
    doubles: int = 0
    seed: int = 1


def sweep_scenario(scenario: Scenario, task: Task, factory: DriverFactory, allowed: Allowed) -> Found:
    """Sweep one scenario in this process. A scenario that does not apply to the target counts as none."""
    trace = run_scenario(scenario, factory, repeat=1).trace
    found = Found()
    # Whatever was played has a step; what does not apply, or whose configuration was refused, has none.
    if trace is None or not trace.steps or not allowed.script(trace.config, ()):
        return found
    found.scenarios = 1
    sweeping = _Sweeping(scenario.id, factory, allowed, found)
    declared = sweeping.declared(trace)
    for k, point in enumerate(declared):
        # Another remainder in each scenario, or a sample would hit the same faults everywhere.
        if (k + task.number) % task.every:
            found.skipped += 1
        else:
            sweeping.play(point, point.fault, point.where)
            found.swept[point.fault] += 1
    sweeping.doubles(declared, task.doubles, random.Random(f"{task.seed}:{task.number}"))
    found.failures = sweeping.failures()
    return found


class _Sweeping:
    """The plays of one scenario, and its failures by (fault, rule)."""

    def __init__(self, name: str, factory: DriverFactory, allowed: Allowed, found: Found) -> None:
        self._name, self._factory, self._allowed, self._found = name, factory, allowed, found
        self._common = Allowed(allowed.hello, "common")
        self._first: dict[tuple[str, str], tuple[str, str]] = {}
        self._times: Counter[tuple[str, str]] = Counter()

    def declared(self, trace: Trace, count: bool = True) -> list[Point]:
        """The points that the target can be asked."""
        everything = list(points(trace))
        kept = [p for p in everything if _asks_only(self._allowed, p)]
        self._found.left_out += (len(everything) - len(kept)) * count
        return kept

    def play(self, point: Point, fault: str, where: str) -> Trace | None:
        """Play and judge one point."""
        script = point.script
        if script.profile == "common" and not _asks_only(self._common, point):
            # The rules of the common profile know nothing of a crash or a shutdown: Rho's judge it.
            script = replace(script, profile="rho")
        try:
            trace = play(self._factory, script, source=f"{self._name}: {fault} {where}")
        except DriverError as off:
            self._note(fault, where, {HARNESS: f"driver: {off}"})
            return None
        self._found.truncated += TRUNCATED in trace.extra
        self._note(fault, where, complaints(trace))
        return trace

    def doubles(self, declared: Sequence[Point], count: int, draw: random.Random) -> None:
        """A fault in the recorded run of a fault, `count` times."""
        for _ in range(count if declared else 0):
            first = draw.choice(declared)
            try:
                again = self.declared(play(self._factory, first.script), count=False)
            except DriverError:
                continue  # noted where this point is played by itself
            if again:
                second = draw.choice(again)
                self.play(second, f"{first.fault}+{second.fault}", f"{first.where}, then {second.where}")
                self._found.doubles += 1

    def _note(self, fault: str, where: str, broken: dict[str, str]) -> None:
        for rule, why in broken.items():
            self._first.setdefault((fault, rule), (where, why))
            self._times[fault, rule] += 1

    def failures(self) -> list[Failure]:
        return [
            Failure(self._name, where, fault, rule, why, self._times[fault, rule])
            for (fault, rule), (where, why) in self._first.items()
        ]


def _asks_only(allowed: Allowed, point: Point) -> bool:
    """Whether the fault is allowed; the scenario around it was looked at before it was played."""
    return all(map(allowed.stimulus, point.added))


def complaints(trace: Trace) -> dict[str, str]:
    """Rule -> its first violation in a trace, by the monitors and the standing checks; `HARNESS` for a failed one."""
    found: dict[str, str] = {}
    for standing in standing_violations(trace):
        found.setdefault(standing.rule, f"step {standing.step}: {standing.message}")
    for rule, finding in judge(trace).items():
        if finding.violations:
            first = finding.violations[0]
            found.setdefault(rule, f"step {first.step}: {first.message}")
        elif finding.untestable is not None and MONITOR_FAULT in finding.untestable:
            found.setdefault(HARNESS, f"{rule}: {finding.untestable}")
    return found


# --- the whole library -----------------------------------------------------------------------------------------


def fault_sweep(
    target: str,
    every: int = 1,
    doubles: int = 0,
    seed: int = 1,
    workers: int = 1,
    progress: Progress | None = None,
    only: Collection[str] | None = None,
) -> Found:
    """Sweep the scenarios of the target's profile (`only`: those with these ids). `UsageError`: unknown target."""
    profile = _profile(target)
    wanted = [n for n, item in enumerate(library(profile)) if only is None or item.name in only]
    tasks = _tasks(wanted, every, doubles, seed)
    found = Found()
    for done, part in enumerate(_all(tasks, target, profile, workers), 1):
        found.add(part)
        if progress is not None:
            progress("scenarios", done, len(tasks))
    return found


def _profile(target: str) -> str:
    with connect(resolve(target)()) as driver:
        return profile_for(list(driver.hello().raw["profiles"]), None)


def _tasks(numbers: Sequence[int], every: int, doubles: int, seed: int) -> list[Task]:
    """The doubles are drawn among the scenarios here, so that the number of processes does not matter."""
    draw = random.Random(seed)
    drawn = Counter(draw.choice(numbers) for _ in range(doubles if numbers else 0))
    return [Task(number, every, drawn[number], seed) for number in numbers]


def _all(tasks: Sequence[Task], target: str, profile: str, workers: int) -> Iterator[Found]:
    one = partial(_one, target=target, profile=profile)
    if workers <= 1 or len(tasks) < 2:
        yield from map(one, tasks)
        return
    # "spawn": the patches of one process must never be seen by another.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(one, tasks)


def _one(task: Task, target: str, profile: str) -> Found:
    source = library(profile)[task.number].source
    assert isinstance(source, Scenario)
    factory = resolve(target)
    with connect(factory()) as driver:
        allowed = Allowed(driver.hello(), profile)
    with _uncollected():
        return sweep_scenario(source, task, factory, allowed)


@contextmanager
def _uncollected() -> Iterator[None]:
    """The collector of cycles waits for the end of a scenario: traces are many small objects that live briefly."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
