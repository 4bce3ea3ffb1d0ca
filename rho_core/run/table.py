"""The run machine, as two literal tables (design §3.2): what a run does in a phase, and what follows a send.

Every row names its handler, every exit it may take, and the rules it serves. What is not in a table is a default of the
input's class: see DEFAULTS. `Abandon` is an exit of every row that sends a nonterminal event and may be the first to
do so after a wait: without a reader the run ends there (RHO-PERS-1).
"""

from __future__ import annotations

from .. import inputs as inp
from ..table import Default, Row
from . import batch, control, detached, end, state, top, turn
from .state import (
    Abandon,
    AfterInput,
    Ask,
    AskCollector,
    Asked,
    Await,
    Awaiting,
    BackingOff,
    Batch,
    BeginStep,
    Between,
    CallFinished,
    CallStarted,
    CallTheCompactor,
    Cancelling,
    Collecting,
    Commit,
    Compacting,
    Conclude,
    ConsiderBoundary,
    ConsiderCompaction,
    ConsiderSteering,
    Delay,
    Dispatch,
    Draining,
    Ebbing,
    EndTurn,
    Exit,
    Fresh,
    Hold,
    JobDetached,
    JobStarted,
    Judge,
    Limit,
    OpenBatch,
    Propose,
    Proposing,
    Record,
    Recording,
    Reset,
    Responded,
    Responding,
    Schedule,
    Settled,
    Settling,
    Spawn,
    Spawning,
    SteeringIn,
    StepBegun,
    Stopping,
    Streaming,
    Top,
    Watch,
    WatchBackoff,
    WatchRecorder,
)

# --- wait rows ------------------------------------------------------------------------------------------------------

WAIT: dict[tuple[type, type], Row] = {
    (Fresh, inp.Begin): Row(top.begin, (Top, Propose), ("RHO-ORD-1", "RHO-BUF-1")),
    # compaction and boundary input
    (Compacting, inp.CompactorReturned): Row(
        top.compactor_returned, (ConsiderBoundary, Conclude, Abandon), ("RHO-ORD-11b", "RHO-ORD-11c")
    ),
    (Compacting, inp.CompactorFailed): Row(top.compactor_failed, (Conclude, Abandon), ("RHO-TERM-6",)),
    (Collecting, inp.BoundaryReplied): Row(
        top.boundary_replied, (ConsiderSteering, EndTurn, AfterInput, Abandon), ("RHO-BND-2", "RHO-BND-3")
    ),
    (Collecting, inp.BoundaryGone): Row(top.boundary_gone, (Abandon,), ("RHO-TERM-6",)),
    # the stream
    (Streaming, inp.ModelReturned): Row(turn.model_returned, (Streaming, Responded, Abandon), ("RHO-METR-1",)),
    (Streaming, inp.ModelFailed): Row(turn.model_failed, (Streaming, Record), ("RHO-RET-2", "RHO-RET-5", "RHO-FAIL-1")),
    (Streaming, inp.SteerDelivered): Row(turn.steer_delivered, (Streaming, Watch, Abandon), ("RHO-STEER-8",)),
    (Streaming, inp.SteerReleased): Row(turn.steer_released, (Streaming,), ("RHO-STEER-7",)),
    (Recording, inp.UsageRecorded): Row(turn.usage_recorded, (Recording, WatchRecorder), ("RHO-RET-11",)),
    (BackingOff, inp.TimerFired): Row(turn.retry_timer, (BackingOff, WatchBackoff), ("RHO-RET-2", "RHO-RET-3")),
    # the synchronous batch
    (Batch, inp.Prepared): Row(batch.prepared, (Batch, Schedule), ("RHO-ORD-4",)),
    (Batch, inp.PrepareFailed): Row(batch.prepare_failed, (Batch, Schedule), ("RHO-ORD-5",)),
    (Batch, inp.Authorized): Row(batch.authorized, (Batch, Schedule), ("RHO-CAN-5",)),
    (Batch, inp.Denied): Row(batch.denied, (Batch, Schedule), ("RHO-RET-22",)),
    (Batch, inp.ToolReturned): Row(batch.returned, (Batch, Schedule), ("RHO-ORD-5", "RHO-CAN-12")),
    (Batch, inp.ToolPanicked): Row(batch.panicked, (Batch, Schedule), ("RHO-LIM-3",)),
    (Batch, inp.ToolProgress): Row(batch.progress, (Batch, Schedule, Abandon), ("RHO-ORD-5", "RHO-ORD-9")),
    (Batch, inp.ToolAsked): Row(
        batch.asked, (Batch, Asked, Conclude, Abandon), ("RHO-HOST-1", "RHO-COORD-2", "RHO-COORD-3")
    ),
    (Batch, inp.AskWithdrawn): Row(batch.ask_withdrawn, (Batch, Schedule), ("RHO-HOST-5",)),
    # the cooperative end
    (Draining, inp.ModelReturned): Row(end.model_stopped, (Draining, Conclude), ("RHO-RET-6",)),
    (Draining, inp.ModelFailed): Row(end.model_stopped, (Draining, Conclude), ("RHO-RET-6",)),
    (Ebbing, inp.CompactorReturned): Row(end.compactor_stopped, (Conclude, Abandon), ("RHO-CAN-5", "RHO-ORD-11c")),
    (Ebbing, inp.CompactorFailed): Row(end.compactor_stopped, (Conclude,), ("RHO-CAN-5",)),
}
for _event in turn.MODEL_EVENTS:
    WAIT[Streaming, _event] = Row(turn.model_event, (Streaming, Watch, Abandon), ("RHO-ORD-3",))
    WAIT[Draining, _event] = Row(turn.drained_event, (Draining,), ("RHO-CAN-9",))
