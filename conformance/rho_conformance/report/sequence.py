"""A witness as a sequence chart: who did what to whom, in order, and the edge at which the rule broke.

Five lanes: the host and its services (compactor, collector, recorder, clock), the runtime under test, the model,
the tools, the reader of events. Every stimulus and every observation is one row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rho_conformance.monitors import judge
from rho_conformance.report.visible import cut, visible
from rho_conformance.scenario import standing_violations
from rho_conformance.trace import Observation, Trace, merged
from rho_conformance.vocabulary import CLOSED, EVENTS

LANES = ("host", "runtime", "model", "tools", "reader")
HOST, RUNTIME, MODEL, TOOLS, READER = range(5)

_FROM = {"provider": MODEL, "tool": TOOLS, "read": READER, "hold_reader": READER, "close_reader": READER}
_TO = {"ModelCall": MODEL, "SteerClaim": MODEL, "HostAnswer": TOOLS, "AskRefused": TOOLS, CLOSED: READER}
_KEYS = ("call_id", "ask", "id", "ids")
_QUIET = ("session", "run", "metadata", "profile")
LONGEST, WHOLE = 92, 400
"""Characters of a row, and of the tip that shows what the row cuts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One arrow from lane to lane. `kind`: stimulus, event, upcall, taken, reply.

    `more`: the text before it was cut. `opens`: the first row of what was done in a step.
    """

    step: int
    kind: str
    source: int
    target: int
    text: str
    more: str = ""
    seq: int | None = None
    keys: frozenset[str] = frozenset()
    run: str | None = None
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Break:
    """Where the rule broke. `at`: the row at fault, or after which something is missing (`missing`).

    `after`: the neighbour, the row that the broken edge leaves; None where the trace begins with the fault.
    """

    at: int
    after: int | None
    message: str
    missing: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Rows `first` to `last` of the chart; a folded part is shown on demand."""

    first: int
    last: int
    folded: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """The rows, the break, and the parts they are shown in."""

    rows: tuple[Row, ...]
    broken: Break
    parts: tuple[Part, ...]

    @property
    def step(self) -> int:
        """The `perform` in which the rule broke, from 1; 0 for a refused `open`."""
        return self.rows[self.broken.at].step


def chart(trace: Trace, rule: str, detail: str) -> Chart:
    """The chart of a witness of `rule`; `detail`, the verdict's words, is used where no monitor finds the place."""
    rows = rows_of(trace)
    broken = _broken(rows, *_place(trace, rule, detail))
    return Chart(rows, broken, tuple(_parts(len(rows), broken)))


# --- rows -----------------------------------------------------------------------------------------------------------


def rows_of(trace: Trace) -> tuple[Row, ...]:
    """Every stimulus and every observation, in order; adjacent deltas as one."""
    return tuple(_rows(trace))


def _rows(trace: Trace) -> Iterator[Row]:
    if trace.open_error is not None or not trace.steps:
        name = f"open: {trace.open_error}" if trace.open_error is not None else "nothing was done"
        yield Row(0, "reply", RUNTIME, HOST, visible(cut(name, LONGEST)), opens=True)
    for number, record in enumerate(trace.steps, 1):
        first = True
        for stimulus in record.perform or [{"settle": {}}]:
            yield _stimulus(number, stimulus, first)
            first = False
        for seen in merged(record.seen()):
            yield _observation(number, seen)


def _stimulus(step: int, stimulus: dict[str, Any], opens: bool) -> Row:
    name, value = next(iter(stimulus.items()))
    text = _text(name, value)
    keys = frozenset(_keys(value if isinstance(value, dict) else {}))
    return Row(step, "stimulus", _FROM.get(name, HOST), RUNTIME, *_shortened(text), keys=keys, opens=opens)


def _observation(step: int, seen: Observation) -> Row:
    kind, source, target = _arrow(seen)
    text = _text(seen.name, {k: v for k, v in seen.fields.items() if k not in _QUIET})
    keys = frozenset(_keys(seen.fields))
    return Row(step, kind, source, target, *_shortened(text), seen.seq, keys, seen.run)


def _arrow(seen: Observation) -> tuple[str, int, int]:
    if seen.name in EVENTS or seen.name == CLOSED:
        return "event", RUNTIME, READER
    if seen.name in ("Taken", "Abandoned"):
        other = _lane(str(seen.fields.get("upcall")))
        return ("taken", other, RUNTIME) if seen.name == "Taken" else ("upcall", RUNTIME, other)
    if seen.name in ("Reply", "NotOpen", "Refused"):
        return "reply", RUNTIME, HOST
    return "upcall", RUNTIME, _lane(seen.name)


