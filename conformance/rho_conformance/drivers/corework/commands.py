"""Stimuli of the host: starting, steering, cancelling, reading, mutating a session (scenario format §3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rho_conformance.drivers.corework import answers, decode, interpret, store
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.runs import Command, Run
from rho_conformance.drivers.corework.world import World
from rho_conformance.errors import DriverError
from rho_core import inputs as i
from rho_core import messages as m

ORCA_STIMULI = (
    "continue",
    "clear",
    "reset_in_place",
    "token",
    "subscribe",
    "read_notes",
    "worker",
    "workers",
    "foreground",
    "workflow",
    "process",
)
ORCA_FIELDS = {
    "start": ("token", "deadline", "event_capacity", "continue_at_step_limit"),
    "cancel": ("token",),
    "shutdown": ("grace",),
}


@dataclass(slots=True)
class Stimulus:
    """One stimulus: `value` as given, `args` its keys (none for a bare value), `reply` its reply's name."""

    name: str
    value: Any
    args: dict[str, Any]
    reply: str
    port: SessionPort


class Performer:
    """Takes stimuli apart, names runs and replies, and does what each stimulus says."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.counts: dict[str, int] = {}
        self.named: list[str] = []

    def perform(self, raw: Any) -> None:
        """Deliver one stimulus; nothing settles here."""
        if not isinstance(raw, dict) or len(raw) != 1:
            raise DriverError(f"a stimulus is a map with one key, got {raw!r}")
        ((name, value),) = raw.items()
        stimulus = self._take_apart(name, value)
        if name in ORCA_STIMULI:
            self._refuse(stimulus, name)
            return
        for field in ORCA_FIELDS.get(name, ()):
            if field in stimulus.args:
                self._refuse(stimulus, f"{name}.{field}")
                return
        handler = self.handler(name)
        if handler is None:
            raise DriverError(f"there is no stimulus {name!r}; known: {', '.join(HANDLERS)}")
        handler(self, stimulus)

    def handler(self, name: str) -> Callable[[Any, Stimulus], None] | None:
        """What a stimulus does."""
        return HANDLERS.get(name)

    def _take_apart(self, name: str, value: Any) -> Stimulus:
        args = decode.fields(value, name) if isinstance(value, dict) else {}
        if isinstance(value, list):
            # Items of one list are addressed alike; each carries its address.
            args = decode.fields(value[0], name) if value and isinstance(value[0], dict) else {}
        self.counts[name] = self.counts.get(name, 0) + 1
        reply = str(args.get("as", f"{name}{self.counts[name]}"))
        named = self.world.runs.get(str(args.get("run")))
        session = args.get("session", named.session if named else self.world.settings.sessions[0])
        port = self.world.ports.get(session)
        if port is None:
            raise DriverError(f"{name}: there is no session {session!r}")
        return Stimulus(name, value, args, reply, port)

    def _refuse(self, s: Stimulus, feature: str) -> None:
        s.port.see("Refused", {"stimulus": s.name, "feature": feature}, None)

    # -- addressing --------------------------------------------------------------------------------

    def run_of(self, s: Stimulus) -> Run | None:
        """The run that is meant: by name, else the newest accepted one of the session."""
        name = s.args.get("run")
        if name is None:
            return s.port.runs[-1] if s.port.runs else None
        if name not in self.named:
            raise DriverError(f"{s.name}: no step started a run {name!r}")
        return self.world.runs.get(name)  # a refused one is no run

    def command(self, s: Stimulus, run: Run | None = None) -> Command:
        return Command(s.name, s.reply, s.port.name, run)

    def say(self, s: Stimulus, value: Any, run: Run | None = None) -> None:
        """Answer at once."""
        self.world.reply(self.command(s, run), value)

    def _tell(self, s: Stimulus, run: Run | None, make: Callable[[str], i.RunInput]) -> None:
        """A command for a run; through the handle of a finished one it comes too late (the core's affair)."""
        command_id = self.world.command(self.command(s, run))
        s.port.feed(s.port.addressed(run, make(command_id)))

    # -- starting ----------------------------------------------------------------------------------

    def start(self, s: Stimulus) -> None:
        text = decode.text(s.args["text"] if s.args else s.value, "start")
        self._begin(s, lambda command, run: i.Start(command, run, (m.Text(text),)))

    def start_tool(self, s: Stimulus) -> None:
        call = decode.call(decode.need(s.args, "call", "start_tool"), "start_tool.call")
        self._begin(s, lambda command, run: i.StartToolCall(command, run, call))

    def _begin(self, s: Stimulus, make: Callable[[str, str], i.SessionInput]) -> None:
        run = Run(f"r{len(self.named) + 1}", s.port.name)
        self.named.append(run.name)
        s.reply = str(s.args.get("as", run.name))
        s.port.starting[run.name] = run
        s.port.feed(make(self.world.command(self.command(s, run)), run.name))

    # -- commands of a run -------------------------------------------------------------------------

    def cancel(self, s: Stimulus) -> None:
        run = self.run_of(s)
        if run is None:
            self.say(s, "ok")  # no handle to cancel by; a compaction by hand has none either
            return
        self._tell(s, run, i.Cancel)

    def steer(self, s: Stimulus) -> None:
        text = decode.text(s.args.get("text", s.value), "steer")
        steering_id = self.world.names.new_steer(s.reply)
        self._tell(s, self.run_of(s), lambda command: i.Steer(command, steering_id, (m.Text(text),)))

    def retract(self, s: Stimulus) -> None:
        ref = decode.text(decode.need(s.args, "ref", "retract"), "retract.ref")
        steering_id = self.world.names.steer_id(ref)
        self._tell(s, self.run_of(s), lambda command: i.Retract(command, steering_id))

    def respond(self, s: Stimulus) -> None:
        ref = decode.text(decode.need(s.args, "ref", "respond"), "respond.ref")
        given = decode.DEFAULT_ANSWERS
        if "answers" in s.args:
            given = decode.answers(s.args["answers"], "respond.answers")
        request_id = self.world.names.ask_id(ref)
        self._tell(s, self.run_of(s), lambda command: i.Respond(command, request_id, given))

    def drop(self, s: Stimulus) -> None:
        run = self.run_of(s)
        if run is not None and not run.dropped:
            run.dropped = run.seen_end = True
            run.channel.clear()
            if run is s.port.active:
                s.port.leaving = run
                s.port.feed(i.Drop())
        self.say(s, "ok", run)

    # -- the reader --------------------------------------------------------------------------------

    def read(self, s: Stimulus) -> None:
        count = s.args.get("n", s.args.get("count")) if s.args else s.value
        if count == "all":
            s.port.eager = True
            return
        if type(count) is not int or count < 0:
            raise DriverError(f"read: expected a number or 'all', got {count!r}")
        run = self.run_of(s)
        if run is not None:
            run.wanted = count

    def hold_reader(self, s: Stimulus) -> None:
        s.port.eager = False

    def close_reader(self, s: Stimulus) -> None:
        run = self.run_of(s)
        if run is None or run.gone:
            return
        run.leave()
        if run is s.port.active:
            s.port.feed(i.ReaderClosed())

    def outcome(self, s: Stimulus) -> None:
        run = self.run_of(s)
        if run is None:
            return  # a refused start has no outcome: whoever awaits it, waits
        command_id = self.world.command(self.command(s, run))
        if run.resolved:
            interpret.resolve(s.port, command_id)
        else:
            run.draining.append(command_id)

    # -- the session -------------------------------------------------------------------------------

    def drop_handle(self, s: Stimulus) -> None:
        """Dropping the session's or the runtime's handle stops nothing (RHO-DROP-5, RHO-DROP-6)."""
        self.say(s, "ok")

    def shutdown(self, s: Stimulus) -> None:
        self.world.tell_runtime(i.Shutdown(self.world.command(self.command(s))))
        for port in self.world.ports.values():
            port.flush()

    def compact(self, s: Stimulus) -> None:
        command = self.world.command(self.command(s))
        s.port.feed(i.Compact(command, f"compact:{self.world.serial()}"))

    def reset(self, s: Stimulus) -> None:
        s.port.feed(i.Reset(self.world.command(self.command(s))))

    def append(self, s: Stimulus) -> None:
        message = decode.message(decode.need(s.args, "message", "append"), "append.message")
        s.port.feed(i.AppendMessage(self.world.command(self.command(s)), message))

    def replace_history(self, s: Stimulus) -> None:
        given = decode.messages(decode.need(s.args, "messages", "replace_history"), "replace_history.messages")
        s.port.feed(i.ReplaceHistory(self.world.command(self.command(s)), given))

    def query(self, s: Stimulus) -> None:
        """Reads only. A Rho session knows its runs; subagents, workflows and processes are Orca's."""
        facts = s.port.facts()
        active = [s.port.active.name] if s.port.active is not None else []
        asked = [w for w in s.port.waiting_on() if w.startswith("host:")]
        values: dict[Any, Any] = {
            "state": facts["state"],
            "active": active,
            "runs": active,
            "processes": [],
            "pending": len(asked),
        }
        if s.value not in values:
            raise DriverError(f"query: expected one of {', '.join(values)}, got {s.value!r}")
        self.say(s, {"ok": values[s.value]})


Handler = Callable[[Performer, Stimulus], None]


def _advance(performer: Performer, s: Stimulus) -> None:
    value = s.args.get("by") if s.args else s.value
    # Between other stimuli time only makes timers due; alone, `CoreDriver` lets them fire one at a time.
    performer.world.now_ms += decode.duration_ms(value, "advance")


def _stored(do: store.StoreCommand) -> Handler:
    def handle(performer: Performer, s: Stimulus) -> None:
        do(performer.world, performer.command(s), s.port, s.args)

    return handle


def _answered(do: answers.Answer) -> Handler:
    def handle(performer: Performer, s: Stimulus) -> None:
        do(s.port, s.value)

    return handle


HANDLERS: dict[str, Handler] = {
    "start": Performer.start,
    "start_tool": Performer.start_tool,
    "cancel": Performer.cancel,
    "steer": Performer.steer,
    "retract": Performer.retract,
    "respond": Performer.respond,
    "outcome": Performer.outcome,
    "read": Performer.read,
    "hold_reader": Performer.hold_reader,
    "close_reader": Performer.close_reader,
    "drop": Performer.drop,
    "drop_session": Performer.drop_handle,
    "drop_runtime": Performer.drop_handle,
    "shutdown": Performer.shutdown,
    "compact": Performer.compact,
    "reset": Performer.reset,
    "append": Performer.append,
    "replace_history": Performer.replace_history,
    "query": Performer.query,
    "advance": _advance,
    **{name: _stored(do) for name, do in store.COMMANDS.items()},
    **{name: _answered(do) for name, do in answers.ANSWERS.items()},
}
