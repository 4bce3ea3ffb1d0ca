"""The invariant is inductive: true of a new run, and whatever input comes, true afterwards if it was before.

Each contract takes a run of one of the shapes with every number symbolic, and any input of one type. Where the
explorer is bounded by what can be reached within its scope, these are about *every* number: any capacity, limit,
budget, revision, step and attempt that satisfies the invariant, reached or not.
"""

from __future__ import annotations

from typing import Any, Literal

from rho_conformance.contracts import invariant, shapes
from rho_conformance.contracts.base import IDS, contract
from rho_conformance.contracts.invariant import holds
from rho_conformance.contracts.shapes import Numbers, Sending, Waiting, sending, waiting
from rho_core import effects as out
from rho_core import inputs as inp
from rho_core.asks import HostInputRequest
from rho_core.calls import Stage as SlotStage
from rho_core.config import Policy
from rho_core.errors import CANCELLED, INTERRUPTED, REVISION_EXHAUSTED, ProviderError
from rho_core.events import Success
from rho_core.inputs import Plan
from rho_core.ledger import Ledger
from rho_core.messages import Text, ToolCall, Usage, user
from rho_core.run import batch, control, detached, end, outbox, state, table, top, turn
from rho_core.run import state as s
from rho_core.run import step as machine

MACHINE = (machine, state, table, outbox, top, turn, batch, detached, control, end, invariant, shapes)
ARRANGED = "numbers and choices symbolic and unbounded; at most two calls, two jobs, one steer, one blocked event"
PLAIN = "a reader, no steer waiting, a running job or none"
WAITS = f"every phase a run waits in; {ARRANGED}"
SENDS = f"every blocked send by its continuation; {ARRANGED}"


def keeps(run: s.Run, i: Any) -> bool:
    """Does the input preserve the invariant here?"""
    return not holds(run) or holds(machine.step(run, i).state)


# --- the base, and the host's commands ----------------------------------------------------------------------------


@contract(*MACHINE, bounds="every policy whose numbers are at least 1, every ledger of a valid revision")
def a_new_run_satisfies_it(capacity: int, steps: int, revision: int) -> bool:
    """
    pre: capacity >= 1 and steps >= 1 and 0 <= revision < 2 ** 64
    post: __return__
    """
    return holds(s.new_run("s", "r", Policy(capacity, steps), Ledger((user("h"),), revision)))


@contract(*MACHINE, bounds=f"a fresh run; {ARRANGED}")
def begin_preserves_it(n: Numbers, called: bool) -> bool:
    """
    pre: shapes.within(n)
    post: __return__
    """
    call = ToolCall("a", "t", "{}") if called else None
    return keeps(waiting("Fresh", n), inp.Begin((user("u"),), call))


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}", limit=60)
def cancel_preserves_it_waiting(shape: Waiting, n: Numbers) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), inp.Cancel())


@contract(*MACHINE, bounds=f"{SENDS}; {PLAIN}", limit=60)
def cancel_preserves_it_blocked(shape: Sending, n: Numbers) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(sending(shape, n), inp.Cancel())


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}", limit=60)
def drop_preserves_it_waiting(shape: Waiting, n: Numbers) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), inp.Drop())


@contract(*MACHINE, bounds=f"{SENDS}; {PLAIN}", limit=60)
def drop_preserves_it_blocked(shape: Sending, n: Numbers) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(sending(shape, n), inp.Drop())


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}", limit=60)
def reader_closed_preserves_it_waiting(shape: Waiting, n: Numbers) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), inp.ReaderClosed())


@contract(*MACHINE, bounds=f"{SENDS}; {PLAIN}", limit=60)
def reader_closed_preserves_it_blocked(shape: Sending, n: Numbers) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(sending(shape, n), inp.ReaderClosed())


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}; {IDS}", limit=60)
def steer_preserves_it_waiting(shape: Waiting, n: Numbers, which: Literal["z", "new"]) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), inp.Steer("c", which, (Text("S"),)))


@contract(*MACHINE, bounds=f"{SENDS}; {PLAIN}; {IDS}", limit=60)
def steer_preserves_it_blocked(shape: Sending, n: Numbers, which: Literal["z", "new"]) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(sending(shape, n), inp.Steer("c", which, (Text("S"),)))


