"""Random search: Hypothesis draws scripts of intents in advance, and only then are they played.

It never sees what a target answers, so a target that answers in another order each time cannot confuse it
(suite notes: a reactive machine reports `FlakyStrategyDefinition` there, and hides the violation).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

from rho_conformance.driver import DriverFactory, JsonMap
from rho_conformance.generate.configs import configs
from rho_conformance.generate.intents import GREATEST_WEIGHT, GROUPS, MOST, Intent, population
from rho_conformance.generate.interpret import perform_intents
from rho_conformance.generate.script import DEFAULT_BOUNDS, Bounds
from rho_conformance.generate.walks import walks
from rho_conformance.trace import Trace

BATCH = 50
"""So many scripts are drawn at a time: a time budget should not be spent on scripts that are never played."""

OnTrace = Callable[[Trace], None]


class SeededProvider(HypothesisProvider):
    """Draws by the seed alone. Hypothesis would mix in constants found in whichever modules are loaded by now."""

    def _maybe_draw_constant(self, *args: Any, **kwargs: Any) -> None:
        return None


_BACKEND = "rho-seeded"
AVAILABLE_PROVIDERS[_BACKEND] = f"{__name__}.{SeededProvider.__name__}"
_WEIGHTS = (0, 0, 1, 1, 2, GREATEST_WEIGHT)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One drawn script of intents."""

    config: JsonMap
    intents: tuple[Intent, ...]
    wind_down: bool


@dataclass(frozen=True, slots=True)
class Generated:
    """What a search did. `complete` is false when the time was up before all examples were played."""

    walks: int
    examples: int
    seconds: float
    complete: bool


@st.composite
def drawn_scripts(draw: st.DrawFn, steps: int) -> Drawn:
    """A configuration, weights for the groups of intents, and up to `steps` intents chosen by these weights."""
    config = draw(configs())
    weights = draw(st.tuples(*[st.sampled_from(_WEIGHTS) for _ in GROUPS]))
    intent = st.builds(Intent, st.sampled_from(population(weights)), st.integers(0, 3), st.integers(0, MOST))
    intents = draw(st.lists(intent, min_size=max(1, steps // 2), max_size=steps))
    return Drawn(config, (Intent("start"), *intents), draw(st.booleans()))


def draw_scripts(examples: int, steps: int, seed_number: int) -> Iterator[Drawn]:
    """The scripts of a seed: the same for the same numbers, whatever they are played on."""
    for batch, first in enumerate(range(0, examples, BATCH)):
        yield from _batch(min(BATCH, examples - first), steps, (seed_number << 20) + batch)


def _batch(examples: int, steps: int, seed_number: int) -> list[Drawn]:
    found: list[Drawn] = []

    @seeded(seed_number)
    @settings(
        backend=_BACKEND,
        max_examples=examples + 1,
        derandomize=False,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn_scripts(steps))
    def collect(drawn: Drawn) -> None:
        found.append(drawn)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)
        collect()
    # Hypothesis begins with the simplest example, which is the same for every seed.
    return found[1 : examples + 1]


def generate(
    factory: DriverFactory,
    profile: str,
    examples: int,
    steps: int,
    seed: int,
    on_trace: OnTrace,
    *,
    directed: bool = True,
    seconds: float | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Generated:
    """Play the directed walks, then `examples` drawn scripts of up to `steps` intents; `on_trace` gets each trace.

    The same seed gives the same scripts, and on a deterministic target the same traces. `seconds` ends the search
    early; `directed=False` leaves the walks out. A fault of the driver is raised as `DriverError`.
    """
    began = time.monotonic()
    played = {"walks": 0, "examples": 0}

    def late() -> bool:
        return seconds is not None and time.monotonic() - began > seconds

    def ended(complete: bool) -> Generated:
        return Generated(played["walks"], played["examples"], time.monotonic() - began, complete)

    for walk in walks() if directed else ():
        if late():
            return ended(False)
        on_trace(walk.play(factory, profile, bounds=bounds))
        played["walks"] += 1
    for number, drawn in enumerate(draw_scripts(examples, steps, seed)):
        if late():
            return ended(False)
        trace = perform_intents(
            factory,
            drawn.config,
            drawn.intents,
            profile=profile,
            wind_down=drawn.wind_down,
            source=f"generated: seed {seed}, example {number}",
            bounds=bounds,
        )
        on_trace(trace)
        played["examples"] += 1
    return ended(True)
