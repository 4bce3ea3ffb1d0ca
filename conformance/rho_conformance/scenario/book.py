"""Who is who in a trace: runs by name, commands by the name of their reply (scenario format §1, "Names")."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.scenario.grammar import COMMANDS, ORCA_STIMULI, START_LIKE
from rho_conformance.trace import Observation, Trace
from rho_conformance.vocabulary import is_refused_again

PENDING = "pending"
_WITH_REPLY = (*COMMANDS, *ORCA_STIMULI)


@dataclass(slots=True)
class Run:
    """One start-like step. `gone` says why it has no outcome: refused, dropped or crashed."""

    name: str
    session: str
    step: int
    accepted: bool = False
    gone: str | None = None
    reader_closed: bool = False
    asked: list[str] = field(default_factory=list)  # names of the replies that hold its outcome


@dataclass(frozen=True, slots=True)
class Command:
    """One host command. `filed` is the driver's name for its reply, `name` the file's, if it has one."""

    stimulus: str
    filed: str
    name: str | None
    step: int
    run: str | None = None


@dataclass(slots=True)
class Book:
    """Everything that names refer to, read off a trace."""

    runs: dict[str, Run]
    commands: list[Command]
    replies: dict[str, Any]

    def newest(self, session: str) -> Run | None:
        """The newest accepted run of a session."""
        accepted = [run for run in self.runs.values() if run.accepted and run.session == session]
        return accepted[-1] if accepted else None

    def reply(self, name: str) -> tuple[bool, Any]:
        """Whether the file has a command of that name, and its reply (`pending` until there is one)."""
        for command in reversed(self.commands):
            if command.name == name:
                return True, self.replies.get(command.filed, PENDING)
        return False, None

    def outcome(self, run: Run) -> Any:
        """The outcome that was taken, `pending`, or None when nobody asked for it."""
        if not run.asked:
            return None
        for nth, name in enumerate(run.asked):
            value = self.replies.get(name, PENDING)
            if value != PENDING and not (nth and is_refused_again(value)):
                return value
        return PENDING


def is_ok(reply: Any) -> bool:
    """Whether a reply says that the command was accepted."""
    return reply == "ok" or (isinstance(reply, dict) and "ok" in reply)


def read_book(trace: Trace, implicit: frozenset[int] = frozenset()) -> Book:
    """The book of a trace; `implicit` are the steps that the runner added and the file does not count."""
    return _Reader(trace, implicit).read()


class _Reader:
    def __init__(self, trace: Trace, implicit: frozenset[int]) -> None:
        self.trace = trace
        self.implicit = implicit
        self.book = Book({}, [], {})
        self.starts: dict[str, Run] = {}  # name of the reply -> its run
        self.counts: Counter[str] = Counter()  # as the driver counts
        self.own: Counter[str] = Counter()  # as the file counts

    def read(self) -> Book:
        for number, record in enumerate(self.trace.steps, 1):
            # Replies first: a later stimulus of the same `together` may address a run that this step began.
            for observation in record.seen():
                self._reply(observation)
            for stimulus in record.perform:
                ((name, value),) = stimulus.items()
                self._stimulus(name, value if isinstance(value, dict) else {}, number)
        for run in self.book.runs.values():
            if not run.accepted:
                run.gone = "refused"
        return self.book

    def _reply(self, seen: Observation) -> None:
        name = seen.fields.get("name") if seen.name == "Reply" else None
        if isinstance(name, str):
            self.book.replies[name] = seen.fields.get("value", PENDING)
            if name in self.starts:
                self.starts[name].accepted = is_ok(self.book.replies[name])

    def _stimulus(self, name: str, fields: dict[str, Any], step: int) -> None:
        session = fields.get("session", self.trace.main_session)
        if name in START_LIKE:
            self._start(name, fields, session, step)
            return
        run = self.book.runs.get(fields["run"]) if "run" in fields else self.book.newest(session)
        if name == "crash":
            for lost in self.book.runs.values():
                lost.gone = lost.gone or "crashed"
        if run is not None and name == "drop":
            run.gone = run.gone or "dropped"
        if run is not None and name == "close_reader":
            run.reader_closed = True
        if name in _WITH_REPLY:
            filed = self._file(name, fields, step, run)
            if name == "outcome" and run is not None:
                run.asked.append(filed)

    def _start(self, stimulus: str, fields: dict[str, Any], session: str, step: int) -> None:
        name = f"r{len(self.book.runs) + 1}"
        filed = fields.get("as", name)
        run = Run(name, session, step, accepted=is_ok(self.book.replies.get(filed)))
        self.book.runs[name] = self.starts[filed] = run
        self.book.commands.append(Command(stimulus, filed, filed, step, name))

    def _file(self, stimulus: str, fields: dict[str, Any], step: int, run: Run | None) -> str:
        self.counts[stimulus] += 1
        hidden = step in self.implicit
        if not hidden:
            self.own[stimulus] += 1
        filed = str(fields.get("as", f"{stimulus}{self.counts[stimulus]}"))
        name = None if hidden else str(fields.get("as", f"{stimulus}{self.own[stimulus]}"))
        self.book.commands.append(Command(stimulus, filed, name, step, run.name if run else None))
        return filed
