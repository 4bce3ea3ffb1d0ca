"""Starting the server's process, waiting until it answers, and ending it with its owner.

The process is a plain `Popen`, which belongs to no event loop: one server may be started under one loop and used
under another. Waiting for it is asynchronous all the same.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self
from weakref import finalize

import anyio
from anyio import to_thread

from ._protocol import KEY_VARIABLE, LOADING, READY
from .wheels import check

TAIL = 2_000
"""Bytes of the child's diagnostics that an error shows."""
TICK_S = 1.0
"""How often progress is told while nothing happens."""

Progress = Callable[[str], None]


class ServerFailed(Exception):
    """The server did not start: it ended, or took too long."""


class EmbeddedServer:
    """A server with the embedded model; an async context, or `start` and `aclose`.

    `startup_s`: how long it may take until it answers. `grace_s`: how long it may take to end when it is told to,
    before it is killed. `context_tokens`: prompt and answer together. `progress`: told what the start is doing.
    A server whose owner forgets it or dies, in whatever way, ends by itself.
    """

    def __init__(
        self,
        *,
        startup_s: float = 60.0,
        grace_s: float = 2.0,
        context_tokens: int = 4096,
        progress: Progress | None = None,
    ) -> None:
        self._startup_s, self._grace_s = startup_s, grace_s
        self._context_tokens = context_tokens
        self._progress: Progress = progress or (lambda _: None)
        self._key = secrets.token_urlsafe(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: finalize[[subprocess.Popen[bytes]], EmbeddedServer] | None = None
        self._address: str | None = None
        self._starting: anyio.Event | None = None

    @property
    def running(self) -> bool:
        """Has it answered, and is its process alive?"""
        return self._address is not None and self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def address(self) -> str:
        """Such as `http://127.0.0.1:40123`. Raises ServerFailed when it does not run."""
        if self._address is None:
            raise ServerFailed("the embedded server is not running")
        return self._address

    @property
    def base_url(self) -> str:
        """What an OpenAI client is given. Raises ServerFailed when it does not run."""
        return f"{self.address}/v1"

    @property
    def api_key(self) -> str:
        """What a client must send: the machine may have other users. Made for this server alone."""
        return self._key

    async def start(self) -> str:
        """Start it unless it runs; its base URL. Callers at the same time wait for one start.

        A server that has died is started again. Raises ModelMissing, ServerFailed.
        """
        while not self.running:
            if self._starting is not None:
                await self._starting.wait()
                continue
            self._starting = anyio.Event()
            try:
                await self._launch()
            finally:
                self._starting.set()
                self._starting = None
        return self.base_url

    async def aclose(self) -> None:
        """End it, at the latest after the grace period; nothing happens when it does not run.

        A start that is under way fails.
        """
        if self._starting is not None:
            if self._process is not None:
                self._process.terminate()
            await self._starting.wait()
        await self._end()

    async def _end(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        if self._leash is not None:
            self._leash()
        process.terminate()
        with anyio.CancelScope(shield=True):  # bounded: the grace period, then what the system needs for a kill
            await to_thread.run_sync(_reap, process, self._grace_s)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _launch(self) -> None:
        check()
        await self._end()  # what is left of a server that died
        began = time.monotonic()
        self._progress("starting the embedded server")
        with tempfile.TemporaryFile() as diagnostics:
            self._process = process = _spawn(self._context_tokens, self._key, diagnostics)
            self._leash = finalize(
                self, _let_go, process
            )  # Popen itself keeps a running process, and its pipes, for ever
            try:
                self._address = await self._answer(process, began, diagnostics)
            except BaseException:
                await self._end()
                raise
        self._progress(f"ready after {time.monotonic() - began:.1f} s")

    async def _answer(self, process: subprocess.Popen[bytes], began: float, diagnostics: IO[bytes]) -> str:
        """Its address. Raises ServerFailed."""
        lines = _Lines(process.stdout)
        with anyio.move_on_after(self._startup_s):
            while True:
                line: str | None = ""
                with anyio.move_on_after(TICK_S) as tick:
                    line = await lines.next()
                if tick.cancelled_caught:
                    self._progress(f"loading, {time.monotonic() - began:.0f} s")
                elif line is None:
                    status = await to_thread.run_sync(_reap, process, self._grace_s)
                    raise ServerFailed(f"the embedded server ended with {_named(status)}: {_tail(diagnostics)}")
                elif line.startswith(READY):
                    return line.removeprefix(READY).strip()
                elif line.startswith(LOADING):
                    self._progress(f"loading {line.removeprefix(LOADING).strip()}")
        raise ServerFailed(f"the embedded server was not ready after {self._startup_s:g} s: {_tail(diagnostics)}")


class _Lines:
    """Lines of a pipe, read without a thread; what a cancelled wait has read is kept."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._fd = pipe.fileno()
        self._seen = b""
        os.set_blocking(self._fd, False)

    async def next(self) -> str | None:
        """The next line, or None at the end."""
        while b"\n" not in self._seen:
            await anyio.wait_readable(self._fd)
            try:
                piece = os.read(self._fd, 4096)
            except BlockingIOError:
                continue
            if not piece:
                return None
            self._seen += piece
        line, _, self._seen = self._seen.partition(b"\n")
        return line.decode(errors="replace")


def _spawn(context_tokens: int, key: str, diagnostics: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the child. A session of its own: an interrupt typed at the terminal is its owner's affair."""
    return subprocess.Popen(
        [sys.executable, "-m", "rho_adapters.embedded.server", "--context-tokens", str(context_tokens)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=diagnostics,
        env={**os.environ, KEY_VARIABLE: key},
        start_new_session=True,
    )


def _reap(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """Wait for the end, and kill when it does not come; the exit status."""
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of its pipes: it ends by itself."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _named(status: int) -> str:
    """An exit status in words; it is negative after a signal."""
    if status == -signal.SIGILL:
        return "an illegal instruction (its wheel is compiled for processors with AVX2)"
    return f"status {status}"


def _tail(diagnostics: IO[bytes]) -> str:
    """The end of what the child said of itself."""
    size = os.fstat(diagnostics.fileno()).st_size
    data = os.pread(diagnostics.fileno(), TAIL, max(0, size - TAIL))
    return data.decode(errors="replace").strip() or "it said nothing"
