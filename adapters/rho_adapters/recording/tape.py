"""The trace as it grows: stimuli and observations, cut into steps, one JSON line each (`spec/protocol.md`).

A step ends when the next stimulus comes and the session has settled: everything sent was read, and what the
session waits for is what is seen to be open. What comes before that joins the step, as a race does. Neighbouring
deltas make one step, so that a long answer is not written with its history a thousand times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO, Any

Json = dict[str, Any]
Facts = Callable[[], tuple[list[str], Json]]
"""What is waited for, and the facts of the session."""


class Tape:
    """`now_ms`: milliseconds since the beginning. `settled`, `facts`: asked when a step could end.

    Each line is flushed, so that what a process leaves behind when it dies is a trace as well.
    """

    def __init__(self, file: IO[str], now_ms: Callable[[], int]) -> None:
        self._file = file
        self._now_ms = now_ms
        self.settled: Callable[[], bool] = lambda: True
        self.facts: Facts = lambda: ([], {})
        self._perform: list[Json] = []
        self._observations: list[Json] = []
        self._seq = 0
        self._step = 1
        self._streaming = False
        self._clock = 0

    def head(self, hello: Json, config: Json) -> None:
        """The first line."""
        self._write({"trace": 1, "hello": hello, "config": config, "profile": "rho", "source": "a live session"})

    def did(self, stimulus: Json, *, delta: bool = False) -> None:
        """Something was done to the session from outside. `delta`: it may join a neighbour of its kind."""
        joins = delta and self._streaming
        if (self._perform or self._observations) and not joins and self.settled():
            self._cut()
        self._perform.append(stimulus)
        self._streaming = delta

    def time_passed(self) -> None:
        """A timer fired."""
        now = self._now_ms()
        self.did({"advance": f"{now - self._clock}ms"})
        self._clock = now

    def see(self, name: str, fields: Json) -> None:
        """Something was observed."""
        self._seq += 1
        self._observations.append({"seq": self._seq, "step": self._step, "at_ms": self._now_ms(), name: fields})

    def end(self) -> None:
        """Nothing follows."""
        if self._perform or self._observations:
            self._cut()
        self._file.flush()

    def _cut(self) -> None:
        waiting_on, facts = self.facts()
        self._write(
            {"perform": self._perform, "observations": self._observations, "waiting_on": waiting_on, "facts": facts}
        )
        self._perform, self._observations = [], []
        self._step += 1

    def _write(self, line: Json) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
