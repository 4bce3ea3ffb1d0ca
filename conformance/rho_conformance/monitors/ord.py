"""Ordering of the run as a whole: RHO-ORD-1 to 3, 11a to 11f, 12 (contract part 2.3)."""

from __future__ import annotations

from .align import mismatch, taken_tokens, usage_out_of_order
from .base import Report, Rules
from .entities import NEVER, PROVIDER_EVENTS, Attempt, Obs, Run
from .view import View


def ord_1(view: View, report: Report) -> None:
    """Started is first, once, and carries the revision before the run."""
    for run in view.runs:
        report.opportunity()
        if not run.events:
            continue
        first = run.events[0]
        if run.gap and first.name != "Started":
            continue  # what came first was drained by `outcome`
        report.ok_or_bad(first.name == "Started", f"the first event is {first.name}, not Started", first)
        for other in run.events[1:]:
            report.ok_or_bad(other.name != "Started", "a second Started", other)
        if first.name == "Started":
            _starting_revision(view, report, run, first)
            report.episode(first, "cancelled" if run.cancel_step <= first.step else "plain")


def _starting_revision(view: View, report: Report, run: Run, started: Obs) -> None:
    before = view.before(run.start_step, run.session).get("revision")
    revision = started.get("revision")
    if isinstance(before, int) and isinstance(revision, int) and view.single(run.start_step):
        message = f"Started carries revision {revision}, the session was at {before}"
        report.ok_or_bad(before == revision, message, started)


def ord_2(view: View, report: Report) -> None:
    """StepStarted n = 1, 2, … without gap, before the provider activity and the first request of its step."""
    for run in view.runs:
        report.opportunity()
        _numbering(report, run)
        _activity(report, run)
        starts = {e.get("step"): e for e in reversed(run.of("StepStarted"))}
        for attempt in run.attempts:
            if attempt.number == 1:
                _request_after_start(view, report, run, attempt, starts.get(attempt.step_no))


def _numbering(report: Report, run: Run) -> None:
    for number, event in enumerate(run.of("StepStarted"), start=1):
        if run.gap and event.step >= min(run.outcomes_asked):
            return
        message = f"StepStarted {event.get('step')} stands where {number} is due"
        report.ok_or_bad(event.get("step") == number, message, event)
        estimate = event.get("estimated_context_tokens")
        if isinstance(estimate, int):
            report.ok_or_bad(estimate > 0, f"the estimate is {estimate}, not positive", event)
        report.episode(event, min(number, 3))


def _activity(report: Report, run: Run) -> None:
    active = False
    for event in run.events:
        if event.name in ("StepStarted", "ProviderStreamReset"):
            active = True
        elif event.name in PROVIDER_EVENTS or event.name == "ModelCallCompleted":
            if not active and not run.gap:
                report.bad(f"{event.name} outside a step that StepStarted opened", event)
            if event.name == "ModelCallCompleted":
                active = False


def _request_after_start(view: View, report: Report, run: Run, attempt: Attempt, started: Obs | None) -> None:
    number = attempt.step_no
    earlier = [c for c in run.calls if not c.honoured and c.executes and c.executes[0].seq < attempt.opened.seq]
    first = next(iter(run.of("Started")), None)
    required = [first, started, *(c.first("ToolFinished") for c in earlier)]
    if not view.eager(attempt.opened.step, run.session) and view.crowded(run, attempt.opened.step, required):
        report.bad(f"model request of step {number} opened before its StepStarted can have been sent", attempt.opened)
        return
    if started is None:
        if run.whole:
            report.bad(f"model request of step {number} without a StepStarted", attempt.opened)
        return
    if view.unsent(run, started, attempt.opened.step):
        report.bad(f"model request of step {number} opened before its StepStarted can have been sent", attempt.opened)
    elif not view.eager(attempt.opened.step, run.session):
        report.episode(attempt.opened, "held")


def ord_3(view: View, report: Report) -> None:
    """Everything a provider sends keeps its order; ModelCallCompleted comes after all of it."""
    if not view.taken_known:
        report.untestable("the driver does not report what the runtime took")
    for run in view.runs:
        for attempt in run.attempts:
            report.opportunity()
            found = mismatch(attempt)
            if found is not None:
                place, want, seen = found
                report.bad(f"provider event {place + 1} is {seen}, due was {want}", attempt.events[-1])
            elif usage_out_of_order(attempt):
                report.bad("UsageUpdated is not where the provider reported usage", attempt.events[-1])
            elif len(taken_tokens(attempt)) > 1 and len(attempt.events) > 1:
                kinds = sorted({t[0] for t in taken_tokens(attempt)})
                report.episode(attempt.events[-1], *kinds)


def ord_11a(view: View, report: Report) -> None:
    """CompactionStarted is sent before the compactor is called."""
    for run in view.runs:
        if view.config.get("compaction"):
            report.opportunity()
        started = run.of("CompactionStarted")
        called = [u for u in run.up("Compact") if u.get("trigger") in (None, "Automatic")]
        for place, upcall in enumerate(called):
            if place >= len(started):
                if run.whole:
                    report.bad("the compactor was called without a CompactionStarted", upcall)
            elif view.unsent(run, started[place], upcall.step):
                report.bad("the compactor was called before CompactionStarted can have been sent", upcall)
            else:
                report.episode(upcall)


