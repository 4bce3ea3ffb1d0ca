"""Child processes as tools: real ones, and nothing of them left afterwards."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rho_adapters import Rho, RunCancelled, RunDropped, ToolHost
from rho_adapters.runtime.toolhost import Host
from rho_adapters.tool import PrepareFailure, ToolCancelled, ToolFailure
from rho_adapters.tools import AllowList, ProcessTool, reads, shell_tool
from rho_adapters.tools._bounded import BoundedOutput, Lines
from rho_adapters.tools.process import _status
from rho_core.inputs import Plan
from rho_core.messages import ToolCall
from tests.adapters.scripted import Scripted, asks
from tests.adapters.toolkit import FakeContext, call_of

pytestmark = pytest.mark.anyio

PARENT = f"""
import os, subprocess, sys, time
stubborn = "import signal as s, time; s.signal(s.SIGTERM, s.SIG_IGN); print('up', flush=True); time.sleep(600)"
def start(**options):
    child = subprocess.Popen([{sys.executable!r}, "-c", stubborn], stdout=subprocess.PIPE, **options)
    child.stdout.readline()
    return child.pid
print("pids", os.getpid(), start(), start(start_new_session=True), flush=True)
"""
"""Prints its pid and those of two descendants that ignore SIGTERM, one of them in a session of its own."""


def python(code: str, **options: Any) -> ProcessTool:
    """A tool that runs this Python."""
    return ProcessTool("py", [sys.executable, "-c", code], **{"grace_s": 0.1, **options})


def stat_of(pid: int) -> list[str] | None:
    """State (R, S, Z, …), parent, …; None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_running(pid: int) -> bool:
    stat = stat_of(pid)
    return stat is not None and stat[0] != "Z"


def own_zombies() -> list[int]:
    stats = {int(name): stat_of(int(name)) for name in os.listdir("/proc") if name.isdecimal()}
    return [pid for pid, stat in stats.items() if stat is not None and stat[:2] == ["Z", str(os.getpid())]]


class Pids:
    """Hears the line "pids …" in the progress of a call."""

    def __init__(self) -> None:
        self.heard = anyio.Event()
        self.pids: list[int] = []

    async def __call__(self, text: str) -> None:
        self.hear(text)

    def hear(self, text: str) -> None:
        if text.startswith("pids "):
            self.pids = [int(word) for word in text.split()[1:]]
            self.heard.set()

    def assert_gone(self) -> None:
        assert len(self.pids) == 3
        # A grandchild's zombie is its reaper's affair; the child's own is ours.
        assert [p for p in self.pids if is_running(p)] == []
        assert own_zombies() == []


# --- output and status -------------------------------------------------------------------------------------


async def test_output_and_status() -> None:
    tool = ProcessTool("echo", ["/bin/echo", "hello"])
    assert await tool.execute(FakeContext(tool)) == "hello\n[exit status 0]"


async def test_a_failure_has_the_status_and_both_outputs() -> None:
    tool = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    with pytest.raises(ToolFailure) as failed:
        await tool.execute(FakeContext(tool))
    assert str(failed.value) == "out\n[stderr]\nerr\n[exit status 3]"


async def test_a_signal_is_named() -> None:
    tool = python("import os; os.kill(os.getpid(), 9)")
    with pytest.raises(ToolFailure, match=r"^\[killed by SIGKILL\]$"):
        await tool.execute(FakeContext(tool))


async def test_a_program_that_cannot_start_is_a_failure(tmp_path: Path) -> None:
    for tool in (ProcessTool("no", ["/no/such/program"]), python("1", cwd=tmp_path / "none")):
        with pytest.raises(ToolFailure, match=r"^cannot start .*: No such file or directory$"):
            await tool.execute(FakeContext(tool))


async def test_output_that_is_not_utf8_is_text_all_the_same() -> None:
    tool = python(r"import os; os.write(1, b'a\xffb\xc3')")
    assert await tool.execute(FakeContext(tool)) == "a\ufffdb\ufffd\n[exit status 0]"


async def test_a_hundred_megabytes_take_no_memory() -> None:
    tool = python(
        "import sys; w = sys.stdout.buffer; w.write(b'x' * 99 + b'\\n'); block = (b'y' * 99 + b'\\n') * 10_000\n"
        "for _ in range(100): w.write(block)\n"
        "w.write(b'end')",
        output_limit=10_000,
        progress=False,
    )
    tracemalloc.start()
    try:
        text = await tool.execute(FakeContext(tool))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text.startswith("x" * 99 + "\n") and text.endswith("\nend\n[exit status 0]")
    assert f"\n[... {100 + 100_000_000 + 3 - 10_000} bytes cut ...]\n" in text
    assert len(text) < 10_100
    assert peak < 4_000_000


