"""Checkpoints: the end of a run is shown only when it lies in the store (PB-70); a save is shielded and bounded."""

from __future__ import annotations

import anyio
import pytest

from rho_adapters import CheckpointFailed, InvalidConfiguration, Rho, RhoConfig, RunCancelled
from rho_adapters.store import StaleRevision, StoreError
from rho_core import events as ev
from rho_core.snapshot import Snapshot
from tests.adapters.scripted import Scripted, hangs, kinds, says

pytestmark = pytest.mark.anyio


class Gated:
    """A store whose saves wait for `gate`. `kept`: what lies in it; `fault`: what a save raises."""

    def __init__(self, *, open_: bool = False) -> None:
        self.gate, self.begun = anyio.Event(), anyio.Event()
        self.kept: dict[str, Snapshot] = {}
        self.saves: list[int] = []
        self.fault: Exception | None = None
        if open_:
            self.gate.set()

    async def load(self, session_id: str) -> Snapshot | None:
        return self.kept.get(session_id)

    async def save(self, snapshot: Snapshot, *, expected: int | None) -> None:
        self.begun.set()
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        found = self.kept.get(snapshot.session_id)
        if (None if found is None else found.revision) != expected:
            raise StaleRevision(snapshot.session_id, expected, None if found is None else found.revision)
        self.kept[snapshot.session_id] = snapshot
        self.saves.append(snapshot.revision)

    async def delete(self, session_id: str) -> None:
        self.kept.pop(session_id, None)

    async def sessions(self) -> list[str]:
        return sorted(self.kept)

    async def aclose(self) -> None:
        return None


async def test_completed_is_shown_only_after_the_save() -> None:
    """PB-70: the save is slow; nothing says Completed before it is done, and the turn is there exactly once."""
    store = Gated()
    async with Rho(Scripted(says("hello")), store=store, checkpoint=True) as rho:
        session = rho.session("s1")
        async with session.start("hi") as run:
            seen: list[ev.Event] = []
            while not (seen and isinstance(seen[-1], ev.ModelCallCompleted)):
                seen.append(await anext(run))
            await store.begun.wait()
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(0):
                await anext(run)
                raise AssertionError("the end was shown before it was saved")
            assert not run.resolved
            store.gate.set()
            assert kinds([e async for e in run]) == ["Completed"]
            assert (await run.outcome()).revision == 1
        assert store.kept["s1"].history == session.history
        assert len(session.history) == 2


async def test_a_reader_that_leaves_does_not_cut_the_save_short() -> None:
    store = Gated()
    async with Rho(Scripted(says("hello")), store=store, checkpoint=True) as rho:
        async with rho.session("s1").start("hi"):
            await store.begun.wait()
        assert store.kept == {}
        store.gate.set()
    assert store.saves == [1]


async def test_the_end_of_the_runtime_waits_for_the_save() -> None:
    store, started = Gated(), anyio.Event()
    async with anyio.create_task_group() as group:

        async def later() -> None:
            await store.begun.wait()
            await anyio.wait_all_tasks_blocked()
            assert store.saves == []
            store.gate.set()

        group.start_soon(later)
        async with Rho(Scripted(hangs(started, "par")), store=store, checkpoint=True) as rho:
            run = rho.session("s1").start("hi")
            await started.wait()
        assert store.saves == [1]
        with pytest.raises(RunCancelled):
            await run.outcome()


async def test_cancelling_the_host_does_not_cancel_a_save_that_began() -> None:
    store = Gated()
    with anyio.CancelScope() as scope:
        async with Rho(Scripted(says("hello")), store=store, checkpoint=True) as rho:
            run = rho.session("s1").start("hi")
            await store.begun.wait()
            scope.cancel()
            store.gate.set()
            await run.outcome()
    assert store.saves == [1]


async def test_a_failed_save_is_told_with_the_outcome() -> None:
    store = Gated(open_=True)
    store.fault = StoreError("disk full")
    async with Rho(Scripted(says("hello"), says("again")), store=store, checkpoint=True) as rho:
        session = rho.session("s1")
        with pytest.raises(CheckpointFailed, match="disk full") as failed:
            await session.complete("hi")
        assert isinstance(failed.value.outcome, ev.RunOutcome) and failed.value.outcome.text == "hello"
        store.fault = None
        await session.complete("more")
        assert (store.saves, len(store.kept["s1"].history)) == ([2], 4)


async def test_a_save_that_hangs_is_given_up() -> None:
    store = Gated()
    config = RhoConfig(save_grace_ms=1)
    async with Rho(Scripted(says("hello")), (), config, store=store, checkpoint=True) as rho:
        with pytest.raises(CheckpointFailed, match="longer than 1 ms"):
            await rho.session("s1").complete("hi")


async def test_a_session_comes_back_from_its_store() -> None:
    store = Gated(open_=True)
    async with Rho(Scripted(says("hello")), store=store, checkpoint=True) as rho:
        await (await rho.open("s1", system="Be brief.")).complete("hi")
    async with Rho(Scripted(says("again")), store=store) as rho:
        session = await rho.open("s1", system="Be brief.")
        assert (session.revision, kinds(session.history)) == (1, ["System", "User", "Assistant"])
        await session.complete("more")
        assert store.saves == [1], "nothing is saved by itself without checkpoints (PERS-5)"
        await session.save()
        assert store.saves == [1, 2]


async def test_a_session_changed_elsewhere_is_not_overwritten() -> None:
    store = Gated(open_=True)
    async with Rho(Scripted(says("a"), says("b")), store=store) as rho, Rho(Scripted(says("c")), store=store) as other:
        mine, theirs = await rho.open("s1"), await other.open("s1")
        await mine.complete("x")
        await theirs.complete("y")
        await mine.save()
        with pytest.raises(StaleRevision):
            await theirs.save()
        assert store.kept["s1"].history == mine.history


async def test_checkpoints_need_a_store() -> None:
    with pytest.raises(InvalidConfiguration, match="store"):
        Rho(Scripted(), checkpoint=True)
