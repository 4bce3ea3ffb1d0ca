"""What a run, a session and the runtime are told, and the class of each input (design §3.3).

Time, ids and outcomes of work come in here and nowhere else. Ids of runs, steers and questions are made by
the embedder; a model input names its `(step, attempt)`, so that a late one of an abandoned attempt is ignored.
"""

from __future__ import annotations

from typing import Literal

from .asks import Answers, HostInputRequest
from .config import Compaction
from .errors import Error, ProviderError
from .events import GenerationTokens, Timing, ToolCompletion
from .messages import Block, History, Identity, Message, ToolCall, Usage
from .record import record, tag

# --- commands of the host: answered by Reply or Rejected ------------------------------------------------


@record
class Start:
    """Begin a run named `run` with a user message."""

    command_id: str
    run: str
    content: tuple[Block, ...]
    kind: Literal["start"] = tag("start")


@record
class StartToolCall:
    """Begin a run with a call the host asks for itself, before the first request."""

    command_id: str
    run: str
    call: ToolCall
    kind: Literal["start_tool_call"] = tag("start_tool_call")


@record
class Cancel:
    """Request cooperative cancellation; idempotent. `command_id` None when a token did it (RHO-CAN-3)."""

    command_id: str | None = None
    kind: Literal["cancel"] = tag("cancel")


@record
class Steer:
    """One more user message for the active run; `steering_id` is made by the embedder."""

    command_id: str
    steering_id: str
    content: tuple[Block, ...]
    kind: Literal["steer"] = tag("steer")


@record
class Retract:
    command_id: str
    steering_id: str
    kind: Literal["retract"] = tag("retract")


@record
class Respond:
    """Answer the open question of that id."""

    command_id: str
    request_id: str
    answers: Answers
    kind: Literal["respond"] = tag("respond")


@record
class Drop:
    """The run handle is gone: abort, promise nothing."""

    kind: Literal["drop"] = tag("drop")


@record
class Taken:
    """The reader took `n` events from the channel."""

    n: int = 1
    kind: Literal["taken"] = tag("taken")


@record
class ReaderClosed:
    """No one will take an event any more."""

    kind: Literal["reader_closed"] = tag("reader_closed")


# --- the model --------------------------------------------------------------------------------------------


@record
class TextDelta:
    step: int
    attempt: int
    text: str
    kind: Literal["text_delta"] = tag("text_delta")


@record
class RawReasoning:
    """Shown live, kept nowhere (RHO-CAN-10)."""

    step: int
    attempt: int
    text: str
    kind: Literal["raw_reasoning"] = tag("raw_reasoning")


@record
class SummaryDelta:
    step: int
    attempt: int
    text: str
    kind: Literal["summary_delta"] = tag("summary_delta")


@record
class CallDelta:
    """A fragment of the call in the provider's slot `index`."""

    step: int
    attempt: int
    index: int
    id: str | None
    name: str | None
    arguments: str
    kind: Literal["call_delta"] = tag("call_delta")


@record
class ContextBlock:
    """Opaque provider material; of kind ASYNC_CALL it marks the call whose id is `data` (RHO-ORD-7)."""

    step: int
    attempt: int
    context_kind: str
    data: str = ""
    position: int | None = None
    kind: Literal["context_block"] = tag("context_block")


ASYNC_CALL = "rho.sdk.async_tool_call.v1"


@record
class UsageReported:
    step: int
    attempt: int
    usage: Usage
    kind: Literal["usage_reported"] = tag("usage_reported")


@record
class GenerationTokensReported:
    """Consumed by the runtime, never an event (RHO-METR-5)."""

    step: int
    attempt: int
    tokens: GenerationTokens
    kind: Literal["generation_tokens_reported"] = tag("generation_tokens_reported")


@record
class WebSearched:
    step: int
    attempt: int
    detail: str
    kind: Literal["web_searched"] = tag("web_searched")


@record
class HostedTool:
    step: int
    attempt: int
    name: str
    detail: str
    kind: Literal["hosted_tool"] = tag("hosted_tool")


@record
class TierFallback:
    step: int
    attempt: int
    requested: str
    used: str
    kind: Literal["tier_fallback"] = tag("tier_fallback")


@record
class PhysicalAttemptFailed:
    """One physical request failed and the adapter sends another inside the same logical attempt."""

    step: int
    attempt: int
    error_kind: str
    usage: Usage
    kind: Literal["physical_attempt_failed"] = tag("physical_attempt_failed")


@record
class ModelReturned:
    """The normalised response; deltas only illustrate it (RHO-BUF-10)."""

    step: int
    attempt: int
    content: tuple[Block, ...]
    timing: Timing = Timing()
    kind: Literal["model_returned"] = tag("model_returned")


