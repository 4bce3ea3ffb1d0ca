"""Terminal authority: RHO-TERM-1 to 6 (contract part 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Report, Rules
from .entities import NEVER, Run
from .view import View

Json = Any


def term_1(view: View, report: Report) -> None:
    """Nothing follows the terminal event, whatever answers come late."""
    for run in view.runs:
        report.opportunity()
        if run.terminal is None:
            continue
        place = run.place(run.terminal)
        for event in run.events[place + 1 :]:
            report.bad(f"{event.name} after the terminal event {run.terminal.name}", event)
        late = any(s.step > run.terminal.step for s in run.stims if s.name in ("provider", "tool", "compactor"))
        report.episode(run.terminal, run.terminal.name, late)


def term_2(view: View, report: Report) -> None:
    """The outcome resolves once the run is over and the terminal event agrees with it."""
    for run in view.runs:
        if run.outcomes_asked:
            report.opportunity()
        if run.outcome is None:
            _unresolved(view, report, run)
            continue
        if run.terminal is not None and run.ending != run.terminal.name:
            allowed = run.terminal.name == "Failed" and run.error not in (None, "Cancelled")
            message = f"the terminal event is {run.terminal.name}, the outcome {run.outcome!r}"
            report.ok_or_bad(allowed, message, run.terminal)
        read = "event" if run.terminal is not None else "no event"
        report.episode(run.outcome_reply or run.end_step, run.ending, read)


def _unresolved(view: View, report: Report, run: Run) -> None:
    asked = [s for s in run.outcomes_asked if s >= run.end_step or run.end_step != NEVER]
    if not asked or run.drops or run.crashed != NEVER:
        return
    at = max(asked[0], run.end_step)
    if at < NEVER and not view.facts(at, run.session).get("busy", True):
        report.bad("the run is over and its outcome is still pending", at, run.name)


def term_3(view: View, report: Report) -> None:
    """Completed holds the outcome that was awaited."""
    for run in view.runs:
        event, outcome = run.terminal, run.ended_ok
        if run.outcomes_asked:
            report.opportunity()
        if event is None or event.name != "Completed" or outcome is None:
            continue
        inside = event.get("outcome") or {}
        for key in ("text", "stop", "usage", "revision"):
            if key in inside and key in outcome and not _same(inside[key], outcome[key]):
                report.bad(f"Completed has {key} {inside[key]!r}, the outcome {outcome[key]!r}", event)
        report.episode(event, inside.get("stop"), bool(inside.get("text")))


def _same(one: Json, other: Json) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return _filled(one) == _filled(other)
    return bool(one == other)


def _filled(usage: Mapping[str, Json]) -> dict[str, Json]:
    return {k: v for k, v in usage.items() if v is not None}


def term_4(view: View, report: Report) -> None:
    """The event Cancelled goes with the error Cancelled."""
    for run in view.runs:
        if run.cancel_step < NEVER:
            report.opportunity()
        cancelled = [e for e in run.terminals if e.name == "Cancelled"]
        if not cancelled or run.outcome is None:
            continue
        message = f"the event is Cancelled, the outcome {run.outcome!r}"
        report.ok_or_bad(run.error == "Cancelled", message, cancelled[0])
        report.episode(cancelled[0])


def term_5(view: View, report: Report) -> None:
    """Failed carries the text and retryability of the typed error; diagnostics stand apart."""
    for run in view.runs:
        for attempt in run.attempts:
            if attempt.failure is not None:
                report.opportunity()
        failed = next((e for e in run.terminals if e.name == "Failed"), None)
        if failed is None:
            continue
        outcome = run.outcome if isinstance(run.outcome, Mapping) else {}
        report.ok_or_bad("ok" not in outcome, "Failed, and the outcome is a success", failed)
        message, wanted = failed.get("message"), outcome.get("message")
        if message is not None and wanted is not None:
            report.ok_or_bad(message == wanted, f"Failed says {message!r}, the error {wanted!r}", failed)
        retryable, word = outcome.get("retryable"), failed.get("retryability")
        if isinstance(retryable, bool) and word is not None:
            agrees = (word == "Retryable") == retryable
            report.ok_or_bad(agrees, f"Failed is {word}, the error is retryable={retryable}", failed)
        _typed(report, run, outcome, str(message or ""))
        report.episode(failed, word, outcome.get("error"))


def _typed(report: Report, run: Run, outcome: Mapping[str, Json], message: str) -> None:
    last = run.attempts[-1] if run.attempts else None
    fail = last.failure if last is not None else None
    at = run.terminal or run.end_step
    if fail is None or run.ending != "Failed" or run.closes:
        return
    diagnostic = fail.get("diagnostic")
    if isinstance(diagnostic, str) and diagnostic and diagnostic not in str(fail.get("message", "")):
        report.ok_or_bad(diagnostic not in message, "the diagnostic stands in the message of Failed", at)
    if run.cancel_step < NEVER or outcome.get("error") != "Provider":
        return
    kind = outcome.get("kind")
    if kind is not None:
        report.ok_or_bad(kind == fail.get("kind", kind), f"the error has kind {kind}, the failure {fail}", at)
    retryable = outcome.get("retryable")
    if isinstance(retryable, bool):
        same = retryable == bool(fail.get("retryable", False))
        report.ok_or_bad(same, f"the error is retryable={retryable}, the failure {fail}", at)
    if isinstance(fail.get("message"), str):
        report.ok_or_bad(fail["message"] in message, "Failed lost the provider's message", at)


def term_6(view: View, report: Report) -> None:
    """A stream may end without a terminal event; one that is there agrees with the outcome, and is one."""
    for run in view.runs:
        odd = bool(run.severed or run.panics) or run.ending in ("Interrupted", "Persistence")
        if odd or (run.cancel_step < NEVER and view.full(run.cancel_step - 1)):
            report.opportunity()
            for extra in run.terminals[1:]:
                report.bad(f"a second terminal event, {extra.name}", extra)
            if run.terminal is not None and run.outcome is not None and run.ending != run.terminal.name:
                excused = run.terminal.name == "Failed" and run.error not in (None, "Cancelled")
                message = f"the event {run.terminal.name} contradicts the outcome {run.outcome!r}"
                report.ok_or_bad(excused, message, run.terminal)
            if run.end_step != NEVER:
                report.variant("TERM-6:" + ("sent" if run.terminal else "none"))
                report.episode(run.end_step, run.ending, run.terminal is not None)


RULES: Rules = {
    "RHO-TERM-1": term_1,
    "RHO-TERM-2": term_2,
    "RHO-TERM-3": term_3,
    "RHO-TERM-4": term_4,
    "RHO-TERM-5": term_5,
    "RHO-TERM-6": term_6,
}
