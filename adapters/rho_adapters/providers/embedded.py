"""The embedded model as a provider: no key, no network, one process on this machine.

Its server speaks the chat completions format, so this is `OpenAIChat` with three things around it: a server that is
started by the first request, worked turns that make a small model call the declared tools, and settings under
which the same request gets the same answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import Self

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from rho_core import inputs as inp
from rho_core.errors import ProviderErrorKind
from rho_core.messages import Identity

from ..embedded import EmbeddedServer, ModelMissing, ServerFailed, check
from ..embedded.examples import Example, with_examples
from ..embedded.launch import Progress
from ..provider import BaseProvider, ModelRequest, failure
from ._http import CONNECT_S, READ_S, timeouts
from .compatible import Compatible
from .openai_chat import OpenAIChat

MODEL = "smollm2-135m-instruct"


class EmbeddedProvider(BaseProvider):
    """The embedded model; an async context, or closed with `aclose`.

    `server`: one that somebody else ends; without it the provider starts its own at the first request and ends it
    when it is closed. `examples`: worked turns by tool name, in place of those made from the declarations.
    `max_tokens`: of one answer. `progress`: told what the start is doing. Raises ModelMissing.
    """

    def __init__(
        self,
        server: EmbeddedServer | None = None,
        *,
        examples: Mapping[str, Sequence[Example]] | None = None,
        max_tokens: int = 256,
        progress: Progress | None = None,
    ) -> None:
        if server is None:
            check()
        self._server = server or EmbeddedServer(progress=progress)
        self._owns_server = server is None
        self._examples = dict(examples or {})
        self._max_tokens = max_tokens
        self._connected: tuple[str, AsyncOpenAI, OpenAIChat] | None = None
        self.identity = Identity("embedded", OpenAIChat.API, MODEL)

    @property
    def server(self) -> EmbeddedServer:
        """The server it talks to."""
        return self._server

    async def stream(self, request: ModelRequest) -> AsyncGenerator[inp.ModelInput, None]:
        """Send the request, with worked turns of its tools. Raises ProviderFailure."""
        chat = await self._chat()
        shown = replace(request, messages=with_examples(request.messages, request.tools, self._examples))
        async with aclosing(chat.stream(shown)) as answer:  # leaving early frees the server's slot at once
            async for item in answer:
                yield item

    async def aclose(self) -> None:
        """Give back the connection, and end the server if it is the provider's own."""
        connected, self._connected = self._connected, None
        try:
            if connected is not None:
                await connected[1].close()
        finally:
            if self._owns_server:
                await self._server.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _chat(self) -> OpenAIChat:
        """The client of the running server, which has another address when it was started again."""
        try:
            base_url = await self._server.start()
        except (ModelMissing, ServerFailed) as fault:
            raise failure(ProviderErrorKind.UNAVAILABLE, str(fault), retryable=False) from fault
        former = self._connected
        if former is not None and former[0] == base_url:
            return former[2]
        self._connected = connected = self._connect(base_url)
        if former is not None:
            await former[1].close()
        return connected[2]

    def _connect(self, base_url: str) -> tuple[str, AsyncOpenAI, OpenAIChat]:
        client = AsyncOpenAI(
            base_url=base_url,
            api_key=self._server.api_key,
            max_retries=0,
            timeout=timeouts(CONNECT_S, READ_S),
            http_client=DefaultAsyncHttpxClient(trust_env=False),  # whatever proxy the environment names: not for us
            # The server hangs up on connections that are idle; a new one costs nothing on the loopback.
            default_headers={"Connection": "close"},
        )
        chat = Compatible(
            self.identity.model,
            base_url,
            provider=self.identity.provider,
            max_tokens=self._max_tokens,
            settings={"temperature": 0},
            client=client,
        )
        return base_url, client, chat