WAIT[Streaming, inp.GenerationTokensReported] = Row(turn.model_event, (Streaming, Watch), ("RHO-METR-5",))

# Jobs are heard in every phase in which one can be alive.
for _phase, _again in detached.LOOK_AGAIN.items():
    _exits = (_phase, type(_again))
    WAIT[_phase, inp.ToolReturned] = Row(detached.returned, _exits, ("RHO-ORD-7", "RHO-ORD-10"))
    WAIT[_phase, inp.ToolPanicked] = Row(detached.panicked, _exits, ("RHO-ORD-7b",))
    WAIT[_phase, inp.ToolProgress] = Row(detached.progress, (*_exits, Abandon), ("RHO-ORD-9",))
    WAIT[_phase, inp.ToolAsked] = Row(detached.asked, (_phase,), ("RHO-HOST-5",))
for _phase in (Between, Responding, Proposing):  # these are seen only while a send is blocked
    WAIT[_phase, inp.ToolReturned] = Row(detached.returned, (_phase,), ("RHO-ORD-7", "RHO-ORD-10"))
    WAIT[_phase, inp.ToolPanicked] = Row(detached.panicked, (_phase,), ("RHO-ORD-7b",))
for _phase in (Responding, Recording):
    WAIT[_phase, inp.SteerReleased] = Row(turn.steer_released, (_phase,), ("RHO-STEER-7",))
for _input, _handler in (
    (inp.Prepared, detached.prepared),
    (inp.PrepareFailed, detached.prepare_failed),
    (inp.Authorized, detached.authorized),
    (inp.Denied, detached.denied),
):
    WAIT[Spawning, _input] = Row(_handler, (Spawning, Spawn), ("RHO-ORD-7",))

# Jobs with time left are awaited wherever a run that has decided its end still waits.
for _phase in (Draining, Cancelling, Stopping):
    _commit = (Commit,) if _phase is Stopping else ()
    WAIT[_phase, inp.ToolReturned] = Row(end.stopping_job_returned, (_phase, *_commit), ("RHO-CAN-14",))
    WAIT[_phase, inp.ToolPanicked] = Row(end.stopping_job_panicked, (_phase, *_commit), ("RHO-CAN-14",))
    WAIT[_phase, inp.TimerFired] = Row(end.stop_timer_fired, (_phase, *_commit), ("RHO-CAN-14",))
for _phase in (Draining, Stopping):
    WAIT[_phase, inp.ToolAsked] = Row(detached.asked, (_phase,), ("RHO-HOST-5",))

# --- rows of every phase --------------------------------------------------------------------------------------------

COMMON: dict[type, Row] = {
    inp.Cancel: Row(
        end.cancel, (Conclude, Draining, Ebbing, Hold), ("RHO-CAN-1", "RHO-CAN-2", "RHO-CAN-5", "RHO-RET-7")
    ),
    inp.Drop: Row(control.drop, (Abandon, Exit), ("RHO-DROP-1", "RHO-DROP-3")),
    inp.Taken: Row(control.taken, (), ("RHO-BUF-3", "RHO-BUF-4", "RHO-BUF-5", "RHO-BUF-6")),
    inp.ReaderClosed: Row(control.reader_closed, (Abandon,), ("RHO-PERS-1", "RHO-LIM-4")),
    inp.Steer: Row(control.steer, (Await,), ("RHO-STEER-1", "RHO-STEER-4", "RHO-COORD-1")),
    inp.Retract: Row(control.retract, (ConsiderSteering,), ("RHO-STEER-5", "RHO-STEER-6", "RHO-STEER-11")),
    inp.Respond: Row(control.respond, (), ("RHO-HOST-3", "RHO-HOST-4", "RHO-HOST-5", "RHO-COORD-4")),
    inp.ModelPanicked: Row(control.worker_panicked, (Abandon,), ("RHO-LIM-3",)),
    inp.CompactorPanicked: Row(control.worker_panicked, (Abandon,), ("RHO-LIM-3",)),
    inp.SteerClaimed: Row(control.steer_claimed, (), ("RHO-STEER-7", "RHO-STEER-11")),
}
"""They may always stay in the phase they found, or resume the continuation of a blocked send."""

# --- flow rows ------------------------------------------------------------------------------------------------------

