"""Real models. Each needs the client of its own extra, which is imported with the first use of its class."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .anthropic_messages import AnthropicMessages
    from .compatible import Compatible
    from .embedded import EmbeddedProvider
    from .openai_chat import OpenAIChat
    from .openai_responses import OpenAIResponses

__all__ = ["AnthropicMessages", "Compatible", "EmbeddedProvider", "OpenAIChat", "OpenAIResponses"]

_HOME = {
    "AnthropicMessages": "anthropic_messages",
    "Compatible": "compatible",
    "EmbeddedProvider": "embedded",
    "OpenAIChat": "openai_chat",
    "OpenAIResponses": "openai_responses",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(name)
