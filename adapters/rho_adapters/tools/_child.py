"""A child process with a process group of its own, and its end: nothing it started outlives the call. POSIX only."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import anyio
from anyio.abc import Process

_log = logging.getLogger("rho_adapters.tools")
_MARK = "RHO_TOOL_CALL"
_POLL_S = 0.01
_SLOW_POLL_S = 0.1
_REAP_S = 2.0
_PROC = Path("/proc")


class Child:
    """The process and what it started: the members of its group, and where there is a /proc all that bear its mark.

    The mark is a variable in the child's environment: a descendant that left the group (`setsid`, a daemon) is
    found by it, unless it has cleared its environment as well.
    """

    def __init__(self, process: Process, mark: str) -> None:
        self.process = process
        self._mark = mark.encode()
        self._over = False

    @classmethod
    async def spawn(
        cls, argv: Sequence[str], *, cwd: str | os.PathLike[str] | None, env: Mapping[str, str], stdin: bool
    ) -> Child:
        """Start it with pipes. Raises OSError. A cancellation does not interrupt it half way."""
        mark = uuid4().hex
        # A child may be a runtime with tools of its own: its children carry both marks, and end with either call.
        marks = ",".join(filter(None, (os.environ.get(_MARK), mark)))
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                list(argv),
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env={**env, _MARK: marks},
                start_new_session=True,
            )
        return cls(process, mark)

    async def stop(self, grace_s: float) -> None:
        """End all of it: SIGTERM, `grace_s` seconds, SIGKILL; then reap and close the pipes. Shielded and bounded."""
        with anyio.CancelScope(shield=True):
            await self.end(grace_s)
            with anyio.move_on_after(_REAP_S):
                await self.process.aclose()

    async def end(self, grace_s: float) -> None:
        """The signals alone; the pipes stay open, to be read."""
        if self._ended():
            return
        self._signal(signal.SIGTERM)
        if await self.gone(grace_s):
            return
        self._signal(signal.SIGKILL)
        if not await self.gone(_REAP_S):
            _log.error("process %d or a descendant of it survives SIGKILL", self.process.pid)

    async def gone(self, within_s: float) -> bool:
        """Has everything ended, at the latest in so many seconds?"""
        pause_s = _POLL_S
        with anyio.move_on_after(within_s):
            while not self._ended():
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, _SLOW_POLL_S)
        return self._ended()

    def _ended(self) -> bool:
        # Remembered: nothing that bears the mark can begin once nothing does, and a look at /proc takes time.
        if not self._over:
            self._over = self.process.returncode is not None and not self._members()
        return self._over

    def _members(self) -> list[int]:
        if not _PROC.joinpath("self").exists():
            return [self.process.pid] if _group_exists(self.process.pid) else []
        return [int(entry) for entry in os.listdir(_PROC) if entry.isdecimal() and self._is_member(entry)]

    def _is_member(self, pid: str) -> bool:
        # The leader is asked for by its return code: it stays a zombie until the loop has reaped it.
        if int(pid) == self.process.pid:
            return False
        with suppress(OSError):  # it ended meanwhile, or belongs to someone else
            state, group = _state_and_group(_PROC.joinpath(pid, "stat").read_text(errors="replace"))
            if state in "ZX":
                return False
            return group == self.process.pid or self._mark in _PROC.joinpath(pid, "environ").read_bytes()
        return False

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)
        for pid in self._members():
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != self.process.pid:
                    os.kill(pid, number)


def _state_and_group(stat: str) -> tuple[str, int]:
    """From "pid (comm) state ppid pgrp …"; the name may hold spaces and brackets."""
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[2])


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