# --- what goes in ------------------------------------------------------------------------------------------


class Arguments(BaseModel):
    path: str
    words: list[str] = []
    count: int | None = None


def printing(*template: str) -> ProcessTool:
    """A tool that prints its argument vector."""
    code = "import sys; print(sys.argv[1:])"
    return ProcessTool("args", [sys.executable, "-c", code, *template], arguments=Arguments, accesses=reads("files"))


async def test_the_template_is_filled_without_a_shell() -> None:
    tool = printing("{words}", "--count={count}", "{count}", "{print $1}", "--", "{path}")
    text = await tool.execute(FakeContext(tool, {"path": "-a; rm *", "words": ["$HOME", "b c"]}))
    assert text.splitlines()[0] == str(["$HOME", "b c", "--count=", "{print $1}", "--", "-a; rm *"])
    text = await tool.execute(FakeContext(tool, {"path": "p", "count": -3}))
    assert text.splitlines()[0] == str(["--count=-3", "-3", "{print $1}", "--", "p"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"path": "--upload-pack=x"}, "path: must not begin with '-'"),
        ({"path": "p", "words": ["ok", "-x"]}, "words: must not begin with '-'"),
        ({"path": "a\0b"}, "NUL"),
        ({"path": 1}, "path: Input should be a valid string"),
        ({}, "path: Field required"),
    ],
)
async def test_arguments_that_do_not_do_fail_the_preparation(arguments: dict[str, object], why: str) -> None:
    tool = printing("{words}", "{path}")
    with pytest.raises(PrepareFailure, match=why):
        await tool.prepare(call_of(tool, **arguments))


async def test_the_plan_and_the_schema() -> None:
    tool = printing("{path}")
    assert await tool.prepare(call_of(tool, path="p")) == Plan(accesses=reads("files"))
    assert tool.spec.parameters["required"] == ["path"]
    assert await python("1").prepare(call_of(tool)) == Plan(exclusive=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ProcessTool("x", []),
        lambda: ProcessTool("x", "ls"),
        lambda: ProcessTool("x", ["{path}"], arguments=Arguments),
        lambda: ProcessTool("x", ["ls", "{pth}"], arguments=Arguments),
        lambda: ProcessTool("x", ["ls"], stdin="text"),
        lambda: ProcessTool("x", ["ls"], output_limit=0),
        lambda: ProcessTool("x", ["ls"], asynchronous=True, exclusive=True),
        lambda: shell_tool(allow_any_command=False),
    ],
)
def test_a_tool_that_does_not_do_is_refused_at_once(make: Callable[[], ProcessTool]) -> None:
    with pytest.raises(ValueError):
        make()


class Input(BaseModel):
    text: str | None = None


async def test_stdin_comes_from_an_argument() -> None:
    tool = ProcessTool("cat", ["cat"], arguments=Input, stdin="text")
    big = "é" * 200_000
    assert await tool.execute(FakeContext(tool, {"text": "é\n"})) == "é\n[exit status 0]"
    assert await tool.execute(FakeContext(tool)) == "[exit status 0]"
    assert f"[... {400_000 - 32_768} bytes cut ...]" in await tool.execute(FakeContext(tool, {"text": big}))
    deaf = ProcessTool("true", ["true"], arguments=Input, stdin="text")
    assert await deaf.execute(FakeContext(deaf, {"text": big})) == "[exit status 0]"


async def test_a_descendant_that_holds_stdin_does_not_hold_the_call() -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '600'])"
    tool = ProcessTool("py", [sys.executable, "-c", code], arguments=Input, stdin="text")
    with anyio.fail_after(10):
        assert await tool.execute(FakeContext(tool, {"text": "x" * 1_000_000})) == "[exit status 0]"


async def test_without_stdin_there_is_nothing_to_read() -> None:
    tool = python("import sys; print(repr(sys.stdin.read()))")
    assert await tool.execute(FakeContext(tool)) == "''\n[exit status 0]"


async def test_the_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("API_KEY", "hunter2")
    monkeypatch.setenv("APP_MODE", "test")
    tool = python(
        "import os; print(sorted(k for k in os.environ if k.startswith('A')), os.environ['B'], os.getcwd())",
        environment=["PATH", "APP_*"],
        env={"B": "b"},
        cwd=tmp_path,
    )
    assert (await tool.execute(FakeContext(tool))).splitlines()[0] == f"['APP_MODE'] b {tmp_path}"


