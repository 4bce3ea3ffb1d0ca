"""The common rules, second half: CP9 to CP16 (design §6)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from . import messages as m
from .base import Report, Rules
from .buf import IN_FLIGHT, buf_2
from .commit import clean_cancel, deaf, final_history, forced, start_text
from .common import asked
from .coord import between
from .entities import NEVER, Attempt, Run, is_ok
from .stimuli import STARTS
from .term import term_2
from .view import View

Json = Any


def cp9(view: View, report: Report) -> None:
    """Every cooperative end is marked exactly once, by outcome and at most one agreeing event."""
    term_2(view, report)
    for run in view.runs:
        for extra in run.terminals[1:]:
            report.bad(f"a second terminal event, {extra.name}", extra)


def cp10(view: View, report: Report) -> None:
    """Output of a failed stream is never repeated without a mark."""
    for run in view.runs:
        for failed, retry in pairwise(run.attempts):
            if not failed.retryable or not failed.taken_text("delta") or failed.step_no != retry.step_no:
                continue
            report.opportunity()
            marked = failed.reset is not None or any(e.name == "ProviderStreamReset" for e in run.events)
            if failed.reset is None and not run.gap:
                shown = [e for e in run.events if e.name == "AssistantTextDelta" and e.step >= retry.opened.step]
                if shown and not marked:
                    report.bad("the stream was restarted without a mark", shown[0])
            _doubled(report, run, failed, retry)
            spoke = any(i.kind == "call_delta" for i in failed.items)
            report.episode(retry.opened, marked, retry.number, spoke)
        last = run.attempts[-1] if run.attempts else None
        if last is not None and last.retryable and last.taken_text("delta") and run.ending is not None:
            report.opportunity()
            silent = run.ending == "Completed"
            report.ok_or_bad(not silent, "a broken stream ended as success", last.opened)
            report.episode(last.opened, "ended", run.ending)


def _doubled(report: Report, run: Run, failed: Attempt, retry: Attempt) -> None:
    text = (run.ended_ok or {}).get("text")
    if isinstance(text, str) and retry.good and retry is run.attempts[-1]:
        double = failed.taken_text("delta") + retry.response_text
        same = text == double and text != retry.response_text
        report.ok_or_bad(not same, f"the outcome repeats the failed output: {text!r}", run.end_step, run.name)


def cp11(view: View, report: Report) -> None:
    """A cancel in the back-off is immediate and no request follows."""
    for run in view.runs:
        step = clean_cancel(view, run)
        if step is None or not view.waits_for(step - 1, "timer") or view.waits_for(step - 1, "model"):
            continue
        report.opportunity()
        for attempt in run.attempts:
            if attempt.opened.step >= step:
                report.bad("a request after the cancel in the back-off", attempt.opened)
        if view.waits_for(step, "timer") and view.live(step) in ([], [run]) and not deaf(view, run, "timer"):
            report.bad("cancelled, and still waiting for the back-off", step, run.name)
        if run.ending is not None and not run.severed:
            report.ok_or_bad(run.ending == "Cancelled", f"cancelled, it ended {run.ending}", step, run.name)
            report.episode(step, len(run.attempts))


def cp12(view: View, report: Report) -> None:
    """A second run on a busy session is refused or queued; no turn is lost."""
    for stim in view.stim(*STARTS):
        first = next((r for r in view.live(stim.step - 1) if r.session == stim.session and r.stim is not stim), None)
        if first is None:
            continue
        report.opportunity()
        second, reply = view.by_name.get(stim.run or ""), view.reply(stim)
        if first.cancel_step == NEVER and not first.severed and not first.panics and first.ending is not None:
            right = first.ending not in ("Cancelled", "Interrupted") or forced(first)
            report.ok_or_bad(right, f"a second start ended the first run ({first.ending})", stim, first.name)
        if reply is not None and not is_ok(reply):
            if second is not None and second.attempts:
                report.bad("a refused run called the model", second.attempts[0].opened)
            report.episode(stim.step, "refused")
        elif second is not None and reply is not None:
            _queued(view, report, first, second)


def _queued(view: View, report: Report, first: Run, second: Run) -> None:
    texts = [(start_text(r), r) for r in (first, second)]
    for text, run in texts:
        shown = any(text in m.users(asked(a)) for r in (first, second) for a in r.attempts)
        if text is not None and run.ending == "Completed":
            report.ok_or_bad(shown, f"the turn {text!r} was lost", run.end_step, run.name)
    if second.ending is not None:
        report.episode(second.start_step, "queued")


def cp13(view: View, report: Report) -> None:
    """Dropping the consumer stops the work."""
    for run in view.runs:
        for step in run.drops[:1]:
            report.opportunity()
            for upcall in run.upcalls:
                if upcall.step > step and upcall.name in ("ModelCall", "ToolExecute"):
                    report.bad(f"{upcall.name} after the consumer was dropped", upcall)
            if view.single(step) and view.live(step) in ([], [run]):
                for wait in sorted(view.waiting(step)):
                    if wait not in ("recorder", "reader") and not deaf(view, run, wait) and not _told(view, run, wait):
                        report.bad(f"the consumer was dropped, and it still waits on {wait}", step, run.name)
            report.episode(step, view.kinds(step - 1))


def _told(view: View, run: Run, wait: str) -> bool:
    """Whether this is a tool that does not heed its token, and has been told: no runtime can do more in its process."""
    calls = [c for c in run.calls if wait == f"tool:{c.id}"]
    stays = [c for c in calls if view.tool_config(c.tool).get("on_cancel") == "ignore"]
    return any(c.abandoned is not None and c.abandoned.get("how") == "token" for c in stays)


def cp14(view: View, report: Report) -> None:
    """The event queue is bounded: nobody reads, and production stops."""
    buf_2(view, report)
    if report.finding.untestable is not None:
        report.finding.untestable += f" (bound: capacity and {IN_FLIGHT} items in flight)"


def cp15(view: View, report: Report) -> None:
    """A cancel that came too late does not hit the next run."""
    for stim in view.stim("cancel"):
        live = [r for r in view.live(stim.step - 1) if r.session == stim.session]
        named = view.by_name.get(stim.get("run") or "")
        target = named if named is not None else None
        stale = target is not None and target.end_step < stim.step
        if not stale and (live or any(r.start_step == stim.step for r in view.runs)):
            continue
        report.opportunity()
        for run in view.runs:
            if run.session != stim.session or run.end_step < stim.step or run.cancel_step < NEVER or run is target:
                continue
            hit = run.ending == "Cancelled" and not forced(run)
            report.ok_or_bad(not hit, "a stale cancel hit the next run", stim, run.name)
            if run.ending is not None:
                report.episode(stim.step, run.start_step < stim.step)


def cp16(view: View, report: Report) -> None:
    """A steer during a batch goes after all its results; one in the last response is applied."""
    for run in view.runs:
        kept = [s for s in run.steers if s.accepted and not s.retracts]
        report.opportunity(len(kept))
        for attempt in run.attempts:
            between(view, report, run, asked(attempt), attempt.opened.step)
        for steer in kept:
            seen = any(steer.text in m.users(asked(a)) for a in run.attempts)
            history = final_history(view, run)
            seen = seen or (history is not None and steer.text in m.users(history))
            if (
                run.ending == "Completed"
                and not run.severed
                and (run.attempts and "messages" in run.attempts[-1].opened.data)
            ):
                at_limit = run.attempts[-1].step_no >= view.max_steps() and history is None
                message = f"the accepted steer {steer.name} was never applied"
                report.ok_or_bad(seen or at_limit, message, run.end_step, run.name)
                report.episode(steer.stim.step, view.waits_for(steer.stim.step - 1, "tool"))


RULES: Rules = {
    "CP9": cp9,
    "CP10": cp10,
    "CP11": cp11,
    "CP12": cp12,
    "CP13": cp13,
    "CP14": cp14,
    "CP15": cp15,
    "CP16": cp16,
}