@record
class ModelFailed:
    step: int
    attempt: int
    error: ProviderError
    kind: Literal["model_failed"] = tag("model_failed")


@record
class ModelPanicked:
    """The worker died inside provider code (RHO-LIM-3)."""

    step: int
    attempt: int
    kind: Literal["model_panicked"] = tag("model_panicked")


@record
class SteerClaimed:
    """A steerable provider wants a staged steer; answered by ClaimAnswered (RHO-STEER-7)."""

    step: int
    attempt: int
    steering_id: str
    kind: Literal["steer_claimed"] = tag("steer_claimed")


@record
class SteerDelivered:
    """The backend acknowledged the steer inside this turn (RHO-STEER-8)."""

    step: int
    attempt: int
    steering_id: str
    kind: Literal["steer_delivered"] = tag("steer_delivered")


@record
class SteerReleased:
    """The provider gives a claimed steer back."""

    step: int
    attempt: int
    steering_id: str
    kind: Literal["steer_released"] = tag("steer_released")


# --- tools ------------------------------------------------------------------------------------------------


@record
class Access:
    """One resource a call touches; `shared` accesses of it may overlap."""

    resource: str
    shared: bool = True


@record
class Plan:
    """What a prepared call needs. `exclusive`: a barrier against every other call of the batch.

    `capability`: to be authorised before it runs. `complete_within_ms`: how long a detached job may go on
    when it is interrupted (None: abort at once).
    """

    exclusive: bool = False
    accesses: tuple[Access, ...] = ()
    capability: str | None = None
    metadata: str = ""
    complete_within_ms: int | None = None


@record
class Prepared:
    call_id: str
    plan: Plan
    kind: Literal["prepared"] = tag("prepared")


@record
class PrepareFailed:
    call_id: str
    message: str
    kind: Literal["prepare_failed"] = tag("prepare_failed")


@record
class Authorized:
    call_id: str
    kind: Literal["authorized"] = tag("authorized")


@record
class Denied:
    call_id: str
    reason: str
    kind: Literal["denied"] = tag("denied")


@record
class ToolProgress:
    call_id: str
    progress: str
    kind: Literal["tool_progress"] = tag("tool_progress")


@record
class ToolAsked:
    call_id: str
    request: HostInputRequest
    kind: Literal["tool_asked"] = tag("tool_asked")


@record
class AskWithdrawn:
    """The requester stopped waiting for its answer (RHO-HOST-5)."""

    call_id: str
    request_id: str
    kind: Literal["ask_withdrawn"] = tag("ask_withdrawn")


@record
class ToolReturned:
    """`completion` is Success or Failure; an executor cannot be Unavailable."""

    call_id: str
    completion: ToolCompletion
    kind: Literal["tool_returned"] = tag("tool_returned")


@record
class ToolPanicked:
    """Of a sync tool: the worker died. Of a detached one: that job fails (D6)."""

    call_id: str
    kind: Literal["tool_panicked"] = tag("tool_panicked")


# --- timer, compactor, collector, recorder ------------------------------------------------------------------


@record
class TimerFired:
    timer_id: str
    kind: Literal["timer_fired"] = tag("timer_fired")


@record
class CompactorReturned:
    messages: History
    usage: Usage = Usage()
    kind: Literal["compactor_returned"] = tag("compactor_returned")


@record
class CompactorFailed:
    """Any error; Cancelled and Interrupted have flows of their own (D11)."""

    error: Error
    kind: Literal["compactor_failed"] = tag("compactor_failed")


@record
class CompactorPanicked:
    kind: Literal["compactor_panicked"] = tag("compactor_panicked")


@record
class BoundaryReplied:
    """The collector's answer; None = nothing to add."""

    input: str | None
    kind: Literal["boundary_replied"] = tag("boundary_replied")


@record
class BoundaryGone:
    kind: Literal["boundary_gone"] = tag("boundary_gone")


@record
class UsageRecorded:
    """The recorder is through with the record it was given; that it failed would change nothing (contract 1.5)."""

    kind: Literal["usage_recorded"] = tag("usage_recorded")


# --- session level --------------------------------------------------------------------------------------------


@record
class Begin:
    """First input of a run: the messages the host adds and, for a host call, that call."""

    messages: tuple[Message, ...]
    call: ToolCall | None = None
    kind: Literal["begin"] = tag("begin")


@record
class Compact:
    """Compact by hand, under the operation id `operation`."""

    command_id: str
    operation: str
    kind: Literal["compact"] = tag("compact")


@record
class AppendMessage:
    command_id: str
    message: Message
    kind: Literal["append_message"] = tag("append_message")