async def test_a_call_within_a_call_bears_both_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RHO_TOOL_CALL", "outer")
    tool = python("import os; print(os.environ['RHO_TOOL_CALL'])")
    assert (await tool.execute(FakeContext(tool))).startswith("outer,")


# --- progress ----------------------------------------------------------------------------------------------


async def test_lines_are_progress_as_they_come(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def answer(text: str) -> None:
        if text == "one":  # the child goes on only because it was heard while it ran
            await anyio.Path(go).write_text("go")

    tool = python(f"print('one', flush=True); open({str(go)!r}).read(); print('two'); print('thr', end='')")
    context = FakeContext(tool, on_progress=answer)
    with anyio.fail_after(10):
        assert await tool.execute(context) == "one\ntwo\nthr\n[exit status 0]"
    assert "\n".join(context.said) == "one\ntwo\nthr"


async def test_a_reader_that_is_behind_stops_the_child(tmp_path: Path) -> None:
    report = tmp_path / "report"
    code = f"""
import os, select, pathlib
written, line = 0, b"z" * 999 + b"\\n"
while written < 20_000_000 and select.select([], [1], [], 0.5)[1]:
    written += os.write(1, line)
pathlib.Path({str(report)!r}).write_text(str(written))
"""

    async def hold(_: str) -> None:
        while not report.exists():
            await anyio.sleep(0.01)

    tool = python(code)
    with anyio.fail_after(20):
        await tool.execute(FakeContext(tool, on_progress=hold))
    assert 60_000 < int(report.read_text()) < 1_000_000


# --- the end -----------------------------------------------------------------------------------------------


async def test_the_time_limit_ends_everything() -> None:
    pids = Pids()
    tool = python(PARENT + "time.sleep(600)", time_limit_s=1.5)
    why = r"^pids [\d ]+\n\[stopped after the time limit of 1.5 s\]$"
    with anyio.fail_after(10), pytest.raises(ToolFailure, match=why):
        await tool.execute(FakeContext(tool, on_progress=pids))
    pids.assert_gone()


async def test_the_token_ends_everything() -> None:
    pids = Pids()
    tool = python(PARENT + "time.sleep(600)")
    context = FakeContext(tool, on_progress=pids)
    cancelled = False

    async def execute() -> None:
        nonlocal cancelled
        with pytest.raises(ToolCancelled):
            await tool.execute(context)
        cancelled = True

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(execute)
            await pids.heard.wait()
            context.token.set()
    assert cancelled
    pids.assert_gone()


async def test_cancelling_the_task_ends_everything_even_while_progress_is_held() -> None:
    pids = Pids()

    async def held(text: str) -> None:
        pids.hear(text)
        await anyio.sleep_forever()

    tool = python(PARENT + "time.sleep(600)")
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tool.execute, FakeContext(tool, on_progress=held))
            await pids.heard.wait()
            tasks.cancel_scope.cancel()
    pids.assert_gone()


async def test_a_process_that_heeds_sigterm_has_time_to(tmp_path: Path) -> None:
    started, left = anyio.Event(), tmp_path / "left"

    async def hear(_: str) -> None:
        started.set()

    code = f"""
import pathlib, signal, sys, time
def leave(*_):
    time.sleep(0.1)
    pathlib.Path({str(left)!r}).touch()
    sys.exit(7)
signal.signal(signal.SIGTERM, leave)
print("up", flush=True)
time.sleep(600)
"""
    tool = python(code, grace_s=30)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tool.execute, FakeContext(tool, on_progress=hear))
            await started.wait()
            tasks.cancel_scope.cancel()
    assert left.exists() and own_zombies() == []


async def test_what_is_left_in_the_background_ends_with_the_command() -> None:
    pids = Pids()
    tool = python(PARENT)
    with anyio.fail_after(10):
        text = await tool.execute(FakeContext(tool, on_progress=pids))
    assert text.endswith("\n[exit status 0]")
    pids.assert_gone()


async def test_a_background_process_that_ends_by_itself_may_finish_its_output() -> None:
    tool = ProcessTool("sh", ["/bin/sh", "-c", "(sleep 0.05; echo late) & echo early"])
    assert await tool.execute(FakeContext(tool)) == "early\nlate\n[exit status 0]"


async def test_a_process_may_close_its_pipes_and_go_on() -> None:
    tool = python("import os, time; os.close(1); os.close(2); time.sleep(0.1); os._exit(4)")
    with anyio.fail_after(10), pytest.raises(ToolFailure, match="exit status 4"):
        await tool.execute(FakeContext(tool))


# --- the shell ---------------------------------------------------------------------------------------------


