"""Shutdown of the runtime: RHO-SHUT-1 to 6, 8 (contract part 2.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Report, Rules
from .commit import deaf, decided
from .entities import NEVER, Obs, Run, error_name, is_ok, ok_value
from .stimuli import STARTS, Stim
from .view import View

Json = Any
OPENERS = (*STARTS, "new_session", "compact")


def shutdowns(view: View) -> list[tuple[Stim, Obs | None]]:
    """Every shutdown of the first process with its reply: a crash begins a new runtime."""
    crash = min((s.step for s in view.stim("crash")), default=NEVER)
    return [(s, view.reply(s)) for s in view.stim("shutdown") if s.step < crash]


def counted(reply: Obs | None) -> int | None:
    """The number of runs that a shutdown reports."""
    value = ok_value(reply) if reply is not None else None
    found = value.get("cancelled_runs") if isinstance(value, Mapping) else None
    return found if isinstance(found, int) else None


def shut_1(view: View, report: Report) -> None:
    """Answered at once, any number of times."""
    for stim, reply in shutdowns(view):
        report.opportunity()
        if reply is None or reply.step > stim.step:
            report.bad("shutdown did not answer at once", stim)
            continue
        report.ok_or_bad(is_ok(reply), f"shutdown answered {reply.get('value')!r}", reply)
        report.episode(stim.step, len(view.live(stim.step - 1)) > 0)


def _first(view: View) -> Stim | None:
    return next((s for s, _ in shutdowns(view)), None)


def _refusals(view: View, report: Report, names: tuple[str, ...]) -> None:
    first = _first(view)
    if first is None:
        return
    for stim in view.stim(*names):
        # Inside one perform the order counts as well: `[crash, compact]` asks the new process.
        began = [(s.step, s.index) for s in view.stim("restore", "crash")]
        here, shut = (stim.step, stim.index), (first.step, first.index)
        if here <= shut or any(shut < new < here for new in began):
            continue
        report.opportunity()
        reply = view.reply(stim)
        if reply is None:
            begun = any(o.name == "Compact" and o.run is None for o in view.obs_at.get(stim.step, ()))
            if begun and stim.name == "compact":
                report.bad("a manual compaction began after shutdown", stim)
            continue
        name = error_name(reply)
        busy = bool([r for r in view.live(stim.step - 1) if r.session == stim.session])
        busy = busy or view.facts(stim.step - 1, stim.session).get("busy") is True or not view.single(stim.step)
        right = name == "RuntimeShutdown" or (name == "SessionBusy" and busy)
        report.ok_or_bad(right, f"{stim.name} after shutdown answered {reply.get('value')!r}", reply)
        if stim.name in STARTS and not is_ok(reply):
            _untouched(view, report, stim)
        report.episode(stim.step, stim.name, name)


def _untouched(view: View, report: Report, stim: Stim) -> None:
    before, after = view.facts(stim.step - 1, stim.session), view.facts(stim.step, stim.session)
    if view.single(stim.step) and before.get("busy") is False and "history" in before and "history" in after:
        same = before["history"] == after["history"]
        report.ok_or_bad(same, "a refused start changed the history", stim.step)
    for obs in view.obs_at.get(stim.step, ()):
        if obs.name == "ModelCall" and obs.run == stim.run and obs.run is not None:
            report.bad("a refused start called the provider", obs)


def shut_2(view: View, report: Report) -> None:
    """Shut for good: whatever happens later, no run is accepted any more."""
    first = _first(view)
    if first is None:
        return
    report.opportunity()
    for run in view.runs:
        if run.start_step > first.step and run.reply is not None and is_ok(run.reply):
            between = [
                s for s in view.stims if s.name in ("restore", "crash") and first.step < s.step <= run.start_step
            ]
            if not between:
                report.bad("a run was accepted after shutdown", run.start_step, run.name)
    crash = min((s.step for s in view.stim("crash")), default=NEVER)
    for stim in view.stim(*STARTS):
        if first.step < stim.step < crash:
            report.episode(stim.step, stim.session, len(view.stim("shutdown")) > 1)


def shut_3(view: View, report: Report) -> None:
    """Every registered run is cancelled."""
    first = _first(view)
    if first is None:
        return
    for run in view.runs:
        if not run.start_step < first.step <= run.end_step or first.step not in run.shutdowns:
            continue
        report.opportunity()
        cut = run.severed or run.panics or view.full(first.step - 1) or not view.alone(first)
        cut = cut or decided(view, run, first.step)
        if cut or (run.terminal is not None and run.terminal.step < first.step):
            continue
        _cancelled(view, report, run, first)


def _cancelled(view: View, report: Report, run: Run, first: Stim) -> None:
    token = view.token(first.step, run)
    if token is not None:
        report.ok_or_bad(token == "cancelled", f"after shutdown the token of {run.name} is {token}", first, run.name)
    last = min(view.length, run.end_step)
    stuck = [w for w in view.waiting(last) if w not in ("reader", "recorder") and not deaf(view, run, w)]
    if run.ending is None and run.end_step == NEVER and view.live(last) == [run] and stuck:
        report.bad(f"shut down, and it goes on waiting for {sorted(stuck)}", first, run.name)
    if run.ending is not None and run.ending != "Persistence":
        settling = view.waits_for(first.step - 1, "recorder")
        right = run.ending == "Cancelled" or settling
        report.ok_or_bad(right, f"shut down, and the run ended {run.ending}", first, run.name)
        report.episode(first.step, run.session, view.kinds(first.step - 1))


def shut_4(view: View, report: Report) -> None:
    """The first call reports how many runs and manual compactions were registered."""
    first = _first(view)
    count = counted(view.reply(first)) if first is not None else None
    if first is None:
        return
    report.opportunity()
    if count is None or not view.alone(first) or not view.facts(first.step - 1, view.first_session):
        return
    live = view.live(first.step - 1)
    sure = [r for r in live if r.terminal is None or r.terminal.step >= first.step]
    sure = [r for r in sure if not (view.full(first.step - 1) or r.severed)]
    manual = [s for s in view.stim("compact") if s.step < first.step and _pending(view, s, first.step)]
    low, high = len(sure) + len(manual), len(live) + len(manual)
    report.ok_or_bad(low <= count <= high, f"shutdown reports {count}, registered were {low} to {high}", first)
    report.episode(first.step, min(high, 3), len(manual))


def _pending(view: View, stim: Stim, step: int) -> bool:
    reply = view.reply(stim)
    return reply is None or reply.step >= step


def shut_5(view: View, report: Report) -> None:
    """Every later call reports zero."""
    for stim, reply in shutdowns(view)[1:]:
        report.opportunity()
        count = counted(reply)
        if reply is not None and count is not None:
            report.ok_or_bad(count == 0, f"a later shutdown reports {count}", reply)
        if reply is not None:
            report.ok_or_bad(is_ok(reply), f"a later shutdown answered {reply.get('value')!r}", reply)
            report.episode(stim.step, len(view.live(stim.step - 1)) > 0)


def shut_6(view: View, report: Report) -> None:
    """New sessions, runs and compactions are refused with RuntimeShutdown (D20)."""
    _refusals(view, report, OPENERS)


def shut_8(view: View, report: Report) -> None:
    """It joins nothing: it answers while extensions are still at work, and the outcomes follow as
    Cancelled."""
    first = _first(view)
    if first is None:
        return
    reply = view.reply(first)
    for run in view.runs:
        if not run.start_step < first.step <= run.end_step:
            continue
        report.opportunity()
        if reply is None or reply.step > first.step:
            report.bad("shutdown waited for the runs", first, run.name)
        elif run.outcome is not None and not run.severed and not run.panics:
            fair = view.alone(first) and not view.full(first.step - 1) and run.end_step > first.step - 1
            ended = run.terminal is not None and run.terminal.step < first.step
            right = run.ending in ("Cancelled", "Persistence") or not fair or ended
            right = right or view.waits_for(first.step - 1, "recorder") or decided(view, run, first.step)
            report.ok_or_bad(right, f"shut down, and the outcome is {run.outcome!r}", first, run.name)
            report.episode(first.step, run.end_step < NEVER, run.end_step > first.step)


RULES: Rules = {
    "RHO-SHUT-1": shut_1,
    "RHO-SHUT-2": shut_2,
    "RHO-SHUT-3": shut_3,
    "RHO-SHUT-4": shut_4,
    "RHO-SHUT-5": shut_5,
    "RHO-SHUT-6": shut_6,
    "RHO-SHUT-8": shut_8,
}
