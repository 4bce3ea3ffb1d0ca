"""Permitted variants of what is lost: a reader, a dropped run, a worker that panics (D4, D30, R23, R24)."""

from __future__ import annotations

from typing import Any

from rho_conformance.mutants.base import Benign
from rho_conformance.mutants.benign_kit import DECIDED, attr, common, ending_with, flow, wait
from rho_core import calls, jobs
from rho_core import capture as cap
from rho_core import inputs as inp
from rho_core.errors import INTERRUPTED, Error, ErrorName, ProviderError, ProviderErrorKind, from_provider
from rho_core.run import batch, end, turn
from rho_core.run import state as s
from rho_core.run.outbox import change, to

LOST = from_provider(ProviderError(ProviderErrorKind.INTERRUPTED, "interrupted", retryable=False))


def _lost_in(run: s.Run, fx: Any) -> s.Conclude | None:
    """The end of a run that loses its reader in the provider phase; None in another phase."""
    phase = run.phase
    if not isinstance(phase, (s.Streaming, s.Responding)):
        return None
    end.stop_work(run, fx)
    end.write_off(run, fx, "Failed", ProviderErrorKind.INTERRUPTED)
    return s.Conclude(s.Fail(LOST), aborted=cap.aborted(phase.capture))


def _emit_fails(old: Any) -> Any:
    def emit(run: s.Run, fx: Any, events: Any, then: Any, *, cancellable: bool = True) -> Any:
        plan = _lost_in(run, fx) if run.core.reader == "gone" else None
        if plan is not None:
            return to(run, s.Between()), plan
        return old(run, fx, events, then, cancellable=cancellable)

    return emit


def _close_fails(old: Any) -> Any:
    def reader_closed(run: s.Run, i: inp.ReaderClosed, fx: Any) -> Any:
        plan = _lost_in(run, fx) if run.blocked is not None else None
        if plan is None:
            return old(run, i, fx)
        return change(s.Run(s.Between(), run.free, None, run.core), reader="gone"), plan

    return reader_closed


def _cancel_unread(old: Any) -> Any:
    """Cancelled, but its reader was gone already: interrupted, not committed."""

    def cancel(run: s.Run, i: inp.Cancel, fx: Any) -> Any:
        after, then = old(run, i, fx)
        if run.core.reader == "gone" and type(run.phase) in end.CANCEL:
            return s.Run(s.Between(), run.free, None, run.core), s.Abandon(INTERRUPTED)
        return after, then

    return cancel


def _close_while_ending(old: Any) -> Any:
    """The reader leaves a cancelled run before its commit: interrupted, not committed."""

    def reader_closed(run: s.Run, i: inp.ReaderClosed, fx: Any) -> Any:
        after, then = old(run, i, fx)
        if isinstance(run.phase, (s.Draining, s.Ebbing, s.Cancelling)):
            return s.Run(run.phase, run.free, None, after.core), s.Abandon(INTERRUPTED)
        return after, then

    return reader_closed


# --- drop, panic ----------------------------------------------------------------------------------------------------


def _drop_commits(old: Any) -> Any:
    """A drop takes the road of a cancel as far as it needs nobody: the commit is made, the events are for no one."""

    def drop(run: s.Run, i: inp.Drop, fx: Any) -> Any:
        handler = end.CANCEL.get(type(run.phase))
        if handler is None:
            return old(run, i, fx)
        effects: list[Any] = []
        pool = tuple(jobs.stopped(j) if j.stage in jobs.LIVE else j for j in run.core.jobs)
        bare = change(s.Run(run.phase, run.free, None, run.core), jobs=pool, reader="gone")
        after, plan = handler(bare, effects)
        if not isinstance(plan, s.Conclude):
            return old(run, i, fx)  # a cooperative extension would have to be awaited
        old(run, i, fx)
        end.abort_jobs(run, fx)
        fx.extend(effects)
        ended, then = end.commit(after, s.Commit(plan), fx)
        return ended, s.Exit(None, "Idle") if isinstance(then, s.Exit) else then

    return drop


def _panicked(text: str) -> Error:
    return from_provider(ProviderError(ProviderErrorKind.OTHER, text, retryable=False))


def _panic_fails(old: Any) -> Any:
    def worker_panicked(run: s.Run, i: Any, fx: Any) -> Any:
        after, then = old(run, i, fx)
        if not isinstance(then, s.Abandon):
            return after, then
        phase = run.phase
        how: s.Ending = s.Fail(_panicked("unexpected exception"))
        if isinstance(phase, (s.Draining, s.Ebbing)):
            how = s.CancelRun()
        end.write_off(run, fx, "Failed", ProviderErrorKind.OTHER)
        kept = cap.aborted(phase.capture) if isinstance(phase, (s.Streaming, s.Draining)) else None
        return ending_with(run, s.Conclude(how, aborted=kept))

    return worker_panicked


BOOM = Error(ErrorName.TOOL, "unexpected exception in a tool")


def _tool_panic_fails(old: Any) -> Any:
    def schedule(run: s.Run, k: s.Schedule, fx: Any) -> Any:
        died = any(slot.stage == "panicked" for slot in batch.batch_of(run).slots)
        return end.fail_batch(run, BOOM, fx) if died else old(run, k, fx)

    return schedule


def _prepare_panic_fails(old: Any) -> Any:
    def panicked(run: s.Run, i: inp.ToolPanicked, fx: Any) -> Any:
        if calls.find(batch.batch_of(run).slots, i.call_id, ("preparing",)) >= 0:
            return end.fail_batch(run, BOOM, fx)
        return old(run, i, fx)

    return panicked


BENIGN: tuple[Benign, ...] = (
    Benign(
        "lost-reader-fails-the-stream",
        "D4",
        "a consumer lost in the provider phase is a committed Failed(Interrupted)",
        (attr(turn, "emit", _emit_fails), common(inp.ReaderClosed, _close_fails)),
    ),
    Benign(
        "panic-fails",
        "D30",
        "an unexpected exception is a typed Failed",
        (
            DECIDED,
            common(inp.ModelPanicked, _panic_fails),
            common(inp.CompactorPanicked, _panic_fails),
            flow(s.Schedule, _tool_panic_fails),
            wait(s.Batch, inp.ToolPanicked, _prepare_panic_fails),
        ),
    ),
    Benign(
        "unread-cancel-interrupts",
        "R23",
        "cancel and consumer loss together are Interrupted, without a commit",
        (common(inp.Cancel, _cancel_unread), common(inp.ReaderClosed, _close_while_ending)),
    ),
    Benign("drop-commits", "R24", "a drop commits as a cancel does", (common(inp.Drop, _drop_commits),)),
)