@contract(*MACHINE, bounds=f"{WAITS}; {IDS}; a steer waiting, a reader, no job", limit=60)
def retract_preserves_it_waiting(shape: Waiting, n: Numbers, which: Literal["s", "z", "new"]) -> bool:
    """
    pre: shapes.within(n) and n.steer and not n.gone and n.job == 0
    post: __return__
    """
    return keeps(waiting(shape, n), inp.Retract("c", which))


@contract(*MACHINE, bounds=f"{SENDS}; {IDS}; a steer waiting, a reader, no job", limit=60)
def retract_preserves_it_blocked(shape: Sending, n: Numbers, which: Literal["s", "z", "new"]) -> bool:
    """
    pre: shapes.within(n) and n.steer and not n.gone and n.job == 0
    post: __return__
    """
    return keeps(sending(shape, n), inp.Retract("c", which))


@contract(*MACHINE, bounds=f"a batch that waits, with a question that is open or not; {ARRANGED}; {PLAIN}")
def respond_preserves_it(n: Numbers, which: Literal["q", "r"], answered: bool) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting("Batch", n), inp.Respond("c", which, () if answered else (("x", ("y",)),)))


# --- room in the channel: what was blocked goes on ----------------------------------------------------------------


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}")
def taken_preserves_it_waiting(shape: Waiting, n: Numbers, taken: int) -> bool:
    """
    pre: shapes.plain(n) and taken >= 0
    post: __return__
    """
    return keeps(waiting(shape, n), inp.Taken(taken))


@contract(*MACHINE, bounds=f"a send at a step boundary; {ARRANGED}; {PLAIN}", limit=60)
def taken_preserves_it_at_a_boundary(
    shape: Literal["Top", "CallTheCompactor", "ConsiderBoundary", "AfterInput", "SteeringIn"], n: Numbers, taken: int
) -> bool:
    """
    pre: shapes.plain(n) and taken >= 0
    post: __return__
    """
    return keeps(sending(shape, n), inp.Taken(taken))


@contract(
    *MACHINE,
    bounds=f"a send within a turn; at most 4 requests a step; assumed: a delay only after a failure; {ARRANGED}",
    limit=60,
)
def taken_preserves_it_in_a_turn(
    shape: Literal["StepBegun", "Delay", "Watch", "Responded", "WatchBackoff"], n: Numbers, taken: int
) -> bool:
    """
    pre: shapes.within(n) and taken >= 0 and n.requests <= 4 and 0 <= n.step <= 9
    pre: n.delay == 0 or n.requests > n.malformed
    post: __return__
    """
    return keeps(sending(shape, n), inp.Taken(taken))


@contract(*MACHINE, bounds=f"a send while the recorder is at work; {ARRANGED}", limit=60)
def taken_preserves_it_while_recording(n: Numbers, taken: int) -> bool:
    """
    pre: shapes.within(n) and taken >= 0
    post: __return__
    """
    return keeps(sending("WatchRecorder", n), inp.Taken(taken))


@contract(
    *MACHINE,
    bounds=f"a send about announced or started calls; assumed: max_parallel_tools >= 2; {ARRANGED}; {PLAIN}",
    limit=60,
)
def taken_preserves_it_around_calls(
    shape: Literal["Propose", "Dispatch", "Spawn", "JobStarted", "JobDetached", "Await"], n: Numbers, taken: int
) -> bool:
    """
    pre: shapes.plain(n) and taken >= 0 and n.parallel >= 2
    post: __return__
    """
    return keeps(sending(shape, n), inp.Taken(taken))


@contract(
    *MACHINE,
    bounds=f"a send of a batch of two calls, the second done or running, no job; {ARRANGED}; {PLAIN}",
    limit=90,
)
def taken_preserves_it_in_a_batch(
    shape: Literal["Schedule", "CallStarted", "CallFinished", "Asked"],
    n: Numbers,
    taken: int,
    one: SlotStage,
    two: Literal["done", "running"],
) -> bool:
    """
    pre: shapes.plain(n) and taken >= 0 and n.job == 0
    post: __return__
    """
    return keeps(sending(shape, n, one, two), inp.Taken(taken))


