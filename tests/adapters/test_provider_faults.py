"""Every way in which a provider's server or its connection fails, against the real clients on real sockets."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_adapters import Rho, RunFailed
from rho_adapters.clock import VirtualClock
from rho_adapters.provider import ProviderFailure
from rho_adapters.providers._classify import Redactor, by_name, by_status, wait_of
from rho_adapters.providers._mapping import Malformed
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import DIAGNOSTIC_BYTES, ErrorName, ProviderErrorKind
from rho_core.messages import Assistant, Text
from tests.adapters.wire_kit import (
    ANTHROPIC,
    CHAT,
    COMPATIBLE,
    DIALECTS,
    END,
    HANG,
    HEAD,
    KEY,
    RESET,
    RESPONSES,
    SEEN,
    Answer,
    Dialect,
    Part,
    ask,
    cheap_tls,
    chunk,
    peer,
    plain,
    request_for,
    response_end,
    streaming,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cheap_tls")]
Kind = ProviderErrorKind


__all__ = ["cheap_tls"]  # a fixture, by its import


dialects = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)


# --- HTTP statuses ----------------------------------------------------------------------------------------------

STATUSES = [
    (400, Kind.OTHER, False),
    (401, Kind.AUTHENTICATION, False),
    (402, Kind.OTHER, False),
    (403, Kind.AUTHENTICATION, False),
    (404, Kind.OTHER, False),
    (408, Kind.TIMEOUT, True),
    (409, Kind.UNAVAILABLE, True),
    (413, Kind.OTHER, False),
    (422, Kind.OTHER, False),
    (425, Kind.UNAVAILABLE, True),
    (429, Kind.RATE_LIMIT, True),
    (500, Kind.UNAVAILABLE, True),
    (502, Kind.UNAVAILABLE, True),
    (503, Kind.UNAVAILABLE, True),
    (504, Kind.TIMEOUT, True),
    (529, Kind.UNAVAILABLE, True),
]
BODY = '{"type":"error","error":{"message":"no such luck","type":"some_error","code":null}}'


@dialects
async def test_every_status_has_its_kind(dialect: Dialect) -> None:
    async with (
        peer(*[[plain(status, BODY)] for status, _, _ in STATUSES]) as server,
        dialect.provider(server.url) as provider,
    ):
        for status, kind, retryable in STATUSES:
            answer = await ask(provider, close=False)
            assert answer.error is not None and answer.items == [], status
            assert (answer.error.error_kind, answer.error.retryable) == (kind, retryable), status
            assert str(status) in answer.error.message and "some_error" in answer.error.message
            assert answer.error.diagnostic == "no such luck"
        assert len(server.bodies) == len(STATUSES)  # one physical request each: retries are the run's affair


@dialects
@pytest.mark.parametrize("body", ["", "<html>bad gateway</html>", "[]", "5", '{"error": "text"}', "[" * 100_000])
async def test_an_error_may_come_with_any_body(dialect: Dialect, body: str) -> None:
    async with peer([plain(502, body, kind="text/html")]) as server:
        answer = await ask(dialect.provider(server.url))
    assert answer.error is not None
    assert (answer.error.error_kind, answer.error.retryable) == (Kind.UNAVAILABLE, True)
    assert len((answer.error.diagnostic or "").encode()) <= DIAGNOSTIC_BYTES


WAITS = [
    (["retry-after: 3"], 3_000),
    (["retry-after: 0.5"], 500),
    (["retry-after: 1.0001"], 1_001),
    (["retry-after: 0"], None),
    (["retry-after: -1"], None),
    (["retry-after: soon"], None),
    (["retry-after: 7200"], 7_200_000),
    (["retry-after-ms: 1500"], 1_500),
    (["retry-after-ms: 1500.2"], 1_501),
    (["retry-after-ms: 250", "retry-after: 1"], 250),
    (["retry-after-ms: nonsense", "retry-after: 2"], 2_000),
    ([], None),
]


@dialects
async def test_every_form_of_retry_after(dialect: Dialect) -> None:
    async with (
        peer(*[[plain(429, BODY, *headers)] for headers, _ in WAITS]) as server,
        dialect.provider(server.url) as provider,
    ):
        for headers, wait in WAITS:
            answer = await ask(provider, close=False)
            assert answer.error is not None and answer.error.retry_after_ms == wait, headers


@dialects
async def test_retry_after_as_a_date_counts_from_the_wall_clock(dialect: Dialect) -> None:
    date = email.utils.formatdate(time.time() + 3_600, usegmt=True)
    async with peer([plain(503, BODY, f"retry-after: {date}")]) as server:
        answer = await ask(dialect.provider(server.url))
    assert answer.error is not None and answer.error.retry_after_ms is not None
    assert 3_500_000 < answer.error.retry_after_ms <= 3_601_000


def test_a_wait_in_milliseconds_is_no_date_and_has_ascii_digits() -> None:
    assert wait_of({"retry-after-ms": "Wed, 21 Oct 2099 07:28:00 GMT"}, 0) is None
    assert wait_of({"retry-after-ms": "٣٠٠", "retry-after": "1"}, 0) == 1_000
    assert wait_of({"retry-after-ms": "9" * 5_000}, 0) is not None


async def test_an_account_that_is_spent_is_not_asked_again() -> None:
    body = '{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}'
    async with peer([plain(429, body, "retry-after: 5")]) as server:
        answer = await ask(CHAT.provider(server.url))
    assert answer.error is not None
    assert (answer.error.error_kind, answer.error.retryable) == (Kind.RATE_LIMIT, False)
    assert answer.error.retry_after_ms is None


# --- the connection ---------------------------------------------------------------------------------------------

Script = Callable[[Dialect], list[Part]]


@dataclass(frozen=True)
class Broken:
    name: str
    script: Script
    kind: ProviderErrorKind
    streamed: str = ""


BROKEN = [
    Broken("closed before any response", lambda d: [], Kind.UNAVAILABLE),
    Broken("reset before any response", lambda d: [RESET], Kind.UNAVAILABLE),
    Broken("silence before any response", lambda d: [HANG], Kind.TIMEOUT),
    Broken("half a header", lambda d: [HEAD[:30]], Kind.UNAVAILABLE),
    Broken("no HTTP at all", lambda d: [b"220 smtp ready\r\n\r\n"], Kind.UNAVAILABLE),
    Broken("early FIN before a delta", lambda d: [HEAD], Kind.INTERRUPTED),
    Broken("silence before a delta", lambda d: [HEAD, HANG], Kind.TIMEOUT),
    Broken("early FIN after a delta", lambda d: [HEAD, chunk(d.begin), SEEN], Kind.INTERRUPTED, "Hel"),
    Broken("reset after a delta", lambda d: [HEAD, chunk(d.begin), SEEN, RESET], Kind.INTERRUPTED, "Hel"),
    Broken("silence after a delta", lambda d: [HEAD, chunk(d.begin), HANG], Kind.TIMEOUT, "Hel"),
    Broken("a chunk of no length", lambda d: [HEAD, chunk(d.begin), SEEN, b"xyz\r\n"], Kind.INTERRUPTED, "Hel"),
    Broken("cut inside an event, early FIN", lambda d: [HEAD, chunk(d.begin + d.cut), SEEN], Kind.INTERRUPTED, "Hel"),
]


@dialects
@pytest.mark.parametrize("row", BROKEN, ids=lambda r: r.name)
async def test_a_broken_connection_may_be_tried_again(dialect: Dialect, row: Broken) -> None:
    async with peer(row.script(dialect)) as server:
        provider = dialect.provider(server.url, read_timeout_s=0.2 if row.kind is Kind.TIMEOUT else 5)
        answer = await ask(provider, server=server)
    assert answer.error is not None
    assert (answer.error.error_kind, answer.error.retryable, answer.error.retry_after_ms) == (row.kind, True, None)
    assert (answer.content, answer.streamed) == (None, row.streamed)


@dialects
async def test_nobody_listens(dialect: Dialect) -> None:
    async with peer([]) as server:
        url = server.url
    answer = await ask(dialect.provider(url))
    assert answer.error is not None
    assert (answer.error.error_kind, answer.error.retryable) == (Kind.UNAVAILABLE, True)


@dialects
@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "127.0.0.1:1"])
async def test_an_impossible_url_is_permanent(dialect: Dialect, url: str) -> None:
    answer = await ask(dialect.make(base_url=url))
    assert answer.error is not None
    assert (answer.error.error_kind, answer.error.retryable) == (Kind.OTHER, False)


# --- an error event inside a stream of status 200 ---------------------------------------------------------------

NAMES = [
    ("overloaded_error", Kind.UNAVAILABLE, True),
    ("api_error", Kind.UNAVAILABLE, True),
    ("server_error", Kind.UNAVAILABLE, True),
    ("rate_limit_error", Kind.RATE_LIMIT, True),
    ("rate_limit_exceeded", Kind.RATE_LIMIT, True),
    ("timeout_error", Kind.TIMEOUT, True),
    ("authentication_error", Kind.AUTHENTICATION, False),
    ("invalid_request_error", Kind.OTHER, False),
    ("context_length_exceeded", Kind.OTHER, False),
    ("insufficient_quota", Kind.RATE_LIMIT, False),
    ("never_heard_of", Kind.OTHER, True),
]


@dialects
@pytest.mark.parametrize("after_a_delta", [False, True], ids=["first", "after a delta"])
async def test_an_error_event_goes_by_its_name(dialect: Dialect, after_a_delta: bool) -> None:
    begin = dialect.begin if after_a_delta else ""
    async with (
        peer(*[streaming(begin + dialect.error(name)) for name, _, _ in NAMES]) as server,
        dialect.provider(server.url) as provider,
    ):
        for name, kind, retryable in NAMES:
            answer = await ask(provider, close=False)
            assert answer.error is not None and answer.content is None, name
            assert (answer.error.error_kind, answer.error.retryable) == (kind, retryable), name
            assert name in answer.error.message and answer.error.diagnostic == f"it was {name}"
            assert answer.streamed == ("Hel" if after_a_delta else "")


def test_a_name_may_be_a_status() -> None:
    assert by_name(503) == by_status(503)
    assert by_name("429", "whatever") == by_status(429)
    assert by_name("٤٢٩") == (Kind.OTHER, True)
    assert by_name(None, 7) == (Kind.OTHER, True)


async def test_a_failed_response_goes_by_its_code() -> None:
    failed = response_end("response.failed", error={"code": "rate_limit_exceeded", "message": "slow"})
    async with peer(streaming(RESPONSES.begin + failed)) as server:
        answer = await ask(RESPONSES.provider(server.url))
    assert answer.error is not None
    assert (answer.error.error_kind, answer.error.retryable, answer.error.diagnostic) == (Kind.RATE_LIMIT, True, "slow")


@dialects
async def test_an_error_event_undoes_the_marker(dialect: Dialect) -> None:
    """What the server takes back is no answer. After the last event of all there is nothing to take back."""
    whole = dialect.begin + dialect.marker
    async with peer(streaming(whole + dialect.error("server_error"))) as server:
        answer = await ask(dialect.provider(server.url))
    if dialect is RESPONSES:
        assert (answer.text, answer.error) == ("Hello", None)
    else:
        assert answer.error is not None and (answer.content, answer.error.error_kind) == (None, Kind.UNAVAILABLE)


@pytest.mark.parametrize("payload", ["event: error\ndata: no json\n\n", 'event: error\ndata: {"error": 5}\n\n'])
async def test_an_error_event_of_no_shape_is_still_one(payload: str) -> None:
    async with peer(streaming(ANTHROPIC.begin + payload)) as server:
        answer = await ask(ANTHROPIC.provider(server.url))
    assert answer.error is not None
    assert (answer.error.error_kind, answer.error.retryable) == (Kind.OTHER, True)


# --- an exchange that went well, and brought no whole response --------------------------------------------------

MALFORMED: list[tuple[str, Script]] = [
    ("nothing", lambda d: streaming()),
    ("clean end before the marker", lambda d: streaming(d.begin)),
    ("clean end inside an event", lambda d: streaming(d.begin + d.cut)),
    ("only [DONE]", lambda d: streaming(d.begin + "data: [DONE]\n\n")),
    ("an HTML page", lambda d: [plain(200, "<html>log in</html>", kind="text/html")]),
    ("a JSON body", lambda d: [plain(200, '{"id":"x","choices":[],"content":[]}')]),
    ("no JSON first", lambda d: streaming("event: message_start\ndata: {oops\n\n" + d.whole)),
    ("no JSON after a delta", lambda d: streaming(d.begin + "event: ping2\ndata: {oops\n\n" + d.marker)),
    ("no UTF-8", lambda d: streaming(d.begin.encode() + b'event: x\ndata: {"x":"\xff\xfe"}\n\n')),
    ("too deep", lambda d: streaming(d.begin + "event: x\ndata: " + "[" * 200_000 + "\n\n" + d.marker)),
]


@dialects
@pytest.mark.parametrize(("name", "script"), MALFORMED, ids=[n for n, _ in MALFORMED])
async def test_what_is_no_whole_response_is_malformed(dialect: Dialect, name: str, script: Script) -> None:
    async with peer(script(dialect)) as server:
        answer = await ask(dialect.provider(server.url))
    assert (answer.error, answer.content) == (None, None)


@dialects
async def test_json_of_another_shape_is_malformed(dialect: Dialect) -> None:
    async with (
        peer(*[streaming(dialect.begin + wrong + dialect.marker) for wrong in dialect.wrong]) as server,
        dialect.provider(server.url) as provider,
    ):
        for wrong in dialect.wrong:
            answer = await ask(provider, close=False)
            assert (answer.error, answer.content) == (None, None), wrong


WORDS = """choices delta content tool_calls index usage type item output_index message content_block id name
function arguments response finish_reason summary error"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "stop", "text", "tool_use", "function_call"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=4),
    max_leaves=6,
)


