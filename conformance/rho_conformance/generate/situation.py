"""What a script can answer at a moment: open upcalls, runs, questions and steers, read off the trace so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.driver import JsonMap
from rho_conformance.scenario.book import is_ok
from rho_conformance.trace import Observation, StepRecord, session_facts
from rho_conformance.vocabulary import TERMINAL
from rho_core import retry_after

TOOL_PHASES = ("ToolPrepare", "ToolAuthorize", "ToolExecute")
MODEL_LAST = frozenset({"return", "text", "calls", "fail", "panic"})
TOOL_LAST = frozenset({"prepared", "prep_fail", "authorize", "return", "fail", "cancelled", "panic"})
COMPACTOR_LAST = frozenset({"return", "fail", "interrupted", "panic"})
_REMEMBERED = 12
CAP_MS = 60_000
EPOCH_UNIX_MS = 946_684_800_000
"""Virtual time 0, 2000-01-01T00:00:00Z (scenario format §1)."""
UNITS = {"ms": 1, "s": 1_000, "m": 60_000}


@dataclass(eq=False, slots=True)
class Upcall:
    """A question of the runtime that nobody has ended yet. `text` and `fragments`: what a model call streamed."""

    kind: str
    session: str
    run: str | None = None
    call_id: str | None = None
    tool: str = ""
    text: str = ""
    fragments: dict[int, JsonMap] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class RunInfo:
    """A run as its host knows it."""

    name: str
    session: str
    accepted: bool = False
    ended: bool = False


class Situation:
    """Follows a trace step by step. It guesses nothing that a lawful runtime could do otherwise, but for timers."""

    def __init__(self, config: JsonMap, main: str = "s1") -> None:
        self.config = config
        self.main = main
        self.sessions: list[str] = list(config.get("sessions") or [main])
        self.tools: dict[str, JsonMap] = {n: o or {} for n, o in config.get("tools", {}).items()}
        self.runs: dict[str, RunInfo] = {}
        self.open: list[Upcall] = []
        self.over: list[Upcall] = []
        self.steers: list[str] = []
        self.asks: list[tuple[str, str]] = []  # question, call
        self.waiting: list[str] = []
        self.busy: dict[str, bool] = {}
        self.now_ms = 0
        self.dues: list[int] = []
        self.failed: dict[str, int] = {}  # session -> failed requests of its turn; malformed ones do not count
        self.numbers: dict[str, int] = {}

    # -- asked by the interpreter ------------------------------------------------------------------------------

    def number(self, what: str) -> int:
        """A number used once, for names."""
        self.numbers[what] = self.numbers.get(what, 0) + 1
        return self.numbers[what]

    def opened(self, *kinds: str) -> list[Upcall]:
        """The open upcalls of these kinds, in the order in which they opened."""
        return [upcall for upcall in self.open if upcall.kind in kinds]

    def newest(self, session: str) -> RunInfo | None:
        """The newest accepted run of a session."""
        found = [run for run in self.runs.values() if run.accepted and run.session == session]
        return found[-1] if found else None

    def unfinished(self) -> list[RunInfo]:
        """The runs of busy sessions that have not ended, newest first; a lawful session has one at most."""
        newest_first = list(reversed(self.runs.values()))
        found = [run for run in newest_first if run.accepted and not run.ended and self.busy.get(run.session)]
        return sorted(found, key=lambda run: self.sessions.index(run.session))

    def next_due(self) -> int | None:
        """When the next timer should fire by the contract, if one is known of."""
        return min((due for due in self.dues if due > self.now_ms), default=None)

    # -- following the trace -----------------------------------------------------------------------------------

    def observe(self, record: StepRecord) -> None:
        """Take in one step: first what was done, then what was seen."""
        for stimulus in record.perform:
            ((name, value),) = stimulus.items()
            self._done(name, value)
        for seen in record.seen():
            self._seen(seen)
        self.waiting = record.waiting_on
        for session in record.facts.get("sessions", {}):
            if session not in self.sessions:
                self.sessions.append(session)
        for session in self.sessions:
            busy = session_facts(record.facts, session, self.main).get("busy")
            self.busy[session] = bool(busy)
            if busy is False:
                self._end([upcall for upcall in self.open if upcall.session == session])
                for run in self.runs.values():
                    run.ended = run.ended or run.session == session

    def _done(self, name: str, value: Any) -> None:
        args: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        session = str(args.get("session", self.main))
        match name:
            case "start" | "start_tool":
                run = f"r{len(self.runs) + 1}"
                self.runs[run] = RunInfo(run, session)
            case "steer":
                self.steers.append(str(args.get("as", f"steer{len(self.steers) + 1}")))
            case "provider":
                for item in value if isinstance(value, list) else [value]:
                    self._streamed(item, str(item.get("session", self.main)))
            case "tool":
                for item in value if isinstance(value, list) else [value]:
                    self._tool_said(item)
            case "compactor" if COMPACTOR_LAST & args.keys():
                self._end([u for u in self.opened("Compact") if u.session == session])
            case "boundary":
                self._end([u for u in self.opened("Collect") if u.session == session])
            case "recorder":
                self._end([u for u in self.opened("Record") if u.session == self.main][-1:])
            case "advance":
                self.now_ms += milliseconds(str(value))
            case "cancel" | "shutdown":
                self._told_to_stop()
            case "crash":
                self._end(list(self.open))

    def _streamed(self, item: JsonMap, session: str) -> None:
        newest = self.newest(session)
        wanted = item.get("run", newest.name if newest else None)
        calls = [upcall for upcall in self.opened("ModelCall") if upcall.session == session]
        for upcall in [u for u in calls if u.run in (None, wanted)] or calls:
            if "delta" in item:
                upcall.text += item["delta"]
            if "call_delta" in item:
                _grow(upcall.fragments, item["call_delta"])
            if item.get("fail", {}).get("retryable"):
                self.failed[session] = self.failed.get(session, 0) + 1
                self.dues.append(self.now_ms + back_off_ms(self.failed[session], item["fail"], self.now_ms))
            if MODEL_LAST & item.keys():
                self._end([upcall])
            return

    def _tool_said(self, item: JsonMap) -> None:
        if "ask" in item:
            self.asks.append((item["ask"], item["id"]))
        if TOOL_LAST & item.keys():
            phases = {"prepared": "ToolPrepare", "prep_fail": "ToolPrepare", "authorize": "ToolAuthorize"}
            named = next((kind for key, kind in phases.items() if key in item), "ToolExecute")
            kinds = TOOL_PHASES if "panic" in item else (named,)
            self._end([u for u in self.opened(*kinds) if u.call_id == item["id"]])

    def _told_to_stop(self) -> None:
        for upcall in self.opened("ToolExecute"):
            habit = self.tools.get(upcall.tool, {}).get("on_cancel")
            if isinstance(habit, dict):
                self.dues.append(self.now_ms + milliseconds(habit["complete"]))

    def _seen(self, seen: Observation) -> None:
        session = seen.session or self.main
        if seen.name == "Reply":
            run = self.runs.get(str(seen.fields.get("name")))
            if run is not None:
                run.accepted = is_ok(seen.fields.get("value"))
        elif seen.name == "ModelCall":
            self._end([u for u in self.opened("ModelCall") if (u.session, u.run) == (session, seen.run)])
            if seen.fields.get("attempt", 1) == 1:
                self.failed[session] = 0
            self._ask(seen)
        elif seen.name in TOOL_PHASES:
            self._tool(seen, session)
        elif seen.name in ("Compact", "Collect"):
            self._ask(seen)
        elif seen.name == "Record" and self.config.get("recorder") == "gated":
            self._ask(seen)  # with `auto` it is answered at once (format §2)
        elif seen.name == "CollectAck":
            self._end([u for u in self.opened("Collect") if u.session == session])
        elif seen.name == "Abandoned" and seen.fields.get("how") == "dropped":
            self._abandoned(seen, session)
        elif seen.name in TERMINAL:
            self._end([u for u in self.open if u.session == session and u.run == seen.run])
            if seen.run in self.runs:
                self.runs[seen.run].ended = True

    def _tool(self, seen: Observation, session: str) -> None:
        call_id, tool = str(seen.fields.get("call_id")), str(seen.fields.get("name", ""))
        same = [u for u in self.opened(*TOOL_PHASES) if u.session == session and u.call_id == call_id]
        self._end(same)
        # With `auto` the driver answers the preparation at once (format §2).
        if seen.name != "ToolPrepare" or self.tools.get(tool, {}).get("prepare") == "gated":
            self._ask(seen, call_id=call_id, tool=tool)

    def _ask(self, seen: Observation, **more: Any) -> None:
        self.open.append(Upcall(seen.name, seen.session or self.main, seen.run, **more))

    def _abandoned(self, seen: Observation, session: str) -> None:
        kind, call_id = seen.fields.get("upcall"), seen.fields.get("call_id")
        self._end([u for u in self.open if (u.kind, u.call_id, u.session) == (kind, call_id, session)])

    def _end(self, upcalls: list[Upcall]) -> None:
        for upcall in upcalls:
            self.open.remove(upcall)
            self.over.append(upcall)
        del self.over[:-_REMEMBERED]


def _grow(fragments: dict[int, JsonMap], delta: JsonMap) -> None:
    slot = fragments.setdefault(delta["index"], {"id": None, "tool": None, "args": ""})
    slot["id"] = delta.get("id", slot["id"])
    slot["tool"] = delta.get("name", slot["tool"])
    slot["args"] += delta.get("arguments", "")


def back_off_ms(failed: int, fail: JsonMap, now_ms: int = 0) -> int:
    """The wait after the `failed`-th failed request: max(min(hint, 60 s), 2^(failed-1) s) (RHO-RET-2, D13)."""
    hint = milliseconds(str(fail.get("retry_after", "")))
    if "retry_after_header" in fail:
        hint = retry_after.parse(str(fail["retry_after_header"]), EPOCH_UNIX_MS + now_ms) or 0
    return max(min(hint, CAP_MS), 1_000 << (failed - 1))


def milliseconds(duration: str) -> int:
    """`500ms`, `1.5s`, `2m` as milliseconds; 0 for what is no duration."""
    unit = next((unit for unit in UNITS if duration.endswith(unit)), None)
    number = duration.removesuffix(unit or "")
    if unit is None or not number.replace(".", "", 1).isdigit():
        return 0
    return round(float(number) * UNITS[unit])
