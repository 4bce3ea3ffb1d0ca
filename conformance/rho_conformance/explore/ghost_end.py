"""How a run ends: cancel, terminal event, outcome, and what is committed (RHO-CAN-*, RHO-TERM-*, RHO-PERS-*)."""

from __future__ import annotations

from typing import Any

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import Error, ErrorName

from .ghost import Ghost, Moment
from .ghost_history import check_history
from .ghost_usage import JUDGEMENT, all_written, judged, recording

LAST = (ev.Completed, ev.Cancelled, ev.Failed)
AFTER_CANCEL = (ev.ToolFinished, ev.CompactionCompleted, ev.BoundaryInputApplied, ev.ProviderDiagnostic, *LAST)


def revision(g: Ghost) -> int:
    """Of the last commit before the end."""
    start: int = g.config.revision
    return start + g.commits


def delivered(g: Ghost, e: Any) -> None:
    """What holds of every event, before its own rule is asked."""
    kind = type(e)
    g.need(
        g.started == (kind is not ev.Started),
        "RHO-ORD-1",
        f"{e.kind} is {'a second' if g.started else 'the'} first event",
    )
    g.need(g.terminal is None, "RHO-ORD-12", f"{e.kind} after the terminal event")
    g.need(not g.closed and not g.reported, "RHO-ORD-12", f"{e.kind} after the outcome")
    g.need(g.reader, "RHO-PERS-1", f"{e.kind} without a reader")
    g.need(not g.ending or kind in AFTER_CANCEL, "RHO-CAN-7", f"{e.kind} after the end was decided")
    if kind in JUDGEMENT:
        judged(g, e.kind)
    if g.compaction == "owed":
        g.need(kind is ev.CompactionCompleted, "RHO-ORD-11c", f"{e.kind} before CompactionCompleted")
    if g.owed and isinstance(g.owed[0], ev.BoundaryInputApplied):
        g.need(kind is ev.BoundaryInputApplied, "RHO-BND-3", f"{e.kind} before BoundaryInputApplied")


def started(g: Ghost, e: ev.Started) -> None:
    g.started = True
    g.need(e.revision == g.config.revision and e.run == "run", "RHO-ORD-1", f"Started names revision {e.revision}")


def cancel_accepted(g: Ghost, m: Moment) -> None:
    """A cancel takes effect once, in any moment before the terminal commit (R9, R11)."""
    tokens = len(m.sent(out.SignalCancel))
    g.need(tokens <= 1, "RHO-CAN-2", "the token is cancelled twice")
    if isinstance(m.input, inp.Drop):
        g.need(tokens == _undecided(g), "RHO-DROP-1", f"a drop sends {tokens} signals")
        return
    if not isinstance(m.input, inp.Cancel):
        g.need(tokens == 0, "RHO-CAN-2", "the token is cancelled and nobody asked")
        return
    undecided = _undecided(g)
    g.need(tokens == undecided, "RHO-CAN-2", f"a cancel sends {tokens} signals, the end is {g.ending or 'open'}")
    if undecided:
        if g.turn == "failed" and recording(g):
            g.turn = "stopped"  # no reset has abandoned it yet: what it had shown stays (rho.md 3.5)
        g.cancelled, g.ending = True, "cancel"
        g.owed = tuple(e for e in g.owed if isinstance(e, ev.BoundaryInputApplied))


def _undecided(g: Ghost) -> bool:
    return not (g.cancelled or g.ending.startswith("commit"))


def stopped_at_once(g: Ghost) -> None:
    """The step of the cancel itself tells all work to stop (RHO-CAN-7)."""
    for work in g.open:
        g.need(_may_run_on(g, work), "RHO-CAN-7", f"{work} runs on after the cancel")


def _may_run_on(g: Ghost, work: tuple[Any, ...]) -> bool:
    if work[0] == "model":
        return g.policy.cooperative_provider
    if work[0] == "compactor":
        return g.policy.compaction is not None and g.policy.compaction.cooperative
    return (work[0] == "execute" and work[1] in g.stopping) or (work[0] == "timer" and str(work[1])[5:] in g.stopping)


def decided(g: Ghost, m: Moment) -> None:
    """Has this step decided the end? The terminal commit, or the first job that is told to stop, says so."""
    now = m.after.core.ledger.revision
    if now == revision(g) + 1 and not g.ending.startswith("commit"):
        g.ending = "commit" if not g.cancelled else "commit cancel"
        judged(g, "the commit")
    elif m.sent(out.CancelJob) and not g.ending:
        g.ending = "stop"
    want = revision(g) + g.ending.startswith("commit")
    g.need(now == want, "RHO-CAN-11", f"the revision is {now}, not {want}")


# --- what may cut a run short ------------------------------------------------------------------------------------