@dialects
@settings(max_examples=50, deadline=None)
@given(values=st.lists(JSON, max_size=3), kinds=st.lists(st.integers(0, 20), min_size=4, max_size=4))
def test_no_json_makes_a_reader_panic(dialect: Dialect, values: list[object], kinds: list[int]) -> None:
    provider = dialect.make(base_url="http://127.0.0.1:1")
    reader = provider._reader(request_for(provider))
    names = list(getattr(reader, "_on", {})) or [""]
    try:
        for value, kind in zip(values, kinds, strict=False):
            event = {**value, "type": names[kind % len(names)]} if isinstance(value, dict) else value
            list(reader.feed(event))
        list(reader.finish())
    except (Malformed, ProviderFailure):
        pass


# --- what does no harm ------------------------------------------------------------------------------------------

HARMLESS: list[tuple[str, Script]] = [
    ("as it should be", lambda d: streaming(d.whole)),
    ("a byte a chunk", lambda d: [HEAD, *(chunk(bytes([b])) for b in d.whole.encode()), END]),
    ("the marker and no more", lambda d: streaming(d.begin + d.marker)),
    ("broken after the marker", lambda d: [HEAD, chunk(d.begin + d.marker), SEEN]),
    ("no JSON after the marker", lambda d: streaming(d.begin + d.marker + "event: x\ndata: {oops\n\n")),
    ("comments", lambda d: streaming(": hello\n\n" + d.begin + ": x\n\n" + d.whole.removeprefix(d.begin))),
    ("an unknown event", lambda d: streaming(d.begin + unknown(d) + d.marker + d.done)),
    ("CRLF", lambda d: streaming(d.whole.replace("\n", "\r\n"))),
]


