"""Stimuli of a trace in one flat form: name, arguments, the session and run they address, their reply
name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fractions import Fraction
from math import ceil
from typing import Any

Json = Any
STARTS = ("start", "start_tool", "continue")
ITEM_STIMULI = ("provider", "tool", "compactor")
PROVIDER_ENDS = ("return", "fail", "panic")
TOOL_ENDS = ("return", "fail", "cancelled", "panic", "prep_fail")
ADDRESS = ("session", "run", "id", "as")
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
LARGEST_MS = 2**63 - 1
"""A hint is cut here: it must not grow with the length of a header (``rho_core.retry_after``)."""
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that the environment hands over: ``delta``, ``return``, ``progress``, ``ask``, …"""

    kind: str
    value: Json
    step: int
    seq: int | None
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Stim:
    """One stimulus. ``index`` is its place in the ``perform`` of ``step``; ``reply`` names where its reply
    is filed."""

    name: str
    value: Json
    step: int
    index: int
    session: str
    run: str | None
    reply: str

    def get(self, key: str, default: Json = None) -> Json:
        """An argument by name; ``default`` where the stimulus has a bare value."""
        return self.value.get(key, default) if isinstance(self.value, Mapping) else default

    @property
    def label(self) -> str:
        """Stimulus class for signatures: the name and, for an answer, what kind of item it is."""
        if self.name not in ITEM_STIMULI:
            return self.name
        items = items_of(self)
        return f"{self.name}.{items[-1][0]}" if items else self.name


def duration_ms(value: Json) -> int:
    """``"500ms"``, ``"1.5s"``, ``"2m"`` or an integer of milliseconds; 0 for what is no duration."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return int(value)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)", value.strip()) if isinstance(value, str) else None
    return round(float(match[1]) * _UNITS[match[2]]) if match else 0


def header_ms(raw: str, now_ms: int) -> int:
    """The wait that a Retry-After header asks for; 0 when absent by decision D13 (not positive or
    unreadable)."""
    text = raw.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return min(ceil(Fraction(text[:4000]) * 1000), LARGEST_MS)  # a float would be off by one, or infinite
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return 0
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0, ceil((when - EPOCH).total_seconds() * 1000) - now_ms)


def hint_ms(fail: Json, now_ms: int) -> int:
    """The provider's wait in a ``fail`` item, in milliseconds, 0 when it gave none (RHO-RET-3)."""
    if not isinstance(fail, Mapping):
        return 0
    if fail.get("retry_after") is not None:
        return max(0, duration_ms(fail["retry_after"]))
    header = fail.get("retry_after_header")
    return header_ms(header, now_ms) if isinstance(header, str) else 0


def split_item(value: Json) -> list[tuple[str, Json]]:
    """A provider or tool item as pairs (kind, value); the shorthand unfolds into its emissions and
    ``return``."""
    if not isinstance(value, Mapping):
        return [(value, True)] if isinstance(value, str) else []
    plain = {k: v for k, v in value.items() if k not in ADDRESS}
    if "text" in plain or ("calls" in plain and "return" not in plain):
        return _shorthand(plain)
    return list(plain.items())[:1]


def _shorthand(item: Mapping[str, Json]) -> list[tuple[str, Json]]:
    out: list[tuple[str, Json]] = []
    for key, value in item.items():
        if key == "reasoning":
            out.append(("reasoning", value))
        elif key == "usage":
            out.append(("usage", value))
        elif key == "text":
            out += [("delta", t) for t in (value if isinstance(value, list) else [value])]
        elif key == "calls":
            out += [("call_delta", whole_call(i, c)) for i, c in enumerate(value or ())]
    text = item.get("text")
    blocks = {"text": "".join(text) if isinstance(text, list) else text, "calls": item.get("calls")}
    out.append(("return", {k: v for k, v in blocks.items() if v is not None}))
    return out


def whole_call(index: int, call: Mapping[str, Json]) -> dict[str, Json]:
    """The one complete ``call_delta`` that the shorthand emits for a call."""
    args = call.get("args", {})
    text = args if isinstance(args, str) else json.dumps(args)
    return {"index": index, "id": call.get("id"), "name": call.get("tool"), "arguments": text}


def items_of(stim: Stim) -> list[tuple[str, Json]]:
    """The items of an answer stimulus, lists unfolded in order."""
    values = stim.value if isinstance(stim.value, list) else [stim.value]
    return [pair for value in values for pair in split_item(value)]


def read_stimuli(performs: Sequence[Sequence[Json]], first: str = "s1") -> list[Stim]:
    """All stimuli in order, with run names, reply names and addressed sessions as the scenario format gives
    them."""
    reader = _Reader(first)
    return [
        reader.read(raw, step, index)
        for step, perform in enumerate(performs, start=1)
        for index, raw in enumerate(_flat(perform))
        if isinstance(raw, Mapping) and len(raw) > 0
    ]


def _flat(perform: Sequence[Json]) -> list[Json]:
    out: list[Json] = []
    for raw in perform:
        if isinstance(raw, Mapping) and set(raw) == {"together"}:
            out += raw["together"]
        elif isinstance(raw, Mapping) and set(raw) == {"maybe"}:
            out.append(raw["maybe"])
        elif isinstance(raw, str):
            out.append({raw: {}})
        else:
            out.append(raw)
    return out


class _Reader:
    def __init__(self, first: str) -> None:
        self.first = first
        self.counts: dict[str, int] = {}
        self.owners: dict[str, str] = {}

    def read(self, raw: Mapping[str, Json], step: int, index: int) -> Stim:
        name, value = next(iter(raw.items()))
        args = value if isinstance(value, Mapping) else {}
        self.counts[name] = self.counts.get(name, 0) + 1
        run = args.get("run")
        reply = args.get("as") or f"{name}{self.counts[name]}"
        if name in STARTS:
            run = reply = f"r{len(self.owners) + 1}"
        given = args.get("session") if isinstance(args.get("session"), str) else None
        session = given or self.owners.get(str(run), self.first)
        if name in STARTS:
            self.owners[str(run)] = session
        return Stim(name, value, step, index, session, run, reply)