async def test_a_shell_needs_consent_and_a_capability() -> None:
    tool = shell_tool(allow_any_command=True)
    assert await tool.prepare(call_of(tool, command="true")) == Plan(exclusive=True, capability="process.shell")
    arguments = {"command": f"echo {shlex.quote('a b')} | tr a-z A-Z; exit 2"}
    async with ToolHost([tool]) as host:
        with pytest.raises(ToolFailure, match=r"^process.shell capability denied: no policy allows it$"):
            await host.call("shell", arguments)
    async with ToolHost([tool], authorizer=AllowList(["process.shell"])) as host:
        with pytest.raises(ToolFailure, match=r"^A B\n\[exit status 2\]$"):
            await host.call("shell", arguments)


# --- through the runtime -----------------------------------------------------------------------------------


async def test_through_the_runtime() -> None:
    said: list[str] = []
    async with ToolHost([printing("{path}")]) as host:
        text = await host.call("args", {"path": "p"}, host=Host(progress=said.append))
        with pytest.raises(ToolFailure, match="path: Field required"):
            await host.call("args")
    assert (text, said) == ("['p']\n[exit status 0]", ["['p']"])


@asynccontextmanager
async def running(pids: Pids) -> AsyncIterator[tuple[Rho, Any]]:
    """A run that is in the middle of a call of the stubborn family."""
    provider = Scripted(asks(ToolCall("c1", "py", "{}")))
    with anyio.fail_after(20):
        async with Rho(provider, [python(PARENT + "time.sleep(600)")]) as rho:
            run = rho.session().start("go")
            async for event in run:
                if event.kind == "tool_updated":
                    pids.hear(event.progress)
                    break
            assert pids.heard.is_set()
            yield rho, run


async def _cancel(rho: Rho, run: Any) -> None:
    run.cancel()
    with pytest.raises(RunCancelled):
        await run.outcome()


async def _drop(rho: Rho, run: Any) -> None:
    await run.aclose()
    with pytest.raises(RunDropped):
        await run.outcome()


async def _shut_down(rho: Rho, run: Any) -> None:
    assert rho.shutdown() == 1
    with pytest.raises(RunCancelled):
        await run.outcome()


async def _leave(rho: Rho, run: Any) -> None:
    """Only the runtime's own context is left."""


@pytest.mark.parametrize("end", [_cancel, _drop, _shut_down, _leave])
async def test_every_end_of_a_run_ends_the_processes(end: Callable[[Rho, Any], Awaitable[None]]) -> None:
    pids = Pids()
    async with running(pids) as (rho, run):
        await end(rho, run)
    pids.assert_gone()


# --- bounded text ------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=30)), st.integers(2, 40))
def test_bounded_output_is_the_head_and_the_tail(chunks: list[bytes], limit: int) -> None:
    output = BoundedOutput(limit)
    for chunk in chunks:
        output.add(chunk.replace(b"\n", b"n").translate(bytes(b & 0x7F for b in range(256))))
    whole = b"".join(chunks).replace(b"\n", b"n").translate(bytes(b & 0x7F for b in range(256))).decode()
    half = limit // 2
    if len(whole) <= 2 * half:
        assert output.text() == whole
    else:
        cut = len(whole) - 2 * half
        assert output.text() == f"{whole[:half]}\n[... {cut} bytes cut ...]\n{whole[-half:]}"


@given(st.text(alphabet="aé€😀", min_size=20, max_size=60), st.integers(2, 20))
def test_a_cut_character_leaves_no_rubbish(text: str, limit: int) -> None:
    output = BoundedOutput(limit)
    output.add(text.encode())
    head, _, tail = output.text().partition("\n[... ")
    tail = tail.rpartition("]\n")[2]
    assert text.startswith(head) and text.endswith(tail)


@given(st.lists(st.text(alphabet="ab\n", max_size=8)))
def test_lines_lose_nothing(pieces: list[str]) -> None:
    lines = Lines(limit=4)
    whole = "".join(pieces)
    told = [text for piece in pieces if (text := lines.feed(piece.encode()))]
    last = lines.feed(b"", final=True)
    assert "".join([*told, last]).replace("\n", "") == whole.replace("\n", "")
    assert max((len(line) for line in lines_of(told)), default=0) <= 4 + 8


def lines_of(told: list[str]) -> list[str]:
    return [line for text in told for line in text.split("\n")]


def test_a_signal_number_without_a_name_is_told() -> None:
    assert (_status(-signal.SIGTERM), _status(-200), _status(None)) == (
        "killed by SIGTERM",
        "killed by signal 200",
        "no exit status",
    )