def unknown(dialect: Dialect) -> str:
    return "event: brand.new\ndata: " + ('{"choices": []}' if dialect is CHAT else '{"type": "brand.new"}') + "\n\n"


@dialects
@pytest.mark.parametrize(("name", "script"), HARMLESS, ids=[n for n, _ in HARMLESS])
async def test_what_does_no_harm(dialect: Dialect, name: str, script: Script) -> None:
    async with peer(script(dialect)) as server:
        answer = await ask(dialect.provider(server.url), server=server)
    assert answer.error is None and answer.content is not None
    assert (answer.text, answer.streamed) == ("Hello", "Hello")


@pytest.mark.parametrize("dialect", [RESPONSES, ANTHROPIC], ids=lambda d: d.name)
async def test_nobody_waits_for_more_than_the_last_event(dialect: Dialect) -> None:
    async with peer([HEAD, chunk(dialect.whole), HANG]) as server:
        provider = dialect.provider(server.url, read_timeout_s=60)
        with anyio.fail_after(5):
            assert (await ask(provider)).text == "Hello"


async def test_a_server_that_does_not_hang_up_after_done() -> None:
    async with peer([HEAD, chunk(CHAT.whole), HANG]) as server:
        assert (await ask(CHAT.provider(server.url, read_timeout_s=0.3))).text == "Hello"


