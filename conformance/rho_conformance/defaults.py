"""Fill in what a driver may leave out: to which session and run an observation belongs, and which request it is.

The fields of an observation are optional, so a driver of one session and one run at a time need not name them. The
judges must not be blind there: what is missing is read off the starts, their replies and the ends (protocol,
"Left out"). What a driver says itself is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.errors import DriverError
from rho_conformance.replies import PENDING, check_outcome
from rho_conformance.vocabulary import CLOSED, COMMANDS, COUNTERS, EVENTS, NOTIFICATIONS, TERMINAL, UPCALLS

Json = dict[str, Any]
STARTS = ("start", "start_tool", "continue")
_MANUAL = "Manual"
_LAST = frozenset({"return", "fail", "cancelled", "panic"})
_ATTEMPT = frozenset(
    {"AssistantTextDelta", "ReasoningDelta", "ReasoningSummaryDelta", "ToolCallUpdated", "ModelCallCompleted"}
)
"""Events of one request: what comes behind a reset is of the next attempt (RHO-RET-10)."""
_OF_A_RUN = (EVENTS | UPCALLS | {CLOSED}) - NOTIFICATIONS


@dataclass(slots=True)
class _Run:
    """A start-like command.

    `ended`: what ended its newest request, as far as stimuli tell: `good`, `bad` or None. `shown`: a step that was
    announced and whose request has not been seen. `told`: how many steps were announced. `tools`: calls that execute.
    """

    name: str
    session: str
    filed: str
    text: str | None
    over: bool = False
    step: int = 0
    attempt: int = 0
    ended: str | None = None
    shown: int | None = None
    told: int = 0
    again: bool = False
    resets: int = 0
    tools: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Session:
    """`now`: whom an observation without a run is about. `next`: accepted runs behind it, oldest first."""

    now: _Run | None = None
    next: list[_Run] = field(default_factory=list)
    busy: bool = False
    calls: int = 0
    manual: bool = False

    def move(self) -> None:
        """To the next accepted run, if there is one."""
        if self.next:
            self.now = self.next.pop(0)


class Defaults:
    """Follows one world. `exact`: one settle of this driver is proof."""

    def __init__(self, config: Json, *, exact: bool = True) -> None:
        named = config.get("sessions")
        self.main = str(named[0]) if isinstance(named, list) and named else "s1"
        self.exact = exact
        self.runs: dict[str, _Run] = {}
        self.sessions: dict[str, _Session] = {}
        self.asked: dict[str, str] = {}  # name of an outcome's reply -> run
        self.counted = 0
        self.pending: dict[str, str] = {}  # told `pending` in so many words -> run
        self.late: set[str] = set()

    def fill(self, stimuli: Iterable[Json], answer: Json) -> Json:
        """A checked answer with nothing missing; the very same map where nothing was.

        Raises:
            DriverError: the reply of `outcome` is none, or was `pending` and never comes though the run has ended.
        """
        seen: list[Json] = answer["observations"]
        replies = {one["Reply"]["name"]: one["Reply"].get("value") for one in seen if "Reply" in one}
        for stimulus in stimuli:
            for name, value in stimulus.items():
                self._done(name, value, replies)
        filled = [self._observed(one) for one in seen]
        self._settled(answer["facts"])
        self._never_answered(replies)
        if all(a is b for a, b in zip(filled, seen, strict=True)):
            return answer
        return {**answer, "observations": filled}

    # -- what was done -------------------------------------------------------------------------------------------

    def _done(self, name: str, value: Any, replies: Mapping[str, Any]) -> None:
        args = value if isinstance(value, dict) else {}
        session = str(args.get("session", self.main))
        if name in STARTS:
            self._started(args, value, session, replies)
        elif name == "outcome":
            self.counted += 1
            run = self.runs.get(str(args.get("run"))) or self._newest(session)
            if run is not None:
                self.asked[str(args.get("as", f"outcome{self.counted}"))] = run.name
        elif name == "provider":
            for item in value if isinstance(value, list) else [value]:
                self._ended(item, session)
        elif name == "tool":
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict) and _LAST & set(item):
                    self._tool_over(self._talk(session), str(item.get("id")))
        elif name == "crash":
            for run in self.runs.values():
                run.over = True

    def _started(self, args: Json, value: Any, session: str, replies: Mapping[str, Any]) -> None:
        name = f"r{len(self.runs) + 1}"
        text = value if isinstance(value, str) else args.get("text")
        run = self.runs[name] = _Run(name, session, str(args.get("as", name)), text if isinstance(text, str) else None)
        reply = replies.get(run.filed)
        if isinstance(reply, dict) and "error" in reply:
            run.over = True
            return
        talk = self._talk(session)
        talk.next.append(run)
        # A start while another run goes on is a race, or a queue: the other run has the word until it ends.
        if talk.now is None or talk.now.over or not talk.busy:
            while talk.next:
                talk.move()
        talk.busy = True

    def _ended(self, item: Any, session: str) -> None:
        from rho_conformance.monitors.entities import is_malformed
        from rho_conformance.monitors.stimuli import split_item

        named = self.runs.get(str(item.get("run"))) if isinstance(item, dict) else None
        run = named or self._talk(session).now
        pairs = split_item(item)
        if run is None or run.ended is not None or not pairs or pairs[-1][0] not in ("return", "fail", "panic"):
            return
        kind, value = pairs[-1]
        run.ended = "good" if kind == "return" and not is_malformed(value) else "bad"

    # -- what was seen -------------------------------------------------------------------------------------------

    def _observed(self, one: Json) -> Json:
        name = next(key for key in one if key not in COUNTERS)
        fields: Json = one[name]
        if name in COMMANDS:
            return one
        more: Json = {}
        known = self.runs.get(str(fields.get("run")))
        session = fields.get("session")
        if not isinstance(session, str):
            session = more["session"] = known.session if known is not None else self.main
        talk = self._talk(session)
        if "run" not in fields and name in _OF_A_RUN:
            known = self._meant(name, fields, talk)
            if known is not None:
                more["run"] = known.name
        if name == "ModelCall":
            more |= self._request(fields, talk, known)
        if known is not None:
            more |= self._follow(name, fields, talk, known)
        more |= _named_inside(name, fields)
        return {**one, name: {**fields, **more}} if more else one

    def _meant(self, name: str, fields: Json, talk: _Session) -> _Run | None:
        """The run that an observation without one is about; none for what the session does by itself."""
        if fields.get("trigger") == _MANUAL and name != "Compact":
            return None
        if "Compact" in (name, fields.get("upcall")):
            talk.manual = fields.get("trigger", _MANUAL if talk.manual else None) == _MANUAL
            return None if talk.manual or talk.now is None or talk.now.over else talk.now
        told = self.runs.get(str(fields.get("run_id"))) if name == "Started" else None
        if told is not None and told in talk.next:
            while talk.now is not told:
                talk.move()
        elif talk.next and talk.now is not None and (talk.now.over or name == "Started" or _asks(fields, talk)):
            talk.move()
        return talk.now

    def _request(self, fields: Json, talk: _Session, run: _Run | None) -> Json:
        """Number, step and attempt of a request: a reset, or a bad end without a new step, makes it the next attempt.

        A new step is what StepStarted says, else what follows a response that holds.
        """
        more: Json = {}
        talk.calls = fields["n"] if type(fields.get("n")) is int else talk.calls + 1
        if "n" not in fields:
            more["n"] = talk.calls
        if run is None:
            return more
        step, attempt = fields.get("step"), fields.get("attempt")
        fresh = run.step == 0 or run.shown is not None or (run.ended == "good" and not run.again)
        if type(step) is not int:
            fresh = attempt == 1 if type(attempt) is int else fresh
            step = more["step"] = (run.shown or run.step + 1) if fresh else max(run.step, 1)
        if type(attempt) is not int:
            attempt = more["attempt"] = run.attempt + 1 if step == run.step else 1
        run.step, run.attempt, run.ended, run.shown, run.again = step, attempt, None, None, False
        return more

    def _follow(self, name: str, fields: Json, talk: _Session, run: _Run) -> Json:
        if name in TERMINAL:
            run.over = True
        elif name == "ToolExecute":
            run.tools.append(str(fields.get("call_id")))
        elif name == "Abandoned" and fields.get("upcall") == "ToolExecute":
            alone = run.tools[0] if len(run.tools) == 1 else None
            self._tool_over(talk, str(fields.get("call_id", alone)))
            return {"call_id": alone} if alone is not None and "call_id" not in fields else {}
        elif name == "Started" and run in talk.next:
            while talk.now is not run:
                talk.move()
        elif name == "StepStarted":
            run.told, run.resets = run.told + 1, 0
            step = fields["step"] if type(fields.get("step")) is int else run.told
            # Events may come behind the upcalls of the same step: then this tells of the present request.
            run.shown = step if step > run.step else None
        elif name == "ProviderStreamReset":
            run.again, run.resets = True, run.resets + 1
            return {"attempt": run.resets} if "attempt" not in fields else {}
        elif name in _ATTEMPT and "attempt" not in fields:
            return {"attempt": run.resets + 1}
        return {}

    def _tool_over(self, talk: _Session, call: str) -> None:
        for run in (talk.now, *talk.next):
            if run is not None and call in run.tools:
                run.tools.remove(call)
                return

    # -- when it has settled -------------------------------------------------------------------------------------

    def _settled(self, facts: Json) -> None:
        inner = facts.get("sessions") or {}
        for name, talk in self.sessions.items():
            busy = inner.get(name, {}).get("busy", facts.get("busy") if name == self.main else None)
            talk.busy = busy is True
            if busy is False:
                while talk.next:
                    talk.move()
                if talk.now is not None:
                    talk.now.over = True

    def _never_answered(self, replies: Mapping[str, Any]) -> None:
        """A driver that says `pending` owes a second reply: without it, the runtime would get the blame."""
        for name, value in replies.items():
            if name in self.asked:
                check_outcome(value, f"Reply {name!r}")
                self.pending.pop(name, None)
                if value == PENDING:
                    self.pending[name] = self.asked[name]
        for name, run in self.pending.items():
            if self.runs[run].over and (self.exact or name in self.late):
                raise DriverError(
                    f"Reply {name!r} was `pending`, and {run} has ended since: an outcome that was asked for before "
                    "the end is answered by a second Reply with the same name in the step in which the run ends"
                )
            if self.runs[run].over:
                self.late.add(name)

    # -- sessions ------------------------------------------------------------------------------------------------

    def _talk(self, session: str) -> _Session:
        return self.sessions.setdefault(session, _Session())

    def _newest(self, session: str) -> _Run | None:
        talk = self._talk(session)
        return talk.next[-1] if talk.next else talk.now


def _asks(fields: Json, talk: _Session) -> bool:
    """Whether a request ends with the text of the next run, and not with that of the present one."""
    messages = fields.get("messages")
    users = [one["user"] for one in messages or () if isinstance(one, dict) and "user" in one]
    wanted = talk.next[0].text
    return wanted is not None and users[-1:] == [wanted] and talk.now is not None and talk.now.text != wanted


def _named_inside(name: str, fields: Json) -> Json:
    """What an event tells within another field: the call of ToolProposed, the question of ToolHostInputRequested."""
    if name == "ToolProposed" and "call_id" not in fields and isinstance(fields.get("call"), dict):
        return {"call_id": fields["call"].get("id")}
    if name == "ToolHostInputRequested" and "ask" not in fields and isinstance(fields.get("request"), dict):
        return {"ask": fields["request"].get("id")}
    return {}
