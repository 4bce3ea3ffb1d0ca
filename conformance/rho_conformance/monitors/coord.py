"""The coordinator of a tool batch: RHO-COORD-1 to 5 (contract part 2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import messages as m
from .base import Report, Rules
from .entities import NEVER, Ask, Call, Obs, Run, is_ok
from .host import answers_of, open_asks, standing, valid
from .stimuli import Stim
from .view import View

Json = Any


def coord_1(view: View, report: Report) -> None:
    """While tools run, a steer, retract or respond is answered at once."""
    for run in view.runs:
        for stim in (s for s in run.stims if s.name in ("steer", "retract", "respond")):
            if not (view.waits_for(stim.step - 1, "tool") or view.waits_for(stim.step - 1, "host")):
                continue
            report.opportunity()
            reply = view.reply(stim)
            if _executing(view, run, stim.step) and view.alone(stim) and (reply is None or reply.step > stim.step):
                report.bad(f"a {stim.name} during the batch was not answered", stim, run.name)
            if reply is not None:
                report.episode(stim.step, stim.name)


def _executing(view: View, run: Run, step: int) -> bool:
    """Whether the run waits, before and after, for tools that run (not for their preparation), and nothing
    else."""
    running = {f"tool:{c.id}" for c in run.calls if c.executes and c.executes[0].step < step}
    asked = {w for w in view.waiting(step) if w.startswith("host:")}
    if view.live(step) != [run] or run.cancel_step <= step:
        return False
    quiet = [view.waiting(s) - running - asked - {"model"} for s in (step - 1, step)]
    return not quiet[1] and all(w.startswith("host:") for w in quiet[0]) and bool(view.waiting(step) & running)


def coord_2(view: View, report: Report) -> None:
    """Concurrent questions are all announced, each by its own id, answerable in any order."""
    for run in view.runs:
        for ask in run.asks.values():
            if len(ask.posed) != 1:
                continue
            report.opportunity()
            call, item = ask.posed[0]
            others = [w for w in open_asks(view, item.step) if w != ask.name]
            lost = not ask.requested and not ask.refused and not call.honoured
            if lost and run.whole and run.cancel_step > item.step and run.ending == "Completed":
                report.bad(f"the question {ask.name} was never announced", item.step, run.name)
            if others and ask.requested:
                report.episode(ask.requested[0], len(others))
            for answer in ask.answers:
                right = answer.call_id in (None, call.id)
                report.ok_or_bad(right, f"{ask.name} of {call.id} was answered to {answer.call_id}", answer)
            for stim, reply in ask.responds:
                _refused(view, report, ask, stim, reply)
                waiting = open_asks(view, stim.step - 1)
                if ask.name in waiting and len(waiting) > 1 and reply is not None and is_ok(reply):
                    left = [w for w in waiting if w != ask.name and w not in open_asks(view, stim.step)]
                    message = f"answering {ask.name} closed {left} as well"
                    report.ok_or_bad(not left or not view.alone(stim), message, stim, run.name)
                    report.episode(stim.step, "answered", waiting.index(ask.name))


def _refused(view: View, report: Report, ask: Ask, stim: Stim, reply: Obs | None) -> None:
    """A valid answer to one of several questions that nobody had closed."""
    together = [a for a in ask.run.asks.values() if a is not ask and standing(view, a, stim.step - 1)]
    before = standing(view, ask, stim.step - 1) and view.single(stim.step)
    if together and before and reply is not None and valid(answers_of(stim)):
        message = f"{ask.name} was open beside {together[0].name}, and its answer was refused"
        report.ok_or_bad(is_ok(reply), message, reply)


def coord_3(view: View, report: Report) -> None:
    """A question id reused within a batch is rejected (D25)."""
    for run in view.runs:
        for ask in run.asks.values():
            batches: dict[int, list[int]] = {}
            for call, item in (p for p in ask.posed if not p[0].honoured):  # a detached job cannot ask at all
                batches.setdefault(id(call.attempt), []).append(item.step)
            for steps in batches.values():
                if len(steps) > 1:
                    report.opportunity()
                    _reused(report, run, ask, steps, len(batches))


def _reused(report: Report, run: Run, ask: Ask, steps: Sequence[int], batches: int) -> None:
    for extra in ask.requested[batches:]:
        report.bad(f"{ask.name} was announced again in its batch", extra)
    if run.cancel_step <= steps[1] or run.severed or run.ending is None:
        return
    if run.ending == "Persistence" or (run.ending == "Cancelled" and run.cancel_step < NEVER):
        return  # what the reuse did to the run was overtaken, by the cancel (R9) or by a refused commit
    if run.ending == "Failed" and run.error in (None, "InvalidHostResponse"):
        pass  # its tool hears of the refusal as well
    elif ask.refused:
        report.variant("D25:refused")
    elif run.ending == "Failed":
        report.bad(f"the run failed with {run.error}", steps[1], run.name)
    else:
        report.bad(f"{ask.name} was reused, not refused, and the run ended {run.ending}", steps[1], run.name)
    report.episode(steps[1], bool(ask.responds))


def coord_4(view: View, report: Report) -> None:
    """WaitingForHostInput as long as any question is open."""
    for run in view.runs:
        report.opportunity(sum(1 for a in run.asks.values() if a.posed))
        if not run.asks:
            continue
        last = min(run.end_step, view.length)
        for step in range(run.start_step, last + 1):
            told = [a for a in run.asks.values() if a.requested and a.requested[0].step <= step]
            reported = open_asks(view, step)
            waiting = [a.name for a in told if a.name in reported or standing(view, a, step)]
            state = view.facts(step, run.session).get("state")
            if not waiting or state is None or run.cancel_step <= step or run.severed:
                continue
            message = f"{waiting} are open, and the state is {state}"
            report.ok_or_bad(state == "WaitingForHostInput", message, step, run.name)
            answered = any(is_ok(r) for a in run.asks.values() for _, r in a.responds if r and r.step <= step)
            report.episode(step, min(len(waiting), 2), answered)


def coord_5(view: View, report: Report) -> None:
    """Steering crosses into history only after every result of the batch."""
    for run in view.runs:
        during = [s for s in run.steers if s.accepted and view.waits_for(s.stim.step - 1, "tool")]
        report.opportunity(len(during))
        _events(report, run)
        for attempt in run.attempts:
            between(view, report, run, attempt.opened.get("messages") or (), attempt.opened.step)
        history = view.after(run).get("history")
        if isinstance(history, list):
            between(view, report, run, history, run.end_step)
        for steer in during:
            if steer.applied:
                report.episode(steer.stim.step, min(len(run.calls), 2))


def _events(report: Report, run: Run) -> None:
    open_calls: set[str] = set()
    sync = {c.id for c in run.calls if not c.honoured}
    for event in run.events:
        if event.name == "ToolStarted" and event.call_id in sync:
            open_calls.add(str(event.call_id))
        elif event.name == "ToolFinished":
            open_calls.discard(str(event.call_id))
        elif event.name == "SteeringApplied" and open_calls:
            report.bad(f"steering was applied while {sorted(open_calls)} were open", event)


def between(view: View, report: Report, run: Run, history: Sequence[Json], step: int) -> None:
    """No steering text between an assistant message and the last of its synchronous results."""
    texts = {s.text for s in run.steers}
    if not texts:
        return
    answers: dict[str, list[int]] = {}
    for place, name, _, _ in m.results(history):
        answers.setdefault(name, []).append(place)
    sync: dict[str, Call] = {c.id: c for c in run.calls if not c.honoured}
    fence = -1
    for place, message in enumerate(history):
        if m.kind(message) == "assistant":
            own = [answers.get(c, []) for c in m.calls(message) if c in sync]
            fence = max([fence, *(next((p for p in places if p > place), -1) for places in own)])
        elif m.kind(message) == "user" and place < fence and m.text(message) in texts:
            report.bad(f"the steer {m.text(message)!r} stands between results of one batch", step, run.name)
            return


RULES: Rules = {
    "RHO-COORD-1": coord_1,
    "RHO-COORD-2": coord_2,
    "RHO-COORD-3": coord_3,
    "RHO-COORD-4": coord_4,
    "RHO-COORD-5": coord_5,
}