def ord_11b(view: View, report: Report) -> None:
    """CompactionCompleted only after the commit; at most one compaction at a boundary; D11."""
    for run in view.runs:
        if view.config.get("compaction"):
            report.opportunity()
        for event in run.of("CompactionCompleted"):
            named = (event.get("outcome") or {}).get("revision")
            now = view.facts(event.step, run.session).get("revision")
            if isinstance(named, int) and isinstance(now, int):
                message = f"CompactionCompleted names revision {named} while the session is at {now}"
                report.ok_or_bad(now >= named, message, event)
            report.ok_or_bad(_compactor_returned(view, run, event), "no compactor had returned before it", event)
            report.episode(event)
        _once_a_boundary(report, run)


def _compactor_returned(view: View, run: Run, event: Obs) -> bool:
    answers = [s for s in run.stims if s.name == "compactor" and s.get("return") is not None]
    order = run.of("CompactionCompleted").index(event)
    return not view.stims or (order < len(answers) and answers[order].step <= event.step)


def _once_a_boundary(report: Report, run: Run) -> None:
    at_boundary = 0
    for event in run.events:
        if event.name == "CompactionStarted":
            at_boundary += 1
            report.ok_or_bad(at_boundary < 2, "a second compaction at the same step boundary", event)
        elif event.name == "StepStarted":
            at_boundary = 0


def ord_11c(view: View, report: Report) -> None:
    """A committed compaction is announced, also when the run is cancelled and the channel is full."""
    for run in view.runs:
        commits = committed_compactions(view, run)
        for place, step in enumerate(commits):
            report.opportunity()
            if run.severed or run.gap:
                continue
            events = run.of("CompactionCompleted")
            if place < len(events):
                full = "full" if view.full(step) else "room"
                report.episode(step, full, "cancelled" if step <= run.cancel_step < NEVER else "plain")
            elif run.whole:
                report.bad("a compaction was committed and CompactionCompleted never sent", step, run.name)


def committed_compactions(view: View, run: Run) -> list[int]:
    """Steps at which a compaction of this run was certainly committed: the compactor returned and the
    revision rose."""
    out = []
    for stim in run.stims:
        replacement = stim.get("return") if stim.name == "compactor" else None
        if not replacement or not view.single(stim.step) or "compactor" not in view.kinds(stim.step - 1):
            continue
        if run.cancel_step <= stim.step:
            continue
        before = view.facts(stim.step - 1, run.session).get("revision")
        after = view.facts(stim.step, run.session).get("revision")
        manual = any(s.name == "compact" and s.session == run.session for s in view.stims)
        if isinstance(before, int) and isinstance(after, int) and after > before and not manual:
            out.append(stim.step)
    return out


def ord_11f(view: View, report: Report) -> None:
    """No compaction while a detached job is pending."""
    for run in view.runs:
        pending: set[str] = set()
        for event in run.events:
            if event.name == "ToolDetached" and event.call_id:
                pending.add(event.call_id)
            elif event.name == "ToolFinished":
                pending.discard(event.call_id or "")
            elif event.name == "CompactionStarted" and pending:
                report.bad(f"compaction while the detached calls {sorted(pending)} are pending", event)
            elif event.name == "StepStarted" and pending and view.config.get("compaction"):
                report.opportunity()
                report.episode(event, min(len(pending), 2))


def ord_12(view: View, report: Report) -> None:
    """A cooperative end with a living reader sends exactly one terminal event."""
    for run in view.runs:
        report.opportunity()
        for extra in run.terminals[1:]:
            report.bad(f"a second terminal event, {extra.name}", extra)
        if run.terminal is not None:
            report.episode(run.terminal, run.terminal.name, "cancelled" if run.cancel_step < NEVER else "plain")
        elif must_announce(view, run):
            report.bad(f"the run ended ({run.ending or 'unknown'}) without a terminal event", run.end_step, run.name)


def must_announce(view: View, run: Run) -> bool:
    """Whether the missing terminal event of an ended run has no excuse (contract TERM-6, CAN-15)."""
    if run.gap or run.severed or run.panics or run.end_step == NEVER:
        return False
    exhausted = view.facts(run.end_step, run.session).get("revision") == 2**64 - 1
    if run.ending in ("Interrupted", "Persistence") or exhausted:
        return False
    raced = run.cancel_step < NEVER and (
        view.full(run.cancel_step - 1) or not view.single(run.cancel_step) or run.ending is None
    )
    gone = any(s.name == "boundary" and s.value == "gone" for s in run.stims)
    interrupted = any(s.name == "compactor" and s.get("interrupted") for s in run.stims)
    if raced or gone or interrupted:
        return False
    return run.closed is not None or view.eager(run.end_step, run.session)


RULES: Rules = {
    "RHO-ORD-1": ord_1,
    "RHO-ORD-2": ord_2,
    "RHO-ORD-3": ord_3,
    "RHO-ORD-11a": ord_11a,
    "RHO-ORD-11b": ord_11b,
    "RHO-ORD-11c": ord_11c,
    "RHO-ORD-11f": ord_11f,
    "RHO-ORD-12": ord_12,
}
