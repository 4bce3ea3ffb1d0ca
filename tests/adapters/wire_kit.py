"""A bare socket server that answers as it is told, and the three wire formats in pieces."""

from __future__ import annotations

import functools
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpcore2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from rho_adapters.provider import ModelRequest, ProviderFailure
from rho_adapters.providers import AnthropicMessages, Compatible, OpenAIChat, OpenAIResponses
from rho_adapters.providers._http import HttpProvider
from rho_adapters.token import CancellationToken
from rho_adapters.tool import ToolSpec
from rho_core import inputs as inp
from rho_core.errors import ProviderError
from rho_core.messages import Block, History, ToolCall, text_of, user


@pytest.fixture(autouse=True, scope="module")
def cheap_tls() -> Iterator[None]:
    """Reading the certificates of the world, for connections without TLS, is most of the cost of a client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
        yield


KEY = "sk-canary-0123456789abcdef"

RESET, HANG, SEEN = "reset", "hang", "wait until the client has seen a delta"
Part = bytes | str
"""Bytes to send, or one of the words above. After the last one the connection is closed."""

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return b"%x\r\n%s\r\n" % (len(data), data)


def plain(status: int, body: str, *headers: str, kind: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body.encode())}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@dataclass
class Peer:
    """The server's side: `answers` are played one a request, the last one again and again."""

    answers: Sequence[Sequence[Part]]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    seen: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)
    """The client closed a connection that was left hanging."""

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while await self._request(stream):
                    answer = self.answers[min(len(self.bodies), len(self.answers)) - 1]
                    if not await self._play(stream, answer):
                        return
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    async def _request(self, stream: SocketStream) -> bool:
        data = b""
        while b"\r\n\r\n" not in data:
            data += await stream.receive()
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        while len(body) < length:
            body += await stream.receive()
        self.heads.append(head.decode())
        self.bodies.append(json.loads(body))
        return True

    async def _play(self, stream: SocketStream, answer: Sequence[Part]) -> bool:
        for part in answer:
            if isinstance(part, bytes):
                await stream.send(part)
            elif part == SEEN:
                await self.seen.wait()
            elif part == HANG:
                try:
                    await stream.receive()
                finally:
                    self.left.set()
            elif part == RESET:
                raw = stream.extra(SocketAttribute.raw_socket)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
        return bool(answer) and (answer[-1] == END or b"content-length" in bytes(str(answer[0]), "utf-8"))


