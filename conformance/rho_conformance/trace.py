"""A recorded trace: what was done to a runtime and what was seen, in memory and as JSON lines.

The form is that of `spec/protocol.md`, "Recorded traces".
Reading and writing keep every field, also those that this version does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rho_conformance.answers import normal_answer
from rho_conformance.defaults import Defaults
from rho_conformance.driver import JsonMap
from rho_conformance.errors import UsageError
from rho_conformance.vocabulary import CLOSED, COUNTERS, EVENTS, UPCALLS

TRACE_VERSION = 1
_HEAD = ("trace", "hello", "config", "profile", "source", "witness")
_STEP = ("perform", "observations", "waiting_on", "facts")
_HALF = re.compile("[\ud800-\udfff]")
_MERGED_TEXT = frozenset({"AssistantTextDelta", "ReasoningDelta", "ReasoningSummaryDelta"})


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation, taken apart. `last_step` is later than `step` only where deltas were merged."""

    seq: int
    step: int
    at_ms: int
    name: str
    fields: JsonMap
    last_step: int

    @classmethod
    def of(cls, raw: JsonMap) -> Observation:
        """Take `{seq, step, at_ms, NAME: {…}}` apart; its form has been checked before."""
        name = next(key for key in raw if key not in COUNTERS)
        return cls(raw["seq"], raw["step"], raw["at_ms"], name, raw[name], raw["step"])

    @property
    def session(self) -> str | None:
        value = self.fields.get("session")
        return value if isinstance(value, str) else None

    @property
    def run(self) -> str | None:
        value = self.fields.get("run")
        return value if isinstance(value, str) else None


@dataclass(slots=True)
class StepRecord:
    """One `perform`: the stimuli, and the three parts of the answer."""

    perform: list[JsonMap]
    observations: list[JsonMap]
    waiting_on: list[str]
    facts: JsonMap
    extra: JsonMap = field(default_factory=dict)
    _seen: list[Observation] = field(default_factory=list, init=False, repr=False, compare=False)

    def seen(self) -> list[Observation]:
        """The observations of this step, taken apart (once: every judgement asks for them)."""
        if len(self._seen) != len(self.observations):
            self._seen = [Observation.of(raw) for raw in self.observations]
        return self._seen

    def to_json(self) -> JsonMap:
        return {
            "perform": self.perform,
            "observations": self.observations,
            "waiting_on": self.waiting_on,
            "facts": self.facts,
            **self.extra,
        }


@dataclass(slots=True)
class Trace:
    """A whole recording. `open_error` names the refusal of the configuration; then `steps` is empty."""

    hello: JsonMap
    config: JsonMap
    profile: str
    steps: list[StepRecord] = field(default_factory=list)
    source: str | None = None
    open_error: str | None = None
    witness: JsonMap | None = None
    extra: JsonMap = field(default_factory=dict)

    @property
    def main_session(self) -> str:
        """The session that a step addresses when it names none."""
        sessions = self.config.get("sessions")
        return str(sessions[0]) if isinstance(sessions, list) and sessions else "s1"

    def observations(self) -> Iterator[Observation]:
        """Everything observed, in order of `seq`."""
        for record in self.steps:
            yield from record.seen()

    def events(self, session: str | None = None, run: str | None = None) -> Iterator[Observation]:
        """Run events as read (without unknown kinds and the end of the stream), of a session or run."""
        return self._select(EVENTS, session, run)

    def upcalls(self, session: str | None = None, run: str | None = None) -> Iterator[Observation]:
        """What the runtime asked of its environment, of one session or run if named."""
        return self._select(UPCALLS, session, run)

    def named(self, name: str, session: str | None = None) -> Iterator[Observation]:
        """The observations of one kind."""
        return self._select(frozenset({name}), session, None)

    def _select(self, names: frozenset[str], session: str | None, run: str | None) -> Iterator[Observation]:
        for seen in self.observations():
            if seen.name not in names or (run is not None and seen.run != run):
                continue
            if session is None or (seen.session or self.main_session) == session:
                yield seen

    def replies(self) -> dict[str, Any]:
        """Name of a reply -> the newest value observed for it."""
        return {seen.fields["name"]: seen.fields.get("value") for seen in self.named("Reply") if "name" in seen.fields}

    def facts_of(self, session: str) -> JsonMap:
        """The newest facts of a session; `{}` when there are none."""
        return session_facts(self.steps[-1].facts, session, self.main_session) if self.steps else {}


def session_facts(facts: JsonMap, session: str, main: str) -> JsonMap:
    """The facts of one session in a `facts` map: `sessions` has all of them, the top the first one."""
    sessions = facts.get("sessions")
    if isinstance(sessions, dict) and session in sessions:
        found: JsonMap = sessions[session]
        return found
    return facts if session == main else {}


def merged(observations: Iterable[Observation]) -> list[Observation]:
    """The view in which chunking does not matter (scenario format §5, "Normalisation").

    Adjacent deltas of one kind and attempt become one, and so do adjacent `ToolCallUpdated` of one index.
    """
    result: list[Observation] = []
    for seen in observations:
        if result and _joins(result[-1], seen):
            result[-1] = _join(result[-1], seen)
        else:
            result.append(seen)
    return result


def _joins(first: Observation, second: Observation) -> bool:
    if first.name != second.name:
        return False
    if first.name in _MERGED_TEXT:
        keys: tuple[str, ...] = ("session", "run", "attempt")
    elif first.name == "ToolCallUpdated":
        keys = ("session", "run", "attempt", "index")
    else:
        return False
    return all(first.fields.get(key) == second.fields.get(key) for key in keys)


