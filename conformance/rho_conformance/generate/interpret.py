"""Give intents a meaning: what is open decides which stimuli they become; where nothing fits, none."""

from __future__ import annotations

from collections.abc import Iterable

from rho_conformance.driver import JsonMap
from rho_conformance.generate.capabilities import Allowed
from rho_conformance.generate.intents import Intent
from rho_conformance.generate.meanings import HANDLERS, Stimuli
from rho_conformance.generate.script import DEFAULT_BOUNDS, Bounds, Player, Target, connected
from rho_conformance.generate.situation import RunInfo, Situation
from rho_conformance.trace import Trace

WIND_DOWN_STEPS = 60
"""At most so many steps lead a script to its end: a runtime that asks on and on is left as it is."""

PLAINLY: tuple[Intent, ...] = (
    Intent("recorder"),
    Intent("compactor"),
    Intent("boundary"),
    Intent("respond"),
    Intent("tool_end"),
    Intent("model_end"),
    Intent("advance"),
)
"""The plain answers to whatever is open, in the order in which they are tried."""


class Interpreter:
    """Performs intents one after the other; what has been seen so far decides, nothing else."""

    sit: Situation

    def __init__(self, player: Player) -> None:
        self.player = player
        self.allowed = Allowed(player.hello, player.trace.profile)
        self.sit = Situation(player.trace.config, player.trace.main_session)

    def run(self, intents: Iterable[Intent]) -> None:
        """All of them, until a bound ends the play."""
        left = list(intents)
        while left:
            intent = left.pop(0)
            if intent.name == "together":
                count = 2 + intent.b % 2
                race, left = left[:count], left[count:]
                steps = [[stimulus for one in race for stimulus in self.stimuli(one)]]
            elif intent.name == "flood":
                steps = [self.stimuli(intent)]
            else:
                steps = [[stimulus] for stimulus in self.stimuli(intent)]
            if not all(self.perform(step) for step in steps):
                return

    def stimuli(self, intent: Intent) -> Stimuli:
        """What the intent means now; empty where it means nothing or may not be played."""
        handler = HANDLERS.get(intent.name)
        found = handler(self, intent) if handler is not None else []
        return found if all(map(self.allowed.stimulus, found)) else []

    def perform(self, stimuli: Stimuli) -> bool:
        """One perform (none for no stimulus); false once a bound is reached."""
        if not stimuli:
            return True
        record = self.player.perform(stimuli)
        if record is not None:
            self.sit.observe(record)
        return record is not None

    def wind_down(self) -> None:
        """Answer all that is open in the plainest way until every run has ended, then let one more run follow.

        What a run leaves behind shows in the first request of the next one.
        """
        self._answer_plainly()
        if self.perform(self.stimuli(Intent("start"))):
            self._answer_plainly()

    def _answer_plainly(self) -> None:
        reading = False
        for _ in range(WIND_DOWN_STEPS):
            plainly = PLAINLY
            if "reader" in self.sit.waiting and not reading:
                plainly, reading = (Intent("read_all"),), True
            step = next((found for plain in plainly if (found := self.stimuli(plain))), [])
            if not any(self.sit.busy.values()) or not step or not self.perform(step):
                return

    # -- addressing ------------------------------------------------------------------------------------------------

    def where(self, session: str) -> JsonMap:
        """The address of a session, left out where it is the default."""
        return {} if session == self.sit.main else {"session": session}

    def to_run(self, run: RunInfo) -> JsonMap:
        """The address of a run, left out where it is the default."""
        newest = self.sit.newest(run.session)
        return self.where(run.session) if run is newest else {**self.where(run.session), "run": run.name}


def perform_intents(
    target: Target,
    config: JsonMap,
    intents: Iterable[Intent],
    *,
    profile: str = "rho",
    wind_down: bool = False,
    source: str | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Trace:
    """Interpret intents on a new world of the target, as far as its capabilities and the profile allow.

    `wind_down` answers what is still open in the end, so that runs finish; then the closing part follows.
    Raises `DriverError` for a fault of the driver.
    """
    with connected(target) as driver:
        kept = Allowed(driver.hello(), profile).config(config)
        player = Player(driver, kept, profile, source, bounds)
        if player.opened:
            interpreter = Interpreter(player)
            interpreter.run(intents)
            if wind_down:
                interpreter.wind_down()
        return player.close()