def dropped(g: Ghost, i: inp.Drop) -> None:
    g.abnormal = "drop"


def reader_lost(g: Ghost, i: inp.ReaderClosed) -> None:
    g.reader, g.owed = False, ()


def worker_lost(g: Ghost, i: inp.ModelPanicked | inp.CompactorPanicked) -> None:
    """A panic of work that is open; a late one says nothing."""
    work = ("model", i.step, i.attempt) if isinstance(i, inp.ModelPanicked) else ("compactor",)
    if work in g.open:
        g.abnormal = g.abnormal or "panic"


# --- the terminal event and the outcome -----------------------------------------------------------------------------


def terminal(g: Ghost, e: Any) -> None:
    g.terminal = e
    open_calls = [c for c in g.calls if c.stage in ("started", "detached")]
    for c in open_calls:
        g.say("RHO-ORD-7b" if c.detach else "RHO-ORD-5", f"{e.kind} and {c.id} has no ToolFinished")
    now = e.outcome.revision if isinstance(e, ev.Completed) else e.revision
    rule = {ev.Completed: "RHO-TERM-3", ev.Cancelled: "RHO-CAN-11", ev.Failed: "RHO-FAIL-1"}[type(e)]
    g.need(now == revision(g) + 1, rule, f"{e.kind} names revision {now}, not {revision(g) + 1}")


def diagnostic(g: Ghost, e: ev.ProviderDiagnostic) -> None:
    want = g.error is not None and g.error.diagnostic == e.detail
    g.need(want, "RHO-TERM-5", "a diagnostic that the provider did not give")


def reported(g: Ghost, e: out.ReportOutcome, m: Moment) -> None:
    g.need(not g.reported, "RHO-TERM-2", "the outcome is reported twice")
    g.reported, end = True, e.outcome
    if isinstance(m.input, inp.Drop):
        g.need(end is None, "RHO-DROP-3", "a dropped run reports an outcome")
        return
    if end is None:
        g.say("RHO-TERM-2", "no outcome is reported")
        return
    _terminal_agrees(g, end)
    if isinstance(end, ev.RunOutcome):
        _success(g, end)
    else:
        _why(g, end.error)


def _terminal_agrees(g: Ghost, end: Any) -> None:
    """The terminal event and the outcome say the same; only a lost reader excuses a missing event."""
    error: Error | None = end.error if isinstance(end, out.RunFailed) else None
    if error is not None and error.name in (ErrorName.INTERRUPTED, ErrorName.PERSISTENCE):
        g.need(g.terminal is None, "RHO-LIM-3", "a terminal event of a run that was interrupted")
        return
    if g.terminal is None:
        g.need(not g.reader, "RHO-ORD-12", "the run ends and no terminal event was sent")
        return
    if error is None:
        agrees = isinstance(g.terminal, ev.Completed) and g.terminal.outcome == end
        g.need(agrees, "RHO-TERM-3", "Completed and the outcome differ")
    elif error.name is ErrorName.CANCELLED:
        g.need(isinstance(g.terminal, ev.Cancelled), "RHO-TERM-4", f"{g.terminal.kind} of a cancelled run")
    else:
        agrees = isinstance(g.terminal, ev.Failed)
        agrees = agrees and (g.terminal.message, g.terminal.retryable) == (error.message, error.retryable)
        g.need(agrees, "RHO-TERM-5", f"{g.terminal.kind} and the outcome {error.name} differ")


def _success(g: Ghost, end: ev.RunOutcome) -> None:
    g.need(not g.cancelled, "RHO-TERM-4", "Completed after an accepted cancel")
    g.need(g.turn == "boundary", "RHO-RET-4", f"Completed while the turn is {g.turn}")
    left = [s.id for s in g.steers if s.stage in ("staged", "claimed", "delivered")]
    g.need(not left, "RHO-STEER-2", f"Completed, and {left} were accepted and never applied")
    g.need((end.usage.output_tokens or 0) == g.spent, "RHO-RET-12", f"usage {end.usage.output_tokens}, not {g.spent}")
    g.need(end.text == g.answer, "RHO-BUF-10", f"the outcome says {end.text!r}, the response {g.answer!r}")
    if end.stop_reason == "MaxSteps":
        g.need(g.step == g.policy.max_steps, "RHO-RET-23", f"MaxSteps at step {g.step}")
        g.need(g.policy.step_limit == "complete", "RHO-RET-23", "the step limit completes the run")
        return
    g.need(not any(c.stage != "finished" for c in g.calls), "RHO-ORD-7", "EndTurn while a call is open")
    asked = not g.policy.boundary or g.step == g.policy.max_steps or g.collector == "after"
    g.need(asked, "RHO-BND-3", "EndTurn, and the collector was not asked")


REASONS = ("panic", "collector", "compactor")


