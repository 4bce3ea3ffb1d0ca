"""The strict oracle: the inputs that the runtime fed, replayed through the core, ask for exactly what was seen.

Where an implementation is built on the core, its trace must be the core's (design §6): each event that was read,
each call of a double, each answer and each record, nothing more and nothing else.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import rho_core.runtime
import rho_core.session
from rho_conformance.drivers.corework import encode
from rho_core import effects as fx
from rho_core.runtime import Runtime
from rho_core.session import Session

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Session, name of the observation, and the call it is about, if any."""


class Oracle:
    """`faults`: every difference between the runtime and the core, in words."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._sessions: dict[str, Session] = {}
        self._runtime = Runtime()
        self._runs: dict[str, str] = {}
        self._events: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        self._due: dict[Key, deque[Json]] = defaultdict(deque)
        self.inputs = 0

    def begins(self, session: Session) -> None:
        """A session stands here, new or restored."""
        self._sessions[session.id] = session

    def restarted(self) -> None:
        """The process was lost: what was due is due no more."""
        self._runtime = Runtime()
        self._due.clear()
        self._events.clear()

    # -- the replica -------------------------------------------------------------------------------------------

    def fed(self, session_id: str | None, value: Any) -> None:
        """The runtime is going to feed this."""
        self.inputs += 1
        if session_id is None:
            self._runtime = rho_core.runtime.step(self._runtime, value).state
            return
        before = self._sessions.get(session_id)
        if before is None:
            return  # it is being built
        run = before.run_id or self._runs.get(session_id, "")
        step = rho_core.session.step(before, value)
        self._sessions[session_id] = step.state
        self._runs[session_id] = step.state.run_id or run
        for effect in step.effects:
            self._expect(session_id, step.state.run_id or run, effect)

    def _expect(self, session: str, run: str, effect: Any) -> None:
        if isinstance(effect, fx.Deliver):
            self._events[session, run].append(effect.event)
        elif isinstance(effect, fx.AbortModel):
            self._withdraw(session, "ModelCall", "")
        elif isinstance(effect, fx.AbortTool):
            for name in ("ToolPrepare", "ToolAuthorize", "ToolExecute"):
                self._withdraw(session, name, effect.call_id)
        elif isinstance(effect, fx.AbortCompactor):
            self._withdraw(session, "Compact", "")
        elif type(effect) in _DUE:
            name, call_id, shown = _DUE[type(effect)](effect)
            self._due[session, name, call_id].append(shown)

    def _withdraw(self, session: str, name: str, call_id: str) -> None:
        """What was asked for is aborted: whether its double was still reached is a matter of timing."""
        for shown in self._due[session, name, call_id]:
            shown["optional"] = True

    # -- what was seen -----------------------------------------------------------------------------------------

    def read(self, session: str, run: str, event: Any) -> None:
        """The reader took an event; those before it may have been thrown away by `outcome`."""
        due = self._events[session, run]
        while due:
            if due.popleft() == event:
                return
        self.faults.append(f"{run}: the reader took {event!r}, which the core did not send then")

    def saw(self, name: str, session: str, run: str | None, fields: Json) -> None:
        """An observation."""
        if name not in _NAMES:
            return
        call_id = str(fields.get("call_id", ""))
        due = self._due[session, name, call_id]
        while due:
            shown = due.popleft()
            wrong = [k for k, v in shown.items() if k != "optional" and fields.get(k) != v]
            if not wrong:
                return
            if not shown.get("optional"):
                said = {k: fields.get(k) for k in wrong}
                self.faults.append(f"{name} of {session}: {said!r} differs from what the core asked for: {shown!r}")
                return
        self.faults.append(f"{name} {call_id} of {session} was seen once more than the core asked for it")

    def settled(self, states: dict[str, Session]) -> None:
        """Nothing moves any more: all that was asked for was done, and the states are equal."""
        for (session, name, call_id), due in self._due.items():
            left = [shown for shown in due if not shown.get("optional")]
            if left:
                self.faults.append(f"{name} {call_id} of {session} was asked for and never seen: {left[0]!r}")
            due.clear()
        for session, state in states.items():
            if self._sessions.get(session) != state:
                self.faults.append(f"the state of {session} is not the core's after the same inputs")


def _call(name: str) -> Callable[[Any], tuple[str, str, Json]]:
    return lambda e: (name, e.call_id, {"call_id": e.call_id})


def _record(e: fx.RecordUsage) -> tuple[str, str, Json]:
    return "Record", "", {"step": e.step, "attempt": e.attempt, "usage": encode.usage(e.usage)}


def _model(e: fx.CallModel) -> tuple[str, str, Json]:
    return "ModelCall", "", {"step": e.step, "attempt": e.attempt, "messages": encode.messages(e.messages)}


def _answer(e: fx.DeliverAnswer) -> tuple[str, str, Json]:
    return "HostAnswer", e.call_id, {"answers": encode.answers(e.answers), "optional": True}


_DUE: dict[type, Callable[[Any], tuple[str, str, Json]]] = {
    fx.CallModel: _model,
    fx.Prepare: lambda e: ("ToolPrepare", e.call.id, {"call_id": e.call.id, "name": e.call.name}),
    fx.Authorize: _call("ToolAuthorize"),
    fx.Execute: _call("ToolExecute"),
    fx.DeliverAnswer: _answer,
    fx.RefuseAsk: lambda e: ("AskRefused", e.call_id, {"call_id": e.call_id, "optional": True}),
    fx.CallCompactor: lambda e: (
        "Compact",
        "",
        {"messages": encode.messages(e.messages), "trigger": e.trigger.capitalize()},
    ),
    fx.AskBoundary: lambda e: ("Collect", "", {"kind": e.boundary}),
    fx.AckBoundary: lambda e: ("CollectAck", "", {"accepted": e.accepted}),
    fx.RecordUsage: _record,
}
"""Effect -> the observation it must lead to, its call, and the fields that must agree."""
_NAMES = frozenset(
    {
        "ModelCall",
        "ToolPrepare",
        "ToolAuthorize",
        "ToolExecute",
        "HostAnswer",
        "AskRefused",
        "Compact",
        "Collect",
        "CollectAck",
        "Record",
    }
)
