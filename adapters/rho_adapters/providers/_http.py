"""One request of an official client, from its start to the closed connection; the wire formats are readers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
import httpx2

from rho_core import inputs as inp
from rho_core.errors import Error, ErrorName, ProviderError
from rho_core.messages import Identity

from ..errors import InvalidConfiguration
from ..provider import BaseProvider, ModelRequest, ProviderFailure
from ._classify import Redactor, Sdk, secrets_of
from ._mapping import Malformed, cleaned

CONNECT_S = 10.0
READ_S = 120.0
"""Seconds without a byte after which a stream is given up as stalled."""
CLOSE_S = 5.0
DRAIN_S = 0.5
"""How long a finished response may take to end, so that its connection can be used again."""
_OURS = frozenset({"model", "messages", "input", "system", "instructions", "tools", "stream"})


class Reader(Protocol):
    """A wire format: from the events of one response to model inputs. Does no IO."""

    ended: bool
    """The terminal marker was seen: the response is whole."""
    last: bool
    """Nothing more of interest follows."""

    def feed(self, event: Any) -> Iterable[inp.ModelInput]:
        """Take one event of the stream. Raises Malformed, or ProviderFailure for an error that it tells of."""

    def finish(self) -> Iterable[inp.ModelInput]:
        """After a whole response: what remains, `ModelReturned` last. Raises ProviderFailure for a withheld one."""


def timeouts(connect_s: float, read_s: float) -> httpx2.Timeout:
    """The client's timeouts; `read_s` bounds the silence between two pieces of a response."""
    return httpx2.Timeout(read_s, connect=connect_s)


def misconfigured(message: str) -> InvalidConfiguration:
    """A provider that cannot be made."""
    return InvalidConfiguration(Error(ErrorName.INVALID_CONFIGURATION, message))


class HttpProvider(BaseProvider):
    """Sends one physical request for each logical one: retries are the run's affair.

    `settings`: further members of the request's JSON body, as the API names them (temperature, reasoning, …).
    `client`: whose secrets must never be seen in an error.
    """

    SDK: Sdk

    def __init__(self, identity: Identity, settings: Mapping[str, Any] | None, client: Any) -> None:
        self._identity = identity
        self._settings = dict(settings or {})
        if taken := sorted(_OURS & self._settings.keys()):
            raise misconfigured(f"not for the settings of a provider: {', '.join(taken)}")
        self._redact = Redactor(secrets_of(client))

    @property
    def identity(self) -> Identity:
        return self._identity

    def __repr__(self) -> str:
        i = self._identity
        return f"{type(self).__name__}({i.provider}, {i.api}, {i.model})"

    @abstractmethod
    def body(self, request: ModelRequest) -> dict[str, Any]:
        """The request as the API wants it."""

    @abstractmethod
    async def _send(self, body: dict[str, Any]) -> Any:
        """Start it; the client's stream."""

    @abstractmethod
    def _reader(self, request: ModelRequest) -> Reader:
        """Who understands the answer."""

    @abstractmethod
    async def _close_client(self) -> None: ...

    async def stream(self, request: ModelRequest) -> AsyncGenerator[inp.ModelInput, None]:
        """Send the request. Raises ProviderFailure; ends without a ModelReturned when the response is malformed.

        What breaks after the terminal marker breaks nothing: the response is whole.
        """
        reader, body = self._reader(request), cleaned(self.body(request))
        failed: ProviderError | None = None
        try:
            stream = await self._send(body)
        except self.SDK.raised as error:
            failed = self.SDK.classify(error, self._redact, opened=False)
        # Outside of the handler: what the client raised may hold the request, and must not travel as its context.
        if failed is not None:
            raise ProviderFailure(failed)
        try:
            while not reader.last:
                try:
                    event = await _next(stream)
                except self.SDK.raised as error:
                    if self.SDK.told(error) or not reader.ended:
                        failed = self.SDK.classify(error, self._redact, opened=True)
                    break
                if event is _END:
                    break
                for item in reader.feed(event):
                    yield item
        except Malformed:
            return
        finally:
            await close(stream, drain=reader.last)
        if failed is not None:
            raise ProviderFailure(failed)
        if reader.ended:
            for item in reader.finish():
                yield item

    async def aclose(self) -> None:
        """Close the connections of a client that this provider made; one that it was given is its owner's."""
        await self._close_client()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


_END = object()


async def _next(stream: Any) -> Any:
    try:
        return await stream.__anext__()
    except StopAsyncIteration:
        return _END


async def close(stream: Any, *, drain: bool) -> None:
    """Give the connection back: a server goes on generating for a stream that nobody closed."""
    with anyio.CancelScope(shield=True):
        if drain:
            with anyio.move_on_after(DRAIN_S):
                await _drained(stream)
        with anyio.move_on_after(CLOSE_S):
            await stream.close()


async def _drained(stream: Any) -> None:
    try:
        while await _next(stream) is not _END:
            pass
    except Exception:
        return  # the response was whole: how its connection ends is nobody's concern
