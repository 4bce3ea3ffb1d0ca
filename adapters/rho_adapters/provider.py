"""What a model provider is to the runtime: an async iterator of model inputs, one for each logical request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from rho_core import inputs as inp
from rho_core.errors import ProviderError, ProviderErrorKind
from rho_core.events import GenerationTokens
from rho_core.messages import Block, History, Identity, Usage

from .token import CancellationToken
from .tool import ToolSpec


class ProviderFailure(Exception):
    """A failed request. `error` says of which kind, and whether another attempt may help.

    Every other exception that leaves a provider is a panic of it (RHO-LIM-3): the run is interrupted.
    """

    def __init__(self, error: ProviderError) -> None:
        super().__init__(f"{error.error_kind}: {error.message}")
        self.error = error


def failure(
    kind: ProviderErrorKind,
    message: str,
    *,
    retryable: bool,
    retry_after_ms: int | None = None,
    diagnostic: str | None = None,
) -> ProviderFailure:
    """A ProviderFailure of these parts."""
    return ProviderFailure(ProviderError(kind, message, retryable, retry_after_ms, diagnostic))


@dataclass(frozen=True, slots=True)
class Offer:
    """A staged steer that a steerable provider may put into the turn it is streaming."""

    steering_id: str
    content: tuple[Block, ...]


class Steering(Protocol):
    """What a steerable provider may do with staged steers; decided at once (RHO-STEER-7)."""

    def claim(self, steering_id: str) -> bool:
        """Take the steer; False when it was retracted or applied meanwhile."""

    def release(self, steering_id: str) -> None:
        """Give a claimed steer back."""


@dataclass(slots=True, eq=False)
class ModelRequest:
    """One logical request. `messages`: what the model may be shown, system prompt first.

    `identity`: the session's provider; provider context of any other is to be left out. `token`: set when the
    run is cancelled; the task itself is cancelled as well unless the provider is cooperative. `offers`: staged
    steers, which may grow while the request runs. The methods make the inputs that a provider yields.
    """

    step: int
    attempt: int
    messages: History
    tools: tuple[ToolSpec, ...]
    identity: Identity
    token: CancellationToken
    session_id: str = ""
    cache_key: str | None = None
    offers: list[Offer] = field(default_factory=list)
    steering: Steering | None = None

    def text(self, text: str) -> inp.TextDelta:
        """A piece of the answer."""
        return inp.TextDelta(self.step, self.attempt, text)

    def raw_reasoning(self, text: str) -> inp.RawReasoning:
        """A piece of raw reasoning: shown live, kept nowhere (RHO-CAN-10)."""
        return inp.RawReasoning(self.step, self.attempt, text)

    def summary(self, text: str) -> inp.SummaryDelta:
        """A piece of the reasoning summary."""
        return inp.SummaryDelta(self.step, self.attempt, text)

    def call(self, index: int, id: str | None = None, name: str | None = None, arguments: str = "") -> inp.CallDelta:
        """A fragment of the call in slot `index`; id and name once they are known."""
        return inp.CallDelta(self.step, self.attempt, index, id, name, arguments)

    def context(self, kind: str, data: str = "", position: int | None = None) -> inp.ContextBlock:
        """Opaque material that the provider wants back."""
        return inp.ContextBlock(self.step, self.attempt, kind, data, position)

    def detachable(self, call_id: str) -> inp.ContextBlock:
        """Mark a call as one that may go on by itself (RHO-ORD-7); for calls of asynchronous tools."""
        return self.context(inp.ASYNC_CALL, call_id)

    def usage(self, usage: Usage) -> inp.UsageReported:
        """Tokens of this attempt so far; reports add up."""
        return inp.UsageReported(self.step, self.attempt, usage)

    def generation_tokens(self, tokens: GenerationTokens) -> inp.GenerationTokensReported:
        """Tokens that were generated, or that the provider cannot tell."""
        return inp.GenerationTokensReported(self.step, self.attempt, tokens)

    def web_search(self, detail: str) -> inp.WebSearched:
        """The provider searched the web."""
        return inp.WebSearched(self.step, self.attempt, detail)

    def hosted_tool(self, name: str, detail: str) -> inp.HostedTool:
        """The provider ran a tool of its own."""
        return inp.HostedTool(self.step, self.attempt, name, detail)

    def tier_fallback(self, requested: str, used: str) -> inp.TierFallback:
        """Another service tier answered than the one asked for."""
        return inp.TierFallback(self.step, self.attempt, requested, used)

    def physical_failure(self, kind: ProviderErrorKind, usage: Usage = Usage()) -> inp.PhysicalAttemptFailed:  # noqa: B008
        """One physical request failed and another is sent inside this logical one (RHO-RET-11)."""
        return inp.PhysicalAttemptFailed(self.step, self.attempt, kind, usage)

    def delivered(self, steering_id: str) -> inp.SteerDelivered:
        """The backend acknowledged a claimed steer."""
        return inp.SteerDelivered(self.step, self.attempt, steering_id)

    def returned(self, content: tuple[Block, ...]) -> inp.ModelReturned:
        """The whole response: the last thing a provider yields. Its timing is measured by the runtime."""
        return inp.ModelReturned(self.step, self.attempt, content)


class Provider(Protocol):
    """A model. `stream` is called once a logical request and yields model inputs, `request.returned(…)` last.

    A failed request raises ProviderFailure, or yields `ModelFailed` last. An iterator that ends without either
    is a response without content: malformed (RHO-RET-1). Retries are the run's affair: a provider makes one
    physical request, or says `physical_failure` before another.
    """

    @property
    def identity(self) -> Identity:
        """Who it is: provider material of another identity is not shown to it."""

    @property
    def cooperative(self) -> bool:
        """True: on a cancel it is only told by its token, and may still return (RHO-CAN-5)."""

    @property
    def steerable(self) -> bool:
        """True: it can take a steer into the turn it is streaming (RHO-STEER-7)."""

    def stream(self, request: ModelRequest) -> AsyncIterator[inp.ModelInput]:
        """Send the request. Raises ProviderFailure."""


class BaseProvider:
    """The usual answers: not cooperative, not steerable."""

    cooperative = False
    steerable = False
