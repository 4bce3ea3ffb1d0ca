"""Sweep: at every point of a recorded script, do the one thing that ends or hampers it, and then finish.

Points are stimuli, not events: an event number of a former run means nothing in the next one. Event granularity
comes from playing the script with a channel for one event and a reader that takes one event at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rho_conformance.driver import DriverFactory, JsonMap
from rho_conformance.generate.capabilities import Allowed
from rho_conformance.generate.script import DEFAULT_BOUNDS, Bounds, Script, connected, play
from rho_conformance.generate.situation import Situation, Upcall
from rho_conformance.trace import Trace
from rho_conformance.vocabulary import EVENTS

DEFAULT_LIMIT = 200
_ANSWERS = ("provider", "tool", "compactor", "boundary", "recorder", "advance", "read")


def _host(name: str) -> Callable[[Situation], JsonMap | None]:
    return lambda sit: {name: {}} if sit.unfinished() else None


def _panic(sit: Situation) -> JsonMap | None:
    """A panic of what opened last."""
    workers = sit.opened("ModelCall", "ToolPrepare", "ToolAuthorize", "ToolExecute", "Compact")
    return panic_of(workers[-1], sit.main) if workers else None


def panic_of(upcall: Upcall, main: str) -> JsonMap:
    """The stimulus that makes the worker of an upcall panic."""
    where = {} if upcall.session == main else {"session": upcall.session}
    if upcall.call_id is not None:
        return {"tool": {"id": upcall.call_id, "panic": True, **where}}
    return {"provider" if upcall.kind == "ModelCall" else "compactor": {"panic": True, **where}}


ACTIONS: dict[str, Callable[[Situation], JsonMap | None]] = {
    "cancel": _host("cancel"),
    "drop": _host("drop"),
    "close_reader": _host("close_reader"),
    "shutdown": _host("shutdown"),
    "panic": _panic,
}
"""What is done at a point; None where it means nothing there."""
SLOW = "slow"
"""The action of a sweep that is none: the whole script with a channel for one event."""


def sweep(
    trace: Trace,
    limit: int = DEFAULT_LIMIT,
    actions: Sequence[str] = (*ACTIONS, SLOW),
    allowed: Allowed | None = None,
) -> Iterator[Script]:
    """At most `limit` scripts made of a recorded one, spread over its points when there are more.

    After the action come the answers that the recorded script gave from there on, as far as their upcalls had
    opened: too late now, they provoke a runtime that still listens. With `allowed`, only scripts that hold nothing
    else.
    """
    script = Script.from_trace(trace)
    slow = [slowly(trace)] if SLOW in actions else []
    found = [*slow, *_cuts(script, trace, [name for name in actions if name != SLOW])]
    if allowed is not None:
        found = [one for one in found if allowed.script(one.config, one.steps)]
    for k in range(min(limit, len(found))):
        yield found[k * len(found) // limit if len(found) > limit else k]


def _cuts(script: Script, trace: Trace, actions: Sequence[str]) -> Iterator[Script]:
    sit = Situation(script.config, trace.main_session)
    seen: set[str] = set()
    for k, record in enumerate(trace.steps[: len(script.steps)], 1):
        sit.observe(record)
        for upcall in (*sit.open, *sit.over):
            seen.add(key_of(upcall))
        for name in actions:
            stimulus = ACTIONS[name](sit)
            if stimulus is not None:
                rest = [[s for s in step if answers(s, seen)] for step in script.steps[k:]]
                yield script.replace([*script.steps[:k], (stimulus,), *rest])


def key_of(upcall: Upcall) -> str:
    """What an answer to this upcall names: the worker, and for a tool the call."""
    return {"ModelCall": "provider", "Compact": "compactor", "Collect": "boundary"}.get(
        upcall.kind, f"tool {upcall.call_id}"
    )


def answers(stimulus: JsonMap, seen: set[str]) -> bool:
    """Whether this answers an upcall that has been open, or lets time or events pass."""
    ((name, value),) = stimulus.items()
    if name == "tool":
        ids = [item["id"] for item in (value if isinstance(value, list) else [value])]
        return all(f"tool {call_id}" in seen for call_id in ids)
    return name in _ANSWERS and (name in ("advance", "read", "recorder") or name in seen)


def slowly(trace: Trace) -> Script:
    """The same script with a channel for one event and a held reader, which takes one event after the other.

    After a stimulus it takes as many as the recorded reader saw, so that the next one finds open what it answers.
    """
    script = Script.from_trace(trace)
    steps: list[tuple[JsonMap, ...]] = []
    for step, record in zip(script.steps, trace.steps, strict=False):
        events = sum(seen.name in EVENTS for seen in record.seen())
        steps += [step, *[({"read": 1},)] * max(1, events)]
    config = {**script.config, "event_capacity": 1, "reader": "held"}
    return Script(config, tuple(steps), script.profile)


def sweep_traces(
    factory: DriverFactory,
    trace: Trace,
    limit: int = DEFAULT_LIMIT,
    actions: Sequence[str] = (*ACTIONS, SLOW),
    *,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Iterator[Trace]:
    """Play what `sweep` makes of a trace, but for what the target did not declare."""
    with connected(factory) as driver:
        allowed = Allowed(driver.hello(), trace.profile)
    for number, script in enumerate(sweep(trace, limit, actions, allowed)):
        yield play(factory, script, source=f"sweep {number} of {trace.source}", bounds=bounds)
