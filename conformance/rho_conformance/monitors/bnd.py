"""Boundary inputs: RHO-BND-1 to 5 (contract part 2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import messages as m
from .base import Report, Rules
from .entities import NEVER, Attempt, Obs, Run
from .stimuli import Stim
from .view import View

Json = Any


def asked(view: View, run: Run) -> list[tuple[Obs, Stim | None]]:
    """Each request of the collector with the stimulus that answered it. An answer that nobody awaits is a
    no-op."""
    every = [s for s in run.stims if s.name == "boundary"]
    answers = [s for s in every if view.waits_for(s.step - 1, "collector") or not view.single(s.step)]
    collects = run.up("Collect")
    return [(c, answers[i] if i < len(answers) else None) for i, c in enumerate(collects)]


def input_of(stim: Stim | None) -> str | None:
    """The input that an answer gave."""
    found = stim.get("input") if stim is not None else None
    return found if isinstance(found, str) else None


def bnd_1(view: View, report: Report) -> None:
    """Without a collector nothing is collected and nothing applied."""
    if view.config.get("boundary"):
        return
    for run in view.runs:
        report.opportunity()
        for seen in [*run.of("BoundaryInputApplied"), *run.up("Collect")]:
            report.bad(f"{seen.name} although no collector is installed", seen)
        for attempt in run.attempts if run.end_step < NEVER else ():
            report.episode(attempt.opened, run.ending)
    for step in range(1, view.length + 1):
        if view.waits_for(step, "collector"):
            report.bad("waiting for a collector that is not installed", step)


def _gated(view: View) -> Iterator[Run]:
    if view.config.get("boundary"):
        yield from view.runs


def bnd_2(view: View, report: Report) -> None:
    """Asked once before each provider step, and waited for, except while a job is pending."""
    for run in _gated(view):
        pairs = [p for p in asked(view, run) if p[0].get("kind") in (None, "before_provider")]
        previous = -1
        for attempt in run.attempts:
            window = [p for p in pairs if previous < p[0].seq < attempt.opened.seq]
            previous = attempt.opened.seq
            report.opportunity()
            if attempt.number > 1:
                for collect, _ in window:
                    report.bad("the collector was asked again for a retry", collect)
                continue
            for collect, _ in window[1:]:
                report.bad("the collector was asked twice for one step", collect)
            for collect, _ in window:
                running = [c.id for c in run.calls if c.of("ToolDetached") and c.born < collect.step < c.ended_step]
                running = [name for name in running if f"tool:{name}" in view.waiting(collect.step)]
                report.ok_or_bad(not running, f"the collector was asked while {running} ran detached", collect)
            if window:
                _waited(view, report, run, attempt, window[0][1])
            elif not _job_pending(run, attempt):
                report.bad(f"step {attempt.step_no} began without asking the collector", attempt.opened)
        for collect, _ in pairs:
            _no_job(report, run, collect)
        _gone(view, report, run)


def _no_job(report: Report, run: Run, collect: Obs) -> None:
    """The collector is not asked while a detached job is certainly pending."""
    for call in run.calls:
        begun = bool(call.executes) and call.executes[0].seq < collect.seq
        calm = run.cancel_step > collect.step and not run.severed
        pending = call.honoured and call.of("ToolDetached") and begun and call.ended_step > collect.step
        if pending and calm:
            report.bad(f"the collector was asked while the job {call.id} is pending", collect)


def _job_pending(run: Run, attempt: Attempt) -> bool:
    return any(c.honoured and c.born <= attempt.opened.step and c.ended_step >= attempt.opened.step for c in run.calls)


def _waited(view: View, report: Report, run: Run, attempt: Attempt, answer: Stim | None) -> None:
    if not view.stims:
        return
    if answer is None or answer.step > attempt.opened.step:
        report.bad(f"step {attempt.step_no} did not wait for the collector", attempt.opened)
        return
    started = next((e for e in run.of("StepStarted") if e.get("step") == attempt.step_no), None)
    if started is not None and started.step < answer.step:
        report.bad("StepStarted came before the collector had answered", started)
    given = input_of(answer)
    if given is not None and answer.step < run.cancel_step and not _summarised(run, answer, attempt):
        users = m.users(attempt.opened.get("messages") or ())
        report.ok_or_bad(given in users, f"the accepted input {given!r} is not in the request", attempt.opened)
    report.episode(attempt.opened, given is not None)


def _summarised(run: Run, answer: Stim, attempt: Attempt) -> bool:
    """Whether a compactor was given the input between the answer and the request: it may stand in the
    summary."""
    given = input_of(answer)
    between = [c for c in run.up("Compact") if answer.step <= c.step <= attempt.opened.step]
    return any(given in m.users(c.get("messages") or ()) for c in between)


def _gone(view: View, report: Report, run: Run) -> None:
    gone = next((s for s in run.stims if s.name == "boundary" and s.value == "gone"), None)
    if gone is None or not view.waits_for(gone.step - 1, "collector") or run.cancel_step <= gone.step:
        return
    if run.ending is not None and not run.severed:
        right = run.ending == "Interrupted" and run.terminal is None
        report.ok_or_bad(right, f"the collector went away, and the run ended {run.ending}", gone, run.name)
        report.episode(gone.step, "gone")


def bnd_3(view: View, report: Report) -> None:
    """Asked before an end-turn response is committed; an accepted input means another step."""
    for run in _gated(view):
        pairs = [p for p in asked(view, run) if p[0].get("kind") == "before_completion"]
        report.opportunity(len(pairs))
        for collect, answer in pairs:
            before = [a.step_no for a in run.attempts if a.opened.seq < collect.seq]
            late = bool(before) and before[-1] >= view.max_steps()
            report.ok_or_bad(not late, "the collector was asked before the completion of the last step", collect)
            _completion(view, report, run, collect, answer)
        last = run.attempts[-1] if run.attempts else None
        completed = run.terminal if run.terminal is not None and run.terminal.name == "Completed" else None
        stop = ((completed.get("outcome") or {}) if completed else (run.ended_ok or {})).get("stop")
        if last is None or stop != "EndTurn" or last.step_no >= view.max_steps() or run.severed:
            continue
        if not any(p[0].seq > last.opened.seq for p in pairs):
            report.bad("the run completed without asking the collector first", run.end_step, run.name)


def _completion(view: View, report: Report, run: Run, collect: Obs, answer: Stim | None) -> None:
    if answer is None:
        return
    if run.terminal is not None and run.terminal.name == "Completed" and run.terminal.step < answer.step:
        report.bad("the run completed before the collector had answered", run.terminal)
    given = input_of(answer)
    taken = any(u.get("accepted") for u in run.up("CollectAck") if u.seq > collect.seq and u.step == answer.step)
    if given is None or not taken or run.cancel_step <= answer.step or run.severed or run.panics:
        if given is None and run.ending == "Completed":
            report.episode(answer.step, "none")
        return
    later = [a for a in run.attempts if a.opened.seq > collect.seq]
    if not later and run.ending == "Completed":
        report.bad("the run completed although a boundary input was accepted", answer.step, run.name)
    elif later:
        history = later[0].opened.get("messages") or ()
        shown = given in m.users(history) or _summarised(run, answer, later[0])
        report.ok_or_bad(shown, f"the input {given!r} is not in the next request", later[0].opened)
        report.episode(answer.step, "input")


def bnd_4(view: View, report: Report) -> None:
    """Announced by BoundaryInputApplied alone, never as steering."""
    for run in _gated(view):
        names = {s.name for s in run.steers}
        accepted = [u for u in run.up("CollectAck") if u.get("accepted")]
        report.opportunity(len(accepted))
        for event in run.events:
            ids = event.get("ids") or () if event.name == "SteeringApplied" else ()
            told = [*ids, event.get("id")] if event.name == "SteeringDelivered" else list(ids)
            strange = [x for x in told if x not in names]
            if event.name == "SteeringApplied" and not ids:
                report.bad("SteeringApplied lists no steer", event)
            report.ok_or_bad(not strange, f"{event.name} names {strange}, which no steer command returned", event)
        applied = run.of("BoundaryInputApplied")
        if run.whole and run.ending == "Completed" and len(applied) < len(accepted):
            report.bad("an accepted input was never announced by BoundaryInputApplied", run.end_step, run.name)
        for event in applied:
            report.episode(event, bool(run.steers))


def bnd_5(view: View, report: Report) -> None:
    """Text that was streamed stays: no reset on account of a boundary input."""
    for run in _gated(view):
        shown = committed = False
        for event in run.events:
            if event.name == "ModelCallCompleted":
                committed = True
            elif event.name == "StepStarted":
                shown = committed = False
            elif event.name == "AssistantTextDelta":
                shown = True
            elif event.name == "BoundaryInputApplied":
                report.opportunity()
                if shown:
                    report.episode(event)
            elif event.name == "ProviderStreamReset" and committed and not _malformed(run, event):
                report.bad("a reset after a completed response, on account of a boundary input", event)


def _malformed(run: Run, reset: Obs) -> bool:
    # Behind a gap it is not known whose reset it is.
    return run.gap or any(a.reset is reset and not a.good for a in run.attempts)


RULES: Rules = {
    "RHO-BND-1": bnd_1,
    "RHO-BND-2": bnd_2,
    "RHO-BND-3": bnd_3,
    "RHO-BND-4": bnd_4,
    "RHO-BND-5": bnd_5,
}