def _join(first: Observation, second: Observation) -> Observation:
    text = "text" if first.name in _MERGED_TEXT else "arguments_delta"
    joined = {**first.fields, **second.fields}
    joined[text] = str(first.fields.get(text, "")) + str(second.fields.get(text, ""))
    return Observation(first.seq, first.step, first.at_ms, first.name, joined, second.last_step)


def without_unknown(observations: Iterable[Observation], *, keep: frozenset[str] = EVENTS) -> list[Observation]:
    """Drop kinds that are not in `keep`: hosts need a wildcard arm (BUF-8)."""
    return [seen for seen in observations if seen.name in keep and seen.name != CLOSED]


def completed(trace: Trace) -> Trace:
    """A recorded trace as a driver's answers are taken: in the normal form, and with nothing missing.

    Raises `DriverError` for what is off the protocol.
    """
    exact = trace.hello.get("deterministic") is True and trace.hello.get("time") != "real"
    defaults = Defaults(trace.config, exact=exact)
    return replace(trace, steps=[_completed(record, defaults) for record in trace.steps])


def _completed(record: StepRecord, defaults: Defaults) -> StepRecord:
    answer = normal_answer({"observations": record.observations, "facts": record.facts})
    answer = defaults.fill(record.perform, answer)
    return StepRecord(record.perform, answer["observations"], record.waiting_on, answer["facts"], record.extra)


def write_trace(trace: Trace, path: Path) -> None:
    """Write the JSONL form; the folder is made when it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps_trace(trace), encoding="utf-8", newline="\n")


def dumps_trace(trace: Trace) -> str:
    """The JSONL form: a head line, then one line for each `perform`, or one line for a refused `open`."""
    head: JsonMap = {
        "trace": TRACE_VERSION,
        "hello": trace.hello,
        "config": trace.config,
        "profile": trace.profile,
    }
    for key, value in (("source", trace.source), ("witness", trace.witness)):
        if value is not None:
            head[key] = value
    lines: list[JsonMap] = [{**head, **trace.extra}]
    if trace.open_error is not None:
        lines.append({"open": {"error": trace.open_error}})
    lines.extend(record.to_json() for record in trace.steps)
    return encodable("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def encodable(text: str) -> str:
    """JSON text with each half of a surrogate pair escaped: a foreign text may hold one, no encoding can write it."""
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def read_trace(path: Path) -> Trace:
    """Read a JSONL trace; raises `UsageError` with file and line when it is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{path}: cannot be read: {fault}") from fault
    return loads_trace(text, str(path))


def loads_trace(text: str, where: str = "trace") -> Trace:
    """The trace in a text; `where` names it in errors."""
    # Only LF ends a line: a text inside may hold other characters that `splitlines` would cut at.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise UsageError(f"{where}: empty, not a trace")
    trace = _head(_parse(*lines[0], where), where)
    for number, line in lines[1:]:
        if trace.open_error is not None:
            raise UsageError(f"{where}:{number}: nothing may follow a refused open")
        raw = _parse(number, line, where)
        if "open" in raw:
            trace.open_error = _open_error(raw, trace, f"{where}:{number}")
        else:
            trace.steps.append(_record(raw, f"{where}:{number}"))
    return trace


def _parse(number: int, line: str, where: str) -> JsonMap:
    try:
        raw = json.loads(line)
    except ValueError as fault:
        raise UsageError(f"{where}:{number}: not JSON: {fault}") from fault
    if not isinstance(raw, dict):
        raise UsageError(f"{where}:{number}: a line must be a map")
    return raw


def _head(raw: JsonMap, where: str) -> Trace:
    if raw.get("trace") != TRACE_VERSION:
        raise UsageError(f'{where}:1: the first line must hold "trace": {TRACE_VERSION}')
    for key, kind in (("hello", dict), ("config", dict), ("profile", str)):
        if not isinstance(raw.get(key), kind):
            raise UsageError(f"{where}:1: {key!r} must be a {'map' if kind is dict else 'text'}")
    extra = {key: value for key, value in raw.items() if key not in _HEAD}
    return Trace(
        raw["hello"],
        raw["config"],
        raw["profile"],
        source=raw.get("source"),
        witness=raw.get("witness"),
        extra=extra,
    )


def _open_error(raw: JsonMap, trace: Trace, where: str) -> str:
    answer = raw["open"]
    if trace.steps or not isinstance(answer, dict) or not isinstance(answer.get("error"), str):
        raise UsageError(f'{where}: a refused open is {{"open": {{"error": NAME}}}}, straight after the head')
    return str(answer["error"])


def _record(raw: JsonMap, where: str) -> StepRecord:
    for key in _STEP:
        if not isinstance(raw.get(key), dict if key == "facts" else list):
            raise UsageError(f"{where}: {key!r} must be a {'map' if key == 'facts' else 'list'}")
    if not all(isinstance(stimulus, dict) and len(stimulus) == 1 for stimulus in raw["perform"]):
        raise UsageError(f"{where}: 'perform' must hold stimuli, each a map with one key")
    for observation in raw["observations"]:
        names = [key for key in observation if key not in COUNTERS] if isinstance(observation, dict) else []
        if len(names) != 1 or not set(observation) >= COUNTERS or not isinstance(observation[names[0]], dict):
            raise UsageError(
                f"{where}: an observation is seq, step, at_ms and one name with a map, got {observation!r}"
            )
    extra = {key: value for key, value in raw.items() if key not in _STEP}
    return StepRecord(raw["perform"], raw["observations"], raw["waiting_on"], raw["facts"], extra)
