"""What retries repeat and what they cost: RHO-RET-11 to 23 (contract part 2.8)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import messages as m
from .base import Report, Rules
from .entities import NEVER, Attempt, Call, Obs, Run
from .stimuli import Item
from .view import View

Json = Any
Usage = dict[str, int]
COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens")


def add(total: Usage, usage: Json) -> Usage:
    """Field-wise sum; absent fields count as nothing (contract §1.5)."""
    out = dict(total)
    for key in COUNTED if isinstance(usage, Mapping) else ():
        if isinstance(usage.get(key), int):
            out[key] = out.get(key, 0) + usage[key]
    return out


def usages(attempt: Attempt) -> list[Usage]:
    """The usage an attempt may stand for: what its last physical request reported; with a physical retry
    two readings."""
    total: Usage = {}
    fresh: Usage = {}
    retried: Usage = {}
    for item in attempt.items:
        if item.kind == "usage":
            total, fresh = add(total, item.value), add(fresh, item.value)
        elif item.kind == "physical_retry":
            fresh = {}
            retried = add(retried, (item.value or {}).get("usage") if isinstance(item.value, Mapping) else None)
    less = {k: max(0, v - retried.get(k, 0)) for k, v in total.items()}
    return [fresh] if fresh == less else [fresh, less]


def covers(shown: Json, wanted: Usage) -> bool:
    """Whether a usage map says these numbers (0 and absent are the same)."""
    shown = shown if isinstance(shown, Mapping) else {}
    keys = set(wanted) | {k for k in COUNTED if isinstance(shown.get(k), int)}
    return all((shown.get(k) or 0) == wanted.get(k, 0) for k in keys if k != "total_tokens" or k in wanted)


def totals(attempts: Sequence[Attempt]) -> list[Usage]:
    """All sums that the successful attempts may give."""
    out: list[Usage] = [{}]
    for attempt in attempts:
        out = [add(t, u) for t in out for u in usages(attempt)][:16]
    return out


def ret_11(view: View, report: Report) -> None:
    """One record for each physical request, with its own usage and outcome."""
    if not view.config.get("recorder"):
        return
    for run in view.runs:
        records = run.up("Record")
        place = begun = 0
        for attempt in run.attempts:
            due = _due_records(run, attempt)
            if due is None:
                # Its failed physical requests may be recorded as they fail.
                begun = sum(i.kind == "physical_retry" for i in attempt.items) + (attempt.end is not None)
                break
            report.opportunity()
            for outcome in due:
                if place >= len(records):
                    if not view.waits_for(view.length, "recorder") and attempt is not run.attempts[-1]:
                        report.bad(f"no usage record {outcome!r}", attempt.opened)
                    break
                _record(report, records[place], outcome, attempt, last=outcome is due[-1])
                place += 1
        for extra in records[place + begun :] if place and run.cancel_step == NEVER and not run.severed else ():
            report.bad("a usage record with no request", extra)


def _due_records(run: Run, attempt: Attempt) -> list[Json] | None:
    if attempt.end is None or attempt.end.kind == "panic" or attempt.end.step >= run.cancel_step:
        return None
    out: list[Json] = []
    for item in attempt.items:
        if item.kind == "physical_retry":
            kind = item.value.get("kind") if isinstance(item.value, Mapping) else item.value
            out.append({"Failed": kind})
    if attempt.failure is not None:
        out.append({"Failed": attempt.failure.get("kind")})
    else:
        out.append("InvalidResponse" if attempt.malformed else "Completed")
    return out


def _record(report: Report, record: Obs, outcome: Json, attempt: Attempt, last: bool) -> None:
    told = record.get("outcome")
    known = not isinstance(outcome, Mapping) or outcome["Failed"] is not None
    if known:
        report.ok_or_bad(told == outcome, f"the record says {told!r}, the request ended {outcome!r}", record)
    if last and isinstance(record.get("usage"), Mapping):
        right = any(covers(record.get("usage"), u) for u in usages(attempt))
        report.ok_or_bad(right, f"the record has {record.get('usage')!r}, reported was {usages(attempt)}", record)
    report.episode(record, str(told)[:40])


def ret_12(view: View, report: Report) -> None:
    """The outcome counts the successful attempt of every step (D26)."""
    if not view.taken_known:
        report.untestable("the driver does not report what the runtime took")
    for run in view.runs:
        good = [a for a in run.attempts if a.good]
        reported = any(i.kind == "usage" for a in run.attempts for i in a.items)
        if reported:
            report.opportunity()
        outcome = run.ended_ok or ((run.terminal.get("outcome") or None) if run.terminal else None)
        if not reported or outcome is None or "usage" not in outcome or not good or run.severed:
            continue
        usage = outcome["usage"]
        if not any(covers(usage, t) for t in totals(good)):
            if any(covers(usage, u) for u in usages(good[-1])):
                report.variant("D26:last")
            else:
                report.bad(f"the outcome counts {usage!r}, the successes {totals(good)[0]}", run.end_step, run.name)
        abandoned = any(i.kind == "usage" for a in run.attempts if not a.good for i in a.items)
        report.episode(good[-1].opened, abandoned, min(len(good), 2))


def _passed_on(view: View, report: Report, kind: str, event: str, same: Any) -> None:
    """Every taken item of a kind comes out as its event, in number and content."""
    for run in view.runs:
        for attempt in run.attempts:
            given = [i for i in attempt.items if i.kind == kind]
            shown = [e for e in attempt.events if e.name == event]
            if given:
                report.opportunity()
            for place, seen in enumerate(shown):
                right = view.taken_known is False or (place < len(given) and same(given[place], seen))
                report.ok_or_bad(right, f"{event} {dict(seen.data)!r} answers no item of its provider", seen)
            ended = attempt.completed is not None or (attempt.reset is not None and run.cancel_step == NEVER)
            if ended and not run.gap and len(shown) < len(given):
                report.bad(f"{len(given) - len(shown)} {event} are missing", attempt.opened)
            if given and shown:
                report.episode(shown[0], attempt.number, min(len(given), 2))


def ret_15(view: View, report: Report) -> None:
    """A physical retry is a ProviderRequestRetry inside the same attempt."""
    _passed_on(view, report, "physical_retry", "ProviderRequestRetry", lambda item, event: True)
    for attempt in (a for r in view.runs for a in r.attempts if a.completed is not None):
        if view.taken_known and any(i.kind == "physical_retry" for i in attempt.items):
            told = (attempt.completed.get("metrics") or {}).get("output_tokens") if attempt.completed else None
            allowed = {u.get("output_tokens", 0) for u in usages(attempt)}
            message = f"output_tokens {told}, without the failed physical request {allowed}"
            report.ok_or_bad((told or 0) in allowed, message, attempt.opened)


def _detail(item: Item, event: Obs) -> bool:
    value = item.value.get("detail") if isinstance(item.value, Mapping) else item.value
    return bool(event.get("detail") == value)


def ret_16(view: View, report: Report) -> None:
    """Web search is passed on and not persisted."""
    _passed_on(view, report, "web_search", "WebSearch", _detail)


def ret_17(view: View, report: Report) -> None:
    """Other hosted tools are passed on by name and detail."""

    def same(item: Item, event: Obs) -> bool:
        value = item.value if isinstance(item.value, Mapping) else {}
        return bool(event.get("name") == value.get("name") and event.get("detail") == value.get("detail"))

    _passed_on(view, report, "hosted", "HostedToolActivity", same)


def request_of(attempt: Attempt) -> str:
    """What the model was asked, as one text: messages, tools, system prompt."""
    asked = {k: attempt.opened.get(k) for k in ("messages", "tools", "system")}
    return json.dumps(asked, sort_keys=True, default=str)


def ret_18(view: View, report: Report) -> None:
    """A retry repeats the request: same messages, tools and system prompt."""
    for run in view.runs:
        for attempts in run.steps_of().values():
            for attempt in attempts[1:]:
                report.opportunity()
                same = request_of(attempt) == request_of(attempts[0])
                report.ok_or_bad(same, f"attempt {attempt.number} asks something else than the first", attempt.opened)
                steered = any(attempts[0].opened.step < s.stim.step <= attempt.opened.step for s in run.steers)
                report.episode(attempt.opened, attempt.number, steered)


def ret_19(view: View, report: Report) -> None:
    """Retries do not run tools of earlier turns again."""
    for run in view.runs:
        for extra in (e for c in run.calls for e in c.executes[1:]):
            report.bad(f"{extra.call_id} was executed again", extra)
        for attempt in run.attempts:
            done = [c for c in run.calls if c.executes and c.executes[0].seq < attempt.opened.seq]
            if attempt.number > 1 and done:
                report.opportunity()
                report.episode(attempt.opened, attempt.number, min(len(done), 2))


def ret_22(view: View, report: Report) -> None:
    """A tool failure is a result for the model, not a transport retry."""
    for call in view.calls():
        end = call.end
        if end is None or end.kind not in ("fail", "prep_fail") or end.step >= call.run.cancel_step:
            continue
        report.opportunity()
        # A request may show a placeholder for a job that was pending when it was made.
        for attempt in call.run.attempts if not call.honoured and not call.run.up("Compact") else ():
            if call.attempt is None or attempt.step_no <= call.attempt.step_no:
                continue
            _shown_failure(report, call, attempt)
            break
        else:
            _ended_by_failure(view, report, call)
        if call.attempt is not None and call.attempt.reset is not None:
            report.bad(f"a reset on account of the tool failure of {call.id}", call.attempt.reset)


def _ended_by_failure(view: View, report: Report, call: Call) -> None:
    """No further request: then something else than the failed tool must have ended the run."""
    run, attempt = call.run, call.attempt
    last = run.attempts[-1] if run.attempts else None
    if run.ending != "Failed" or attempt is None or last is not attempt or call.honoured:
        return
    other = run.severed or run.panics or any(s.name in ("compactor", "boundary") for s in run.stims)
    reused = any(len(a.posed) > 1 for a in run.asks.values())
    if not other and not reused and attempt.step_no < view.max_steps():
        report.bad(f"the tool failure of {call.id} ended the run", run.end_step, run.name)


def _shown_failure(report: Report, call: Call, attempt: Attempt) -> None:
    found = [(ok, text) for _, name, ok, text in m.results(attempt.opened.get("messages") or ()) if name == call.id]
    if not found:
        report.bad(f"the next request has no result of the failed {call.id}", attempt.opened)
        return
    report.ok_or_bad(found[-1][0] is not True, f"the failed {call.id} has an ok result", attempt.opened)
    report.episode(attempt.opened, call.end.kind if call.end else "")


def ret_23(view: View, report: Report) -> None:
    """At the step limit: Completed(MaxSteps), or the permanent invalid-response error (D1); never one more
    request."""
    limit = view.max_steps()
    for run in view.runs:
        for attempt in run.attempts:
            report.ok_or_bad(
                attempt.step_no <= limit, f"a request in step {attempt.step_no} of {limit}", attempt.opened
            )
        last = run.attempts[-1] if run.attempts else None
        if last is None or last.step_no < limit or not last.good:
            continue
        going_on = bool(last.response_calls) or any(s.accepted and s.retracted_step == NEVER for s in run.steers)
        if not last.response_calls or run.cancel_step < NEVER or run.severed or run.panics:
            continue
        report.opportunity()
        _limit(report, run, last, going_on)


def _limit(report: Report, run: Run, last: Attempt, going_on: bool) -> None:
    stop = (run.ended_ok or {}).get("stop")
    if run.ended_ok is None and run.terminal is not None and run.terminal.name == "Completed":
        stop = (run.terminal.get("outcome") or {}).get("stop")
    if stop is not None:
        report.ok_or_bad(stop == "MaxSteps", f"the step limit was reached, and it stopped for {stop}", last.opened)
        report.episode(last.opened, "complete", going_on)
    elif run.ending == "Failed" and isinstance(run.outcome, Mapping):
        kind, retryable = run.outcome.get("kind"), run.outcome.get("retryable")
        reused = any(len(a.posed) > 1 for a in run.asks.values())
        right = kind in (None, "InvalidResponse") and not retryable
        if right and run.error == "Provider":
            report.variant("D1:fail")
            report.episode(last.opened, "fail", going_on)
        elif not reused and run.error != "Persistence":
            report.bad(f"the step limit was reached, and the outcome is {run.outcome!r}", last.opened)


RULES: Rules = {
    "RHO-RET-11": ret_11,
    "RHO-RET-12": ret_12,
    "RHO-RET-15": ret_15,
    "RHO-RET-16": ret_16,
    "RHO-RET-17": ret_17,
    "RHO-RET-18": ret_18,
    "RHO-RET-19": ret_19,
    "RHO-RET-22": ret_22,
    "RHO-RET-23": ret_23,
}
