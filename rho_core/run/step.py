"""The interpreter of the tables, and the one hot path (design §3.6)."""

from __future__ import annotations

from typing import Any

from .. import effects as out
from .. import events as ev
from .. import inputs as inp
from ..capture import Capture, text_delta
from ..rope import TAIL_TEXT
from ..step import Step
from ..table import RowKey, common_key, flow_key, wait_key
from . import state as s
from . import table
from .outbox import Fx

Path = list[tuple[RowKey, str]]
"""Rows taken, each with the name of the exit it took."""


def accepts(run: s.Run) -> bool:
    """Are gated inputs taken now? One bit for the whole run keeps the source order without a queue."""
    return run.blocked is None


def step(run: s.Run, i: inp.RunInput) -> Step[s.Run]:
    """Feed one input. Total over `RunInput`; TypeError for a value of another type."""
    if type(i) is inp.TextDelta:
        quick = hot(run, i)
        if quick is not None:
            return Step(*quick)
    return generic(run, i)


def hot(run: s.Run, i: inp.TextDelta) -> tuple[s.Run, tuple[out.Effect, ...]] | None:
    """What `generic` does with a text delta that has room and nothing else to see to; None when it has.

    A bare pair: the session above wraps it once more, and a second wrapper would be a tenth of the whole cost.
    """
    phase = run.phase
    core = run.core
    if (
        type(phase) is not s.Streaming
        or run.blocked is not None
        or run.free == 0
        or phase.attempt != i.attempt
        or core.step != i.step
        or core.jobs
        or core.reader == "gone"
    ):
        return None
    capture = phase.capture
    tail = (capture.tail or "") + i.text
    if tail and len(tail) < TAIL_TEXT:
        capture = Capture(tail, capture.spine, capture.rest)
    else:
        capture = text_delta(capture, i.text)
    after = s.Run(s.Streaming(phase.turn, phase.attempt, capture), run.free - 1, None, core)
    return after, (out.Deliver(ev.AssistantTextDelta(i.text, i.attempt)),)


def generic(run: s.Run, i: Any, path: Path | None = None) -> Step[s.Run]:
    """The tables, interpreted; `path` collects the rows taken and their exits."""
    kind = inp.INPUT_CLASS.get(type(i))
    if kind is None:
        raise TypeError(f"not an input of a run: {i!r}")
    if kind == "gated" and run.blocked is not None:
        return Step(run, (out.NotReady(i),))
    fx: Fx = []
    row = table.COMMON.get(type(i))
    key = common_key(type(i))
    if row is None:
        row = table.WAIT.get((type(run.phase), type(i)))
        key = wait_key(type(run.phase), type(i))
    if row is None:
        return Step(run, ())
    was_blocked = run.blocked
    run, then = row.handler(run, i, fx)
    if kind == "record" and was_blocked is not None:
        then = None  # only stored: the blocked send's continuation will look
    if path is not None:
        path.append((key, _exit(run, then, was_blocked)))
    while then is not None:
        key = flow_key(type(then))
        run, then = table.FLOW[type(then)].handler(run, then, fx)
        if path is not None:
            path.append((key, _exit(run, then, None)))
    return Step(run, tuple(fx))


def _exit(run: s.Run, then: s.Continuation | None, was_blocked: s.Blocked | None) -> str:
    """The exit taken: the continuation, the one a new blocked send waits with, or the phase the run waits in."""
    if then is not None:
        return type(then).__name__
    if run.blocked is not None and run.blocked is not was_blocked:
        return type(run.blocked.then).__name__
    return type(run.phase).__name__


def witnessed(run: s.Run, i: inp.RunInput) -> tuple[Step[s.Run], Path]:
    """As `step`, with the rows that were taken: for coverage, diagrams and explanations."""
    path: Path = []
    return generic(run, i, path), path
