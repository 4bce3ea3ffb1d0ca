"""Judge `expect` and `check` (scenario format §4) on a trace: every key, and `any_of` with variants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rho_conformance.driver import JsonMap
from rho_conformance.scenario.book import PENDING, Book, Run, is_ok
from rho_conformance.scenario.expect_messages import history, history_unordered, requests
from rho_conformance.scenario.match import MISSING, in_range, matches, matches_observation
from rho_conformance.scenario.names import OPEN
from rho_conformance.scenario.normalise import event_view, lanes, show, show_observation
from rho_conformance.scenario.order import first_out_of_order
from rho_conformance.scenario.view import View, sequence_complaint
from rho_conformance.trace import Observation


@dataclass(frozen=True, slots=True)
class Judgement:
    """The complaints (none: all keys hold) and the variant that was needed for it, if any."""

    complaints: tuple[str, ...]
    variant: str | None = None


def judge(expectation: dict[str, Any], view: View, what: str = "expect") -> Judgement:
    """Judge one map of §4; `what` names it in the complaints."""
    complaints = _complaints(expectation, view, what)
    variant: str | None = None
    if "any_of" in expectation:
        failed: list[str] = []
        for number, alternative in enumerate(expectation["any_of"]):
            found = _complaints(alternative, view, f"{what}.any_of[{number}]")
            if not found:
                variant = alternative.get("variant")
                break
            failed.append(found[0])
        else:
            complaints.append(f"no alternative of {what}.any_of holds: " + " | ".join(failed))
    return Judgement(tuple(complaints), variant if not complaints else None)


def asks_for(expectation: dict[str, Any], key: str) -> bool:
    """Whether a map of §4, or an alternative or a session in it, has a key."""
    if key in expectation:
        return True
    inner = [*expectation.get("any_of", []), *expectation.get("sessions", {}).values()]
    return any(asks_for(part, key) for part in inner)


def _complaints(expectation: dict[str, Any], view: View, what: str) -> list[str]:
    lines: dict[str, int] = getattr(expectation, "lines", {})
    found = []
    for key, value in expectation.items():
        if key not in _JUDGES:
            continue
        complaint = _JUDGES[key](view, view.trace.main_session, value)
        if complaint is not None:
            place = f" (line {lines[key]})" if key in lines else ""
            found.append(f"{what}.{key}{place}: {complaint}")
    return found


# --- outcomes and replies -----------------------------------------------------------------------------------


def outcome_of(book: Book, run: Run) -> Any:
    """What the file may call the outcome of a run: the one taken, `pending`, or `MISSING`."""
    taken = book.outcome(run)
    if taken is not None and taken != PENDING:
        return taken
    return MISSING if run.gone else PENDING


def _outcome(view: View, session: str, wanted: Any) -> str | None:
    run = view.book.newest(session)
    if run is None:
        refused = [f"{run.name} was {run.gone}" for run in view.book.runs.values() if run.session == session]
        return f"{session} has no accepted run" + (f" ({', '.join(refused)})" if refused else "")
    return _outcome_of_run(view, run, wanted)


def _outcome_of_run(view: View, run: Run, wanted: Any) -> str | None:
    actual = outcome_of(view.book, run)
    if matches(wanted, actual):
        return None
    seen = f"it was {run.gone}, so it has none" if actual is MISSING else f"got {show(actual)}"
    return f"outcome of {run.name}: expected {show(wanted)}, {seen}"


def _outcomes(view: View, session: str, wanted: JsonMap) -> str | None:
    for name, outcome in wanted.items():
        run = view.book.runs.get(name)
        complaint = _outcome_of_run(view, run, outcome) if run else f"there is no run {name}"
        if complaint is not None:
            return complaint
    return None


def _replies(view: View, session: str, wanted: JsonMap) -> str | None:
    for name, pattern in wanted.items():
        if name == OPEN:
            error = view.trace.open_error
            known, actual = True, "ok" if error is None else {"error": error}
        else:
            known, actual = view.book.reply(name)
        if not _reply_matches(pattern, actual if known else MISSING):
            names = ", ".join(sorted({command.name for command in view.book.commands if command.name}))
            seen = f"got {show(actual)}" if known else f"no command has that name ({names or 'none was given'})"
            return f"{name}: expected {show(pattern)}, {seen}"
    return None


def _reply_matches(pattern: Any, actual: Any) -> bool:
    if pattern == "ok":
        return is_ok(actual)
    if actual == "ok" and isinstance(pattern, dict) and "ok" in pattern:
        return matches(pattern["ok"], MISSING)
    return matches(pattern, actual)


# --- observations -------------------------------------------------------------------------------------------


def _fits(pattern: Any, seen: Observation) -> bool:
    return matches_observation(pattern, seen.name, seen.fields)


def _events(view: View, session: str, wanted: list[Any]) -> str | None:
    return sequence_complaint(wanted, event_view(view.trace, session), _fits, show_observation)


def _order(view: View, session: str, wanted: list[list[Any]]) -> str | None:
    channels = lanes(view.trace)
    for number, elements in enumerate(wanted, 1):
        index = first_out_of_order(elements, channels)
        if index is not None:
            missing = f"{show(elements[index])} was not seen"
            missing += f" after {show(elements[index - 1])}" if index else ""
            return f"sequence {number}: {missing}; {_where(view, elements[index])}"
    return None


def _where(view: View, pattern: Any) -> str:
    """Where the pattern does occur, for the reader of a complaint."""
    if isinstance(pattern, dict) and set(pattern) == {"set"}:
        return "its elements must stand next to each other"
    steps = [seen.step for seen in view.trace.observations() if _fits(pattern, seen)]
    return f"it occurs at step {', '.join(map(str, steps[:5]))}" if steps else "it occurs nowhere"


def _count(view: View, session: str, wanted: list[JsonMap]) -> str | None:
    for item in wanted:
        number = sum(_fits(item["of"], seen) for seen in view.trace.observations())
        if not in_range(number, {"min": item.get("is"), "max": item.get("is"), **item}):
            limits = ", ".join(f"{key} {value}" for key, value in item.items() if key != "of")
            return f"{show(item['of'])} was seen {number} times, expected {limits}"
    return None


def _absent(view: View, session: str, wanted: list[Any]) -> str | None:
    for pattern in wanted:
        for seen in view.trace.observations():
            if _fits(pattern, seen):
                return f"{show(pattern)} must not occur, but step {seen.step} has {show_observation(seen)}"
    return None


def _executions(view: View, session: str, wanted: JsonMap) -> str | None:
    entered = Counter(seen.fields.get("call_id") for seen in view.trace.named("ToolExecute"))
    for call_id, number in wanted.items():
        if not matches(number, entered[call_id]):
            return f"the executor of {call_id} was entered {entered[call_id]} times, expected {show(number)}"
    return None


def _records(view: View, session: str, wanted: list[Any]) -> str | None:
    given = [seen.fields for seen in view.trace.named("Record")]
    return sequence_complaint(wanted, given, matches, show)


# --- facts --------------------------------------------------------------------------------------------------


def _fact(key: str) -> Callable[[View, str, Any], str | None]:
    def check(view: View, session: str, wanted: Any) -> str | None:
        actual = view.trace.facts_of(session).get(key, MISSING)
        if matches(wanted, actual, key):
            return None
        seen = "the driver does not report it" if actual is MISSING else f"got {show(actual)}"
        return f"expected {show(wanted)}, {seen}"

    return check


def _waiting_on(view: View, session: str, wanted: list[str]) -> str | None:
    actual = view.trace.steps[-1].waiting_on if view.trace.steps else []
    if Counter(actual) == Counter(wanted):
        return None
    return f"expected {show(sorted(wanted))}, got {show(sorted(actual))}"


def _snapshot(view: View, session: str, wanted: Any) -> str | None:
    if view.snapshot is None:
        return "no snapshot could be taken"
    return None if matches(wanted, view.snapshot) else f"expected {show(wanted)}, got {show(view.snapshot)}"


def _sessions(view: View, session: str, wanted: JsonMap) -> str | None:
    for name, keys in wanted.items():
        for key, value in keys.items():
            complaint = _JUDGES[key](view, name, value)
            if complaint is not None:
                return f"{name}.{key}: {complaint}"
    return None


_JUDGES: dict[str, Callable[[View, str, Any], str | None]] = {
    "outcome": _outcome,
    "outcomes": _outcomes,
    "events": _events,
    "order": _order,
    "count": _count,
    "absent": _absent,
    "history": history,
    "history_unordered": history_unordered,
    "requests": requests,
    "replies": _replies,
    "state": _fact("state"),
    "busy": _fact("busy"),
    "revision": _fact("revision"),
    "executions": _executions,
    "records": _records,
    "snapshot": _snapshot,
    "waiting_on": _waiting_on,
    "sessions": _sessions,
}