@record
class ReplaceHistory:
    command_id: str
    messages: History
    kind: Literal["replace_history"] = tag("replace_history")


@record
class Reset:
    command_id: str
    kind: Literal["reset"] = tag("reset")


@record
class ReplaceProvider:
    command_id: str
    identity: Identity
    kind: Literal["replace_provider"] = tag("replace_provider")


@record
class SetCompaction:
    command_id: str
    compaction: Compaction | None
    kind: Literal["set_compaction"] = tag("set_compaction")


@record
class SetBoundaryInputs:
    command_id: str
    installed: bool
    kind: Literal["set_boundary_inputs"] = tag("set_boundary_inputs")


@record
class Admitted:
    """The runtime registered the operation."""

    operation: str
    kind: Literal["admitted"] = tag("admitted")


@record
class Refused:
    """The runtime is shut down (RHO-SHUT-6)."""

    operation: str
    kind: Literal["refused"] = tag("refused")


@record
class TasksGone:
    """After a drop: nothing that the run had started is alive any more (RHO-DROP-2)."""

    run: str
    kind: Literal["tasks_gone"] = tag("tasks_gone")


@record
class ForRun:
    """An input meant for one run: when another run is active, or none, it comes too late (design §3.5)."""

    run: str
    input: RunInput
    kind: Literal["for_run"] = tag("for_run")


# --- runtime level --------------------------------------------------------------------------------------------


@record
class Admit:
    operation: str
    kind: Literal["admit"] = tag("admit")


@record
class Released:
    operation: str
    kind: Literal["released"] = tag("released")


@record
class Shutdown:
    command_id: str
    kind: Literal["shutdown"] = tag("shutdown")


ModelInput = (
    TextDelta
    | RawReasoning
    | SummaryDelta
    | CallDelta
    | ContextBlock
    | UsageReported
    | GenerationTokensReported
    | WebSearched
    | HostedTool
    | TierFallback
    | PhysicalAttemptFailed
    | ModelReturned
    | ModelFailed
    | ModelPanicked
    | SteerClaimed
    | SteerDelivered
    | SteerReleased
)
GENERATED = (TextDelta, RawReasoning, SummaryDelta, CallDelta)
"""What a model generates: the first and the last of them are what its times are measured by (RHO-METR rows)."""
ToolInput = (
    Prepared
    | PrepareFailed
    | Authorized
    | Denied
    | ToolProgress
    | ToolAsked
    | AskWithdrawn
    | ToolReturned
    | ToolPanicked
)
RunInput = (
    Begin
    | Cancel
    | Steer
    | Retract
    | Respond
    | Drop
    | Taken
    | ReaderClosed
    | ModelInput
    | ToolInput
    | TimerFired
    | CompactorReturned
    | CompactorFailed
    | CompactorPanicked
    | BoundaryReplied
    | BoundaryGone
    | UsageRecorded
)
SessionCommand = (
    Start
    | StartToolCall
    | Compact
    | AppendMessage
    | ReplaceHistory
    | Reset
    | ReplaceProvider
    | SetCompaction
    | SetBoundaryInputs
)
SessionInput = RunInput | SessionCommand | ForRun | Admitted | Refused | TasksGone
RuntimeInput = Admit | Released | Shutdown

InputClass = Literal["control", "record", "gated"]

CONTROL: tuple[type, ...] = (
    Begin,
    Cancel,
    Steer,
    Retract,
    Respond,
    Drop,
    Taken,
    ReaderClosed,
    # A panic ends the worker at once, whatever it was waiting for; a claim must be decided atomically.
    ModelPanicked,
    CompactorPanicked,
    SteerClaimed,
)
RECORD: tuple[type, ...] = (
    Prepared,
    PrepareFailed,
    Authorized,
    Denied,
    AskWithdrawn,
    ToolReturned,
    ToolPanicked,
    TimerFired,
    CompactorReturned,
    CompactorFailed,
    BoundaryReplied,
    BoundaryGone,
    UsageRecorded,
    SteerReleased,
)
GATED: tuple[type, ...] = (
    TextDelta,
    RawReasoning,
    SummaryDelta,
    CallDelta,
    ContextBlock,
    UsageReported,
    GenerationTokensReported,
    WebSearched,
    HostedTool,
    TierFallback,
    PhysicalAttemptFailed,
    ModelReturned,
    ModelFailed,
    SteerDelivered,
    ToolProgress,
    ToolAsked,
)
INPUT_CLASS: dict[type, InputClass] = {
    **dict.fromkeys(CONTROL, "control"),
    **dict.fromkeys(RECORD, "record"),
    **dict.fromkeys(GATED, "gated"),
}