@asynccontextmanager
async def peer(*answers: Sequence[Part]) -> AsyncIterator[Peer]:
    """A server on a free port of this machine, gone when the context is left."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    server = Peer(answers)
    server.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


HI: History = (user("hi"),)


def request_for(
    provider: HttpProvider, messages: History = HI, tools: tuple[ToolSpec, ...] = (), cache_key: str = ""
) -> ModelRequest:
    return ModelRequest(
        1, 1, messages, tools, provider.identity, CancellationToken(), session_id="s", cache_key=cache_key or None
    )


@dataclass
class Answer:
    """What a provider made of a response. `content` None: it ended without one, which is malformed."""

    items: list[inp.ModelInput] = field(default_factory=list)
    content: tuple[Block, ...] | None = None
    error: ProviderError | None = None
    failure: ProviderFailure | None = None

    @property
    def text(self) -> str:
        return text_of(self.content or ())

    @property
    def streamed(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, inp.TextDelta))

    def of(self, kind: type[Any]) -> list[Any]:
        return [i for i in self.items if isinstance(i, kind)]


async def ask(
    provider: HttpProvider, request: ModelRequest | None = None, server: Peer | None = None, *, close: bool = True
) -> Answer:
    """`close`: the provider is not used again."""
    answer = Answer()
    try:
        with anyio.fail_after(10):
            async for item in provider.stream(request or request_for(provider)):
                answer.items.append(item)
                if server is not None and isinstance(item, inp.TextDelta):
                    server.seen.set()
                if isinstance(item, inp.ModelReturned):
                    answer.content = item.content
    except ProviderFailure as failed:
        answer.failure, answer.error = failed, failed.error
    finally:
        if close:
            await provider.aclose()
    return answer


def data(value: Any, event: str | None = None) -> str:
    named = "" if event is None else f"event: {event}\n"
    return f"{named}data: {json.dumps(value)}\n\n"


@dataclass(frozen=True)
class Dialect:
    """One wire format: a stream that says "Hello", in two pieces, and ways to spoil it."""

    name: str
    make: Callable[..., HttpProvider]
    begin: str
    marker: str
    """The rest, up to and including the terminal marker."""
    done: str
    """What usually follows the marker."""
    cut: str
    """Half an event."""
    error: Callable[[str], str]
    wrong: tuple[str, ...]
    """Valid JSON of another shape; each stands where an event would."""
    root: str = ""

    def provider(self, url: str, **more: Any) -> HttpProvider:
        return self.make(base_url=url + self.root, **more)

    @property
    def whole(self) -> str:
        return self.begin + self.marker + self.done


def chat_chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return data(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
    )


def chat_usage(**usage: Any) -> str:
    return data(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
    )


CHAT = Dialect(
    "chat",
    lambda **more: OpenAIChat("m", **{"api_key": KEY, **more}),
    chat_chunk({"role": "assistant", "content": "Hel"}),
    chat_chunk({"content": "lo"}) + chat_chunk(finish="stop"),
    chat_usage(prompt_tokens=1, completion_tokens=2, total_tokens=3) + "data: [DONE]\n\n",
    'data: {"id":"c1","choi',
    lambda name: data({"error": {"message": f"it was {name}", "type": name, "code": None, "param": None}}),
    (
        data({"hello": 1}),
        data(5),
        data([1]),
        data("x"),
        "data: null\n\n",
        data({"choices": 5}),
        data({"choices": {"a": 1}}),
        chat_chunk({"content": 7}),
        chat_chunk({"content": {"a": "b"}}),
        chat_chunk({"tool_calls": "x"}),
        chat_chunk({"tool_calls": [{"index": "zero", "id": "a"}]}),
        chat_chunk({"tool_calls": [{"index": 0, "function": {"name": 3}}]}),
    ),
    "/v1",
)


def event(kind: str, **fields: Any) -> str:
    """An event of the Messages or the Responses API: its type is in both lines."""
    return data({"type": kind, **fields}, kind)


def message_start(**usage: Any) -> str:
    usage = usage or {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "m",
        "stop_reason": None,
    }
    return event("message_start", message={**message, "stop_sequence": None, "usage": usage})


def block_start(index: int, **block: Any) -> str:
    return event("content_block_start", index=index, content_block=block)


def block_delta(index: int, **delta: Any) -> str:
    return event("content_block_delta", index=index, delta=delta)


def block_stop(index: int) -> str:
    return event("content_block_stop", index=index)


def message_delta(reason: str | None = "end_turn", **usage: Any) -> str:
    usage = usage or {"output_tokens": 3}
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)


STOP = event("message_stop")

ANTHROPIC = Dialect(
    "anthropic",
    lambda **more: AnthropicMessages("m", **{"api_key": KEY, **more}),
    message_start() + block_start(0, type="text", text="") + block_delta(0, type="text_delta", text="Hel"),
    block_delta(0, type="text_delta", text="lo") + block_stop(0) + message_delta(),
    STOP,
    'event: content_block_delta\ndata: {"type":"content_bl',
    lambda name: event("error", error={"type": name, "message": f"it was {name}"}),
    (
        event("content_block_delta", index=0),
        event("content_block_delta", index="zero", delta={"type": "text_delta", "text": "x"}),
        event("content_block_delta", index=9, delta={"type": "text_delta", "text": "x"}),
        block_delta(0, type="text_delta", text=4),
        block_delta(0, type="input_json_delta", partial_json="{"),
        data(5, "content_block_delta"),
        data([1], "message_delta"),
        "event: message_delta\ndata: null\n\n",
        event("content_block_start", content_block={"type": "text", "text": ""}),
    ),
)


def item_added(place: int, **item: Any) -> str:
    return event("response.output_item.added", output_index=place, sequence_number=1, item=item)


def item_done(place: int, **item: Any) -> str:
    return event("response.output_item.done", output_index=place, sequence_number=1, item=item)


def text_delta(place: int, text: str) -> str:
    return event(
        "response.output_text.delta", output_index=place, content_index=0, item_id="i", sequence_number=1, delta=text
    )


def response_end(kind: str = "response.completed", **fields: Any) -> str:
    response = {"id": "r1", "object": "response", "model": "m", "output": [], "status": kind.split(".")[1], **fields}
    return event(kind, sequence_number=9, response=response)


RESPONSES = Dialect(
    "responses",
    lambda **more: OpenAIResponses("m", **{"api_key": KEY, **more}),
    event("response.created", sequence_number=0, response={"id": "r1", "status": "in_progress"})
    + item_added(0, type="message", id="i", role="assistant", content=[])
    + text_delta(0, "Hel"),
    text_delta(0, "lo")
    + item_done(0, type="message", id="i", role="assistant", content=[{"type": "output_text", "text": "Hello"}])
    + response_end(usage={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    "",
    'event: response.output_text.delta\ndata: {"type":"response.outp',
    lambda name: event("error", code=name, message=f"it was {name}", param=None, sequence_number=2),
    (
        data({"hello": 1}),
        data(5),
        data([1]),
        "data: null\n\n",
        event("response.output_text.delta", delta="x"),
        event("response.output_text.delta", output_index="0", delta="x"),
        event("response.output_text.delta", output_index=0, delta=5),
        event("response.function_call_arguments.delta", output_index=0, delta="{"),
        event("response.output_item.done", item={"type": "function_call"}),
    ),
    "/v1",
)

COMPATIBLE = Dialect(
    "compatible",
    lambda **more: Compatible("m", **{"api_key": KEY, **more}),
    CHAT.begin,
    CHAT.marker,
    "data: [DONE]\n\n",
    CHAT.cut,
    CHAT.error,
    CHAT.wrong,
    "/v1",
)

DIALECTS = (CHAT, RESPONSES, ANTHROPIC)


def calls(answer: Answer) -> list[tuple[str, str, str]]:
    return [(b.id, b.name, b.arguments) for b in answer.content or () if isinstance(b, ToolCall)]


def streaming(*pieces: str | bytes) -> list[Part]:
    """A complete HTTP exchange with these pieces, one a chunk."""
    return [HEAD, *(chunk(p) for p in pieces), END]