FLOW: dict[type, Row] = {
    Top: Row(top.top, (Top, ConsiderCompaction, ConsiderSteering), ("RHO-ORD-10", "RHO-ORD-11f")),
    ConsiderCompaction: Row(top.consider_compaction, (ConsiderBoundary, CallTheCompactor, Abandon), ("RHO-ORD-11a",)),
    CallTheCompactor: Row(top.call_the_compactor, (Compacting,), ("RHO-ORD-11a",)),
    ConsiderBoundary: Row(top.consider_boundary, (ConsiderSteering, AskCollector), ("RHO-BND-1", "RHO-BND-2")),
    AskCollector: Row(top.ask_collector, (Collecting, Abandon), ("RHO-BND-2", "RHO-BND-3", "RHO-PERS-1")),
    AfterInput: Row(top.after_input, (ConsiderSteering, Top), ("RHO-BND-3", "RHO-BND-4")),
    ConsiderSteering: Row(
        top.consider_steering, (SteeringIn, Limit, BeginStep, Abandon), ("RHO-STEER-2", "RHO-COORD-5")
    ),
    SteeringIn: Row(top.steering_in, (ConsiderSteering,), ("RHO-STEER-2", "RHO-STEER-9")),
    BeginStep: Row(top.begin_step, (StepBegun,), ("RHO-ORD-2",)),
    StepBegun: Row(top.step_begun, (Ask,), ("RHO-ORD-2",)),
    Limit: Row(top.limit, (Conclude,), ("RHO-RET-23",)),
    EndTurn: Row(top.end_turn, (Top, Await, AskCollector, Conclude), ("RHO-STEER-2", "RHO-BND-3")),
    Ask: Row(turn.ask, (Watch,), ("RHO-RET-4", "RHO-RET-18")),
    Watch: Row(turn.watch, (Streaming, Watch, Abandon), ("RHO-ORD-7",)),
    Responded: Row(turn.responded, (Record,), ("RHO-RET-11",)),
    Record: Row(turn.record_next, (WatchRecorder, Judge, Reset, Conclude), ("RHO-RET-11",)),
    WatchRecorder: Row(turn.watch_recorder, (Recording, WatchRecorder, Record, Abandon), ("RHO-RET-11",)),
    Judge: Row(turn.judge, (Reset, Conclude, EndTurn, Propose), ("RHO-RET-1", "RHO-BUF-10")),
    Reset: Row(turn.reset, (Delay, Abandon), ("RHO-RET-8", "RHO-RET-9")),
    Delay: Row(turn.delay, (Ask, WatchBackoff), ("RHO-RET-2",)),
    WatchBackoff: Row(turn.watch_backoff, (BackingOff, WatchBackoff, Ask, Abandon), ("RHO-RET-2",)),
    Propose: Row(batch.propose, (Dispatch, Abandon), ("RHO-ORD-4", "RHO-ORD-8")),
    Dispatch: Row(batch.dispatch, (Spawn, Await, OpenBatch), ("RHO-ORD-7",)),
    Spawn: Row(detached.spawn, (Spawning, Spawn, JobStarted, Await, Top, Abandon), ("RHO-ORD-7",)),
    JobStarted: Row(detached.job_started, (Spawn, JobDetached), ("RHO-ORD-7",)),
    JobDetached: Row(detached.job_detached, (Spawn,), ("RHO-ORD-7",)),
    Await: Row(detached.wait_for_jobs, (Awaiting, Await, OpenBatch, Top, Abandon), ("RHO-ORD-10",)),
    OpenBatch: Row(batch.open_batch, (Schedule,), ("RHO-ORD-4", "RHO-ORD-6")),
    Schedule: Row(
        batch.schedule,
        (Batch, CallFinished, CallStarted, Top, Abandon),
        ("RHO-ORD-5", "RHO-ORD-6", "RHO-ORD-9", "RHO-ORD-10"),
    ),
    CallStarted: Row(batch.call_started, (Schedule,), ("RHO-ORD-5",)),
    CallFinished: Row(batch.call_finished, (Schedule,), ("RHO-ORD-5",)),
    Asked: Row(batch.ask_announced, (Schedule,), ("RHO-HOST-1",)),
    Conclude: Row(end.conclude, (Stopping, Commit), ("RHO-CAN-14",)),
    Commit: Row(end.commit, (Exit, Abandon), ("RHO-CAN-8", "RHO-CAN-11", "RHO-FAIL-1", "RHO-ORD-12")),
    Abandon: Row(end.abandon, (Exit,), ("RHO-PERS-2", "RHO-LIM-3", "RHO-DROP-3")),
    Exit: Row(end.exit_run, (Settled,), ("RHO-TERM-2",)),
    Hold: Row(end.hold, (Draining,), ("RHO-RET-6",)),
}

DEFAULTS: dict[type, Default] = {
    **dict.fromkeys(inp.INPUT_CLASS, "ignored"),
    inp.Begin: "unreachable",
}
"""An input without a row: late answers and stale attempts are ignored by rule; a second Begin cannot happen.

Commands are *rejected* by their own handlers, since the answer names the rule."""

PHASES: tuple[type, ...] = state.Phase.__args__
CONTINUATIONS: tuple[type, ...] = state.Continuation.__args__
assert Settling in PHASES
