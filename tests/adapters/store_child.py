"""Processes that save snapshots, to be killed or to race; and the sweep that kills them and judges what is left.

From the command line: `python tests/adapters/store_child.py --kills 300` prints the figures of each store.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from rho_adapters.store import SessionStore, StaleRevision, StoreError
from rho_adapters.stores import DirectoryStore, SQLiteStore
from rho_core.messages import Identity, user
from rho_core.snapshot import Snapshot

SESSION = "s/1"
ROOT = Path(__file__).parents[2]


def store_at(kind: str, place: Path) -> SessionStore:
    return DirectoryStore(place / "sessions") if kind == "directory" else SQLiteStore(place / "sessions.db")


def content(revision: int, size: int) -> Snapshot:
    """The one snapshot of that revision; `size`: characters of its history, about."""
    text = f"{revision}:" + f"{revision:08d}" * (size // 8)
    return Snapshot(SESSION, revision, tuple(user(f"{i} {text}") for i in range(revision % 3 + 1)), Identity())


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def write_on(kind: str, place: Path, size: int) -> None:
    """Save revision after revision for ever, saying what is begun and what is acknowledged."""
    store = store_at(kind, place)
    found = await store.load(SESSION)
    expected = None if found is None else found.revision
    while True:
        revision = 0 if expected is None else expected + 1
        snapshot = content(revision, size)
        say(f"begin {revision}")
        await store.save(snapshot, expected=expected)
        say(f"ack {revision}")
        expected = revision


async def count_up(kind: str, place: Path, times: int) -> None:
    """Add that many revisions against whoever else writes; says how often it was stale."""
    store, stale = store_at(kind, place), 0
    say("ready")
    sys.stdin.readline()
    while times:
        found = await store.load(SESSION)
        revision = 0 if found is None else found.revision + 1
        history = (*(() if found is None else found.history), user(f"{os.getpid()}"))
        try:
            await store.save(
                Snapshot(SESSION, revision, history, Identity()), expected=None if found is None else found.revision
            )
            times -= 1
        except StaleRevision:
            stale += 1
    await store.aclose()
    say(f"stale {stale}")


def serve() -> None:
    """Fork a writer for each line `kind size place`: a fork costs no imports. Says `pid n`, then `dead`."""
    for line in sys.stdin:
        kind, size, place = line.rstrip("\n").split(" ", 2)
        pid = os.fork()
        if pid == 0:
            anyio.run(write_on, kind, Path(place), int(size))
        say(f"pid {pid}")
        os.waitpid(pid, 0)
        say("dead")


@dataclass
class Figures:
    """What a sweep saw. `inside`: kills between a begin and its acknowledgement."""

    kills: int = 0
    saves: int = 0
    inside: int = 0
    survived: int = 0  # of those inside: the new revision was there already
    torn: int = 0
    lost: int = 0
    leftovers: int = 0  # temporaries found after a kill


@contextmanager
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def sweep(kind: str, place: Path, kills: int, seed: int, size: int = 200, saves: int = 60, ms: float = 3.0) -> Figures:
    """Kill writers of one store at drawn points: after a drawn save has begun, by up to `ms` milliseconds."""
    draw, figures = random.Random(seed), Figures()
    with server() as process:
        for _ in range(kills):
            begun, acked = _one(process, f"{kind} {size} {place}", draw.randint(1, saves), draw.uniform(0, ms), figures)
            _judge(kind, place, size, begun, acked, figures)
    return figures


def _one(
    process: subprocess.Popen[str], order: str, saves: int, ms: float, figures: Figures
) -> tuple[int | None, int | None]:
    """Start a writer and kill it; the last revisions begun and acknowledged."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(order + "\n")
    pid, count = 0, 0
    last: dict[str, int] = {}
    for line in process.stdout:
        word, _, number = line.strip().partition(" ")
        if word == "dead":
            break
        if word == "pid":
            pid = int(number)
        else:
            last[word] = int(number)
            count += word == "begin"
            figures.saves += word == "ack"
        if pid and count >= saves:
            time.sleep(ms / 1_000)  # the point of the kill, not a wait for something
            os.kill(pid, signal.SIGKILL)
            pid = 0
            saves = sys.maxsize
    figures.kills += 1
    return last.get("begin"), last.get("ack")


def _judge(kind: str, place: Path, size: int, begun: int | None, acked: int | None, figures: Figures) -> None:
    figures.leftovers += len(list(place.glob("sessions/*.tmp")))
    try:
        found = anyio.run(_load, kind, place)
    except StoreError:
        figures.torn += 1
        return
    revision = -1 if found is None else found.revision
    inside = begun is not None and begun != acked
    figures.inside += inside
    figures.survived += inside and revision == begun
    figures.torn += found is not None and found != content(revision, size)
    # Without an acknowledgement of this writer, that of the one before stands: the revision below the begun one.
    least = acked if acked is not None else (begun or 0) - 1
    figures.lost += not least <= revision <= (-1 if begun is None else begun)


async def _load(kind: str, place: Path) -> Snapshot | None:
    store = store_at(kind, place)
    try:
        return await store.load(SESSION)
    finally:
        await store.aclose()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--count", nargs=3, metavar=("KIND", "PLACE", "TIMES"))
    options = parser.parse_args()
    if options.serve:
        return serve()
    if options.count:
        kind, place, times = options.count
        return anyio.run(count_up, kind, Path(place), int(times))
    for kind in ("directory", "sqlite"):
        with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as big:
            print(kind, sweep(kind, Path(small), options.kills, options.seed))
            print(kind, "4 MB", sweep(kind, Path(big), max(1, options.kills // 10), options.seed, 2_000_000, 3, 80))


if __name__ == "__main__":
    main()
