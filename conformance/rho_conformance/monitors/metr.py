"""Model-call metrics: RHO-METR-1, 2, 4, 5 (contract part 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import messages as m
from .base import Report, Rules
from .entities import Attempt, Obs, ok_value
from .ret_usage import totals, usages
from .view import View

Json = Any
NAMES = ("GenerationOutputTokens", "generation_output_tokens", "generation_tokens")


def _completed(view: View) -> list[tuple[Attempt, Obs, Mapping[str, Json]]]:
    return [
        (a, a.completed, metrics)
        for r in view.runs
        for a in r.attempts
        if a.completed is not None and isinstance(metrics := a.completed.get("metrics"), Mapping)
    ]


def _outputs(attempt: Attempt) -> set[int]:
    return {u.get("output_tokens", 0) for u in usages(attempt)}


def metr_1(view: View, report: Report) -> None:
    """metrics.output_tokens is the provider's total of the attempt."""
    if not view.taken_known:
        report.untestable("the driver does not report what the runtime took")
        return
    for attempt, event, metrics in _completed(view):
        given = [i for i in attempt.items if i.kind == "usage"]
        report.opportunity(bool(given))
        told = metrics.get("output_tokens") or 0
        report.ok_or_bad(told in _outputs(attempt), f"output_tokens {told}, reported was {_outputs(attempt)}", event)
        if given:
            report.episode(event, min(len(given), 2), any(i.kind == "physical_retry" for i in attempt.items))


def generation(attempt: Attempt) -> Json:
    """What the provider last said in the last physical request: ``{"Reported": n}``, ``"Unavailable"`` or
    ``None``."""
    said: Json = None
    for item in attempt.items:
        if item.kind == "physical_retry":
            said = None
        elif item.kind == "generation_tokens":
            said = {"Reported": item.value} if isinstance(item.value, int) else "Unavailable"
    return said


def metr_2(view: View, report: Report) -> None:
    """generation_output_tokens is passed through, never derived."""
    if not view.taken_known:
        report.untestable("the driver does not report what the runtime took")
        return
    for attempt, event, metrics in _completed(view):
        told, said = metrics.get("generation_output_tokens"), generation(attempt)
        spoken = any(i.kind == "generation_tokens" for i in attempt.items)
        if spoken:
            report.opportunity()
        report.ok_or_bad(told == said, f"generation_output_tokens is {told!r}, the provider said {said!r}", event)
        if spoken or any(i.kind == "usage" for i in attempt.items):
            report.episode(event, "absent" if said is None else str(said)[:8])


def metr_4(view: View, report: Report) -> None:
    """A generation count changes no total."""
    for run in view.runs:
        good = [a for a in run.attempts if a.good]
        for attempt in run.attempts:
            spoken = [i for i in attempt.items if i.kind == "generation_tokens"]
            reported = [i for i in attempt.items if i.kind == "usage"]
            if not spoken or not reported:
                continue
            report.opportunity()
            earlier = totals([a for a in good if a.opened.seq < attempt.opened.seq])
            _shown(report, attempt, {t.get("output_tokens", 0) for t in earlier})
            told = ((attempt.completed.get("metrics") or {}) if attempt.completed else {}).get("output_tokens")
            if told is not None and attempt.completed is not None:
                message = f"output_tokens is {told}, the full total {_outputs(attempt)}"
                report.ok_or_bad(told in _outputs(attempt), message, attempt.completed)
            usage = (run.ended_ok or {}).get("usage")
            if isinstance(usage, Mapping) and attempt.good:
                allowed = {t.get("output_tokens", 0) for t in totals(good)} | _outputs(good[-1])
                message = f"the outcome counts {usage.get('output_tokens')}, the full total is {allowed}"
                report.ok_or_bad((usage.get("output_tokens") or 0) in allowed, message, run.end_step, run.name)
            if attempt.completed is not None:
                report.episode(attempt.completed, str(generation(attempt))[:8])


def _shown(report: Report, attempt: Attempt, earlier: set[int]) -> None:
    updates = [e for e in attempt.events if e.name == "UsageUpdated"]
    if not updates or attempt.completed is None:
        return
    told = (updates[-1].get("usage") or {}).get("output_tokens") or 0
    allowed = {e + o for e in earlier for o in _outputs(attempt)}
    report.ok_or_bad(told in allowed, f"UsageUpdated says {told}, the full total is {allowed}", updates[-1])


def metr_5(view: View, report: Report) -> None:
    """The generation count is no event, no context, no history entry and no part of a snapshot."""
    for run in view.runs:
        spoken = [i for a in run.attempts for i in a.items if i.kind == "generation_tokens"]
        report.opportunity(len(spoken))
        for event in run.events:
            kind = str(event.get("kind", "")).lower() if event.name == "ProviderContextUpdated" else ""
            if "generation" in kind and ("token" in kind or "output" in kind):
                report.bad("the generation count came out as provider context", event)
        history = view.after(run).get("history")
        for name in NAMES:
            if m.holds(history, name):
                report.bad(f"{name} stands in the committed history", run.end_step, run.name)
        if spoken and run.attempts[-1].completed is not None:
            report.episode(run.attempts[-1].completed, len(spoken) > 1)
    for obs in view.obs:
        if obs.name == "GenerationOutputTokens" or (
            obs.name == "ProviderActivity" and "generation" in str(obs.get("kind"))
        ):
            report.bad("the generation count became an event", obs)
    for stim in view.stim("snapshot"):
        reply = view.reply(stim)
        if reply is not None and any(m.holds(ok_value(reply), n) for n in NAMES):
            report.bad("the generation count stands in a snapshot", reply)


RULES: Rules = {"RHO-METR-1": metr_1, "RHO-METR-2": metr_2, "RHO-METR-4": metr_4, "RHO-METR-5": metr_5}