# --- leaving a stream -------------------------------------------------------------------------------------------


@dialects
async def test_a_cancelled_stream_is_closed(dialect: Dialect) -> None:
    async with peer([HEAD, chunk(dialect.begin), HANG]) as server:
        provider = dialect.provider(server.url)
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                async for item in provider.stream(request_for(provider)):
                    if isinstance(item, inp.TextDelta):
                        server.seen.set()

            tasks.start_soon(read)
            await server.seen.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await server.left.wait()
        await provider.aclose()


@dialects
async def test_a_stream_that_is_left_early_is_closed(dialect: Dialect) -> None:
    async with peer([HEAD, chunk(dialect.begin), HANG]) as server:
        provider = dialect.provider(server.url)
        stream = provider.stream(request_for(provider))
        async for item in stream:
            if isinstance(item, inp.TextDelta):
                break
        await stream.aclose()
        with anyio.fail_after(5):
            await server.left.wait()
        await provider.aclose()


@dialects
async def test_a_connection_is_used_again(dialect: Dialect) -> None:
    async with peer(streaming(dialect.whole)) as server, dialect.provider(server.url) as provider:
        for _ in range(3):
            assert (await ask(provider, close=False)).text == "Hello"
    assert (len(server.bodies), server.connections) == (3, 1)


