"""Anthropic's Messages API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import anthropic

from rho_core.messages import Identity

from ..provider import ModelRequest
from ..tool import ToolSpec
from ._classify import Sdk
from ._http import CONNECT_S, READ_S, HttpProvider, misconfigured, timeouts
from .anthropic_history import anthropic_messages, system_prompt
from .anthropic_stream import AnthropicReader

MAX_TOKENS = 8_192


class AnthropicMessages(HttpProvider):
    """A model behind `/v1/messages`.

    A response is whole once its `stop_reason` was seen. Thinking: when `settings` turn it on and do not say how it
    is to be displayed, it is asked for as `omitted`. Such blocks hold a signature and no text, so they can be kept
    and sent back unchanged, which the API wants while tools are used. A block with text is shown as it streams and
    then forgotten whole: its text is raw reasoning, which nothing durable may hold (RHO-CAN-10), and the API takes
    no block whose text was changed. A `redacted_thinking` block is opaque, kept, and sent back.

    Usage: `input_tokens` counts the whole prompt, what was read from and written to the cache included.
    """

    SDK = Sdk(anthropic.AnthropicError, anthropic.APIConnectionError, anthropic.APITimeoutError)

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        provider: str = "anthropic",
        connect_timeout_s: float = CONNECT_S,
        read_timeout_s: float = READ_S,
        max_tokens: int = MAX_TOKENS,
        settings: Mapping[str, Any] | None = None,
        client: anthropic.AsyncAnthropic | None = None,
    ) -> None:
        """`settings`: members of the request's body (thinking, temperature, cache_control, …).

        Raises InvalidConfiguration without an API key, neither given nor in ANTHROPIC_API_KEY.
        """
        key = api_key or os.environ.get("ANTHROPIC_API_KEY")
        if client is None and not key:
            raise misconfigured("no API key: give one, or set ANTHROPIC_API_KEY")
        self._max_tokens = max_tokens
        self._own = client is None
        self._client = (
            anthropic.AsyncAnthropic(
                api_key=key, base_url=base_url, max_retries=0, timeout=timeouts(connect_timeout_s, read_timeout_s)
            )
            if client is None
            else client.with_options(max_retries=0)
        )
        super().__init__(Identity(provider, "messages", model), _settings(settings), self._client)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._identity.model,
            "max_tokens": self._max_tokens,
            "messages": anthropic_messages(request.messages, request.identity),
        }
        if system := system_prompt(request.messages):
            body["system"] = system
        if request.tools:
            body["tools"] = [_tool(t) for t in request.tools]
        return body

    async def _send(self, body: dict[str, Any]) -> Any:
        return await self._client.messages.create(**body, stream=True, extra_body=self._settings or None)

    def _reader(self, request: ModelRequest) -> AnthropicReader:
        return AnthropicReader(request)

    async def _close_client(self) -> None:
        if self._own:
            await self._client.close()


def _settings(given: Mapping[str, Any] | None) -> dict[str, Any]:
    settings = dict(given or {})
    thinking = settings.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("type") in ("enabled", "adaptive"):
        settings["thinking"] = {"display": "omitted", **thinking}
    return settings


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": dict(spec.parameters)}
