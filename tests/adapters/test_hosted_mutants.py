"""Wrong interpreters: each mistake that an adapter of the core can make is found, on both loops, every time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import find, settings
from hypothesis import strategies as st

from rho_adapters import Rho
from rho_adapters.runtime import carry, checkpoint
from rho_adapters.runtime.port import SessionPort
from rho_adapters.runtime.rho import Rho as Runtime
from rho_adapters.runtime.work import RunState
from rho_conformance.driver import DriverError
from rho_conformance.generate.script import Script, play, violated
from rho_core import effects as fx
from rho_core.snapshot import Snapshot
from tests.adapters.hosted_kit import BACKENDS, scheduled
from tests.adapters.scripted import Scripted, says

Json = dict[str, Any]
Patch = Callable[[pytest.MonkeyPatch], None]
GO: Json = {"start": "go"}
TEXT: Json = {"provider": {"text": "bye"}}
CALLS: Json = {"provider": {"calls": [{"id": i, "tool": "t"} for i in "AB"]}}
TOOLS: Json = {"max_parallel_tools": 2, "tools": {"t": {}}}


def returned(call_id: str) -> Json:
    return {"tool": {"id": call_id, "return": "done"}}


def _twice(kind: type) -> Patch:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        row = carry.ROWS[kind]

        def both(port: SessionPort, effect: Any) -> None:
            row(port, effect)
            row(port, effect)

        monkeypatch.setitem(carry.ROWS, kind, both)

    return patch


def _never(kind: type) -> Patch:
    return lambda monkeypatch: monkeypatch.setitem(carry.ROWS, kind, lambda port, effect: None)


def _late(kind: type) -> Patch:
    """In a task of its own, when that is scheduled."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        row = carry.ROWS[kind]

        def later(port: SessionPort, effect: Any) -> None:
            async def act() -> None:
                row(port, effect)

            port.rho.start_task(act, name="late")

        monkeypatch.setitem(carry.ROWS, kind, later)

    return patch


def _no(owner: type, name: str) -> Patch:
    return lambda monkeypatch: monkeypatch.setattr(owner, name, lambda *_: None)


def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is put into the channel, and who waits for one is not woken."""
    monkeypatch.setattr(RunState, "send", lambda self, event: self.channel.append(event))


def _lossy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second event that finds one unread in the channel is lost."""
    send = RunState.send
    monkeypatch.setattr(RunState, "send", lambda self, event: None if len(self.channel) > 2 else send(self, event))


def _swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The channel gives back the newest event first."""

    def send(self: RunState, event: Any) -> None:
        self.channel.appendleft(event)
        self.tell()

    monkeypatch.setattr(RunState, "send", send)


def _doubled_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session tells the runtime machine is told twice."""
    release = Runtime.release

    def both(self: Runtime, operation: str) -> None:
        release(self, operation)
        release(self, operation)

    monkeypatch.setattr(Runtime, "release", both)


SLOW: Json = {"event_capacity": 1, "reader": "held"}
DELTAS: Json = {"provider": {"text": ["a", "b", "c"]}}
NARROW = Script(SLOW, ((GO,), ({"read": 2},), (DELTAS,), ({"read": "all"},)))
HELD = Script(SLOW, ((GO,), ({"read": 2},), ({"outcome": {}},), (DELTAS,)))
TURN = Script(TOOLS, ((GO,), (CALLS,), (returned("A"), returned("B")), (TEXT,)))
AGAIN = Script({}, ((GO,), (TEXT, {"start": "again"}, {"shutdown": {}}), (TEXT,)))
CANCELLED = Script(TOOLS, ((GO,), (CALLS,), (returned("A"), {"cancel": {}})))
DROPPED = Script(TOOLS, ((GO,), (CALLS,), ({"drop": {}},), ({"start": "again"},)))
RETRIED = Script({}, ((GO,), ({"provider": {"fail": {"kind": "RateLimit", "retryable": True}}},), ({"advance": "2s"},)))
STOPPED = Script({"provider": {"mode": "cooperative"}}, ((GO,), ({"provider": {"delta": "half"}},), ({"cancel": {}},)))
ASKED = Script(TOOLS, ((GO,), (CALLS,), ({"tool": {"id": "A", "ask": "q1"}},), ({"respond": {"ref": "q1"}},)))


@dataclass(frozen=True)
class Mutant:
    """A mistake, and the script that shows it."""

    name: str
    patch: Patch
    script: Script