# --- whole runs -------------------------------------------------------------------------------------------------


class Instant(VirtualClock):
    """Every wait is over at once; what was waited for is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[int] = []

    async def sleep_ms(self, milliseconds: int) -> None:
        self.waits.append(milliseconds)
        self.pass_until(self.now_ms() + milliseconds)
        await checkpoint()


@dialects
async def test_pb_85_a_stream_without_a_final_item_never_completes(dialect: Dialect) -> None:
    """The text that had streamed is no answer; the run fails within its budget of two malformed responses."""
    async with peer(streaming(dialect.begin)) as server:
        provider = dialect.provider(server.url)
        async with Rho(provider, clock=Instant()) as rho:
            session = rho.session("s")
            async with session.start("hi") as run:
                events = [e async for e in run]
                with pytest.raises(RunFailed) as failed:
                    await run.outcome()
        await provider.aclose()
    assert (failed.value.error.name, failed.value.error.provider_kind) == (ErrorName.PROVIDER, Kind.INVALID_RESPONSE)
    assert len(server.bodies) == 2
    assert not any(isinstance(e, ev.Completed) for e in events)
    assert not any(isinstance(m, Assistant) for m in session.history)


@dialects
async def test_pb_85_a_stream_that_stalls_ends_and_is_tried_again(dialect: Dialect) -> None:
    clock = Instant()
    async with peer([HEAD, chunk(dialect.begin), HANG], streaming(dialect.whole)) as server:
        provider = dialect.provider(server.url, read_timeout_s=0.2)
        async with Rho(provider, clock=clock) as rho:
            session = rho.session("s")
            async with session.start("hi") as run:
                events = [e async for e in run]
                outcome = await run.outcome()
        await provider.aclose()
    assert (outcome.text, session.history[-1]) == ("Hello", Assistant((Text("Hello"),), provider.identity))
    resets = [e for e in events if isinstance(e, ev.ProviderStreamReset)]
    assert (len(resets), len(server.bodies), clock.waits) == (1, 2, [1_000])


@dialects
async def test_a_run_waits_as_long_as_it_is_asked_to(dialect: Dialect) -> None:
    clock = Instant()
    async with peer([plain(429, BODY, "retry-after: 7")], [plain(503, BODY)], streaming(dialect.whole)) as server:
        provider = dialect.provider(server.url)
        async with Rho(provider, clock=clock) as rho:
            outcome = await rho.session("s").complete("hi")
        await provider.aclose()
    assert (outcome.text, clock.waits, len(server.bodies)) == ("Hello", [7_000, 2_000], 3)


async def test_the_compatible_provider_fails_alike() -> None:
    async with peer([plain(500, BODY)], streaming(COMPATIBLE.begin), streaming(COMPATIBLE.whole)) as server:
        answers: list[Answer] = [await ask(COMPATIBLE.provider(server.url)) for _ in range(3)]
    assert answers[0].error is not None and answers[0].error.error_kind == Kind.UNAVAILABLE
    assert (answers[1].error, answers[1].content) == (None, None)
    assert answers[2].text == "Hello"


def test_the_key_of_these_tests_is_one_that_is_redacted() -> None:
    assert Redactor([])(f"use {KEY}!") == "use [redacted]!"
