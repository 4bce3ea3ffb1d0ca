"""Make a script small that breaks a rule: delta debugging for one rule at a time.

First on steps, then on stimuli of a race and items of an answer, then on the configuration. What counts is only
that the rule is still among those violated: other violations may come and go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rho_conformance.driver import DriverFactory, JsonMap
from rho_conformance.errors import DriverError, UsageError
from rho_conformance.generate.script import DEFAULT_BOUNDS, Bounds, Judge, Script, play, violated
from rho_conformance.trace import Trace

T = TypeVar("T")
DEFAULT_PLAYS = 400


@dataclass(frozen=True, slots=True)
class Minimal:
    """The smallest script found, a trace of it that violates the rule, and how many plays it took."""

    script: Script
    trace: Trace
    plays: int
    exhausted: bool
    """Whether the search ended because its plays or its time were used up, so that a smaller one may exist."""


class _Spent(Exception):
    """No plays left."""


class _Test:
    """The predicate "the rule is violated in at least one of `repeat` plays", with a memory and a budget."""

    def __init__(
        self, factory: DriverFactory, rule: str, judge: Judge, repeat: int, plays: int, bounds: Bounds
    ) -> None:
        self.factory, self.rule, self.judge, self.repeat = factory, rule, judge, repeat
        self.left, self.plays, self.bounds = plays, 0, bounds
        self.deadline = time.monotonic() + bounds.seconds
        self.known: dict[str, bool] = {}
        self.best: tuple[Script, Trace] | None = None

    def __call__(self, script: Script) -> bool:
        key = script.key()
        if key not in self.known:
            self.known[key] = self._fails(script)
        return self.known[key]

    def _fails(self, script: Script) -> bool:
        for _ in range(self.repeat):
            if self.left <= 0 or time.monotonic() > self.deadline:
                raise _Spent
            self.left, self.plays = self.left - 1, self.plays + 1
            try:
                trace = play(self.factory, script, source=f"minimised for {self.rule}", bounds=self.bounds)
            except (DriverError, UsageError):
                # A part of a script may be none: it may address a run that the whole one had started.
                return False
            if self.rule in self.judge(trace):
                self.best = (script, trace)
                return True
        return False


def minimise(
    factory: DriverFactory,
    script: Script,
    rule: str,
    *,
    judge: Judge = violated,
    repeat: int = 1,
    max_plays: int = DEFAULT_PLAYS,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Minimal | None:
    """A smallest script that still violates `rule`, or None when this one does not.

    On a target that answers differently each time, one play of `repeat` must show the violation. At most
    `max_plays` plays and `bounds.seconds` are spent in all.
    """
    test = _Test(factory, rule, judge, repeat, max_plays, bounds)
    exhausted = False
    try:
        if test(script):
            _shrink(script, test)
    except _Spent:
        exhausted = True
    if test.best is None:
        return None
    smallest, trace = test.best
    return Minimal(smallest, trace, test.plays, exhausted)


def _shrink(script: Script, test: _Test) -> None:
    while True:
        before = script.key()
        script = _steps(script, test)
        for smaller in (_smaller_step, _smaller_config):
            script = _greedily(script, smaller, test)
        if script.key() == before:
            return


def _steps(script: Script, test: _Test) -> Script:
    kept = ddmin(script.steps, lambda steps: test(script.replace(steps)))
    return script.replace(kept)


def ddmin(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Zeller's delta debugging: a part of `items` that still fails and of which no single item can be left out."""
    kept = list(items)
    if fails([]):
        return []
    parts = 2
    while len(kept) >= 2:
        size = -(-len(kept) // parts)
        for start in range(0, len(kept), size):
            without = kept[:start] + kept[start + size :]
            if without and fails(without):
                kept, parts = without, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), parts * 2)
    return kept


def _greedily(script: Script, smaller: Callable[[Script], Iterator[Script]], test: _Test) -> Script:
    """Take the first smaller script that still fails, again and again."""
    while True:
        found = next((candidate for candidate in smaller(script) if test(candidate)), None)
        if found is None:
            return script
        script = found


def _smaller_step(script: Script) -> Iterator[Script]:
    for place, step in enumerate(script.steps):
        for number, stimulus in enumerate(step):
            if len(step) > 1:
                yield _with(script, place, (*step[:number], *step[number + 1 :]))
            for smaller in _smaller_stimulus(stimulus):
                yield _with(script, place, (*step[:number], smaller, *step[number + 1 :]))


def _with(script: Script, place: int, step: tuple[JsonMap, ...]) -> Script:
    return script.replace((*script.steps[:place], step, *script.steps[place + 1 :]))


def _smaller_stimulus(stimulus: JsonMap) -> Iterator[JsonMap]:
    """The stimulus with one item, call or optional field less."""
    ((name, value),) = stimulus.items()
    if isinstance(value, list):
        for number in range(len(value) if len(value) > 1 else 0):
            yield {name: value[:number] + value[number + 1 :]}
    elif isinstance(value, dict) and name in ("provider", "respond"):
        yield from ({name: smaller} for smaller in _smaller_item(value))


def _smaller_item(item: JsonMap) -> Iterator[JsonMap]:
    for key in ("reasoning", "usage", "answers"):
        if key in item and len(item) > 1:
            yield {k: v for k, v in item.items() if k != key}
    if "text" in item and "calls" in item:
        yield {k: v for k, v in item.items() if k != "text"}
    calls = item.get("calls", ())
    for number in range(len(calls) if len(calls) > 1 else 0):
        yield {**item, "calls": [*calls[:number], *calls[number + 1 :]]}
    for number, call in enumerate(calls):
        if "async" in call:
            plain = {k: v for k, v in call.items() if k != "async"}
            yield {**item, "calls": [*calls[:number], plain, *calls[number + 1 :]]}


def _smaller_config(script: Script) -> Iterator[Script]:
    """A key, a tool, an option of a tool or of the provider, or a message of the past less."""
    config = script.config
    candidates: list[JsonMap] = [_without(config, key) for key in config]
    for name, options in config.get("tools", {}).items():
        candidates.append({**config, "tools": _without(config["tools"], name)})
        candidates += [{**config, "tools": {**config["tools"], name: _without(options, key)}} for key in options or ()]
    candidates += [{**config, "provider": _without(config["provider"], k)} for k in config.get("provider", ())]
    past = config.get("history", [])
    candidates += [{**config, "history": past[:k] + past[k + 1 :]} for k in range(len(past))]
    for candidate in candidates:
        yield Script(candidate, script.steps, script.profile)


def _without(given: JsonMap, key: str) -> JsonMap:
    return {k: v for k, v in given.items() if k != key}
