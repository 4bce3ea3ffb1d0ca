"""Comparing what was seen of a hosted runtime with what the core asked for, channel by channel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from rho_conformance.drivers.corework.runs import Run

Json = dict[str, Any]
Fault = Callable[[str], None]
OPENINGS = frozenset({"ModelCall", "ToolPrepare", "ToolAuthorize", "ToolExecute", "Compact", "Collect", "Record"})
ONCE = frozenset({"HostAnswer", "AskRefused", "CollectAck", "SteerClaim"})
TO_TOOL = frozenset({"HostAnswer", "AskRefused"})
Key = tuple[str, str, str]
_COUNTERS = ("seq", "step", "at_ms")


def _named(observation: Json) -> tuple[str, Json]:
    return next((k, v) for k, v in observation.items() if k not in _COUNTERS)


def _channels(observations: Sequence[Json]) -> tuple[dict[Key, list[Json]], dict[Key, list[str]]]:
    """By kind, session and call: what was opened or told, and how what was opened was abandoned."""
    told: dict[Key, list[Json]] = defaultdict(list)
    ends: dict[Key, list[str]] = defaultdict(list)
    for observation in observations:
        name, body = _named(observation)
        call_id = str(body.get("call_id", ""))
        if name in OPENINGS or name in ONCE:
            told[name, body["session"], call_id].append({k: v for k, v in body.items() if k != "n"})
        elif name == "Abandoned":
            ends[body["upcall"], body["session"], call_id].append(body["how"])
    return told, ends


def calls(asked: Sequence[Json], seen: Sequence[Json], at_work: Collection[Key], fault: Fault) -> None:
    """Each call of a double once, as asked for and in order; each abandoned one told so.

    A call may be missing that was taken back before its double was reached. `at_work`: the calls that are open now;
    one that is over may have ended before it looked at its token.
    """
    due, due_ends = _channels(asked)
    got, got_ends = _channels(seen)
    for key in sorted({*due, *got, *due_ends, *got_ends}):
        wanted, shown = due[key], got[key]
        lost = len(wanted) - len(shown)
        taken_back = due_ends[key].count("dropped") - got_ends[key].count("dropped")
        where = f"{key[0]} {key[2]} of {key[1]}"
        if not _within(shown, wanted):
            fault(f"{where}: seen {shown!r}, asked for {wanted!r}")
        elif lost and key[0] in ONCE:
            if key[0] in TO_TOOL and "dropped" in due_ends["ToolExecute", key[1], key[2]]:
                continue  # taken back together with the tool that waited for it
            fault(f"{where}: asked for {wanted!r}, seen {shown!r}")
        elif lost != taken_back:
            fault(
                f"{where}: asked for {len(wanted)}, seen {len(shown)}; given up {due_ends[key]}, seen {got_ends[key]}"
            )
        elif _untold(due_ends[key].count("token"), got_ends[key].count("token"), key in at_work):
            fault(f"{where}: told by token {due_ends[key]}, seen {got_ends[key]}")


def _untold(due: int, got: int, at_work: bool) -> bool:
    return got > due or (at_work and got < due)


def replies(due: dict[str, list[Any]], seen: Sequence[Json], fault: Fault) -> None:
    """Every answer of the core reached the host, in order for each session."""
    got: dict[str, list[Any]] = defaultdict(list)
    for observation in seen:
        name, body = _named(observation)
        if name == "Reply":
            got[body["session"]].append(body["value"])
    for session, wanted in due.items():
        if not _within(wanted, got[session]):
            fault(f"answers of {session}: the core gave {wanted!r}, the host got {got[session]!r}")


def events(seen: Run, core: Run, shown: Sequence[Any], *, eager: bool, drained: bool, fault: Fault) -> None:
    """The reader got what the core delivered, in order: all of it when it reads eagerly or saw the end.

    `drained`: someone awaited the outcome, for which events are thrown away.
    """
    sent = list(core.channel)
    whole = (seen.seen_end or eager) and not (seen.gone or seen.dropped or drained)
    fits = _within(shown, sent) if drained else list(shown) == sent[: len(shown)]
    if not fits or (whole and len(shown) != len(sent)):
        fault(f"events of {seen.name}: read {_kinds(shown)}, sent {_kinds(sent)}")
    if seen.gone or seen.dropped:
        return
    if seen.seen_end and not core.ended:
        fault(f"the stream of {seen.name} ended, and the core did not end it")
    if eager and core.ended and not seen.seen_end:
        fault(f"the core ended the stream of {seen.name}, and its reader does not know")


def _kinds(given: Sequence[Any]) -> list[str]:
    return [type(event).__name__ for event in given]


def _within(few: Sequence[Any], many: Sequence[Any]) -> bool:
    """Is `few` a subsequence of `many`?"""
    rest = iter(many)
    return all(any(one == other for other in rest) for one in few)