@contract(*MACHINE, bounds=f"a send after the end is decided; {ARRANGED}", limit=60)
def taken_preserves_it_at_the_end(shape: Literal["Hold", "Conclude", "Exit"], n: Numbers, taken: int) -> bool:
    """
    pre: shapes.within(n) and taken >= 0
    post: __return__
    """
    return keeps(sending(shape, n), inp.Taken(taken))


# --- the model ----------------------------------------------------------------------------------------------------

Open = Literal["Streaming", "Draining"]
OPEN = f"a stream that is open or draining; any step and attempt, late ones too; {ARRANGED}"


@contract(*MACHINE, bounds=f"{OPEN}; {PLAIN}; text of at most 1 character")
def text_preserves_it(shape: Open, n: Numbers, step: int, attempt: int, text: str) -> bool:
    """
    pre: shapes.plain(n) and len(text) <= 1
    post: __return__
    """
    return keeps(waiting(shape, n), inp.TextDelta(step, attempt, text))


ModelKind = Literal["reasoning", "summary", "context", "tokens", "web", "hosted", "tier"]


@contract(*MACHINE, bounds=f"{OPEN}; {PLAIN}; fixed texts", limit=60)
def other_deltas_preserve_it(shape: Open, n: Numbers, step: int, attempt: int, kind: ModelKind) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    events: dict[ModelKind, Any] = {
        "reasoning": inp.RawReasoning(step, attempt, "x"),
        "summary": inp.SummaryDelta(step, attempt, "x"),
        "context": inp.ContextBlock(step, attempt, inp.ASYNC_CALL, "a"),
        "tokens": inp.UsageReported(step, attempt, Usage(n.delay)),
        "web": inp.WebSearched(step, attempt, "x"),
        "hosted": inp.HostedTool(step, attempt, "x", "y"),
        "tier": inp.TierFallback(step, attempt, "x", "y"),
    }
    return keeps(waiting(shape, n), events[kind])


@contract(*MACHINE, bounds=f"{OPEN}; {PLAIN}; one fragment of a call", limit=60)
def a_call_fragment_preserves_it(shape: Open, n: Numbers, step: int, attempt: int, named: bool, whole: bool) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    name = "t" if named else None
    return keeps(waiting(shape, n), inp.CallDelta(step, attempt, 0, name, name, "{}" if whole else "{"))


@contract(*MACHINE, bounds=f"{OPEN}; {PLAIN}")
def a_failed_physical_request_preserves_it(shape: Open, n: Numbers, step: int, attempt: int, tokens: int) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), inp.PhysicalAttemptFailed(step, attempt, "Timeout", Usage(tokens)))


Content = Literal["empty", "text", "call", "async", "unnamed"]


@contract(*MACHINE, bounds=f"{OPEN}; a response of nothing, text, one call or a malformed one", limit=60)
def a_response_preserves_it(shape: Open, n: Numbers, step: int, attempt: int, content: Content) -> bool:
    """
    pre: shapes.within(n)
    post: __return__
    """
    blocks: dict[Content, Any] = {
        "empty": (),
        "text": (Text("t"),),
        "call": (ToolCall("a", "t", "{}"),),
        "async": (ToolCall("d", "d", "{}"),),
        "unnamed": (ToolCall("a", "", "{}"),),
    }
    return keeps(waiting(shape, n), inp.ModelReturned(step, attempt, blocks[content]))


@contract(*MACHINE, bounds=f"{OPEN}; {PLAIN}; at most 4 requests a step; any hint", limit=90)
def a_failed_request_preserves_it(
    shape: Open, n: Numbers, step: int, attempt: int, retryable: bool, hint: int | None
) -> bool:
    """
    pre: shapes.plain(n) and n.requests <= 4 and 0 <= n.step <= 9
    post: __return__
    """
    error = ProviderError("Timeout", "late", retryable, hint)
    return keeps(waiting(shape, n), inp.ModelFailed(step, attempt, error))


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}; any step and attempt", limit=60)
def a_panicked_worker_preserves_it(shape: Waiting, n: Numbers, step: int, attempt: int, compactor: bool) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), inp.CompactorPanicked() if compactor else inp.ModelPanicked(step, attempt))


