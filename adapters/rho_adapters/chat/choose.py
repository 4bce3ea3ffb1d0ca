"""Which model, tools and store a command line asks for, opened; third-party packages are imported only here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from rho_adapters.errors import RhoError
from rho_adapters.provider import Provider
from rho_adapters.store import SessionStore
from rho_adapters.tool import Tool


class ProviderName(StrEnum):
    """Values of `--provider`."""

    embedded = "embedded"
    openai = "openai"
    openai_responses = "openai-responses"
    anthropic = "anthropic"
    compatible = "compatible"
    scripted = "scripted"


class CannotStart(Exception):
    """The command line asks for something that is not there; the text says what would help."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says. Paths as given; `record`: where a trace of the session goes."""

    provider: ProviderName = ProviderName.embedded
    model: str | None = None
    base_url: str | None = None
    script: Path | None = None
    tools: bool = False
    folder: Path = field(default_factory=Path.cwd)
    mcp: tuple[str, ...] = ()
    store: Path | None = None
    session: str = "chat"
    system: str | None = None
    event_capacity: int = 64
    record: Path | None = None


Say = Callable[[str], None]
P = TypeVar("P")


def missing(fault: ImportError) -> CannotStart:
    """What to install for an import that failed."""
    package = (fault.name or "").partition(".")[0]
    return CannotStart(f"this needs the package {package!r}; install it with: pip install 'rho-core[chat]'")


async def open_provider(wanted: Wanted, stack: AsyncExitStack, say: Say) -> Provider:
    """The model; what it holds open is closed with the stack. Raises CannotStart."""
    try:
        return await _OPENERS[wanted.provider](wanted, stack, say)
    except ImportError as fault:
        raise missing(fault) from fault


async def _scripted(wanted: Wanted, stack: AsyncExitStack, say: Say) -> Provider:
    from rho_adapters.chat.scripted import ScriptedProvider, read_script

    if wanted.script is None:
        raise CannotStart("--provider scripted needs --script FILE")
    try:
        return ScriptedProvider(read_script(wanted.script))
    except (OSError, ValueError) as fault:
        raise CannotStart(f"{wanted.script}: {fault}") from fault


async def _embedded(wanted: Wanted, stack: AsyncExitStack, say: Say) -> Provider:
    from rho_adapters.embedded import ModelMissing
    from rho_adapters.providers.embedded import EmbeddedProvider

    try:
        return await stack.enter_async_context(EmbeddedProvider(progress=say))
    except ModelMissing as fault:
        raise CannotStart(str(fault)) from fault


async def _openai(wanted: Wanted, stack: AsyncExitStack, say: Say) -> Provider:
    from rho_adapters.providers import OpenAIChat

    model, base_url = _model(wanted), wanted.base_url
    return await stack.enter_async_context(_made(lambda: OpenAIChat(model, base_url=base_url)))


async def _openai_responses(wanted: Wanted, stack: AsyncExitStack, say: Say) -> Provider:
    from rho_adapters.providers import OpenAIResponses

    model, base_url = _model(wanted), wanted.base_url
    return await stack.enter_async_context(_made(lambda: OpenAIResponses(model, base_url=base_url)))


async def _anthropic(wanted: Wanted, stack: AsyncExitStack, say: Say) -> Provider:
    from rho_adapters.providers import AnthropicMessages

    model, base_url = _model(wanted), wanted.base_url
    return await stack.enter_async_context(_made(lambda: AnthropicMessages(model, base_url=base_url)))


async def _compatible(wanted: Wanted, stack: AsyncExitStack, say: Say) -> Provider:
    from rho_adapters.providers.compatible import NO_KEY, Compatible

    model, base_url = _model(wanted), wanted.base_url
    if base_url is None:
        raise CannotStart("--provider compatible needs --base-url URL, or RHO_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY") or NO_KEY
    return await stack.enter_async_context(_made(lambda: Compatible(model, base_url, api_key=key)))


def _model(wanted: Wanted) -> str:
    if wanted.model is None:
        raise CannotStart(f"--provider {wanted.provider} needs --model NAME, or RHO_MODEL")
    return wanted.model


def _made(make: Callable[[], P]) -> P:
    try:
        return make()
    except RhoError as fault:
        raise CannotStart(fault.error.message) from fault


_Opener = Callable[[Wanted, AsyncExitStack, Say], Awaitable[Provider]]
_OPENERS: dict[ProviderName, _Opener] = {
    ProviderName.embedded: _embedded,
    ProviderName.openai: _openai,
    ProviderName.openai_responses: _openai_responses,
    ProviderName.anthropic: _anthropic,
    ProviderName.compatible: _compatible,
    ProviderName.scripted: _scripted,
}


async def open_tools(wanted: Wanted, stack: AsyncExitStack) -> list[Tool]:
    """The built-in tools, if they are wanted, and those of MCP servers. Raises CannotStart."""
    tools: list[Tool] = []
    if wanted.tools:
        from rho_adapters.chat.toolbox import built_in

        tools += built_in(wanted.folder)
    for number, line in enumerate(wanted.mcp, 1):
        tools += await _mcp(line, f"mcp{number}" if len(wanted.mcp) > 1 else "mcp", stack)
    names = [t.spec.name for t in tools]
    doubled = next((n for n in names if names.count(n) > 1), None)
    if doubled is not None:
        raise CannotStart(f"two tools are called {doubled!r}")
    return tools


async def _mcp(line: str, name: str, stack: AsyncExitStack) -> Sequence[Tool]:
    try:
        from rho_adapters.tools.mcp import McpError, McpServer
    except ImportError as fault:
        raise missing(fault) from fault
    command, *arguments = shlex.split(line) or [""]
    try:
        server = await stack.enter_async_context(McpServer.stdio(command, arguments, name=name))
        return await server.tools()
    except McpError as fault:
        raise CannotStart(f"--mcp {line!r}: {fault}") from fault


async def open_store(wanted: Wanted, stack: AsyncExitStack) -> SessionStore | None:
    """The SQLite file of `--store`. Raises CannotStart."""
    if wanted.store is None:
        return None
    from rho_adapters.stores import SQLiteStore

    store = SQLiteStore(wanted.store)
    stack.push_async_callback(store.aclose)
    return store
