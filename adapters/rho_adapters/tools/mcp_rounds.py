"""A tool call that may come back with questions (2026-07-28): ask, then repeat it with the answers.

The server keeps nothing between two rounds: what it needs comes back to it as `request_state`, and it takes the same
state twice (seen with the official SDK: the side effect ran twice). So each state is answered at most once, by
whatever call, and is marked before it is sent: an answer that may have arrived is never sent again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256

import anyio
from mcp_types import CallToolResult, ElicitRequest, InputRequests, InputRequiredResult, InputResponses

from ..tool import AskRefused, ToolFailure
from .mcp_call import OpenCall
from .mcp_forms import InvalidAnswer, Unaskable

POLL_SECONDS = (0.05, 0.1, 0.2, 0.25)
"""Before a call is repeated that came back with a state and no question."""

Send = Callable[[InputResponses | None, str | None], Awaitable[CallToolResult | InputRequiredResult]]


class Answered:
    """The states that were answered: 32 bytes for each answer that a host gave."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def __contains__(self, state: str | None) -> bool:
        return state is not None and _digest(state) in self._digests

    def add(self, state: str | None) -> None:
        """From now on it counts as answered."""
        if state is not None:
            self._digests.add(_digest(state))


def _digest(state: str) -> bytes:
    return sha256(state.encode(errors="surrogatepass")).digest()


async def converse(server: str, call: OpenCall, send: Send, answered: Answered, rounds: int) -> CallToolResult:
    """The final result. `send`: one request, with responses and state. Raises ToolFailure."""
    result = await send(None, None)
    for number in range(rounds):
        if isinstance(result, CallToolResult):
            return result
        _once(server, result.request_state, answered)
        if result.input_requests:
            responses = await _responses(server, call, result.input_requests)
            _once(server, result.request_state, answered)  # another call may have answered it meanwhile
            answered.add(result.request_state)
            result = await send(responses, result.request_state)
        else:
            await anyio.sleep(POLL_SECONDS[min(number, len(POLL_SECONDS) - 1)])
            result = await send(None, result.request_state)
    if isinstance(result, CallToolResult):
        return result
    raise ToolFailure(f"MCP server {server!r} asked for more input than {rounds} times")


def _once(server: str, state: str | None, answered: Answered) -> None:
    if state in answered:
        raise ToolFailure(f"MCP server {server!r} put a question again that had been answered")


async def _responses(server: str, call: OpenCall, requests: InputRequests) -> InputResponses:
    """The host's answers by the server's keys, asked for one after the other."""
    responses: InputResponses = {}
    for key, request in requests.items():
        if not isinstance(request, ElicitRequest):
            raise ToolFailure(f"MCP server {server!r} needs {request.method}, which is not offered here")
        try:
            responses[key] = await call.ask(request.params)
        except Unaskable as flaw:
            raise ToolFailure(f"MCP server {server!r} asks what cannot be asked for: {flaw}") from None
        except InvalidAnswer as invalid:
            raise ToolFailure(f"MCP server {server!r} got no valid answer: {invalid}") from None
        except AskRefused as refused:
            raise ToolFailure(f"MCP server {server!r} needs an answer, and this call may not ask: {refused}") from None
    return responses
