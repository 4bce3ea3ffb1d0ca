"""Shared questions about the end of a run: was the cancel clean, what must be committed, what stands in
history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import messages as m
from .entities import NEVER, Attempt, Call, Run
from .view import View

Json = Any
ATTEMPTS = 4
MALFORMED = 2
"""Requests and malformed responses that a turn may have (contract RET-1 and RET-4)."""
RACED = frozenset({"model", "tool", "timer", "host", "compactor", "collector"})
"""The waits that cancellation is raced against (contract CAN-5)."""


def clean_cancel(view: View, run: Run) -> int | None:
    """Step of the first cancel, if it met the run alone, without a race, at waits that it must end; else
    ``None``."""
    step = run.cancel_step
    if step == NEVER or step in run.drops or not view.single(step) or step <= run.start_step:
        return None
    if view.full(step - 1) or view.waits_for(step - 1, "recorder") or view.live(step - 1) != [run]:
        return None
    if any(s < step for s in (*run.panics, *run.closes)) or not RACED & set(view.kinds(step - 1)):
        return None
    return None if decided(view, run, step) else step


def decided(view: View, run: Run, step: int) -> bool:
    """Whether something else had settled the end before ``step``, and only jobs were still to be interrupted.

    A cancel that comes then may win or lose (races R9 and R11), and need not reach anybody.
    """
    if any(at < step for at in reused(run)):
        return True
    last = next((a for a in reversed(run.attempts) if a.opened.step < step), None)
    if last is None or last.end is None or last.end.step >= step:
        return False
    if last.good:
        waited = [c for c in run.calls if c.attempt is last and not c.honoured and c.ended_step >= step]
        return last.step_no >= view.max_steps() and not waited
    spent = last.number >= ATTEMPTS
    if last.malformed:
        return spent or sum(a.malformed for a in run.attempts if a.step_no == last.step_no) >= MALFORMED
    return spent or not last.retryable


def reused(run: Run) -> list[int]:
    """Steps at which a question was asked again in its batch: there the run fails (D25)."""
    out = []
    for ask in run.asks.values():
        seen: set[int] = set()
        for call, item in (p for p in ask.posed if not p[0].honoured):
            if id(call.attempt) in seen:
                out.append(item.step)
            seen.add(id(call.attempt))
    return out


def deaf(view: View, run: Run, wait: str) -> bool:
    """Whether this wait may outlive a cancel: the party declared itself cooperative, or a job has time to
    finish.

    What is external is dropped, however deaf it is to its token (RHO-CAN-5, RHO-RET-6).
    """
    if wait == "model":
        return (view.config.get("provider") or {}).get("mode") == "cooperative"
    if wait == "compactor":
        # A manual compaction is not raced against the cancel of a run.
        manual = bool(view.stim("compact"))
        return manual or view.config.get("compactor") == "cooperative" or _inner_cooperative(view)
    timed = [c for c in run.calls if c.honoured and _timed(view, c)]
    if wait.startswith("tool:"):
        return any(c.id == wait[5:] for c in timed)
    return wait == "timer" and bool(timed)


def _inner_cooperative(view: View) -> bool:
    return (view.config.get("compaction") or {}).get("compactor") == "cooperative"


def _timed(view: View, call: Call) -> bool:
    return isinstance(view.tool_config(call.tool).get("on_cancel"), Mapping)


def start_text(run: Run) -> str | None:
    """The user text that started the run."""
    if run.stim.name != "start":
        return None
    value = run.stim.value
    text = value.get("text") if isinstance(value, Mapping) else value
    return text if isinstance(text, str) and text else None


def compactions(run: Run) -> int:
    """Automatic compactions that the reader saw committed."""
    return len(run.of("CompactionCompleted"))


def boundary_inputs(run: Run) -> int:
    """Boundary inputs that the collector was told were accepted."""
    return sum(1 for u in run.up("CollectAck") if u.get("accepted"))


def start_revision(view: View, run: Run) -> int | None:
    """Revision of the session before the run."""
    started = next(iter(run.of("Started")), None)
    found = started.get("revision") if started is not None else None
    if not isinstance(found, int) and not _overlaps(view, run):
        found = view.before(run.start_step, run.session).get("revision")
    return found if isinstance(found, int) else None


def _overlaps(view: View, run: Run) -> bool:
    """Whether a run of the session ended in the very step that started this one: what came before is not known."""
    others = [o for o in view.runs if o.session == run.session and o.start_step < run.start_step]
    return any(o.end_step >= run.start_step for o in others)


def due_revision(view: View, run: Run, commits: int) -> int | None:
    """Start revision plus compactions, boundary inputs and ``commits`` terminal ones; ``None`` where
    unknown."""
    start = start_revision(view, run)
    if start is None or (run.gap and view.config.get("compaction")):
        return None
    return start + compactions(run) + boundary_inputs(run) + commits


def final_history(view: View, run: Run) -> list[Json] | None:
    """Committed history right after the run."""
    found = view.after(run).get("history")
    return found if isinstance(found, list) else None


def suffix(view: View, run: Run) -> list[Json] | None:
    """What the run added to the history; ``None`` when unknown or compacted."""
    history = final_history(view, run)
    before = view.before(run.start_step, run.session).get("history")
    if history is None or not isinstance(before, list) or run.of("CompactionStarted") or run.up("Compact"):
        return None
    if view.touched(run, run.start_step) or _overlaps(view, run):
        return None
    same = len(history) >= len(before) and all(map(_alike, history, before))
    return history[len(before) :] if same else history


def _alike(one: Json, other: Json) -> bool:
    """Whether two messages say the same; a driver may fill in what a scenario left out."""
    same = m.kind(one) == m.kind(other) and m.text(one) == m.text(other) and m.calls(one) == m.calls(other)
    return same and m.result_id(one) == m.result_id(other)


def forced(run: Run) -> bool:
    """Whether the environment may have ended the run by itself: a panic, a collector or compactor that gave
    up."""
    gone = any(s.name == "boundary" and s.value == "gone" for s in run.stims)
    broken = any(s.name == "compactor" and s.get("return") is None for s in run.stims)
    return bool(run.panics) or gone or broken


def completed_before(run: Run, step: int) -> list[Attempt]:
    """Good responses that the runtime had taken before ``step``."""
    return [a for a in run.attempts if a.good and a.end is not None and a.end.step < step]


def holds_assistant(history: list[Json], attempt: Attempt) -> bool:
    """Whether a completed assistant message with this response's text and calls stands in the history."""
    wanted = [str(c.get("id")) for c in attempt.response_calls]
    return any(
        m.kind(x) == "assistant" and m.text(x) == attempt.response_text and m.calls(x) == wanted for x in history
    )


def result_of(history: list[Json], call: Call) -> tuple[bool | None, str] | None:
    """The result of a call: (ok, text), the last one if several stand there."""
    found = [(ok, text) for _, name, ok, text in m.results(history) if name == call.id]
    return found[-1] if found else None


def reset_since(attempt: Attempt) -> bool:
    """Whether this attempt was abandoned by a reset, or its provider had failed and a retry was due."""
    return attempt.reset is not None


def captured(attempt: Attempt) -> bool:
    """Whether anything was taken that an AbortedAssistant may hold (contract CAN-9)."""
    found = False
    for item in attempt.items:
        found = found or (item.kind in ("delta", "summary", "call_delta", "context") and bool(item.value))
    retries = [k for k, i in enumerate(attempt.items) if i.kind == "physical_retry"]
    rest = attempt.items[max(retries, default=-1) + 1 :]  # usage of a failed physical request leaves the attempt
    return found or any(i.kind == "usage" and i.value for i in rest)
