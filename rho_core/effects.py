"""What the core asks its interpreter to do. Effects of one step are carried out in order.

Replies, aborts and answers are immediate; only `Deliver` stands for the bounded channel (design §3.3).
"""

from __future__ import annotations

from typing import Any, Literal

from .asks import Answers
from .errors import Error
from .events import Event, RunOutcome, Trigger
from .messages import History, ToolCall, Usage
from .record import record, tag


@record
class Deliver:
    """Put the event into the run's channel; there is room."""

    event: Event
    kind: Literal["deliver"] = tag("deliver")


@record
class Reply:
    """The command succeeded; `value` is a string, an int or None."""

    command_id: str
    value: str | int | None = None
    kind: Literal["reply"] = tag("reply")


@record
class Rejected:
    """The command was refused under `rule`; the state is unchanged."""

    command_id: str
    error: Error
    rule: str
    kind: Literal["rejected"] = tag("rejected")


@record
class NotReady:
    """A gated input came while a send is blocked: hold it and offer it again (back-pressure)."""

    input: Any
    kind: Literal["not_ready"] = tag("not_ready")


@record
class CallModel:
    """Send one logical request. `messages`: what the model may be shown; `offers`: staged steers, by id."""

    step: int
    attempt: int
    messages: History
    offers: tuple[str, ...] = ()
    kind: Literal["call_model"] = tag("call_model")


@record
class AbortModel:
    step: int
    attempt: int
    kind: Literal["abort_model"] = tag("abort_model")


@record
class SignalCancel:
    """The run's shared token is cancelled; every clone observes it (RHO-CAN-2)."""

    kind: Literal["signal_cancel"] = tag("signal_cancel")


@record
class OfferSteer:
    """A steer was accepted while a steerable provider streams."""

    step: int
    attempt: int
    steering_id: str
    kind: Literal["offer_steer"] = tag("offer_steer")


@record
class WithdrawSteer:
    """An offered steer was retracted before the provider claimed it."""

    steering_id: str
    kind: Literal["withdraw_steer"] = tag("withdraw_steer")


@record
class ClaimAnswered:
    """The provider may (or may not) have the steer; decided atomically (RHO-STEER-7)."""

    steering_id: str
    granted: bool
    kind: Literal["claim_answered"] = tag("claim_answered")


@record
class StartTimer:
    timer_id: str
    milliseconds: int
    kind: Literal["start_timer"] = tag("start_timer")


@record
class CancelTimer:
    timer_id: str
    kind: Literal["cancel_timer"] = tag("cancel_timer")


@record
class Prepare:
    call: ToolCall
    detachable: bool
    kind: Literal["prepare"] = tag("prepare")


@record
class Authorize:
    call_id: str
    capability: str
    kind: Literal["authorize"] = tag("authorize")


@record
class Execute:
    """Enter the executor of a call, once."""

    call_id: str
    kind: Literal["execute"] = tag("execute")


@record
class AbortTool:
    """Stop whatever runs for this call: preparation, authorisation or executor."""

    call_id: str
    kind: Literal["abort_tool"] = tag("abort_tool")


@record
class CancelJob:
    """Cancel a detached job's own token and let it finish; AbortTool follows if it does not (RHO-CAN-14)."""

    call_id: str
    kind: Literal["cancel_job"] = tag("cancel_job")


@record
class DeliverAnswer:
    """The tool's question is answered, exactly once (RHO-HOST-3)."""

    call_id: str
    request_id: str
    answers: Answers
    kind: Literal["deliver_answer"] = tag("deliver_answer")


@record
class RefuseAsk:
    """The tool may not ask: the id is used up in this batch, or the call is detached (RHO-COORD-3)."""

    call_id: str
    request_id: str
    kind: Literal["refuse_ask"] = tag("refuse_ask")


@record
class CallCompactor:
    messages: History
    trigger: Trigger
    kind: Literal["call_compactor"] = tag("call_compactor")


@record
class AbortCompactor:
    kind: Literal["abort_compactor"] = tag("abort_compactor")


BoundaryKind = Literal["before_provider", "before_completion"]


@record
class AskBoundary:
    boundary: BoundaryKind
    kind: Literal["ask_boundary"] = tag("ask_boundary")


@record
class AckBoundary:
    """Tell the collector whether its input was incorporated."""

    accepted: bool
    kind: Literal["ack_boundary"] = tag("ack_boundary")


RecordOutcome = Literal["Completed", "InvalidResponse", "Cancelled", "Failed"]


@record
class RecordUsage:
    """One physical request, for the ledger (RHO-RET-11). `attempt` counts physical requests of the step.

    Answered by UsageRecorded, ok or not: the run waits for it before it judges the attempt. The records of an
    attempt that a cancel or a lost reader cuts short are written all at once, and nobody waits for them.
    """

    step: int
    attempt: int
    outcome: RecordOutcome
    error_kind: str | None
    usage: Usage
    kind: Literal["record_usage"] = tag("record_usage")


@record
class RunFailed:
    """The run's typed error; `unapplied_steering`: accepted steers that are not in the history (D7)."""

    error: Error
    unapplied_steering: tuple[str, ...] = ()


RunEnd = RunOutcome | RunFailed


@record
class ReportOutcome:
    """The authoritative result (RHO-TERM-2), once a run; None after a drop, which no one awaits."""

    outcome: RunEnd | None
    kind: Literal["report_outcome"] = tag("report_outcome")


@record
class CloseEvents:
    """No event follows: the stream ends, with or without a terminal event."""

    kind: Literal["close_events"] = tag("close_events")


@record
class Admit:
    """Ask the runtime to register an operation of this session."""

    operation: str
    kind: Literal["admit"] = tag("admit")


@record
class Release:
    """The operation is over; the runtime forgets it."""

    operation: str
    kind: Literal["release"] = tag("release")


@record
class Admitted:
    operation: str
    kind: Literal["admitted"] = tag("admitted")


@record
class Refused:
    operation: str
    kind: Literal["refused"] = tag("refused")


@record
class CancelOperation:
    """Shutdown cancels every registered operation (RHO-SHUT-3)."""

    operation: str
    kind: Literal["cancel_operation"] = tag("cancel_operation")


Effect = (
    Deliver
    | Reply
    | Rejected
    | NotReady
    | CallModel
    | AbortModel
    | SignalCancel
    | OfferSteer
    | WithdrawSteer
    | ClaimAnswered
    | StartTimer
    | CancelTimer
    | Prepare
    | Authorize
    | Execute
    | AbortTool
    | CancelJob
    | DeliverAnswer
    | RefuseAsk
    | CallCompactor
    | AbortCompactor
    | AskBoundary
    | AckBoundary
    | RecordUsage
    | ReportOutcome
    | CloseEvents
    | Admit
    | Release
    | Admitted
    | Refused
    | CancelOperation
)
