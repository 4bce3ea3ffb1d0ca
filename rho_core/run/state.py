"""Everything a run can be: its phases, its continuations, and the state around them.

A run is either *waiting* for an input in a phase, or *blocked* on a send with one continuation (design §3.3).
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ..asks import NO_ASKS, Asks, HostInputRequest
from ..budget import Budget
from ..calls import Slot
from ..capture import NOTHING, Capture
from ..config import Policy
from ..effects import BoundaryKind, RecordUsage, RunEnd
from ..errors import Error
from ..events import Event, ResetReason, StopReason
from ..jobs import Pool
from ..ledger import Ledger
from ..messages import NO_USAGE, AbortedAssistant, Block, History, Message, ToolCall, ToolResult, Usage
from ..record import record
from ..shown import NOTHING_SHOWN, Shown
from ..steering import NO_STEERS, Steers

# --- how a run ends ---------------------------------------------------------------------------------------


@record
class Complete:
    """Success: the model ended its turn, or the step limit was reached (D1)."""

    stop: StopReason


@record
class CancelRun:
    """A cancel was accepted."""


@record
class Fail:
    """A typed, cooperative failure."""

    error: Error


Ending = Complete | CancelRun | Fail
"""A *cooperative* end: it commits, then sends its tail."""

Label = Literal["Completed", "Failed", "Idle"]
"""The session state that remains of a run (RHO-STATE-2, RHO-STATE-4)."""

# --- the turn ---------------------------------------------------------------------------------------------

Records = tuple[RecordUsage, ...]
"""What the usage recorder is still to be given, in order; always empty when none is installed."""


@record
class Turn:
    """One step's attempts. `request`: shown to every attempt (RHO-RET-18); `physical`: physical requests so far.

    `failed`: physical requests that failed inside the open attempt; they are recorded when it is over.
    """

    request: History
    budget: Budget = Budget()
    physical: int = 1
    failed: Records = ()


# --- phases: what the run waits in ------------------------------------------------------------------------


@record
class Fresh:
    """Not begun."""


@record
class Between:
    """Between two waits; seen from outside only while a send is blocked."""


@record
class Compacting:
    """The compactor was called; the candidate held `message_count` messages."""

    message_count: int


@record
class Collecting:
    """The boundary collector was asked."""

    boundary: BoundaryKind


@record
class Streaming:
    """A request is out. `attempt` is its logical number in this step."""

    turn: Turn
    attempt: int
    capture: Capture = NOTHING


@record
class Responding:
    """The provider returned; ModelCallCompleted is being sent, and then `records` are written."""

    turn: Turn
    attempt: int
    capture: Capture
    records: Records = ()


@record
class Recording:
    """The attempt is over: one record is with the recorder, then come `left` of them, then `then`.

    `stage` is answered when the recorder answered while a send was blocked.
    """

    turn: Turn
    attempt: int
    capture: Capture
    left: Records
    then: Judge | Reset | Conclude
    stage: Literal["written", "answered"] = "written"


@record
class BackingOff:
    """The delay before another attempt. `stage` is fired when the timer ran out while a send was blocked."""

    turn: Turn
    timer_id: str
    stage: Literal["armed", "fired"] = "armed"


@record
class Proposing:
    """Calls that the candidate history holds are being announced; those in `detaching` will run on by themselves."""

    calls: tuple[ToolCall, ...]
    detaching: tuple[str, ...]


@record
class Spawning:
    """Async calls are started one by one; `batch` comes after them."""

    detaching: tuple[ToolCall, ...]
    batch: tuple[ToolCall, ...]


@record
class Awaiting:
    """Waiting for jobs: for all of them before `batch`, or at an end turn (`batch` empty) for any."""

    batch: tuple[ToolCall, ...]


@record
class Batch:
    """A synchronous tool batch."""

    slots: tuple[Slot, ...]
    asks: Asks = NO_ASKS


@record
class Draining:
    """Cancelled, and the provider is a cooperative one: wait until it stops."""

    turn: Turn
    attempt: int
    capture: Capture


@record
class Ebbing:
    """Cancelled, and the compactor is a cooperative one: wait until it stops."""


@record
class Cancelling:
    """Cancelled while an uncancellable send is blocked: the commit waits for its delivery."""


@record
class Stopping:
    """The end is decided; some jobs may still finish within their time."""

    plan: Conclude


@record
class Settling:
    """Committed; the last events are being sent."""

    end: RunEnd
    label: Label
    cancelled: bool


@record
class Settled:
    """Over. `label` is what the session's state shows from now on."""

    label: Label


Phase = (
    Fresh
    | Between
    | Compacting
    | Collecting
    | Streaming
    | Responding
    | Recording
    | BackingOff
    | Proposing
    | Spawning
    | Awaiting
    | Batch
    | Draining
    | Ebbing
    | Cancelling
    | Stopping
    | Settling
    | Settled
)
ENDING: frozenset[type] = frozenset({Draining, Ebbing, Cancelling, Stopping, Settling, Settled})
"""Phases after the decision to end: no command is accepted and a cancel has no effect any more (D5, D7)."""

# --- continuations: what comes next when a send is delivered ------------------------------------------------


@record
class Top:
    """A step boundary begins (D10): jobs, then compaction, boundary input, steering, StepStarted."""


