"""Host input: RHO-HOST-1 to 5 (contract part 2.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Report, Rules
from .entities import NEVER, Ask, Run, error_name, is_ok
from .stimuli import Stim
from .view import View

Json = Any
CHOICES = ("yes", "no")


def asks(view: View) -> Iterator[Ask]:
    """All questions of all runs."""
    for run in view.runs:
        yield from run.asks.values()


def answers_of(stim: Stim) -> Json:
    """What a respond says: by default ``yes`` to the one question ``q``."""
    found = stim.get("answers")
    return {"q": ["yes"]} if found is None else found


def valid(answers: Json) -> bool:
    """Whether it fits the fixed question ``q`` with the choices yes and no (scenario format §3)."""
    if not isinstance(answers, Mapping) or set(answers) != {"q"}:
        return False
    chosen = answers["q"]
    return isinstance(chosen, list) and len(chosen) == 1 and chosen[0] in CHOICES


def open_asks(view: View, step: int) -> list[str]:
    """Questions the runtime waits for when ``step`` had settled."""
    return sorted(w[5:] for w in view.waiting(step) if w.startswith("host:"))


def standing(view: View, ask: Ask, step: int) -> bool:
    """Whether it was certainly open when ``step`` had settled: announced, not answered, its call at work.

    Read from stimuli and events alone, so that an implementation which forgets a question is found out.
    """
    run, posed = ask.run, [call for call, item in ask.posed if item.step <= step]
    if len(ask.requested) != 1 or ask.requested[0].step > step or len(posed) != 1 or run.panics or run.severed:
        return False
    if run.cancel_step <= step or run.end_step <= step or any(len(a.posed) > 1 for a in run.asks.values()):
        return False
    answered = any(reply is None or is_ok(reply) for stim, reply in ask.responds if stim.step <= step)
    call = posed[0]
    if any(i.kind == "withdraw" and i.value == ask.name and i.step <= step for i in call.items):
        return False
    return not answered and call.ended_step > step and (call.abandoned is None or call.abandoned.step > step)


def owner(view: View, step: int) -> Run | None:
    """The run those questions belong to, when it is the only one alive."""
    live = view.live(step)
    return live[0] if len(live) == 1 else None


def _state_while_open(view: View, step: int) -> tuple[Run, Json] | None:
    run = owner(view, step)
    if run is None or run.cancel_step <= step or run.severed:
        return None
    state = view.facts(step, run.session).get("state")
    return (run, state) if state is not None else None


def host_1(view: View, report: Report) -> None:
    """The request names its call, and the session waits for host input until it is closed."""
    for ask in asks(view):
        report.opportunity(len(ask.posed))
        for event in ask.requested:
            report.ok_or_bad(bool(event.call_id), "ToolHostInputRequested without a call id", event)
            posed = [c.id for c, _ in ask.posed]
            right = not posed or event.call_id in posed
            report.ok_or_bad(right, f"{ask.name} is announced for {event.call_id}, asked by {posed}", event)
            still = ask.name in open_asks(view, event.step) or standing(view, ask, event.step)
            found = _state_while_open(view, event.step)
            if still and found is not None:
                message = f"a question is open, and the state is {found[1]}"
                report.ok_or_bad(found[1] == "WaitingForHostInput", message, event)
                report.episode(event, min(len(open_asks(view, event.step)), 2))


def host_2(view: View, report: Report) -> None:
    """The legacy event is never sent."""
    for run in view.runs:
        for event in run.of("HostInputRequested"):
            report.bad("the legacy HostInputRequested was sent", event)
        for ask in run.asks.values():
            report.opportunity(len(ask.posed))
            for event in ask.requested[:1]:
                report.episode(event)


def host_3(view: View, report: Report) -> None:
    """Validated first; the first valid response reaches the asking tool exactly once."""
    for ask in asks(view):
        accepted = 0
        for stim, reply in ask.responds:
            report.opportunity()
            right, answered = valid(answers_of(stim)), reply is not None and is_ok(reply)
            if answered and not right:
                report.bad(f"an invalid response to {ask.name} was accepted", stim, ask.run.name)
            accepted += answered
            if answered and right:
                _delivered(view, report, ask, stim)
            elif right and accepted == 0 and reply is not None and _open_at(view, ask, stim):
                report.bad(f"a valid response to the open {ask.name} was refused", reply)
            if reply is not None:
                report.episode(stim.step, right, answered)
        times = max(1, len(ask.requested))
        report.ok_or_bad(accepted <= times, f"{accepted} responses to {ask.name} were accepted", ask.run.start_step)
        for extra in ask.answers[max(times, len(ask.posed)) :]:
            report.bad(f"{ask.name} was answered to its tool once more", extra)


def _open_at(view: View, ask: Ask, stim: Stim) -> bool:
    quiet = view.single(stim.step) and ask.run.cancel_step > stim.step and not ask.run.severed
    return quiet and bool(ask.posed) and ask.name in open_asks(view, stim.step - 1)


def _delivered(view: View, report: Report, ask: Ask, stim: Stim) -> None:
    got = [a for a in ask.answers if a.step >= stim.step]
    call = ask.posed[0][0] if ask.posed else None
    gone = call is None or call.ended_step <= stim.step or call.abandoned is not None
    if not got:
        if not gone and ask.run.cancel_step > stim.step and view.single(stim.step):
            report.bad(f"the response to {ask.name} was accepted and never delivered", stim, ask.run.name)
        return
    told = got[0].get("answers")
    if told is not None:
        message = f"{ask.name} was answered {answers_of(stim)!r}, its tool got {told!r}"
        report.ok_or_bad(told == answers_of(stim), message, got[0])
    if call is not None and got[0].call_id is not None:
        owners = [c.id for c, _ in ask.posed]
        report.ok_or_bad(got[0].call_id in owners, f"{ask.name} was answered to {got[0].call_id}", got[0])


def host_4(view: View, report: Report) -> None:
    """With no question left the session runs on."""
    for ask in asks(view):
        for stim, reply in ask.responds:
            report.opportunity()
            if reply is None or not is_ok(reply) or open_asks(view, reply.step):
                continue
            if any(standing(view, other, reply.step) for other in ask.run.asks.values()):
                continue
            found = _state_while_open(view, reply.step)
            if found is not None and found[0] is ask.run and view.single(reply.step):
                message = f"every question is answered, and the state is {found[1]}"
                report.ok_or_bad(found[1] == "Running", message, reply)
                report.episode(stim.step)


def host_5(view: View, report: Report) -> None:
    """Unknown id, bad shape, a requester that is gone, a run that is over: InvalidHostResponse."""
    known = {(a.run.name, a.name): a for a in asks(view)}
    handles = {(s.step, s.index): run.name for run in view.runs for s in run.stims if s.name == "respond"}
    for stim in view.stim("respond"):
        reply = view.reply(stim)
        ask = known.get((handles.get((stim.step, stim.index), ""), str(stim.get("ref"))))
        cause = _cause(ask, stim)
        if cause is None:
            continue
        report.opportunity()
        if reply is None:
            continue
        report.ok_or_bad(not is_ok(reply), f"a response was accepted: {cause}", reply)
        name = error_name(reply)
        if name is not None:
            report.ok_or_bad(name == "InvalidHostResponse", f"{cause}: the error is {name}", reply)
        report.episode(stim.step, cause)


def _cause(ask: Ask | None, stim: Stim) -> str | None:
    if ask is None or not (ask.posed or ask.requested):
        return "unknown id"
    if stim.step > ask.run.end_step:
        return "the run is over"
    if not valid(answers_of(stim)):
        return "bad shape"
    before = [r for s, r in ask.responds if r is not None and is_ok(r) and (s.step, s.index) < (stim.step, stim.index)]
    if before and len(ask.posed) <= 1 and len(ask.requested) <= 1:
        return "answered already"
    callers = [c for c, _ in ask.posed]
    return "requester gone" if callers and all(c.ended_step < stim.step < NEVER for c in callers) else None


RULES: Rules = {
    "RHO-HOST-1": host_1,
    "RHO-HOST-2": host_2,
    "RHO-HOST-3": host_3,
    "RHO-HOST-4": host_4,
    "RHO-HOST-5": host_5,
}
