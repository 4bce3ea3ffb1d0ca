"""Permitted variants of a race: in which order the stimuli of one `perform` are seen, and how soon a cancel is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from rho_conformance.drivers.corework import commands
from rho_conformance.drivers.corework.commands import Performer
from rho_conformance.drivers.corework.world import World
from rho_conformance.mutants.base import Benign, Patch
from rho_conformance.mutants.benign_kit import attr, entry, flow
from rho_core.run import state as s
from rho_core.run.outbox import to

Given = list[tuple[Performer, Any]]
"""What one `perform` holds, with who delivers it."""


def _name(given: tuple[Performer, Any]) -> str:
    return next(iter(given[1]), "") if isinstance(given[1], dict) else ""


def _hold_back(old: Any) -> Any:
    def perform(self: Performer, raw: Any) -> None:
        self.world.__dict__.setdefault("race", []).append((self, raw))

    return perform


def _raced(deliver: Callable[[Given, Callable[[Performer, Any], None]], None]) -> tuple[Patch, ...]:
    """Nothing is delivered before the race is known as a whole; then `deliver` says in which order and how."""
    perform = Performer.perform

    def wrap(old: Any) -> Any:
        def settle_due(self: World) -> None:
            deliver(self.__dict__.pop("race", []), perform)
            old(self)

        return settle_due

    return attr(World, "settle_due", wrap), attr(Performer, "perform", _hold_back)


# --- another order ----------------------------------------------------------------------------------------------------

PLACES = ("provider", "tool", "compactor", "boundary", "recorder")
"""Stimuli of the extensions; every other one is the host's."""


def _hosts_last(name: str) -> int:
    return int(name not in PLACES)


def _hosts_first(name: str) -> int:
    return int(name in PLACES)


def _tools_first(name: str) -> int:
    return int(name != "tool")


def _stretches(given: Given) -> list[Given]:
    """A start is not moved: what comes after it may speak of its run."""
    found: list[Given] = [[]]
    for one in given:
        if _name(one).startswith("start") or _name(one) in ("crash", "restore", "new_session", "advance"):
            found += [[one], []]
        else:
            found[-1].append(one)
    return found


def _ordered(rank: Callable[[str], int]) -> tuple[Patch, ...]:
    def deliver(given: Given, perform: Callable[[Performer, Any], None]) -> None:
        for stretch in _stretches(given):
            for performer, raw in sorted(stretch, key=lambda one: rank(_name(one))):
                perform(performer, raw)

    return _raced(deliver)


def _shutdown_first(given: Given, perform: Callable[[Performer, Any], None]) -> None:
    for performer, raw in sorted(given, key=lambda one: _name(one) != "shutdown"):
        perform(performer, raw)


def _last_tool_first(given: Given, perform: Callable[[Performer, Any], None]) -> None:
    """Tools are heard in reverse, each with its own items in their order."""
    places = [n for n, one in enumerate(given) if _name(one) == "tool" and isinstance(one[1]["tool"], dict)]
    calls = list(dict.fromkeys(given[n][1]["tool"].get("id") for n in places))
    heard = sorted((given[n] for n in places), key=lambda one: -calls.index(one[1]["tool"].get("id")))
    order = dict(zip(places, heard, strict=True))
    for n, one in enumerate(given):
        perform(*order.get(n, one))


# --- a cancel that is seen a little earlier, or later -----------------------------------------------------------------


def _pause(first: bool) -> Any:
    """At a step boundary the run looks up, and goes no further."""

    def wrap(old: Any) -> Any:
        def at_top(run: s.Run, k: s.Top, fx: Any) -> Any:
            if (run.core.step == 0) is not first:
                return old(run, k, fx)
            return to(run, s.Between()), None

        return at_top

    return wrap


def _meant(one: tuple[Performer, Any]) -> bool:
    """A cancel of the only session's newest run."""
    return _name(one) == "cancel" and not one[1]["cancel"] and len(one[0].world.ports) == 1


def _at_the_boundary(first: bool) -> tuple[Patch, ...]:
    """What brings a run to a boundary, and a cancel with it: the cancel is seen there, and the step does not begin."""
    pause = flow(s.Top, _pause(first))

    def deliver(given: Given, perform: Callable[[Performer, Any], None]) -> None:
        for place, one in enumerate(given, 1):
            with pause() if any(map(_meant, given[place : place + 1])) else nullcontext():
                perform(*one)

    return _raced(deliver)


def _timers_first(old: Any) -> Any:
    """A timer that is due fires before a cancel is seen."""

    def cancel(performer: Performer, stimulus: Any) -> None:
        while performer.world.fire_next(performer.world.now_ms):
            pass
        old(performer, stimulus)

    return cancel


BENIGN: tuple[Benign, ...] = (
    Benign("hosts-last", "R1", "of a race the host's stimuli are seen last", _ordered(_hosts_last)),
    Benign("hosts-first", "R4", "of a race the host's stimuli are seen first", _ordered(_hosts_first)),
    Benign("tools-first", "R20", "of a race the tools are seen first", _ordered(_tools_first)),
    Benign("shutdown-first", "R26", "of a race a shutdown is seen first", _raced(_shutdown_first)),
    Benign("last-tool-first", "R18", "of a race the last tool is seen first", _raced(_last_tool_first)),
    Benign(
        "cancelled-before-the-first-step",
        "D31",
        "a cancel that races with the start is seen before the first step: no request",
        _at_the_boundary(first=True),
    ),
    Benign(
        "cancelled-between-steps",
        "R10",
        "a cancel that races with the end of a step is seen before the next one begins",
        _at_the_boundary(first=False),
    ),
    Benign(
        "timer-before-cancel",
        "R8",
        "a cancel that races with the end of a delay is seen when the next request is out",
        (entry(commands.HANDLERS, "cancel", _timers_first),),
    ),
)
