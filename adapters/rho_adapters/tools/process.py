"""Child processes as tools: `ProcessTool`, a program with an argument template, and `shell_tool`, any command at all.

    class Arguments(BaseModel):
        count: int = Field(default=10, description="how many commits")
        path: str

    git_log = ProcessTool("git_log", ["git", "log", "-n", "{count}", "--", "{path}"], arguments=Arguments,
                          description="The newest commits that touch a path.", accesses=reads("repository"))

The result is what the process wrote, bounded (head and tail are kept, with a note of what was cut), and its exit
status; a status that is not zero, a signal and the time limit are failures with the same text. While it runs, the lines
it writes are the call's progress: a reader that falls behind stops the child at its full pipe.

Nothing that the process started outlives the call, however that ends (return, time limit, token, cancelled or dropped
run, shutdown): SIGTERM to all of it, `grace_s` seconds, SIGKILL. So a server left in the background ends with
the command that started it. POSIX only.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from pydantic import BaseModel, ConfigDict, Field

from rho_core.inputs import Plan
from rho_core.messages import ToolCall

from ..tool import PrepareFailure, ToolCancelled, ToolContext, ToolFailure, ToolSpec
from ._argv import Argv, Template
from ._bounded import BoundedOutput, Lines
from ._child import Child
from ._failing import Failing
from ._needs import Accesses, Capability, Needs
from ._schema import ArgumentsSchema

__all__ = ["DEFAULT_ENVIRONMENT", "ProcessTool", "shell_tool"]

DEFAULT_ENVIRONMENT = ("PATH", "HOME", "USER", "LANG", "LC_*", "TZ", "TMPDIR")
_LINGER_S = 0.25


class NoArguments(BaseModel):
    """A program that takes none."""

    model_config = ConfigDict(extra="forbid")


class ProcessTool:
    """`argv`: a template whose "{field}" are fields of `arguments`, or a function of them; never a shell's text.

    `arguments`: a pydantic model, validated strictly. `stdin`: the field whose text the process reads. `environment`:
    names (patterns of fnmatch) that are passed on from this process; `env`: variables set besides. `cwd`: the
    folder it runs in. `time_limit_s`, `grace_s`: seconds; the limit None is none. `output_limit`: bytes kept of each of
    stdout and stderr. `progress`: report lines as they come. The others are those of `FunctionTool`. Raises ValueError
    for a template or needs that do not do.
    """

    def __init__(
        self,
        name: str,
        argv: Template,
        *,
        arguments: type[BaseModel] = NoArguments,
        description: str = "",
        stdin: str | None = None,
        environment: Sequence[str] = DEFAULT_ENVIRONMENT,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        time_limit_s: float | None = 60.0,
        grace_s: float = 2.0,
        output_limit: int = 32_768,
        progress: bool = True,
        accesses: Accesses | None = None,
        exclusive: bool | None = None,
        capability: Capability | None = None,
        asynchronous: bool = False,
        complete_within_ms: int | None = None,
    ) -> None:
        self._schema = ArgumentsSchema(arguments)
        self._argv = Argv(argv, self._schema.names)
        if stdin is not None and stdin not in self._schema.names:
            raise ValueError(f"tool {name!r}: there is no argument {stdin!r} for stdin")
        BoundedOutput(output_limit)
        self._stdin, self._environment, self._env, self._cwd = stdin, tuple(environment), dict(env or {}), cwd
        self._time_limit_s, self._grace_s, self._output_limit = time_limit_s, grace_s, output_limit
        self._progress = progress
        self._needs = Needs(accesses, exclusive, capability, complete_within_ms, asynchronous)
        self._needs.check(name)
        self.spec = ToolSpec(name, description, self._schema.json_schema(), asynchronous)

    def __repr__(self) -> str:
        return f"<ProcessTool {self.spec.name}>"

    async def prepare(self, call: ToolCall) -> Plan:
        """Validate the arguments, fill the template. Raises PrepareFailure."""
        with Failing().guard(self.spec.name, PrepareFailure):
            arguments = self._schema.parse(call.arguments)
            self._argv.fill(arguments)
            return self._needs.plan(arguments)

    async def execute(self, context: ToolContext) -> str:
        """Run it. Raises ToolFailure for a status that is not zero, ToolCancelled when the token stopped it."""
        with Failing().guard(self.spec.name, ToolFailure):
            arguments = self._schema.parse(context.call.arguments)
            argv = self._argv.fill(arguments)
        text = None if self._stdin is None else str(arguments[self._stdin] or "")
        child = await self._spawn(argv, text is not None)
        run = _Run(child, context, self._output_limit, self._progress)
        try:
            ended = await run.watch(text, self._time_limit_s, self._grace_s)
        finally:
            await child.stop(self._grace_s)
        return run.result(ended)

    async def _spawn(self, argv: Sequence[str], stdin: bool) -> Child:
        inherited = {k: v for k, v in os.environ.items() if any(fnmatchcase(k, p) for p in self._environment)}
        try:
            return await Child.spawn(argv, cwd=self._cwd, env={**inherited, **self._env}, stdin=stdin)
        except OSError as error:
            raise ToolFailure(f"cannot start {argv[0]!r}: {error.strerror or type(error).__name__}") from error


class _Run:
    """One execution: the pipes, the bounded output, and why it ended."""

    def __init__(self, child: Child, context: ToolContext, output_limit: int, progress: bool) -> None:
        self._child = child
        self._context = context
        self._output = BoundedOutput(output_limit)
        self._errors = BoundedOutput(output_limit)
        self._reporting = anyio.Lock() if progress else None

    async def watch(self, stdin: str | None, time_limit_s: float | None, grace_s: float) -> str | None:
        """Until the process has ended and its pipes are read: None; or why it must be stopped."""
        with anyio.move_on_after(time_limit_s) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._heed_token, tasks.cancel_scope)
                async with anyio.create_task_group() as pipes:
                    pipes.start_soon(self._read, self._child.process.stdout, self._output)
                    pipes.start_soon(self._read, self._child.process.stderr, self._errors)
                    await self._feed_until_exit(stdin)
                    # What still holds the pipes was left behind; without an end of it they would never close.
                    await self._child.gone(_LINGER_S)
                    await self._child.end(grace_s)
                tasks.cancel_scope.cancel()
                return None
        if limit.cancelled_caught:
            return f"stopped after the time limit of {time_limit_s:g} s"
        raise ToolCancelled("the process was stopped because the call was cancelled")

    async def _heed_token(self, scope: anyio.CancelScope) -> None:
        await self._context.token.wait()
        scope.cancel()

    async def _feed_until_exit(self, text: str | None) -> None:
        async with anyio.create_task_group() as feeding:
            if self._child.process.stdin is not None:
                feeding.start_soon(_feed, self._child.process.stdin, text or "")
            await self._child.process.wait()
            feeding.cancel_scope.cancel()

    async def _read(self, stream: ByteReceiveStream | None, output: BoundedOutput) -> None:
        assert stream is not None
        lines = Lines()
        async for chunk in stream:
            output.add(chunk)
            await self._report(lines.feed(chunk))
        await self._report(lines.feed(b"", final=True))

    async def _report(self, text: str) -> None:
        if self._reporting is not None and text:
            async with self._reporting:  # two pipes, one reader
                await self._context.progress(text)

    def result(self, stopped: str | None) -> str:
        """The output and the status. Raises ToolFailure when it was stopped or failed."""
        status = self._child.process.returncode
        parts = [self._output.text(), self._errors.text()]
        if parts[1]:
            parts[1] = f"[stderr]\n{parts[1]}"
        text = "\n".join(p.removesuffix("\n") for p in (*parts, f"[{stopped or _status(status)}]") if p)
        if stopped is not None or status != 0:
            raise ToolFailure(text)
        return text


async def _feed(stream: ByteSendStream, text: str) -> None:
    # A process need not read what it is given.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send(text.encode(errors="replace"))
        await stream.aclose()


def _status(status: int | None) -> str:
    if status is None:
        return "no exit status"
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"


class ShellArguments(BaseModel):
    """What a shell tool takes."""

    model_config = ConfigDict(extra="forbid")
    command: str = Field(description="a shell command")


def shell_tool(
    name: str = "shell",
    *,
    allow_any_command: bool,
    shell: str = "/bin/sh",
    description: str = "Run a shell command and return its output and exit status.",
    capability: Capability | None = "process.shell",
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    environment: Sequence[str] = DEFAULT_ENVIRONMENT,
    time_limit_s: float | None = 60.0,
    grace_s: float = 2.0,
    output_limit: int = 32_768,
    progress: bool = True,
) -> ProcessTool:
    """A tool that runs whatever the model writes, alone in its batch. It must be asked for twice.

    `allow_any_command=True` says that it is meant; ValueError otherwise. And by default a call needs the capability
    "process.shell", which no policy allows unless it is told to.
    """
    if allow_any_command is not True:
        raise ValueError("a shell runs any command: allow_any_command=True says that it is meant")
    return ProcessTool(
        name,
        lambda arguments: (shell, "-c", arguments["command"]),
        arguments=ShellArguments,
        description=description,
        capability=capability,
        cwd=cwd,
        env=env,
        environment=environment,
        time_limit_s=time_limit_s,
        grace_s=grace_s,
        output_limit=output_limit,
        progress=progress,
        exclusive=True,
    )
