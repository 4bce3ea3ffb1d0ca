"""Other runtimes, each streaming the same deltas from a scripted in-process model to a consumer.

Each maker returns a coroutine function that plays one run of `count` deltas and gives the number of events the
consumer saw. A maker raises ImportError when its runtime is not installed: it is then said to be missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

PIECE = "abcdef "
Play = Callable[[], Awaitable[int]]


async def count_events(events: AsyncIterator[Any]) -> int:
    """What a consumer does: take each event."""
    seen = 0
    async for _ in events:
        seen += 1
    return seen


def pydantic_ai(count: int) -> Play:
    """pydantic-ai: `run_stream_events` over its function model."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    async def stream(messages: Any, info: Any) -> AsyncIterator[str]:
        for _ in range(count):
            yield PIECE

    agent = Agent(FunctionModel(stream_function=stream))

    async def play() -> int:
        async with agent.run_stream_events("go") as events:
            return await count_events(events)

    return play


def openai_agents(count: int) -> Play:
    """openai-agents: `Runner.run_streamed` over a model of its interface."""
    os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
    from agents import Agent, Runner  # type: ignore[import-not-found, unused-ignore]
    from agents.models.interface import Model  # type: ignore[import-not-found, unused-ignore]
    from openai.types import responses as r

    text = r.ResponseOutputText(text=PIECE * count, type="output_text", annotations=[])
    message = r.ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
    whole = r.Response(
        id="r",
        created_at=time.time(),
        model="scripted",
        object="response",
        output=[message],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
    )

    class Scripted(Model):  # type: ignore[misc, unused-ignore]
        async def get_response(self, *args: Any, **more: Any) -> Any:
            raise NotImplementedError

        async def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
            for _ in range(count):
                # As a client does it: one event object made for each piece.
                yield r.ResponseTextDeltaEvent.model_construct(
                    content_index=0,
                    delta=PIECE,
                    item_id="m",
                    output_index=0,
                    type="response.output_text.delta",
                    sequence_number=0,
                    logprobs=[],
                )
            yield r.ResponseCompletedEvent(type="response.completed", sequence_number=1, response=whole)

    agent = Agent("scripted", model=Scripted())

    async def play() -> int:
        return await count_events(Runner.run_streamed(agent, "go").stream_events())

    return play


def langchain(count: int) -> Play:
    """langchain: `create_agent(...).astream` over a chat model."""
    from langchain.agents import create_agent  # type: ignore[import-not-found, unused-ignore]
    from langchain_core.language_models.chat_models import (  # type: ignore[import-not-found, unused-ignore]
        BaseChatModel,
    )
    from langchain_core.messages import AIMessage, AIMessageChunk  # type: ignore[import-not-found, unused-ignore]
    from langchain_core.outputs import (  # type: ignore[import-not-found, unused-ignore]
        ChatGeneration,
        ChatGenerationChunk,
        ChatResult,
    )

    class Scripted(BaseChatModel):  # type: ignore[misc, unused-ignore]
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, *args: Any, **more: Any) -> Any:
            return self

        def _generate(self, *args: Any, **more: Any) -> Any:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(PIECE))])

        async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> Any:
            for _ in range(count):
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=PIECE))
                if run_manager is not None:
                    await run_manager.on_llm_new_token(PIECE, chunk=chunk)
                yield chunk

    agent = create_agent(Scripted(), tools=[])

    async def play() -> int:
        return await count_events(agent.astream({"messages": [("user", "go")]}, stream_mode="messages"))

    return play


def strands(count: int) -> Play:
    """strands-agents: `stream_async` over a model of its interface."""
    from strands import Agent  # type: ignore[import-not-found, unused-ignore]
    from strands.models import Model  # type: ignore[import-not-found, unused-ignore]

    class Scripted(Model):  # type: ignore[misc, unused-ignore]
        def update_config(self, **more: Any) -> None:
            return None

        def get_config(self) -> dict[str, Any]:
            return {}

        async def structured_output(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
            yield {}

        async def stream(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": {}}}
            for _ in range(count):
                yield {"contentBlockDelta": {"delta": {"text": PIECE}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    async def play() -> int:
        # A fresh agent for each run: it keeps its conversation, which the others do not here.
        return await count_events(Agent(model=Scripted(), callback_handler=None).stream_async("go"))

    return play


PEERS: dict[str, Callable[[int], Play]] = {
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "langchain": langchain,
    "strands-agents": strands,
}
