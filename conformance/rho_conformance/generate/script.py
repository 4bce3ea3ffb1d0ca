"""A script: what a driver is given, without what it answered; and the player that turns one into a trace."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from rho_conformance.driver import ConnectedDriver, Driver, DriverFactory, JsonMap, connect
from rho_conformance.errors import UsageError
from rho_conformance.scenario.book import Run, read_book
from rho_conformance.trace import StepRecord, Trace

Target: TypeAlias = "ConnectedDriver | Driver | DriverFactory"
"""Whatever can be played on: a driver that is connected or not, or what makes one."""

CLOSING = "closing"
"""Key of a trace's head: how many steps the script had; what follows is the closing part."""
TRUNCATED = "truncated"
"""Key of a trace's head: which bound ended the script before its end."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one play may cost. The clock is read between performs: a driver that never answers is not caught."""

    steps: int = 1_000
    observations: int = 100_000
    seconds: float = 30.0


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Script:
    """`steps` holds one tuple of stimuli for each `perform`; several in one are a race (protocol)."""

    config: JsonMap
    steps: tuple[tuple[JsonMap, ...], ...]
    profile: str = "rho"

    @classmethod
    def from_trace(cls, trace: Trace) -> Script:
        """What was done to get this trace, without the closing part that a player added."""
        own = trace.extra.get(CLOSING, len(trace.steps))
        return cls(trace.config, tuple(tuple(record.perform) for record in trace.steps[:own]), trace.profile)

    def replace(self, steps: Iterable[Iterable[JsonMap]]) -> Script:
        """The same world with other stimuli; performs without any are left out."""
        kept = tuple(given for step in steps if (given := tuple(step)))
        return Script(self.config, kept, self.profile)

    @property
    def size(self) -> int:
        """Number of stimuli."""
        return sum(len(step) for step in self.steps)

    def key(self) -> str:
        """A text that two scripts share exactly when they are equal."""
        return json.dumps([self.config, self.steps, self.profile], sort_keys=True)


class Player:
    """Performs on an open world and records. `perform` answers None once a bound is reached."""

    def __init__(
        self, driver: ConnectedDriver, config: JsonMap, profile: str, source: str | None, bounds: Bounds
    ) -> None:
        self.driver = driver
        self.hello = driver.hello()
        self.bounds = bounds
        self.trace = Trace(self.hello.raw, config, profile, source=source)
        self.trace.open_error = driver.open(config)
        self._deadline = time.monotonic() + bounds.seconds
        self._seen = 0

    @property
    def opened(self) -> bool:
        """Whether the target took the configuration."""
        return self.trace.open_error is None

    def perform(self, stimuli: Iterable[JsonMap]) -> StepRecord | None:
        """One perform of the script, if there is still room for it."""
        reached = self._bound()
        if reached is not None:
            self.trace.extra[TRUNCATED] = reached
            return None
        return self._perform(list(stimuli))

    def _bound(self) -> str | None:
        if len(self.trace.steps) >= self.bounds.steps:
            return "steps"
        if self._seen >= self.bounds.observations:
            return "observations"
        return "seconds" if time.monotonic() > self._deadline else None

    def _perform(self, stimuli: list[JsonMap]) -> StepRecord:
        answer = self.driver.perform(stimuli)
        record = StepRecord(stimuli, answer["observations"], answer["waiting_on"], answer["facts"])
        self._seen += len(record.observations)
        self.trace.steps.append(record)
        return record

    def close(self) -> Trace:
        """Read everything and ask for every outcome that can be had, so that obligations close.

        The runner of scenarios ends in the same way (scenario format §4): what is missing then is missing.
        """
        self.trace.extra[CLOSING] = len(self.trace.steps)
        if not self.opened:
            return self.trace
        book = read_book(self.trace)
        newest = book.newest(self.trace.main_session)
        for run in book.runs.values():
            if run.gone is None and not run.reader_closed and self.hello.supports("read"):
                self._perform([{"read": "all" if run is newest else {"n": "all", **_address(run)}}])
            if run.gone is None and not run.asked and self.hello.supports("outcome"):
                self._perform([{"outcome": _address(run)}])
        if not self.hello.exact:
            # Here one settle is no proof: what is missing gets a second chance (design §6, "Settled").
            self._perform([])
        return self.trace


def _address(run: Run) -> JsonMap:
    return {"run": run.name, "session": run.session}


@contextmanager
def connected(target: Target) -> Iterator[ConnectedDriver]:
    """The checked form of a target; what was connected here is closed here."""
    if isinstance(target, ConnectedDriver):
        yield target
        return
    # A class of drivers has the methods of one as well: what can be called is what makes a driver.
    made = target() if callable(target) else target
    with connect(made) as driver:
        yield driver


def play(target: Target, script: Script, *, source: str | None = None, bounds: Bounds = DEFAULT_BOUNDS) -> Trace:
    """Open, perform each step, and close. A fault of the driver is raised as `DriverError`.

    Raises `UsageError` for a script that is longer than `bounds` allows.
    """
    if len(script.steps) > bounds.steps:
        raise UsageError(f"the script has {len(script.steps)} steps; at most {bounds.steps} are played")
    with connected(target) as driver:
        player = Player(driver, script.config, script.profile, source, bounds)
        if player.opened:
            for step in script.steps:
                if player.perform(step) is None:
                    break
        return player.close()


Judge: TypeAlias = Callable[[Trace], "set[str]"]
"""The rules that a trace violates."""


def violated(trace: Trace) -> set[str]:
    """The rules that the monitors find violated in a trace."""
    from rho_conformance import monitors

    return {rule for rule, finding in monitors.judge(trace).items() if finding.violations}