@record
class ConsiderCompaction:
    pass


@record
class CallTheCompactor:
    pass


@record
class ConsiderBoundary:
    pass


@record
class AskCollector:
    boundary: BoundaryKind


@record
class ConsiderSteering:
    pass


@record
class SteeringIn:
    """SteeringApplied was delivered: now these steers enter the history."""

    ids: tuple[str, ...]


@record
class BeginStep:
    pass


@record
class StepBegun:
    """StepStarted was delivered."""

    request: History


@record
class Ask:
    """Send one logical request."""

    turn: Turn


@record
class Watch:
    """Look at a stream again: jobs that returned, else wait."""


@record
class Reset:
    """Announce that the attempt is abandoned, then wait `delay_ms`."""

    turn: Turn
    reason: ResetReason
    detail: str
    delay_ms: int


@record
class Delay:
    turn: Turn
    delay_ms: int


@record
class WatchBackoff:
    pass


@record
class Responded:
    """ModelCallCompleted was delivered. `issue`: why the response is malformed, or None."""

    content: tuple[Block, ...]
    issue: str | None


@record
class Record:
    """Give the recorder its next record, or go on when there is none left."""


@record
class WatchRecorder:
    """Look at a recording again: jobs that returned, the recorder's answer, else wait."""


@record
class Judge:
    """The attempt is recorded: what becomes of its response?"""

    content: tuple[Block, ...]
    issue: str | None


@record
class Propose:
    """Announce the calls of a response, in model order (RHO-ORD-8, D3)."""


@record
class Dispatch:
    """Every ToolProposed was delivered."""


@record
class Spawn:
    pass


@record
class JobStarted:
    """ToolStarted of a job was delivered."""

    call_id: str


@record
class JobDetached:
    call_id: str


@record
class Await:
    pass


@record
class OpenBatch:
    calls: tuple[ToolCall, ...]


@record
class Schedule:
    pass


@record
class CallStarted:
    """ToolStarted of a slot was delivered."""

    index: int


@record
class CallFinished:
    """ToolFinished of a slot was delivered."""

    index: int


@record
class Asked:
    """ToolHostInputRequested was delivered: the question is open."""

    call_id: str
    request: HostInputRequest


@record
class EndTurn:
    """A response without calls: is the run over? `collector`: asked already for this answer, or not."""

    collector: Literal["unasked", "asked"] = "unasked"


@record
class AfterInput:
    """BoundaryInputApplied was delivered."""

    boundary: BoundaryKind


@record
class Limit:
    """The step limit is reached."""


@record
class Conclude:
    """End cooperatively. `results` answer calls already in the history; `tail` is sent after the commit."""

    ending: Ending
    results: tuple[ToolResult, ...] = ()
    tail: tuple[Event, ...] = ()
    aborted: AbortedAssistant | None = None


@record
class Commit:
    plan: Conclude


@record
class Abandon:
    """End without a commit and without an event (RHO-LIM-3, RHO-PERS-1, D29). `error` None: dropped."""

    error: Error | None


@record
class Exit:
    """Report the outcome and close the stream."""

    end: RunEnd | None
    label: Label


@record
class Hold:
    """Wait in the phase as it is."""


Continuation = (
    Top
    | ConsiderCompaction
    | CallTheCompactor
    | ConsiderBoundary
    | AskCollector
    | ConsiderSteering
    | SteeringIn
    | BeginStep
    | StepBegun
    | Ask
    | Watch
    | Reset
    | Delay
    | WatchBackoff
    | Responded
    | Record
    | WatchRecorder
    | Judge
    | Propose
    | Dispatch
    | Spawn
    | JobStarted
    | JobDetached
    | Await
    | OpenBatch
    | Schedule
    | CallStarted
    | CallFinished
    | Asked
    | EndTurn
    | AfterInput
    | Limit
    | Conclude
    | Commit
    | Abandon
    | Exit
    | Hold
)

# --- the whole ------------------------------------------------------------------------------------------------


@record
class Blocked:
    """Events that found the channel full, and what follows their delivery. Nothing is computed past them."""

    sends: tuple[Event, ...]
    cancellable: bool
    then: Continuation


@record
class Core:
    """What changes less often than a delta arrives.

    `suffix`: candidate messages after `ledger.history`; `usage`: of the successful attempts so far (D26);
    `shown`: what is remembered of the model's view; `answer`: text of the newest completed response;
    `serial`: jobs begun; `preserve`: length of the tail of the candidate that the next compaction leaves alone.
    """

    session: str
    run: str
    policy: Policy
    ledger: Ledger
    suffix: tuple[Message, ...] = ()
    step: int = 0
    usage: Usage = NO_USAGE
    answer: str = ""
    steers: Steers = NO_STEERS
    jobs: Pool = ()
    serial: int = 0
    preserve: int = 0
    reader: Literal["open", "gone"] = "open"
    shown: Shown = field(default=NOTHING_SHOWN, compare=False)


@record
class Run:
    """`free`: places left in the channel."""

    phase: Phase
    free: int
    blocked: Blocked | None
    core: Core


def new_run(session: str, run: str, policy: Policy, ledger: Ledger) -> Run:
    """A run that waits for Begin; the ledger is moved in."""
    return Run(Fresh(), policy.event_capacity, None, Core(session, run, policy, ledger))
