"""Directed walks: short lists of intents that lead into states which uniform choice seldom reaches.

Each is written as text, one intent a word: `name`, `name:b` or `name:a:b`. The class of an answer may be given by
its word in `CLASSES`; `together` joins the next two into a race. Every walk is played with an eager reader, and with a
channel for one event and a reader that takes one event at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rho_conformance.driver import JsonMap
from rho_conformance.errors import UsageError
from rho_conformance.generate import walks_between, walks_ends, walks_work
from rho_conformance.generate.intents import ALPHABET, Intent
from rho_conformance.generate.interpret import perform_intents
from rho_conformance.generate.script import DEFAULT_BOUNDS, Bounds, Target
from rho_conformance.trace import Trace

CLASSES: dict[str, dict[str, int]] = {
    "model_end": {
        "text": 0,
        "sync": 1,
        "sync2": 2,
        "async": 3,
        "mixed": 4,
        "retry": 5,
        "streamed": 7,
        "sandwich": 8,
        "async2": 9,
        "unknown": 10,
        "sync_unknown": 11,
        "rate": 12,
        "empty": 13,
        "say_sync": 14,
        "chunks": 15,
        "thinking": 16,
        "permanent": 17,
        "same_id": 18,
        "header": 19,
        "unmarked": 20,
        "panic": 21,
        "other": 22,
        "open_id": 23,
        "broken": 24,
        "interrupted": 27,
        "no_hint": 28,
        "short_hint": 29,
        "date": 30,
    },
    "model_item": {
        "delta": 0,
        "deltas": 1,
        "fragment": 2,
        "claim": 3,
        "reasoning": 4,
        "usage": 5,
        "deliver": 6,
        "summary": 7,
        "physical": 8,
        "search": 9,
        "tokens": 10,
        "release": 11,
        "hosted": 12,
        "cancel_token": 15,
        "drop_token": 16,
        "tier": 17,
    },
    "tool_end": {"ok": 0, "fail": 2, "cancelled": 4, "panic": 5, "refuse": 2},
    "tool_item": {"progress": 0, "ask": 1, "again": 2, "cancel_token": 5, "drop_token": 6, "withdraw": 7},
    "tool_late": {"return": 0, "progress": 1, "ask": 2, "panic": 3},
    "model_late": {"delta": 0, "text": 1, "fail": 2, "release": 3},
    "compactor": {"ok": 0, "same": 2, "fail": 3, "interrupted": 4, "panic": 6},
    "recorder": {"ok": 0, "fail": 1},
    "boundary": {"none": 0, "input": 1, "gone": 3},
    "respond": {"yes": 0, "no": 1, "invalid": 2, "nothing": 3},
    "advance": {"due": 0, "before": 1, "past": 2, "second": 3, "long": 4},
    "rewrite": {"reset": 0, "replace": 1},
    "store": {"save": 0, "restore": 1, "crash": 2, "save_fail": 3},
    "handles": {"query": 0, "drop_session": 1, "drop_runtime": 2},
}
"""Words for the classes of answers, by intent."""

TABLE: dict[str, tuple[JsonMap, str]] = {**walks_work.TABLE, **walks_between.TABLE, **walks_ends.TABLE}
"""Name -> world and words."""

_HELD: JsonMap = {"event_capacity": 1, "reader": "held"}


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk: its name, the world, and the intents."""

    name: str
    config: JsonMap
    intents: tuple[Intent, ...]

    def play(self, target: Target, profile: str = "rho", *, bounds: Bounds = DEFAULT_BOUNDS) -> Trace:
        """Play it; what is open in the end is answered in the plainest way."""
        source = f"walk: {self.name}"
        return perform_intents(
            target, self.config, self.intents, profile=profile, wind_down=True, source=source, bounds=bounds
        )


def walks() -> Iterator[Walk]:
    """All walks, each with both readers."""
    for name, (config, text) in TABLE.items():
        intents = tuple(read_walk(text))
        yield Walk(name, config, intents)
        if config.get("event_capacity", 1) >= 1:
            yield Walk(f"{name} (slowly)", {**config, **_HELD}, tuple(_slowly(intents)))


def _slowly(intents: tuple[Intent, ...]) -> Iterator[Intent]:
    """Three events are read after each intent, the last two at once; what a race joins stays together."""
    joined = 0
    for intent in intents:
        yield intent
        joined = 2 if intent.name == "together" else max(0, joined - 1)
        if joined == 0:
            yield from (Intent("read"), Intent("read", 0, 1))


def read_walk(text: str) -> Iterator[Intent]:
    """The intents that a text names; raises `UsageError` for a word that means none."""
    for word in text.split():
        name, *numbers = word.split(":")
        if name not in ALPHABET:
            raise UsageError(f"walk: {word!r}: there is no intent {name!r}")
        *first, last = [_number(name, word, given) for given in numbers] or [0]
        yield Intent(name, first[0] if first else 0, last)


def _number(name: str, word: str, given: str) -> int:
    if given.isdigit():
        return int(given)
    known = CLASSES.get(name, {})
    if given not in known:
        raise UsageError(f"walk: {word!r}: {name} has no class {given!r}; known: {', '.join(known)}")
    return known[given]
