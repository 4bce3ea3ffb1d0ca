"""`Recording`: a live session written down as a trace that `rho-core check` judges.

```python
with Recording(path) as recording:
    async with Rho(recording.provider(model), recording.tools(tools), journal=recording.journal,
                   authorizer=recording.authorizer(policy)) as rho:
        session = recording.session(rho.session("s1"))
```

What is written was seen at the place where it happened: upcalls by whoever was called, items where the core took
them (the journal), commands and events where the host gave and read them. One recording is of one session.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import rho_core
import rho_core.session
from rho_adapters.host import Authorizer, BoundaryCollector, Compactor, DenyAll, UsageRecorder
from rho_adapters.provider import Provider
from rho_adapters.recording import items, lent
from rho_adapters.recording.lent import TappedCollector, TappedCompactor, TappedRecorder
from rho_adapters.recording.questions import Questions
from rho_adapters.recording.session import RecordedSession
from rho_adapters.recording.tape import Tape
from rho_adapters.recording.taps import TappedAuthorizer, TappedProvider, TappedTool
from rho_adapters.runtime.port import SessionPort
from rho_adapters.runtime.session import Session
from rho_adapters.runtime.work import RunState
from rho_adapters.tool import Tool
from rho_core import inputs as inp
from rho_core.asks import Answers
from rho_core.config import Policy
from rho_core.normal import encode
from rho_core.waiting import waiting_on

Json = dict[str, Any]
CAPABILITIES = (
    "start start_tool cancel steer retract respond outcome drop compact reset append replace_history save read "
    "close_reader advance provider.* tool.* call.async config.* observe.*"
)


class Recording:
    """A tap on one runtime. `file`: written line by line. Raises OSError when it cannot be opened."""

    def __init__(self, file: Path, *, name: str = "rho_adapters") -> None:
        self._file = file.open("w", encoding="utf-8", newline="\n")
        self._name = name
        self._began = time.monotonic_ns()
        self.tape = Tape(self._file, self._now_ms)
        self.steers: dict[str, str] = {}
        self.runs: dict[str, str] = {}
        self._port: SessionPort | None = None
        self._open: dict[tuple[str, str], str | None] = {}
        self._requests = 0
        self._questions = Questions()
        self._marked: set[str] = set()
        self._refused: object = None
        self._closed = False

    def _now_ms(self) -> int:
        return (time.monotonic_ns() - self._began) // 1_000_000

    # -- what is tapped ----------------------------------------------------------------------------------------

    def provider(self, inner: Provider) -> Provider:
        """The provider to give to the runtime."""
        return TappedProvider(inner, self)

    def tools(self, inner: Sequence[Tool]) -> list[Tool]:
        """The tools to give to the runtime."""
        return [TappedTool(one, self) for one in inner]

    def authorizer(self, inner: Authorizer | None) -> Authorizer:
        """The authorizer to give to the runtime."""
        return TappedAuthorizer(inner or DenyAll(), self)

    def compactor(self, inner: Compactor) -> Compactor:
        """The compactor to give to the runtime."""
        return TappedCompactor(inner, self)

    def collector(self, inner: BoundaryCollector) -> BoundaryCollector:
        """The boundary collector to give to the runtime."""
        return TappedCollector(inner, self)

    def recorder(self, inner: UsageRecorder) -> UsageRecorder:
        """The usage recorder to give to the runtime."""
        return TappedRecorder(inner, self)

    def session(self, inner: Session) -> RecordedSession:
        """The session to talk to. The recording begins here, with the history it has."""
        if self._port is not None:
            raise ValueError("a recording is of one session")
        self._port = port = inner._port
        self.tape.settled, self.tape.facts = self._settled, self._facts
        self.tape.head(self._hello(), _config(port))
        return RecordedSession(port, self)

    def _hello(self) -> Json:
        return {
            "protocol": 1,
            "name": self._name,
            "version": rho_core.__version__,
            "profiles": ["rho", "common"],
            "capabilities": CAPABILITIES.split(),
            "time": "real",
            "deterministic": False,
        }

    # -- what the core is told ---------------------------------------------------------------------------------

    def journal(self, session_id: str | None, value: Any) -> None:
        """To be given to the runtime as its journal."""
        port = self._port
        if port is None or self._closed or session_id != port.state.id:
            return
        if isinstance(value, inp.ForRun):
            return  # too late: it does nothing
        if isinstance(value, inp.TimerFired):
            self.tape.time_passed()
        elif type(value) in inp.INPUT_CLASS:
            self._item(port, value)

    def _lent(self, value: Any) -> None:
        found = lent.item(value)
        if found is not None:
            stimulus, kind, item = found
            self.tape.did({stimulus: item})
            if kind == "Compact":
                self.saw("Taken", {"upcall": kind, "item": item})
            self._open.pop((kind, ""), None)

    def _item(self, port: SessionPort, value: Any) -> None:
        tool = items.of_tool(value)
        if isinstance(value, inp.ToolAsked):
            self._questions.posed(value.request)
        if tool is not None:
            self._handed(port, value, "tool", {"id": value.call_id, **tool[1]}, tool[0], value.call_id, tool[1])
            return
        item = items.of_model(value, frozenset(self._marked), self.steers)
        if item is None:
            self._lent(value)
        else:
            if isinstance(value, inp.ContextBlock) and value.context_kind == inp.ASYNC_CALL:
                self._marked.add(value.data)
            self._handed(port, value, "provider", item, "ModelCall", str(self._requests), item)

    def _handed(
        self, port: SessionPort, value: Any, stimulus: str, given: Json, kind: str, key: str, item: Json
    ) -> None:
        if value is not self._refused:
            self.tape.did({stimulus: given}, delta=type(value) in inp.GENERATED)
        if inp.INPUT_CLASS[type(value)] == "gated" and not rho_core.session.accepts(port.state):
            self._refused = value  # it will be offered again
            return
        self._refused = None
        self.saw("Taken", {"upcall": kind, **_which(kind, key), "item": item})
        if type(value) in items.MODEL_ENDS or type(value) in items.TOOL_ENDS:
            self._open.pop((kind, key), None)

    # -- what the runtime calls (`taps.Book`) --------------------------------------------------------------------

    def opened(self, kind: str, key: str, fields: Json) -> None:
        """An upcall began."""
        run = self.run
        for other in [o for o in self._open if kind == "ModelCall" and o[0] == kind]:
            del self._open[other]  # there is one at a time
        self._open[kind, key] = run
        self._see(kind, fields, run)

    def begun(self, run_id: str, name: str) -> None:
        """A run was accepted; nothing that was open before it concerns the session any more."""
        self.runs[run_id] = name
        self._open.clear()

    def left(self, kind: str, key: str) -> None:
        """It is over; abandoned, if the runtime is not just taking its answer."""
        waits = () if self._port is None else waiting_on(self._port.state)
        wanted = _wait(kind, key) in waits or "reader" in waits
        if (kind, key) in self._open and not wanted:
            run = self._open.pop((kind, key))
            self._see("Abandoned", {"upcall": kind, **_which(kind, key), "how": "dropped"}, run)

    def saw(self, name: str, fields: Json) -> None:
        """Something was observed of the run that goes on."""
        self._see(name, fields, self.run)

    def number(self) -> int:
        """The number of the next request."""
        self._requests += 1
        self._marked = set()
        return self._requests

    def responded(self, request_id: str, answers: Answers) -> Json:
        """A response as it is written."""
        return self._questions.response(request_id, answers)

    def answered(self, request_id: str, answers: Answers) -> Json:
        """What a tool got as it is written."""
        return self._questions.answer(request_id, answers)

    def steer_name(self, steering_id: str) -> str:
        """The name of a steer."""
        return self.steers.get(steering_id, steering_id)

    def _see(self, name: str, fields: Json, run: str | None) -> None:
        if not self._closed and self._port is not None:
            where: Json = {"session": self._port.state.id, **encode.present(run=run)}
            self.tape.see(name, {**where, **fields})

    def see_in(self, run: str | None, name: str, fields: Json) -> None:
        """Something was observed of a run, by its name."""
        self._see(name, fields, run)

    # -- how it stands -----------------------------------------------------------------------------------------

    @property
    def run(self) -> str | None:
        """The name of the run that has the session."""
        port = self._port
        work = None if port is None else port.active or port.leaving
        return None if work is None else self.runs.get(work.id)

    def _settled(self) -> bool:
        port = self._port
        if port is None:
            return False
        run = port.active or port.leaving
        if isinstance(run, RunState) and (run.channel or run.held):
            return False
        waits = {w for w in waiting_on(port.state) if w not in ("timer", "reader") and not w.startswith("host:")}
        known = {_wait(kind, key) for kind, key in self._open}
        # What a recorder was given is in its own hands: nobody may wait for it.
        return waits <= known and known - {"recorder"} <= waits

    def _facts(self) -> tuple[list[str], Json]:
        port = self._port
        assert port is not None
        ledger = port.state.ledger
        active = port.active
        tokens = (
            {} if active is None else {self.runs[active.id]: active.token.cancelled} if active.id in self.runs else {}
        )
        facts = {
            "state": str(rho_core.session.session_state(port.state)),
            "busy": port.state.busy,
            "revision": ledger.revision,
            "history": encode.messages(ledger.history),
            "tokens": {name: "cancelled" if cancelled else "live" for name, cancelled in tokens.items()},
        }
        return list(waiting_on(port.state)), facts

    # -- the end -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write the last step; what happens later is not recorded."""
        if not self._closed:
            self._closed = True
            if self._port is not None:
                self.tape.end()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_WAITS = {"ModelCall": "model", "Compact": "compactor", "Collect": "collector", "Record": "recorder"}