@contract(*MACHINE, bounds=f"{OPEN}; a steer waiting, a reader, no job; {IDS}", limit=60)
def a_claim_preserves_it(shape: Open, n: Numbers, step: int, attempt: int, which: Literal["s", "z"], kind: int) -> bool:
    """
    pre: shapes.within(n) and n.steer and not n.gone and n.job == 0 and 0 <= kind <= 2
    post: __return__
    """
    made = (inp.SteerClaimed, inp.SteerDelivered, inp.SteerReleased)[kind](step, attempt, which)
    return keeps(waiting(shape, n), made)


# --- tools --------------------------------------------------------------------------------------------------------

Report = Literal["prepared", "guarded", "failed", "authorized", "denied", "progress", "returned", "panicked"]
Second = Literal["done", "running", "prepared"]


def _report(report: Report, call_id: str) -> Any:
    made: dict[Report, Any] = {
        "prepared": inp.Prepared(call_id, Plan()),
        "guarded": inp.Prepared(call_id, Plan(capability="net")),
        "failed": inp.PrepareFailed(call_id, "no"),
        "authorized": inp.Authorized(call_id),
        "denied": inp.Denied(call_id, "no"),
        "progress": inp.ToolProgress(call_id, "p"),
        "returned": inp.ToolReturned(call_id, Success("done")),
        "panicked": inp.ToolPanicked(call_id),
    }
    return made[report]


@contract(
    *MACHINE, bounds=f"a batch of two calls of any stage, the second done or at work; {ARRANGED}; {PLAIN}", limit=120
)
def a_tool_report_preserves_it(
    n: Numbers, one: SlotStage, two: Second, report: Report, which: Literal["a", "b"]
) -> bool:
    """
    pre: shapes.plain(n) and n.job == 0 and not n.steer
    post: __return__
    """
    return keeps(waiting("Batch", n, one, two), _report(report, which))


@contract(
    *MACHINE, bounds=f"every phase that hears a job, a stream or a spawn among them; {ARRANGED}; {PLAIN}", limit=120
)
def a_job_report_preserves_it(
    shape: Literal["Streaming", "Recording", "BackingOff", "Spawning", "Awaiting", "AwaitingBatch", "Stopping"],
    n: Numbers,
    report: Report,
    which: Literal["j", "e"],
) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), _report(report, which))


@contract(*MACHINE, bounds=f"{SENDS}; {PLAIN}; only what is stored, nothing runs", limit=90)
def a_result_while_blocked_preserves_it(shape: Sending, n: Numbers, which: Literal["a", "j", "e"], ok: bool) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(sending(shape, n), inp.ToolReturned(which, Success("done")) if ok else inp.ToolPanicked(which))


@contract(*MACHINE, bounds=f"a batch of two calls, the second done; {ARRANGED}; {PLAIN}", limit=60)
def a_question_preserves_it(n: Numbers, one: SlotStage, which: Literal["a", "b"], fresh: bool, withdrawn: bool) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    run, name = waiting("Batch", n, one), "new" if fresh else "q"
    if withdrawn:
        return keeps(run, inp.AskWithdrawn(which, name))
    return keeps(run, inp.ToolAsked(which, HostInputRequest(name, "", (shapes.QUESTION,))))


# --- timer, compactor, collector, recorder ------------------------------------------------------------------------


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}; the timers there are, and another", limit=60)
def a_timer_preserves_it(shape: Waiting, n: Numbers, timer: Literal["retry", "stop:e", "other"]) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    return keeps(waiting(shape, n), inp.TimerFired(timer))


@contract(*MACHINE, bounds=f"a compactor that is awaited or was cancelled; {ARRANGED}", limit=60)
def a_compaction_preserves_it(shape: Literal["Compacting", "Ebbing"], n: Numbers, empty: bool, cost: int) -> bool:
    """
    pre: shapes.within(n)
    post: __return__
    """
    replacement = () if empty else (user("short"),)
    return keeps(waiting(shape, n), inp.CompactorReturned(replacement, Usage(cost_usd_micros=cost)))


@contract(*MACHINE, bounds=f"a compactor that is awaited or was cancelled; {ARRANGED}", limit=60)
def a_failed_compaction_preserves_it(shape: Literal["Compacting", "Ebbing"], n: Numbers, kind: int) -> bool:
    """
    pre: shapes.within(n) and 0 <= kind <= 2
    post: __return__
    """
    return keeps(waiting(shape, n), inp.CompactorFailed((CANCELLED, INTERRUPTED, REVISION_EXHAUSTED)[kind]))


