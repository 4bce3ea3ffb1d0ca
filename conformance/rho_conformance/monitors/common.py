"""The common rules, first half: CP1 to CP8 (design §6). Model inputs, tool log, outcome and counts come
first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import messages as m
from .base import Report, Rules
from .commit import clean_cancel, deaf, start_text
from .entities import NEVER, Attempt, Call, Run, is_ok
from .stimuli import STARTS
from .view import View

Json = Any


def follower(view: View, run: Run) -> Attempt | None:
    """The first model request of the next run in the same conversation."""
    later = [r for r in view.runs if r.session == run.session and r.start_step > run.start_step]
    return next((r.attempts[0] for r in later if r.attempts), None)


def asked(attempt: Attempt) -> list[Json]:
    """The messages of a request."""
    found = attempt.opened.get("messages")
    return list(found) if isinstance(found, list) else []


def dangling(view: View, attempt: Attempt) -> list[str]:
    """Unanswered calls of a request that this trace itself brought in; those of ``config.history`` are not
    its fault."""
    given = m.unanswered(list(view.config.get("history") or ()))
    return [c for c in m.unanswered(asked(attempt)) if c not in given]


def _after_cancel(view: View) -> Iterator[tuple[Run, Attempt]]:
    for run in view.runs:
        if NEVER > run.cancel_step not in run.drops:
            found = follower(view, run)
            if found is not None:
                yield run, found


def cp1(view: View, report: Report) -> None:
    """After a cancel the next request has no unanswered call."""
    report.opportunity(sum(1 for r in view.runs if r.cancel_step < NEVER))
    for run, request in _after_cancel(view):
        left = dangling(view, request)
        report.ok_or_bad(not left, f"after a cancel the next request leaves {left} unanswered", request.opened)
        if run.calls:
            report.episode(run.cancel_step, min(len(run.calls), 2))


def batches(run: Run) -> list[tuple[Attempt, list[Call]]]:
    """Responses with calls, and their calls in model order."""
    out = []
    for attempt in run.attempts:
        calls = sorted((c for c in run.calls if c.attempt is attempt), key=lambda c: c.order)
        if calls:
            out.append((attempt, calls))
    return out


def next_request(run: Run, attempt: Attempt) -> Attempt | None:
    """The next request of the same run."""
    return next((a for a in run.attempts if a.opened.seq > attempt.opened.seq), None)


def _results(request: Attempt, calls: list[Call]) -> dict[str, tuple[int, bool | None, str]]:
    wanted = {c.id for c in calls}
    return {name: (place, ok, text) for place, name, ok, text in m.results(asked(request)) if name in wanted}


def cp2(view: View, report: Report) -> None:
    """Results stand in the order of the calls."""
    for run in view.runs:
        for attempt, every in batches(run):
            calls = [c for c in every if not c.honoured]
            request = next_request(run, attempt)
            if len(calls) < 2:
                continue
            report.opportunity()
            found = _results(request, calls) if request is not None else {}
            places = [found[c.id][0] for c in calls if c.id in found]
            if request is not None and len(places) > 1:
                message = f"the results of {[c.id for c in calls]} are not in model order"
                report.ok_or_bad(places == sorted(places), message, request.opened)
                report.episode(request.opened, calls[0].ended_step > calls[-1].ended_step, min(len(calls), 3))


def cp3(view: View, report: Report) -> None:
    """The first call of an unknown tool gets an error result and the run goes on."""
    for run in view.runs:
        unknown = [c for c in run.calls if not c.available and c.attempt is not None]
        if not unknown:
            continue
        report.opportunity()
        call = unknown[0]
        request = next_request(run, call.attempt) if call.attempt is not None else None
        if call.executes:
            report.bad(f"{call.id} names no tool and was executed", call.executes[0])
        if request is None:
            siblings = [c for c in run.calls if c.attempt is call.attempt and c.available and c.end is None]
            limit = call.attempt is not None and call.attempt.step_no >= view.max_steps()
            calm = run.cancel_step == NEVER and not run.severed and not run.panics and not limit
            if calm and not siblings and run.ending is not None and len(unknown) == 1:
                report.bad(f"the run ended {run.ending} on the unknown tool of {call.id}", call.born, run.name)
            continue
        found = _results(request, [call]).get(call.id)
        right = found is not None and found[1] is not True
        report.ok_or_bad(right, f"the unknown call {call.id} has the result {found}", request.opened)
        alone = len([c for c in run.calls if c.attempt is call.attempt]) == 1
        report.episode(request.opened, alone, call.order, min(request.step_no, 3))


def cp4(view: View, report: Report) -> None:
    """A failing tool costs neither the run nor its siblings."""
    for run in view.runs:
        for attempt, calls in batches(run):
            failed = [c for c in calls if c.end is not None and c.end.kind in ("fail", "prep_fail")]
            done = all(c.end is not None or not c.available for c in calls)
            if not failed or not done or run.cancel_step < NEVER or run.severed or run.panics:
                continue
            report.opportunity()
            request = next_request(run, attempt)
            if request is None:
                if attempt.step_no < view.max_steps() and run.ending not in (None, "Completed"):
                    report.bad(f"the failure of {failed[0].id} ended the run ({run.ending})", attempt.opened)
                continue
            _siblings(report, request, calls)
            report.episode(request.opened, min(len(calls), 2), failed[0].order)


def _siblings(report: Report, request: Attempt, calls: list[Call]) -> None:
    found = _results(request, calls)
    for call in calls:
        if call.honoured:
            continue
        result = found.get(call.id)
        if result is None:
            report.bad(f"{call.id} has no result after a sibling or it failed", request.opened)
        elif call.end is not None and call.end.kind == "return":
            same = result[1] is not False and result[2] == str(call.end.value)
            report.ok_or_bad(same, f"the result of {call.id} became {result[2]!r}", request.opened)
        elif call.end is not None and call.end.kind == "fail":
            report.ok_or_bad(result[1] is not True, f"the failed {call.id} has an ok result", request.opened)


def cp5(view: View, report: Report) -> None:
    """A running tool is told of the cancel, or dropped."""
    reports = any(o.name == "Abandoned" for o in view.obs)
    for run in view.runs:
        step = clean_cancel(view, run)
        if step is None:
            continue
        for call in run.calls:
            if not call.executes or call.executes[0].step >= step or call.ended_step < step:
                continue
            report.opportunity()
            told = call.abandoned is not None and call.abandoned.step <= step
            gone = f"tool:{call.id}" not in view.waiting(step)
            if not told and (reports or not gone) and not deaf(view, run, f"tool:{call.id}"):
                report.bad(f"{call.id} was running at the cancel and was not told", step, run.name)
            report.episode(step, call.order, told)


def cp6(view: View, report: Report) -> None:
    """A result finished before the cancel stands in the next request."""
    report.opportunity(sum(1 for r in view.runs if r.cancel_step < NEVER and r.calls))
    for run, request in _after_cancel(view):
        if any(step <= run.cancel_step for step in run.panics):
            continue  # interrupted, at the latest in a race with the cancel: such a run leaves nothing behind
        for call in run.calls:
            end = call.end
            if end is None or end.kind != "return" or end.step >= run.cancel_step:
                continue
            found = _results(request, [call]).get(call.id)
            same = found is not None and found[1] is not False and found[2] == str(end.value)
            report.ok_or_bad(same, f"the finished result of {call.id} became {found}", request.opened)
            report.episode(run.cancel_step, call.order, any(c.end is None for c in run.calls))


def cp7(view: View, report: Report) -> None:
    """After a cancelled or failed run the next one is accepted and its first request is valid."""
    for run in view.runs:
        if run.ending not in ("Cancelled", "Failed") or run.end_step == NEVER:
            continue
        following = next((s for s in view.stim(*STARTS) if s.session == run.session and s.step > run.end_step), None)
        if following is None or any(s.step <= following.step for s in view.stim("shutdown")):
            continue
        report.opportunity()
        reply = view.reply(following)
        if reply is not None and not is_ok(reply) and view.single(following.step):
            report.bad(f"after a run that ended {run.ending} a start answered {reply.get('value')!r}", reply)
        newer = view.by_name.get(following.run or "")
        if newer is None or not newer.attempts:
            continue
        _valid(view, report, newer, newer.attempts[0])
        phase = view.kinds(run.end_step - 1)
        report.episode(newer.attempts[0].opened, run.ending, phase, bool(run.calls))


def _valid(view: View, report: Report, run: Run, request: Attempt) -> None:
    left = dangling(view, request)
    report.ok_or_bad(not left, f"the first request leaves {left} unanswered", request.opened)
    text, users = start_text(run), m.users(asked(request))
    if text is not None and "messages" in request.opened.data:
        report.ok_or_bad(users[-1:] == [text], f"the first request ends with {users[-1:]}", request.opened)


def cp8(view: View, report: Report) -> None:
    """The step limit: no request beyond it, nothing unanswered, nothing doubled."""
    limit = view.max_steps()
    for run in view.runs:
        steps = {a.step_no for a in run.attempts}
        if len(steps) < limit or not run.attempts[-1].response_calls:
            if any(s > limit for s in steps):
                report.bad(f"a request in step {max(steps)} of {limit}", run.attempts[-1].opened)
            continue
        report.opportunity()
        beyond = [a for a in run.attempts if a.step_no > limit]
        if beyond:
            report.bad(f"a request in step {beyond[0].step_no} of {limit}", beyond[0].opened)
        for extra in run.terminals[1:]:
            report.bad(f"a second terminal event, {extra.name}", extra)
        for call in run.calls:
            for extra in call.of("ToolFinished")[1:]:
                report.bad(f"a second ToolFinished of {call.id}", extra)
        request = follower(view, run)
        if request is not None:
            left = dangling(view, request)
            message = f"after the step limit the next request leaves {left} unanswered"
            report.ok_or_bad(not left, message, request.opened)
        if run.ending is not None and run.cancel_step == NEVER and not run.panics:
            right = run.ending in ("Completed", "Failed")
            report.ok_or_bad(right or run.severed, f"at the step limit it ended {run.ending}", run.end_step, run.name)
            wanted = min(len(run.attempts[-1].response_calls), 2)
            report.episode(run.attempts[-1].opened, run.ending, request is not None, min(limit, 2), wanted)


RULES: Rules = {
    "CP1": cp1,
    "CP2": cp2,
    "CP3": cp3,
    "CP4": cp4,
    "CP5": cp5,
    "CP6": cp6,
    "CP7": cp7,
    "CP8": cp8,
}