def _wait(kind: str, key: str) -> str:
    """What a session that waits for this upcall is said to wait for."""
    return _WAITS.get(kind) or f"tool:{key}"


def _which(kind: str, key: str) -> Json:
    if not key:
        return {}
    return {"n": int(key)} if kind == "ModelCall" else {"call_id": key}


def _config(port: SessionPort) -> Json:
    """What the session is, as a scenario would configure it."""
    policy, ledger = port.state.policy, port.state.ledger
    gates = {"prepare": "gated", "authorize": "gated"}
    return {
        "sessions": [port.state.id],
        "event_capacity": policy.event_capacity,
        "max_steps": policy.max_steps,
        "max_parallel_tools": policy.max_parallel_tools,
        "provider": {
            "mode": "cooperative" if policy.cooperative_provider else "external",
            "steerable": policy.steerable,
        },
        "tools": {t.name: {"mode": "async" if t.asynchronous else "sync", **gates} for t in policy.tools},
        "history": encode.messages(ledger.history),
        "revision": ledger.revision,
        **_extras(policy),
    }


def _extras(policy: Policy) -> Json:
    """What is only there when the host lends it."""
    extras: Json = {}
    limit = policy.compaction
    if limit is not None:
        extras["compaction"] = encode.present(messages=limit.messages, tokens=limit.tokens)
        extras["compactor"] = "cooperative" if limit.cooperative else "external"
    if policy.boundary:
        extras["boundary"] = "gated"
    if policy.recorder:
        extras["recorder"] = "gated"
    return extras
