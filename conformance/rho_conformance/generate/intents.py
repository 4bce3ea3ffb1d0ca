"""The alphabet of intents: what a script may want to do, said without knowing what is open.

An intent is a name and two small integers. `a` chooses among what is open (the a-th, modulo their number), `b`
chooses a class of answer; `interpret` gives both a meaning, or finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST = 30
"""The largest integer of an intent."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One wish."""

    name: str
    a: int = 0
    b: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.a},{self.b})"


@dataclass(frozen=True, slots=True)
class Letter:
    """One letter of the alphabet: the group whose weight an example draws, and how often it stands in it."""

    group: str
    weight: int
    meaning: str


ALPHABET: dict[str, Letter] = {
    # the model
    "model_end": Letter("model", 8, "end the a-th open model call with an answer of class b"),
    "model_item": Letter("stream", 4, "stream an item of class b to the a-th open model call"),
    "flood": Letter("stream", 1, "stream more deltas than the channel takes, in one go"),
    "model_late": Letter("late", 2, "answer a model call that is over"),
    # tools
    "tool_end": Letter("tool", 8, "end the a-th open preparation, authorisation or execution"),
    "tool_item": Letter("tool", 2, "progress, a question or a token item from the a-th open execution"),
    "tool_late": Letter("late", 2, "answer a tool that is over"),
    # the rest of the environment
    "compactor": Letter("environment", 3, "answer the open compaction with class b"),
    "boundary": Letter("environment", 3, "answer the open boundary request with class b"),
    "recorder": Letter("environment", 6, "the recorder is through with the open record: ok or not, as b says"),
    "environment_late": Letter("late", 1, "the compactor, the collector or the recorder answers when nobody asks"),
    # the host, in a run
    "steer": Letter("steering", 4, "steer the newest run"),
    "retract": Letter("steering", 2, "retract the a-th steer"),
    "respond": Letter("questions", 3, "answer the a-th question, in the way b says"),
    "cancel": Letter("ends", 2, "cancel the newest run"),
    "cancel_stale": Letter("ends", 1, "cancel the a-th run, which may be over"),
    "drop": Letter("ruin", 1, "drop the handle of the newest run"),
    "outcome": Letter("ends", 1, "await the outcome of the a-th run"),
    "shutdown": Letter("ruin", 1, "shut the runtime down"),
    # the host, between runs
    "start": Letter("start", 4, "start a run in an idle session, the a-th"),
    "start_busy": Letter("start", 1, "start a run in a busy session"),
    "start_tool": Letter("start", 1, "start the run of a single tool call"),
    "snapshot": Letter("session", 1, "take a snapshot"),
    "append": Letter("session", 1, "append a user message, in an idle or a busy session"),
    "compact": Letter("session", 1, "compact by hand"),
    "rewrite": Letter("session", 1, "reset, or replace the history"),
    "store": Letter("session", 1, "save, restore, or lose the process"),
    "handles": Letter("session", 1, "drop the session's or the runtime's handle, or query"),
    # the reader
    "read": Letter("reader", 4, "read one to three events"),
    "read_all": Letter("reader", 1, "read all, from now on"),
    "hold": Letter("reader", 1, "read no more"),
    "close_reader": Letter("ruin", 1, "close the reader of the newest run"),
    # time
    "advance": Letter("time", 4, "let time pass: to the next timer, short of it, past it, or by a fixed step"),
    # races
    "together": Letter("race", 2, "perform the next two or three intents without settling between them"),
}

GROUPS: tuple[str, ...] = tuple(dict.fromkeys(letter.group for letter in ALPHABET.values()))
GREATEST_WEIGHT = 3
"""An example gives each group a weight from 0 to this one; a group of weight 0 does not occur in it."""

ALWAYS = ("start", "model", "tool", "time")
"""Groups of which every example has some: without them a script does not get anywhere."""


def population(weights: Sequence[int]) -> list[str]:
    """The names to choose from, each as often as its own weight and that of its group say."""
    by_group = dict(zip(GROUPS, weights, strict=True))
    chosen: list[str] = []
    for name, letter in ALPHABET.items():
        weight = by_group[letter.group] + (2 if letter.group in ALWAYS else 0)
        chosen += [name] * (letter.weight * weight)
    return chosen