def _why(g: Ghost, error: Error) -> None:
    """Is there a reason for this end? A failure that comes too early is one without."""
    name = error.name
    if name is ErrorName.CANCELLED:
        g.need(g.cancelled or g.compactor is name, "RHO-TERM-4", "Cancelled, and nobody cancelled")
    elif name is ErrorName.INTERRUPTED:
        lost = not g.reader
        g.need(g.abnormal in REASONS or lost, "RHO-PERS-1", "Interrupted without a reason")
    elif name is ErrorName.PERSISTENCE:
        g.need(revision(g) == 2**64 - 1, "RHO-TERM-6", "Persistence, and the revision is not exhausted")
    else:
        g.need(not g.cancelled, "RHO-TERM-4", f"{name} after an accepted cancel")
        if name is ErrorName.PROVIDER:
            _provider_failure(g, error)
        elif name is ErrorName.INVALID_HOST_RESPONSE:
            g.need(g.doubled or g.compactor is name, "RHO-COORD-3", "InvalidHostResponse without a reason")
        else:
            g.need(g.compactor is name, "RHO-FAIL-1", f"{name} without a reason")


def _provider_failure(g: Ghost, error: Error) -> None:
    """Neither too late nor too early: the budget is two-sided."""
    if g.turn == "boundary":
        limit = g.policy.step_limit == "fail" and g.step == g.policy.max_steps
        g.need(limit, "RHO-RET-23", "the run fails between two steps")
        return
    g.need(g.turn in ("failed", "bad"), "RHO-RET-5", f"the run fails while the turn is {g.turn}")
    if g.turn == "failed":
        spent = not g.error.retryable or g.attempt == g.policy.request_budget
        g.need(spent, "RHO-RET-2", f"the run fails at request {g.attempt} though it may be retried")
        g.need(
            error.message == f"provider failed: {g.error.message}", "RHO-TERM-5", f"the error says {error.message!r}"
        )
        g.need(error.retryable == g.error.retryable, "RHO-TERM-5", "the error's retryability differs")
    elif g.turn == "bad":
        spent = g.malformed == g.policy.malformed_budget or g.attempt == g.policy.request_budget
        g.need(spent, "RHO-RET-1", f"the run fails at malformed response {g.malformed}")


def closed(g: Ghost, e: out.CloseEvents) -> None:
    g.need(g.reported and not g.closed, "RHO-TERM-2", "the stream is closed before the outcome, or twice")
    g.closed = True


# --- the moment of settling -----------------------------------------------------------------------------------------


def settled(g: Ghost, m: Moment) -> None:
    """Everything begun is over, the history is whole, the state shows how it ended."""
    g.need(g.closed, "RHO-TERM-2", "the outcome is reported and the stream left open")
    g.need(not g.open, "RHO-CAN-7", f"the run is over and {g.open} is open")
    if g.compaction == "owed" and not isinstance(m.input, inp.Drop):
        g.need(not g.reader, "RHO-ORD-11c", "a committed compaction was never announced")
    end = m.sent(out.ReportOutcome)[0].outcome
    abrupt = isinstance(end, out.RunFailed) and end.error.name in (ErrorName.INTERRUPTED, ErrorName.PERSISTENCE)
    if end is not None and not abrupt:
        g.need(g.ending.startswith("commit"), "RHO-CAN-8", "a cooperative end without a commit")
    all_written(g)
    check_history(g, m)


def state_shown(g: Ghost, m: Moment) -> None:
    """RHO-STATE-*: Cancelling from the accepted cancel on, Waiting while a question is open, the end at the end."""
    if g.reported:
        if m.sent(out.ReportOutcome):
            _last_state(g, m)
        return
    if g.ending.startswith("commit") and not g.cancelled:
        # A compactor may have said Cancelled by itself.
        fits = m.state in ("Completed", "Failed", "Cancelling")
        g.need(fits, "RHO-STATE-2", f"the state is {m.state} after the commit")
        return
    want = "Running"
    if g.cancelled:
        want = "Cancelling"
    elif not g.ending and any(s == "open" for _, _, s in g.asks):
        want = "WaitingForHostInput"
    g.need(m.state == want, "RHO-COORD-4" if "Waiting" in want + m.state else "RHO-STATE-1", f"{m.state}, not {want}")


def _last_state(g: Ghost, m: Moment) -> None:
    end = m.sent(out.ReportOutcome)[0].outcome
    if end is None:
        return
    want = "Failed"
    if isinstance(end, ev.RunOutcome):
        want = "Completed"
    elif end.error.name in (ErrorName.CANCELLED, ErrorName.INTERRUPTED, ErrorName.PERSISTENCE):
        want = "Idle"
    g.need(m.state == want, "RHO-STATE-4" if want == "Idle" else "RHO-STATE-2", f"the run leaves {m.state}, not {want}")
