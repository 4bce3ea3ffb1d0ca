"""A canary in the place of every secret: it is nowhere in what a host, a log or a store may get to see."""

from __future__ import annotations

import json
import traceback
from typing import Any

import openai
import pytest

from rho_adapters import Rho, RunFailed
from rho_adapters.providers import OpenAIChat
from rho_adapters.providers._classify import DIAGNOSTIC_CHARS, Redactor, bounded
from rho_adapters.providers._http import HttpProvider
from tests.adapters.wire_kit import DIALECTS, KEY, RESET, Answer, Dialect, Part, ask, cheap_tls, peer, plain, streaming

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cheap_tls")]
ODD = "canary.of_no.usual-form"


__all__ = ["cheap_tls"]  # a fixture, by its import


dialects = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)


def seen(answer: Answer, provider: HttpProvider) -> str:
    """Everything that leaves, the traceback of the failure and whatever it was raised from included."""
    parts: list[Any] = [repr(provider), str(provider), repr(answer.items), repr(answer.error)]
    fault: BaseException | None = answer.failure
    if fault is not None:
        parts += [str(fault), repr(fault), "".join(traceback.format_exception(fault))]
    while fault is not None:
        parts += [repr(fault), repr(vars(fault))]
        fault = fault.__cause__ or fault.__context__
    return "\n".join(map(str, parts))


def leaks(key: str, body: dict[str, Any]) -> list[list[Part]]:
    text = json.dumps(body)
    return [
        [plain(401, text)],
        [plain(500, text)],
        [plain(429, text, f"x-request-id: {key}", f"request-id: {key}")],
        [plain(502, f"<html>{key}</html>" * 5_000, kind="text/html")],
        [plain(200, text)],
        [RESET],
        streaming(f"event: error\ndata: {text}\n\n"),
        streaming(f"event: error\ndata: {{{key}\n\n"),
        streaming(f"data: {{{key}\n\n"),
    ]


@dialects
@pytest.mark.parametrize("key", [KEY, ODD])
async def test_a_server_that_repeats_the_key(dialect: Dialect, key: str) -> None:
    for body in (
        {"error": {"message": f"Incorrect API key provided: {key}.", "type": "x", "code": None}},
        {"error": {"message": {"deep": key}, "type": key, "code": key}},
        {"message": key, "code": key, "type": "error"},
    ):
        scripts = leaks(key, body)
        async with peer(*scripts) as server:
            for script in scripts:
                provider = dialect.provider(server.url, api_key=key)
                answer = await ask(provider)
                out = seen(answer, provider)
                assert key not in out and key[:12] not in out and "canary" not in out, script
                assert answer.content is None


@dialects
@pytest.mark.parametrize("key", ["canary\nx-evil: 1", "canary\ud800"])
async def test_a_key_that_no_header_can_hold(dialect: Dialect, key: str) -> None:
    async with peer([]) as server:
        provider = dialect.provider(server.url, api_key=key)
        answer = await ask(provider)
        assert not server.bodies
    assert answer.error is not None and not answer.error.retryable
    assert "canary" not in seen(answer, provider)


@dialects
async def test_a_secret_in_the_url(dialect: Dialect) -> None:
    async with peer([plain(404, '{"error":{"message":"no canary-in-url here","type":"x"}}')]) as server:
        url = server.url.replace("//", "//me:canary-in-url@")
        provider = dialect.provider(url)
        answer = await ask(provider)
    assert answer.error is not None and "canary" not in seen(answer, provider)


async def test_secrets_of_a_client_of_the_caller() -> None:
    async with peer([plain(400, '{"error":{"message":"bad canary-header canary-key"}}')]) as server:
        headers = {"x-gateway-token": "canary-header"}
        client = openai.AsyncOpenAI(api_key="canary-key", base_url=server.url, default_headers=headers)
        provider = OpenAIChat("m", client=client)
        answer = await ask(provider)
        await client.close()
    assert answer.error is not None and answer.error.diagnostic == "bad [redacted] [redacted]"
    assert "canary" not in seen(answer, provider)


@dialects
async def test_nothing_of_it_in_a_run(dialect: Dialect) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}", "type": "authentication_error"}})
    async with peer([plain(401, body)]) as server:
        provider = dialect.provider(server.url)
        async with Rho(provider) as rho:
            session = rho.session("s")
            async with session.start("hi") as run:
                events = [repr(e) async for e in run]
                with pytest.raises(RunFailed) as failed:
                    await run.outcome()
            out = repr((events, session.snapshot(), session.history, failed.value.error, str(failed.value)))
        await provider.aclose()
    assert KEY not in out and "canary" not in out
    assert "401" in str(failed.value)


def test_a_cut_does_not_hide_half_a_key() -> None:
    for before in range(DIAGNOSTIC_CHARS - len(KEY) - 2, DIAGNOSTIC_CHARS + 2):
        text = bounded("x" * before + KEY, Redactor([KEY])) or ""
        assert "canary" not in text and len(text) <= DIAGNOSTIC_CHARS


@pytest.mark.parametrize("text", ["sk-abcdef123456", "Authorization: Bearer abc.def", "key-0123456789"])
def test_what_looks_like_a_key_is_taken_for_one(text: str) -> None:
    assert "[redacted]" in Redactor([])(f"use {text}, or not")
