"""In which contexts the standing checks had something to say (`CORE-LIVE`, `CORE-CAP`, `CORE-S1` to `CORE-S7`).

The checks themselves (`scenario/standing.py`, `scenario/runner.py`) only report violations. A rule that never had
anything to look at must not count as kept, so this module finds what they looked at: the same signatures as those of
the monitors (`monitors.view.context`). A refusal of what was declared is a violation here as well, since scripts and
recorded traces do not pass through the scenario runner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from rho_conformance.driver import declares
from rho_conformance.monitors.base import Finding, Report
from rho_conformance.monitors.entities import NEVER, Obs, Run
from rho_conformance.monitors.stimuli import ITEM_STIMULI, STARTS, Stim, items_of
from rho_conformance.monitors.view import View
from rho_conformance.scenario.calls import exempt_calls
from rho_conformance.scenario.normalise import show_observation
from rho_conformance.scenario.standing import is_breach
from rho_conformance.trace import Trace

MUTATIONS = ("append", "replace_history", "reset", "compact")
PENDING = "pending"
_NOT_ORCA = frozenset({"CORE-S2", "CORE-S5", "CORE-S6"})


def standing_findings(trace: Trace) -> dict[str, Finding]:
    """The episodes of each standing rule that is judged in the trace's profile. Never raises.

    Args:
        trace: what was done and seen.

    Returns:
        Rule id -> finding. Only that of `CORE-CAP` can hold violations; a fault of ours makes a rule untestable.
    """
    try:
        view = View(trace)
    except Exception as fault:
        return {rule: Finding(untestable=f"the trace could not be read: {fault!r}") for rule in CONTEXTS}
    found: dict[str, Finding] = {}
    for rule, look in CONTEXTS.items():
        if trace.profile == "orca" and rule in _NOT_ORCA:
            continue
        report = Report(rule, view, {})
        try:
            look(trace, view, report)
        except Exception as fault:
            report.untestable(f"the monitor failed: {fault!r}")
        found[rule] = report.finding
    return found


# --- events -------------------------------------------------------------------------------------------------------


def _one_end(trace: Trace, view: View, report: Report) -> None:
    """S1: the stream of a run was read to its end, so that anything after its terminal event was seen.

    Where the end of the stream is not shown, an eager reader has read all there was.
    """
    for run in view.runs:
        report.opportunity()
        end = run.terminal or run.closed
        over = run.closed is not None or view.eager(view.length, run.session)
        if run.whole and over and end is not None:
            report.episode(end, run.ending)


def _started_first(trace: Trace, view: View, report: Report) -> None:
    """S5: the first event of a run was read, and nothing had been drained before it.

    A runtime of the common profile need not show Started at all, and then there is nothing to look at.
    """
    if trace.profile == "common" and not any(run.of("Started") for run in view.runs):
        return
    for run in view.runs:
        report.opportunity()
        first = next(iter(run.events), None)
        if first is not None and all(step >= first.step for step in run.outcomes_asked):
            report.episode(first, run.stim.name)


def _tool_events(trace: Trace, view: View, report: Report) -> None:
    """S6: the events of one call were read: its start, and what came after that.

    A runtime of the common profile need not show the events of its calls.
    """
    if trace.profile == "common" and not any(call.events for run in view.runs for call in run.calls):
        return
    for run in view.runs:
        for call in run.calls:
            report.opportunity()
            started, finished = call.first("ToolStarted"), call.first("ToolFinished")
            # Not every runtime of the common profile has an event for the start of a call.
            begun = started or (finished if trace.profile == "common" else None)
            if begun is not None:
                updates = min(len(call.of("ToolUpdated")), 2)
                result = finished.get("result") if finished is not None else None
                report.episode(finished or begun, call.honoured, updates, result)


# --- history ------------------------------------------------------------------------------------------------------


def _answered(trace: Trace, view: View, report: Report) -> None:
    """S2: calls stand in a committed history while no run is active; each history counts once."""
    exempt = exempt_calls(trace)
    for session in view.sessions:
        known: Any = None
        for step in range(1, view.length + 1):
            facts = view.facts(step, session)
            history = facts.get("history")
            if facts.get("busy") is not False or not isinstance(history, list) or history == known:
                continue
            known = history
            report.opportunity()
            calls = [c for c in _calls(history) if c not in exempt]
            if calls:
                failed = sum(1 for m in history if "result" in m and m["result"].get("ok") is False)
                report.episode(step, min(len(calls), 3), min(failed, 2))


def _calls(history: Sequence[Any]) -> Iterator[str]:
    for message in history:
        body = message.get("assistant") if isinstance(message, Mapping) else None
        if isinstance(body, Mapping):
            yield from (str(call) for call in body.get("calls") or ())


def _reasoning(trace: Trace, view: View, report: Report) -> None:
    """S3: reasoning was taken, or seen, and something was committed or requested afterwards."""
    for run in view.runs:
        for attempt in run.attempts:
            steps = [item.step for item in attempt.items if item.kind == "reasoning" and item.value]
            steps += [event.step for event in attempt.events if event.name == "ReasoningDelta"]
            report.opportunity(bool(steps))
            later = any(other.opened.seq > attempt.opened.seq for other in run.attempts)
            if steps and (run.end_step < NEVER or later):
                report.episode(min(steps), run.ending, bool(attempt.response_calls))


def _revisions(trace: Trace, view: View, report: Report) -> None:
    """S4: the revision was another one, or it stayed where something could have changed the history."""
    for session in view.sessions:
        for step in range(1, view.length + 1):
            before, after = view.before(step, session), view.facts(step, session)
            if "revision" not in before or "revision" not in after or _new_incarnation(view, step, session):
                continue
            report.opportunity()
            if before["revision"] != after["revision"]:
                grown = len(after.get("history") or ()) - len(before.get("history") or ())
                report.episode(step, "changed", after.get("state"), max(-1, min(grown, 3)))
            elif _may_change(view, step, session):
                report.episode(step, "kept", after.get("state"))


def _new_incarnation(view: View, step: int, session: str) -> bool:
    stims = view.stims_at.get(step, ())
    return any(s.name == "crash" or (s.name == "restore" and s.session == session) for s in stims)


def _may_change(view: View, step: int, session: str) -> bool:
    if any(s.name in MUTATIONS and s.session == session for s in view.stims_at.get(step, ())):
        return True
    return any(run.end_step == step and run.session == session for run in view.runs)


# --- the run as a whole -------------------------------------------------------------------------------------------


def _one_outcome(trace: Trace, view: View, report: Report) -> None:
    """S7: the outcome of a run was asked for again after it had been known."""
    for run in view.runs:
        known = _outcomes(view, run)
        report.opportunity(bool(known))
        for first, again in pairwise(known):
            between = {s.label for s in view.stims if first.step < s.step < again.step}
            report.episode(again, run.ending, tuple(sorted(between - {"outcome", "read"}))[:1])


def _outcomes(view: View, run: Run) -> list[Obs]:
    stims = [s for s in view.stim("outcome") if _addresses(view, s, run)]
    replies = (view.reply(s) for s in stims)
    return [r for r in replies if r is not None and r.get("value", PENDING) != PENDING]


def _addresses(view: View, stim: Stim, run: Run) -> bool:
    """Whether a command meant this run: by name, else it is the newest one of the session by then."""
    if stim.run is not None:
        return stim.run == run.name
    begun = [r for r in view.runs if r.session == stim.session and r.start_step <= stim.step]
    return bool(begun) and begun[-1] is run


def _live(trace: Trace, view: View, report: Report) -> None:
    """LIVE: the runtime settled with a run unfinished; or it finished, in a step that gave it something to do."""
    if not declares(trace.hello, "observe.waiting_on"):
        return
    for step in range(1, view.length + 1):
        live = view.live(step)
        report.opportunity(bool(live))
        if live:
            report.episode(step, view.kinds(step))


# --- capabilities -------------------------------------------------------------------------------------------------


def _capabilities(trace: Trace, view: View, report: Report) -> None:
    """CAP: something declared was asked for. Starting is what every target does, and proves nothing."""
    for seen in trace.named("Refused"):
        if is_breach(seen, trace.hello):
            report.bad(f"declared but refused: {show_observation(seen)}", seen.step, seen.run)
    for stim in view.stims:
        for feature in _features(stim):
            if declares(trace.hello, feature):
                report.opportunity()
                report.episode(stim.step, feature)


def _features(stim: Stim) -> list[str]:
    if stim.name in STARTS:
        return []
    if stim.name not in ITEM_STIMULI:
        return [stim.name]
    return sorted({f"{stim.name}.{kind}" for kind, _ in items_of(stim)})


Look = Callable[[Trace, View, Report], None]
CONTEXTS: Mapping[str, Look] = MappingProxyType(
    {
        "CORE-LIVE": _live,
        "CORE-CAP": _capabilities,
        "CORE-S1": _one_end,
        "CORE-S2": _answered,
        "CORE-S3": _reasoning,
        "CORE-S4": _revisions,
        "CORE-S5": _started_first,
        "CORE-S6": _tool_events,
        "CORE-S7": _one_outcome,
    }
)
"""Standing rule -> what finds its contexts."""
