"""A session: what a caller of pydantic-ai keeps between runs.

pydantic-ai has no session object that owns its runs. Its own means to carry a conversation over is a
`ConversationStore` around each run (load, run, save), so that is the session here: the driver decides nothing
about history, it saves exactly the messages that the runtime handed over and reads back what the store kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import InMemoryConversationStore
from pydantic_ai.messages import ModelMessage

if TYPE_CHECKING:
    from .doubles import Gate
    from .run import Run


class Session:
    def __init__(self, name: str) -> None:
        self.name = name
        self.runs: list[Run] = []
        self.models: list[Gate] = []
        self.tools: list[Gate] = []
        self.history: list[ModelMessage] = []
        self._store = InMemoryConversationStore()

    @property
    def busy(self) -> bool:
        return any(run.active for run in self.runs)

    async def load(self) -> Conversation:
        """What a new run continues: the stored messages, and the revision that its save must still find.

        Raises nothing. Usage is not carried over: a run's request limit is its own step limit.
        """
        stored = await self._store.load(self.name)
        if stored is None:
            return Conversation(conversation_id=self.name)
        return Conversation(messages=stored.messages, conversation_id=self.name, revision=stored.revision)

    async def save(self, base: Conversation, messages: Sequence[ModelMessage]) -> None:
        """Keep the messages of a run that continued `base`.

        Raises `ConversationConflict` when another run of the session was saved in between.
        """
        await self._store.save(Conversation(messages=list(messages), conversation_id=self.name, revision=base.revision))
        self.history = list((await self._store.load(self.name) or base).messages)

    def latest(self, ident: str | None) -> Run | None:
        """The named run, or the newest one."""
        return next((run for run in reversed(self.runs) if ident in (None, run.name)), None)