@contract(*MACHINE, bounds=f"a collector that was asked at either boundary; {ARRANGED}", limit=60)
def boundary_input_preserves_it(n: Numbers, given: bool, gone: bool) -> bool:
    """
    pre: shapes.within(n)
    post: __return__
    """
    reply = inp.BoundaryGone() if gone else inp.BoundaryReplied("more" if given else None)
    return keeps(waiting("Collecting", n), reply)


@contract(*MACHINE, bounds=f"a recorder that is awaited; {ARRANGED}", limit=60)
def a_recorded_usage_preserves_it(n: Numbers) -> bool:
    """
    pre: shapes.within(n)
    post: __return__
    """
    return keeps(waiting("Recording", n), inp.UsageRecorded())


# --- what holds of whole classes of inputs ------------------------------------------------------------------------

Gated = Literal["text", "response", "question"]


@contract(*MACHINE, bounds=f"{SENDS}; {PLAIN}; three gated inputs", limit=60)
def a_gated_input_changes_nothing_while_blocked(shape: Sending, n: Numbers, kind: Gated, step: int, at: int) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    made: dict[Gated, Any] = {
        "text": inp.TextDelta(step, at, "x"),
        "response": inp.ModelReturned(step, at, ()),
        "question": inp.ToolAsked("a", shapes.ASKED),
    }
    run = sending(shape, n)
    after = machine.step(run, made[kind])
    return after.state is run and after.effects == (out.NotReady(made[kind]),)


@contract(*MACHINE, bounds=f"{SENDS}; {PLAIN}; results of three calls", limit=60)
def a_stored_result_sends_nothing_while_blocked(shape: Sending, n: Numbers, which: Literal["a", "j", "e"]) -> bool:
    """
    pre: shapes.plain(n)
    post: __return__
    """
    run = sending(shape, n)
    after = machine.step(run, inp.ToolReturned(which, Success("done")))
    quiet = not any(isinstance(e, out.Deliver) for e in after.effects)
    return quiet and after.state.blocked == run.blocked and after.state.free == run.free


@contract(*MACHINE, bounds=f"{OPEN}; {PLAIN}", limit=60)
def a_stale_attempt_changes_nothing(shape: Open, n: Numbers, step: int, attempt: int) -> bool:
    """
    pre: shapes.plain(n) and (step != n.step or attempt != n.requests)
    post: __return__
    """
    run = waiting(shape, n)
    texts = machine.step(run, inp.TextDelta(step, attempt, "x"))
    response = machine.step(run, inp.ModelReturned(step, attempt, (Text("t"),)))
    return texts.state == run == response.state and texts.effects == () == response.effects


@contract(*MACHINE, bounds=f"a batch of two calls; {ARRANGED}", limit=60)
def a_result_is_stored_once(n: Numbers, first: bool, which: Literal["a", "b"]) -> bool:
    """
    pre: shapes.within(n) and n.parallel >= 2 and n.job == 0 and not n.steer and not n.gone
    post: __return__
    """
    run = waiting("Batch", n, "running", "running")
    once = machine.step(run, inp.ToolReturned(which, Success("one"))).state
    twice = machine.step(once, inp.ToolReturned(which, Success("two")))
    return twice.state == once and twice.effects == ()


@contract(*MACHINE, bounds=f"{WAITS}; {PLAIN}", limit=60)
def a_second_cancel_changes_nothing(shape: Waiting, n: Numbers) -> bool:
    """
    pre: shapes.plain(n) and shape != "Fresh"
    post: __return__
    """
    once = machine.step(waiting(shape, n), inp.Cancel()).state
    twice = machine.step(once, inp.Cancel())
    return twice.state == once and twice.effects == ()


@contract(*MACHINE, bounds=f"{OPEN}; {PLAIN}; text of at most 2 characters; the hot path against the tables", limit=60)
def the_hot_path_is_the_generic_one(n: Numbers, step: int, attempt: int, text: str) -> bool:
    """
    pre: shapes.plain(n) and len(text) <= 2
    post: __return__
    """
    run, delta = waiting("Streaming", n), inp.TextDelta(step, attempt, text)
    quick = machine.hot(run, delta)
    generic = machine.generic(run, delta)
    return quick is None or (quick[0] == generic.state and quick[1] == generic.effects)