MUTANTS = [
    Mutant("lost wake-up of a held-back provider", _no(SessionPort, "_open_gate"), NARROW),
    Mutant("lost wake-up of the one who awaits the outcome", _no(RunState, "tell"), HELD),
    Mutant("lost wake-up of a reader", _silent, HELD),
    Mutant("late release of the operation", _late(fx.Release), AGAIN),
    Mutant("no release", _never(fx.Release), AGAIN),
    Mutant("release told twice", _doubled_input, AGAIN),
    Mutant("a session that stays busy after a drop", _no(SessionPort, "_quiet"), DROPPED),
    Mutant("executed twice", _twice(fx.Execute), TURN),
    Mutant("requested twice", _twice(fx.CallModel), TURN),
    Mutant("delivered twice", _twice(fx.Deliver), TURN),
    Mutant("timer armed twice", _twice(fx.StartTimer), RETRIED),
    Mutant("event lost", _lossy, TURN),
    Mutant("events in the wrong order", _swapped, TURN),
    Mutant("tool not aborted", _never(fx.AbortTool), CANCELLED),
    Mutant("model not aborted", _never(fx.AbortModel), Script({}, ((GO,), ({"cancel": {}},)))),
    Mutant("token not set", _never(fx.SignalCancel), STOPPED),
    Mutant("stream not ended", _never(fx.CloseEvents), TURN),
    Mutant("outcome not told", _never(fx.ReportOutcome), TURN),
    Mutant("answer not delivered", _never(fx.DeliverAnswer), ASKED),
    Mutant("timer not armed", _never(fx.StartTimer), RETRIED),
]


@contextmanager
def patched(patch: Patch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        patch(monkeypatch)
        yield


def complaint(backend: str, script: Script, drawn: list[int]) -> str | None:
    """What the oracle or a monitor says against that play."""
    try:
        with scheduled(backend, drawn) as driver:
            rules = violated(play(driver, script))
    except DriverError as found:
        return str(found)
    return ", ".join(sorted(rules)) or None


SCHEDULES: tuple[list[int], ...] = ([], [1] * 40, [2, 1, 0] * 20)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name.replace(" ", "-"))
def test_a_wrong_interpreter_is_found_under_every_schedule(mutant: Mutant, backend: str) -> None:
    for drawn in SCHEDULES:
        assert complaint(backend, mutant.script, drawn) is None
        with patched(mutant.patch):
            assert complaint(backend, mutant.script, drawn) is not None


# --- a mistake that the usual order hides: it is found by drawing, shrinks, and replays --------------------------


def _started_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter that takes for granted that tasks begin in the order in which they were started."""
    spawn, started = SessionPort.spawn, deque[object]()

    def hopeful(self: SessionPort, work: Any, kind: Any, key: object, body: Any, name: str) -> Any:
        async def checked(task: Any) -> None:
            if kind == "execute" and started.popleft() != key:
                return
            await body(task)

        if kind == "execute":
            started.append(key)
        return spawn(self, work, kind, key, checked, name)

    monkeypatch.setattr(SessionPort, "spawn", hopeful)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interleaving_bug_is_drawn_and_shrinks_and_replays(backend: str) -> None:
    with patched(_started_in_order):
        assert complaint(backend, TURN, []) is None
        drawn = find(
            st.lists(st.integers(0, 3), max_size=60),
            lambda order: complaint(backend, TURN, order) is not None,
            settings=settings(max_examples=300, derandomize=True, database=None, deadline=None),
        )
        assert set(drawn) <= {0, 1}, "one task went first that should not"
        assert sum(drawn) == 1, "and nothing else is left of the schedule"
        assert {complaint(backend, TURN, drawn) for _ in range(3)} == {complaint(backend, TURN, drawn)}
    assert complaint(backend, TURN, drawn) is None


# --- a commit without its shield: it needs a store, which no scenario has ---------------------------------------


class _Slow:
    """A store whose save takes a while, which a shield must see through."""

    def __init__(self) -> None:
        self.begun, self.go_on = anyio.Event(), anyio.Event()
        self.kept: Snapshot | None = None

    async def load(self, session_id: str) -> Snapshot | None:
        return self.kept

    async def save(self, snapshot: Snapshot, *, expected: int | None) -> None:
        self.begun.set()
        await self.go_on.wait()
        self.kept = snapshot

    async def delete(self, session_id: str) -> None:
        self.kept = None

    async def sessions(self) -> list[str]:
        return []

    async def aclose(self) -> None:
        return None


async def _saved_while_the_host_is_cancelled() -> bool:
    """The host is cancelled in the middle of a save: does the save come to its end?"""
    store = _Slow()

    async def host(scope: anyio.CancelScope) -> None:
        with scope:
            async with Rho(Scripted(says("hi")), store=store, checkpoint=True) as rho:
                await rho.session("s1").complete("go")

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(host, scope)
        await store.begun.wait()
        scope.cancel()
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        store.go_on.set()
    return store.kept is not None


class _Unshielded(anyio.CancelScope):
    """A scope that forgets to shield."""

    def __new__(cls, *, shield: bool = False, **more: Any) -> Any:
        return anyio.CancelScope(**more)


class _Careless:
    """anyio, as an adapter uses it that forgets to shield."""

    CancelScope = _Unshielded

    def __getattr__(self, name: str) -> Any:
        return getattr(anyio, name)

    @staticmethod
    def move_on_after(delay: float, shield: bool = False) -> Any:
        return anyio.move_on_after(delay)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_unshielded_commit_is_found(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert anyio.run(_saved_while_the_host_is_cancelled, backend=backend)
    monkeypatch.setattr(checkpoint, "anyio", _Careless())
    assert not anyio.run(_saved_while_the_host_is_cancelled, backend=backend)
