"""Any server that speaks Chat Completions: a local model, a gateway, another vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import openai

from ._http import CONNECT_S, READ_S
from .openai_chat import OpenAIChat

NO_KEY = "none"
"""What is sent to a server that wants no key: the client insists on one."""


class Compatible(OpenAIChat):
    """A model at `base_url` (which ends in `/v1` for most). The environment is not asked for a key.

    `provider`: its name in the identity. Give two servers two names: what one of them wants back is not shown
    to the other. The session's cache key is not sent unless `cache_key`: unknown members make some servers fail.
    """

    MAX_TOKENS = "max_tokens"

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str = NO_KEY,
        provider: str = "compatible",
        connect_timeout_s: float = CONNECT_S,
        read_timeout_s: float = READ_S,
        max_tokens: int | None = None,
        settings: Mapping[str, Any] | None = None,
        cache_key: bool = False,
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        super().__init__(
            model,
            api_key=api_key,
            base_url=base_url,
            provider=provider,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
            max_tokens=max_tokens,
            settings=settings,
            cache_key=cache_key,
            client=client,
        )
