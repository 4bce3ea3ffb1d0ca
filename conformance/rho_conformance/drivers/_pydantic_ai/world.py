"""The driver's world: one agent, its sessions, the stimuli on them and the observations they leave."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import Hooks

from . import normal
from .doubles import Gate
from .loop import VirtualLoop
from .normal import Json
from .run import Run
from .session import Session

PROVIDER_ITEMS = {"delta", "reasoning", "call_delta", "return", "text", "calls", "fail", "panic"}
TOOL_ITEMS = {"return", "fail", "panic"}
# What one map of the file may hold beside its item.
ADDRESS = {"id", "session", "run"}


class World:
    """One `open`: a loop of its own, so that nothing of one scenario reaches the next."""

    def __init__(self, config: Json) -> None:
        self.loop = VirtualLoop()
        self.max_steps: int = config.get("max_steps", 32)
        self.reader_held = config.get("reader", "eager") == "held"
        # The format's default is one tool at a time; the runtime knows that and "no limit", nothing between.
        parallel = config.get("max_parallel_tools", 1) > 1
        self.tool_mode: Literal["parallel", "sequential"] = "parallel" if parallel else "sequential"
        tools = config.get("tools") or {}
        self.tool_names = set(tools)
        self.agent = _agent(tools, config.get("system"))
        self.sessions = {name: Session(name) for name in config.get("sessions") or ["s1"]}
        self.fault: BaseException | None = None
        self._runs = 0
        self._commands: Counter[str] = Counter()
        self._observations: list[Json] = []
        self._seq = self._step = 0

    # ---- observations ---------------------------------------------------------------------------

    def note(self, name: str, fields: Json) -> None:
        self._seq += 1
        self._observations.append({"seq": self._seq, "step": self._step, "at_ms": self.loop.now_ms, name: fields})

    def reply(self, run: Run | None, name: str, value: Any) -> None:
        where = {} if run is None else {"session": run.session.name, "run": run.name}
        self.note("Reply", {**where, "name": name, "value": value})

    # ---- stimuli --------------------------------------------------------------------------------

    def perform(self, stimuli: list[Json]) -> Json:
        self._step += 1
        self._observations = []
        for stimulus in stimuli:
            ((name, fields),) = stimulus.items()
            if name == "advance":
                self._advance(normal.milliseconds(fields), alone=len(stimuli) == 1)
            elif name in _HANDLERS:
                _HANDLERS[name](self, name, fields)
            else:
                self.refuse(name, name)
        self.loop.settle()
        if self.fault is not None:
            raise self.fault
        for run in self._all_runs():
            run.reader.settled()
        return {"observations": self._observations, "waiting_on": self._waiting_on(), "facts": self._facts()}

    def refuse(self, stimulus: str, feature: str) -> None:
        self.note("Refused", {"stimulus": stimulus, "feature": feature})

    def start(self, name: str, fields: Any) -> None:
        body = fields if isinstance(fields, dict) else {"text": fields}
        session = self.session(body)
        self._runs += 1
        run = Run(self, session, f"r{self._runs}", body["text"])
        session.runs.append(run)
        self.reply(run, body.get("as") or run.name, "ok")

    def command(self, name: str, fields: Any) -> None:
        """A command on a run: filed under `as`, else under its own name and number."""
        body = fields if isinstance(fields, dict) else {}
        self._commands[name] += 1
        reply = body.get("as") or f"{name}{self._commands[name]}"
        run = self.session(body).latest(body.get("run"))
        if run is None:
            self.reply(None, reply, {"error": "NoRun"})
        elif name == "cancel":
            run.token.cancel()
            self.reply(run, reply, "ok")
        elif name == "steer":
            run.steer(body, reply)
        elif name == "retract":
            run.retract(body["ref"], reply)
        elif name == "outcome":
            run.ask_outcome(reply)
        else:
            run.leave(drop=True)
            self.reply(run, reply, "ok")

    def reading(self, name: str, fields: Any) -> None:
        body = fields if isinstance(fields, dict) else {}
        run = self.session(body).latest(body.get("run"))
        if run is None:
            return
        if name == "read":
            run.reader.read(body["n"] if body else fields)
        elif name == "hold_reader":
            run.reader.hold()
        else:
            run.leave(drop=False)

    def provider(self, name: str, fields: Any) -> None:
        run = fields.get("run")
        gates = [gate for gate in self.session(fields).models if run in (None, gate.run)]
        gate = next((gate for gate in reversed(gates) if gate.open), gates[-1] if gates else None)
        item = self._item(name, fields, PROVIDER_ITEMS)
        if gate is None:
            self.note("NotOpen", {"stimulus": {name: fields}})
        elif item is not None and gate.said.contradicts(item):
            self.refuse(name, "provider.return=other-than-streamed")
        elif item is not None:
            gate.put(item)

    def tool(self, name: str, fields: Any) -> None:
        gates = [gate for gate in self.session(fields).tools if gate.ident["call_id"] == fields["id"]]
        item = self._item(name, fields, TOOL_ITEMS)
        if not gates:
            self.note("NotOpen", {"stimulus": {name: fields}})
        elif item is not None:
            gates[-1].put(item)

    def _item(self, name: str, fields: Json, known: set[str]) -> Json | None:
        """The item without its address; `None`, and refused, when the double cannot play it."""
        item = {key: value for key, value in fields.items() if key not in ADDRESS}
        if foreign := item.keys() - known:
            self.refuse(name, f"{name}.{min(foreign)}")
            return None
        return item

    def _advance(self, milliseconds: int, *, alone: bool) -> None:
        # Inside a race nothing settles, so time only moves on; the timers it makes due fire at the end.
        if not alone:
            self.loop.skip(milliseconds)
            return
        self.loop.settle()
        self.loop.advance(milliseconds)

    # ---- what is the case when settled ----------------------------------------------------------

    def session(self, fields: Any) -> Session:
        name = fields.get("session") if isinstance(fields, dict) else None
        return self.sessions[name] if name else next(iter(self.sessions.values()))

    def _all_runs(self) -> list[Run]:
        return [run for session in self.sessions.values() for run in session.runs]

    def _waiting_on(self) -> list[str]:
        gates: list[Gate] = []
        for session in self.sessions.values():
            gates += [*session.models, *session.tools]
        waits = [_wait_name(gate) for gate in gates if gate.waiting]
        waits += ["reader" for run in self._all_runs() if run.held_back]
        return waits + (["timer"] if self.loop.next_timer() is not None else [])

    def _facts(self) -> Json:
        sessions = {
            name: {"busy": session.busy, "history": normal.history(session.history)}
            for name, session in self.sessions.items()
        }
        return {**next(iter(sessions.values())), "sessions": sessions}

    def close(self) -> None:
        """End every task of this world, so that none outlives it."""
        self._observations = []  # what the end of the world does is no answer to the last stimulus
        for _ in range(3):
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.settle()
        self.loop.close()


def _wait_name(gate: Gate) -> str:
    return "model" if gate.upcall == "ModelCall" else f"tool:{gate.ident['call_id']}"


def _agent(tools: dict[str, Json], system: str | None) -> Agent[Run, str]:
    async def began(context: RunContext[Run]) -> None:
        await context.deps.began(context)

    return Agent(
        deps_type=Run,
        tools=[_tool(name, options or {}) for name, options in tools.items()],
        instructions=system,
        capabilities=[Hooks(before_run=began)],
    )


def _tool(name: str, options: Json) -> Tool[Run]:
    async def execute(ctx: RunContext[Run], **args: Any) -> Any:
        return await ctx.deps.tool_call(name, str(ctx.tool_call_id), args, options.get("on_cancel", "stop"))

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    exclusive = options.get("access", "shared") == "exclusive"
    return Tool.from_schema(execute, name, "scripted", schema, takes_ctx=True, sequential=exclusive)


_HANDLERS: dict[str, Callable[[World, str, Any], None]] = {
    "start": World.start,
    **dict.fromkeys(("cancel", "steer", "retract", "outcome", "drop"), World.command),
    **dict.fromkeys(("read", "hold_reader", "close_reader"), World.reading),
    "provider": World.provider,
    "tool": World.tool,
}
