"""The stores behind a runtime: a conversation goes on after the process that had it is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rho_adapters import Rho
from rho_adapters.store import SessionStore
from rho_adapters.stores import DirectoryStore, MemoryStore, SQLiteStore
from tests.adapters.scripted import Does, Scripted, asks, call, kinds, says

pytestmark = pytest.mark.anyio


STORES: dict[str, Callable[[Path], SessionStore]] = {
    "memory": lambda _: MemoryStore(),
    "directory": lambda folder: DirectoryStore(folder / "sessions"),
    "sqlite": lambda folder: SQLiteStore(folder / "sessions.db"),
}


@pytest.mark.parametrize("name", STORES)
async def test_a_conversation_goes_on_in_another_runtime(name: str, tmp_path: Path) -> None:
    async def answer(_: object) -> str:
        return "42"

    store = STORES[name](tmp_path)
    first = Scripted(asks(call("A")), says("It is 42."))
    async with Rho(first, [Does("t", answer)], store=store, checkpoint=True) as rho:
        outcome = await (await rho.open("talk/1", system="Be brief.")).complete("What is it?")
    if name != "memory":
        await store.aclose()
        store = STORES[name](tmp_path)
    second = Scripted(says("As I said."))
    async with Rho(second, store=store, checkpoint=True) as rho:
        session = await rho.open("talk/1", system="Be brief.")
        assert session.revision == outcome.revision == 1
        assert (await session.complete("Really?")).revision == 2
    expected = ["System", "User", "Assistant", "ToolResult", "Assistant", "User"]
    assert kinds(second.requests[0].messages) == expected
    saved = await store.load("talk/1")
    assert saved is not None and (saved.revision, len(saved.history)) == (2, 7)
    assert await store.sessions() == ["talk/1"]
    await store.aclose()