def _lane(upcall: str) -> int:
    return TOOLS if upcall.startswith("Tool") else _TO.get(upcall, HOST)


def _keys(fields: dict[str, Any]) -> Iterator[str]:
    """What an observation is about: the calls, questions and steers that it names."""
    for key in _KEYS:
        value = fields.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                yield one


def _text(name: str, value: Any) -> str:
    """`name field=value …`: what a reader of JSON takes for granted is left out."""
    if value == {} or value is True:
        return name
    if not isinstance(value, dict):
        return f"{name} {_plain(value)}"
    return " ".join([name, *(f"{key}={_plain(field)}" for key, field in value.items())])


def _plain(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[\w.:/-]+", value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _shortened(text: str) -> tuple[str, str]:
    text = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return (text, "") if len(text) <= LONGEST else (cut(text, LONGEST), cut(text, WHOLE))


# --- the broken edge ------------------------------------------------------------------------------------------------


def _place(trace: Trace, rule: str, detail: str) -> tuple[int | None, int | None, str]:
    """(step, seq, message) of the first violation, found by judging the trace again."""
    violations = judge(trace, [rule])[rule].violations
    if violations:
        return violations[0].step, violations[0].seq, violations[0].message
    if rule.startswith("CORE-"):
        for standing in standing_violations(trace):
            if standing.rule == rule:
                return standing.step, None, standing.message
    # No monitor sees it: the expectation of a scenario does, and speaks of the whole.
    found = re.match(r"step (\d+): (.*)", detail, re.DOTALL)
    return (int(found[1]), None, found[2]) if found else (None, None, detail)


def _broken(rows: Sequence[Row], step: int | None, seq: int | None, message: str) -> Break:
    # Deltas are merged: the row at fault is the last one that begins no later.
    at = max(
        (n for n, row in enumerate(rows) if seq is not None and row.seq is not None and row.seq <= seq), default=None
    )
    if at is not None:
        return Break(at, _neighbour(rows, at), message, False)
    # No observation is at fault: what should have come by the end of this step has not come.
    upto = [n for n, row in enumerate(rows) if step is None or row.step <= max(step, rows[0].step)]
    at = upto[-1]
    begun = next((n for n in reversed(upto) if rows[n].opens), None)
    return Break(at, begun if begun != at else None, message, True)


def _neighbour(rows: Sequence[Row], at: int) -> int | None:
    """The latest row before that speaks of the same call, question or steer; else of the same run; else any."""
    fault = rows[at]
    before = range(at - 1, -1, -1)
    kin = next((n for n in before if rows[n].seq is not None and rows[n].keys & fault.keys), None)
    if kin is None:
        kin = next((n for n in before if rows[n].kind == fault.kind and rows[n].run == fault.run), None)
    return kin if kin is not None else (at - 1 if at else None)


# --- parts ----------------------------------------------------------------------------------------------------------

SHORT = 36
HEAD, BEFORE, AFTER, TAIL = 6, 14, 6, 4
"""A chart of up to `SHORT` rows is shown whole; of a longer one its head, what is around the break, and its tail."""


LEAN = 8
"""Rows before and after the break that a chart shows where room is scarce."""


def lean(shown: Chart) -> Chart:
    """The same chart with everything folded but what is next to the break."""
    last = len(shown.rows) - 1
    first, end = max(0, shown.broken.at - LEAN), min(last, shown.broken.at + LEAN)
    parts = (Part(0, first - 1, True), Part(first, end, False), Part(end + 1, last, True))
    return replace(shown, parts=tuple(part for part in parts if part.first <= part.last))


def _parts(length: int, broken: Break) -> Iterator[Part]:
    if length <= SHORT:
        yield Part(0, length - 1, False)
        return
    start = broken.at - BEFORE
    if broken.after is not None and broken.at - broken.after <= SHORT:
        start = min(start, broken.after - 1)
    shown = [(0, HEAD - 1), (start, broken.at + AFTER), (length - TAIL, length - 1)]
    at = 0
    for first, last in _joined([(max(0, a), min(length - 1, b)) for a, b in shown]):
        if first > at:
            yield Part(at, first - 1, True)
        yield Part(first, last, False)
        at = last + 1


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that touch or overlap (or all but) as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 2:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found
