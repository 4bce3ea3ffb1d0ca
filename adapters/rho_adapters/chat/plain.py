"""The screen where there is no terminal: lines in, text out.

Standard output has what the model said and what is asked; everything else goes to standard error. What has been
written cannot be taken back, so a response is written when it stands and not while it streams. The next line is
read when the last one has been dealt with: it is a new message, or the answer to an open question.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from io import TextIOWrapper

import anyio

from rho_adapters.chat import render
from rho_adapters.chat.asking import Asking
from rho_adapters.chat.entries import Entry, Said, Typed
from rho_adapters.chat.screen import End, Input, Line
from rho_adapters.chat.view import View

CHUNK = 65_536


class Lines:
    """The lines of a file descriptor: a pipe, a file or a terminal. What is no UTF-8 is replaced."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._over = False

    async def next(self) -> str | None:
        """A line without its end; None when there is none left."""
        while b"\n" not in self._rest and not self._over:
            more = await self._read()
            self._rest += more
            self._over = not more
        line, found, self._rest = self._rest.partition(b"\n")
        if not line and not found:
            return None
        return line.decode(errors="replace").rstrip("\r")

    async def _read(self) -> bytes:
        try:
            await anyio.wait_readable(self._descriptor)
        except OSError:
            await anyio.lowlevel.checkpoint()  # a regular file cannot be waited for; it never blocks either
        try:
            return os.read(self._descriptor, CHUNK)
        except OSError:
            return b""


class PlainScreen:
    """`descriptor`: where lines are read from."""

    live = False

    def __init__(self, descriptor: int = 0) -> None:
        self._lines = Lines(descriptor)
        self._asked: tuple[Asking, int, str] | None = None
        self._gone = False
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

    def add(self, entries: list[Entry]) -> None:
        """Write them down."""
        for one in entries:
            if isinstance(one, Typed) and not one.steer:
                continue  # whoever wrote into the pipe knows it
            if isinstance(one, Said):
                self._print(render.plain(one))
            else:
                print(render.plain(one), file=sys.stderr, flush=True)

    def update(self, view: View | None, asking: Asking | None, status: str) -> None:
        """A question is written once, and again when the answer did not do."""
        key = None if asking is None else (asking, asking.at, asking.problem)
        if asking is not None and key != self._asked:
            self._print(render.question(asking))
        self._asked = key

    def _print(self, text: str) -> None:
        try:
            print(text, flush=True)
        except BrokenPipeError:  # whoever read it has had enough
            self._gone = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    async def inputs(self) -> AsyncIterator[Input]:
        """The lines, and then the end."""
        while True:
            line = None if self._gone else await self._lines.next()
            if line is None:
                yield End()
                return
            yield Line(line)
