"""One tool of an MCP server, as the runtime sees it."""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

from mcp_types import Tool as RemoteTool
from mcp_types import ToolAnnotations

from rho_core.inputs import Access, Plan

from ..tool import PrepareFailure, ToolCall, ToolContext, ToolFailure, ToolSpec
from .mcp_options import Authorise, McpOptions

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


class Caller(Protocol):
    """Who makes the calls: the server."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> McpOptions: ...

    async def call(self, context: ToolContext, name: str, arguments: dict[str, Any]) -> str: ...


class McpTool:
    """`remote`: the declaration as the server made it, under the name that it knows."""

    def __init__(self, server: Caller, remote: RemoteTool) -> None:
        hints = remote.annotations or ToolAnnotations()
        options = server.options
        read_only = hints.read_only_hint is True
        self._server = server
        self.remote = remote
        self.spec = ToolSpec(
            exposed_name(options.prefix, remote.name),
            remote.description or remote.title or "",
            remote.input_schema,
            asynchronous=read_only and remote.name in options.asynchronous,
        )
        self._plan = Plan(
            accesses=(Access(f"mcp:{server.name}", shared=read_only),),
            capability=f"mcp:{server.name}:{remote.name}" if needs_leave(options.authorise, hints) else None,
        )

    async def prepare(self, call: ToolCall) -> Plan:
        """Its resource and capability. Raises PrepareFailure when the arguments are not one JSON object."""
        try:
            arguments_of(call)
        except ValueError as flaw:
            raise PrepareFailure(str(flaw)) from None
        return self._plan

    async def execute(self, context: ToolContext) -> str:
        """The server's answer. Raises ToolFailure and ToolCancelled."""
        try:
            arguments = arguments_of(context.call)
        except ValueError as flaw:
            raise ToolFailure(str(flaw)) from None
        return await self._server.call(context, self.remote.name, arguments)


def exposed_name(prefix: str, name: str) -> str:
    """The name that a model is told: MCP allows dots and slashes in it, providers do not."""
    return _NOT_IN_A_NAME.sub("_", prefix + name)


def needs_leave(authorise: Authorise, hints: ToolAnnotations) -> bool:
    """Is the tool to be authorised? A hint is the server's word: `always` trusts none."""
    if authorise in ("always", "never"):
        return authorise == "always"
    if authorise == "declared":
        return hints.destructive_hint is True
    return hints.read_only_hint is not True and hints.destructive_hint is not False


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object that can be sent. Raises ValueError."""
    try:
        arguments: object = json.loads(call.arguments)
        # What JSON cannot carry (NaN, a lone surrogate) would break the connection of every call, not this one.
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ValueError(f"the arguments of {call.name} are not valid JSON") from None
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {call.name} are not a JSON object")
    return arguments
