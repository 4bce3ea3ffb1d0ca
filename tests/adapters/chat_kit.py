"""A person at a terminal: a pseudo-terminal with `rho-core chat` in it, and a screen that interprets what it draws."""

from __future__ import annotations

import json
import os
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pyte

ROWS, COLUMNS = 30, 90
PATIENCE_S = 20.0
LAUNCH = [sys.executable, "-m", "rho_adapters.chat"]

CTRL_C, CTRL_D = "\x03", "\x04"


def write_script(folder: Path, turns: list[Any]) -> Path:
    """A file for the scripted provider."""
    path = folder / "script.json"
    path.write_text(json.dumps(turns))
    return path


def gate(folder: Path, name: str = "gate") -> tuple[dict[str, str], Callable[[], None]]:
    """An item that holds the provider, and what opens it."""
    path = folder / name
    return {"wait_file": str(path)}, path.touch


class Person:
    """Types, looks and waits; a context that ends the process it started."""

    def __init__(self, *arguments: str) -> None:
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=2_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": ""}
        self._child = pexpect.spawn(
            LAUNCH[0], [*LAUNCH[1:], *arguments], dimensions=(ROWS, COLUMNS), env=environment, timeout=PATIENCE_S
        )
        self.modes = termios.tcgetattr(self._child.child_fd)

    def __enter__(self) -> Person:
        try:
            self.see("Ctrl-D leaves")
        except BaseException:
            self._child.close(force=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close(force=True)

    # -- doing -------------------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Keys, without Enter."""
        self._child.send(text)

    def say(self, text: str) -> None:
        """A line."""
        self.type(text + "\r")

    def kill(self, signal: int) -> None:
        """A signal to the program."""
        self._child.kill(signal)

    # -- seeing ------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> str:
        """The screen as it is."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    @property
    def scrolled(self) -> str:
        """What scrolled out of the screen at its top."""
        rows = ("".join(row[x].data for x in range(COLUMNS)).rstrip() for row in self.screen.history.top)
        return "\n".join(rows)

    def see(self, text: str) -> None:
        """Until the text is on the screen."""
        self._until(lambda: text in self.shown, f"{text!r} is not on the screen")

    def see_gone(self, text: str) -> None:
        """Until it is on the screen no more."""
        self._until(lambda: text not in self.shown, f"{text!r} is still on the screen")

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            if not self._read() or time.monotonic() > end:
                raise AssertionError(f"{otherwise}:\n{self.shown}")

    def _read(self) -> bool:
        try:
            data = self._child.read_nonblocking(65_536, 0.2)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True

    def as_it_was(self) -> bool:
        """Is the terminal in the modes it was in before?"""
        pasting = self.raw.count(b"\x1b[?2004h") != self.raw.count(b"\x1b[?2004l")
        return termios.tcgetattr(self._child.child_fd) == self.modes and not pasting and not self.screen.cursor.hidden

    def leave(self) -> int:
        """Until the program has ended; its exit status, 128 and more for a signal."""
        while self._read():
            pass
        self._child.wait()
        return self._child.exitstatus if self._child.exitstatus is not None else 128 + (self._child.signalstatus or 0)
