"""What an embedder may decide about an MCP server, and the exceptions that the adapter raises to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class McpError(Exception):
    """The server could not be started, reached or agreed with; the text says which."""


Authorise = Literal["destructive", "declared", "always", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions:
    """Times in seconds.

    `prefix`: put before the name of every tool. `mode`: `auto` asks the server which era it speaks, `legacy` is the
    initialise handshake (2025-11-25 and before), else a protocol version such as `2026-07-28`.
    `connect_timeout`: from start to the end of the handshake. `call_timeout`: of one call, without the time that it
    waits for the host; None is without end.
    `restart`: what a call does that finds the server gone: connect again (a new child process for stdio), or fail at
    once. A call that was under way when the server went is never repeated: it may have had effects.
    `authorise`: which tools need the capability `mcp:<server>:<tool>`. `destructive` goes by the protocol's defaults,
    where a tool that says nothing is destructive; `declared` takes only an explicit `destructiveHint`.
    `asynchronous`: names (the server's) of tools whose calls may be detached; only read-only ones ever are.
    `progress_backlog`: progress reports kept for a reader that is behind; the oldest are left out first.
    `rounds`: how often a server may ask for more before a call is given up. `attempts`: how often the host is asked
    one question when its answers do not fit. `result_limit`: characters of a result.
    """

    prefix: str = ""
    mode: str = "auto"
    connect_timeout: float = 30.0
    call_timeout: float | None = 300.0
    restart: bool = False
    authorise: Authorise = "destructive"
    asynchronous: frozenset[str] = frozenset()
    progress_backlog: int = 64
    rounds: int = 10
    attempts: int = 3
    result_limit: int = 200_000
