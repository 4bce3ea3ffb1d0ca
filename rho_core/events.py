"""What a run tells its reader (rho.md 1.1). Deltas and resets carry the attempt (design §3.7).

The set is open: a reader ignores kinds it does not know (RHO-BUF-8).
"""

from __future__ import annotations

from typing import Literal

from .asks import HostInputRequest
from .errors import ToolErrorKind
from .messages import History, Identity, ToolCall, Usage
from .record import record, tag


@record
class Started:
    """First event of a run; `revision` is the session's before it (RHO-ORD-1)."""

    run: str
    revision: int
    kind: Literal["started"] = tag("started")


@record
class StepStarted:
    """A model step begins; the estimate is for display (RHO-ORD-2)."""

    step: int
    estimated_context_tokens: int
    kind: Literal["step_started"] = tag("step_started")


@record
class AssistantTextDelta:
    text: str
    attempt: int
    kind: Literal["assistant_text_delta"] = tag("assistant_text_delta")


@record
class ReasoningDelta:
    text: str
    attempt: int
    kind: Literal["reasoning_delta"] = tag("reasoning_delta")


@record
class ReasoningSummaryDelta:
    text: str
    attempt: int
    kind: Literal["reasoning_summary_delta"] = tag("reasoning_summary_delta")


@record
class ToolCallUpdated:
    """A fragment of a call; id and name are repeated once known."""

    index: int
    id: str | None
    name: str | None
    arguments_delta: str
    attempt: int
    kind: Literal["tool_call_updated"] = tag("tool_call_updated")


@record
class ToolProposed:
    call: ToolCall
    kind: Literal["tool_proposed"] = tag("tool_proposed")


@record
class ToolStarted:
    """Dependencies are resolved; authorisation and a slot may still be awaited (RHO-ORD-5)."""

    call_id: str
    name: str
    metadata: str = ""
    kind: Literal["tool_started"] = tag("tool_started")


@record
class ToolUpdated:
    call_id: str
    progress: str
    kind: Literal["tool_updated"] = tag("tool_updated")


@record
class ToolDetached:
    """The call runs on by itself; its ToolFinished may come after later steps (RHO-ORD-7)."""

    call_id: str
    kind: Literal["tool_detached"] = tag("tool_detached")


@record
class Success:
    text: str
    kind: Literal["success"] = tag("success")


@record
class Failure:
    error_kind: ToolErrorKind
    text: str
    kind: Literal["failure"] = tag("failure")


@record
class Unavailable:
    text: str
    kind: Literal["unavailable"] = tag("unavailable")


ToolCompletion = Success | Failure | Unavailable


@record
class ToolFinished:
    """The one end of a call (RHO-ORD-5, RHO-ORD-6)."""

    call_id: str
    completion: ToolCompletion
    kind: Literal["tool_finished"] = tag("tool_finished")


@record
class ToolHostInputRequested:
    call_id: str
    request: HostInputRequest
    kind: Literal["tool_host_input_requested"] = tag("tool_host_input_requested")


@record
class UsageUpdated:
    """Usage of the run so far: successful earlier steps and this attempt. May go down after a reset."""

    usage: Usage
    kind: Literal["usage_updated"] = tag("usage_updated")


@record
class ProviderContextUpdated:
    context_kind: str
    kind: Literal["provider_context_updated"] = tag("provider_context_updated")


@record
class ProviderRequestRetry:
    """A physical retry inside one logical request (RHO-RET-15)."""

    kind: Literal["provider_request_retry"] = tag("provider_request_retry")


@record
class WebSearch:
    detail: str
    kind: Literal["web_search"] = tag("web_search")


@record
class HostedToolActivity:
    name: str
    detail: str
    kind: Literal["hosted_tool_activity"] = tag("hosted_tool_activity")


@record
class ProviderServiceTierFallback:
    requested: str
    used: str
    kind: Literal["provider_service_tier_fallback"] = tag("provider_service_tier_fallback")


@record
class Reported:
    """The provider's count of tokens that match the generation time (RHO-METR-2)."""

    tokens: int
    kind: Literal["reported"] = tag("reported")


@record
class NotReported:
    """The host must not fall back to the aggregate output (RHO-METR-3)."""

    kind: Literal["unavailable"] = tag("unavailable")


GenerationTokens = Reported | NotReported


@record
class Timing:
    """Measured by the adapter, which has the clock. Milliseconds; None = nothing observed."""

    total_latency_ms: int = 0
    time_to_first_token_ms: int | None = None
    generation_time_ms: int | None = None


@record
class Metrics:
    """Of one model call; `output_tokens` is the provider's aggregate (RHO-METR-1)."""

    output_tokens: int | None
    generation_output_tokens: GenerationTokens | None
    timing: Timing


def resolved_generation_tokens(metrics: Metrics) -> int | None:
    """The numerator a host may use for a rate: reported, else the aggregate, else nothing (RHO-METR-3)."""
    match metrics.generation_output_tokens:
        case None:
            return metrics.output_tokens
        case Reported(tokens):
            return tokens
        case NotReported():
            return None


@record
class ModelCallCompleted:
    """Once for each provider return, malformed ones included."""

    profile: Identity
    metrics: Metrics
    attempt: int
    kind: Literal["model_call_completed"] = tag("model_call_completed")


@record
class InvalidResponse:
    kind: Literal["invalid_response"] = tag("invalid_response")


@record
class RetryableFailure:
    """`retry_after_ms`: the provider's hint, uncapped; None unless it gave a nonzero one (D28)."""

    error_kind: str
    retry_after_ms: int | None = None
    kind: Literal["retryable_failure"] = tag("retryable_failure")


ResetReason = InvalidResponse | RetryableFailure


@record
class ProviderStreamReset:
    """Deltas of the numbered attempt are abandoned; another attempt follows (RHO-RET-8)."""

    reason: ResetReason
    detail: str
    attempt: int
    kind: Literal["provider_stream_reset"] = tag("provider_stream_reset")


@record
class SteeringApplied:
    """These steers entered the history, in acceptance order."""

    ids: tuple[str, ...]
    kind: Literal["steering_applied"] = tag("steering_applied")


@record
class SteeringDelivered:
    """The provider acknowledged the steer inside the current turn."""

    id: str
    kind: Literal["steering_delivered"] = tag("steering_delivered")


@record
class BoundaryInputApplied:
    session: str
    run: str
    input: str
    kind: Literal["boundary_input_applied"] = tag("boundary_input_applied")


Trigger = Literal["automatic", "manual"]


@record
class CompactionStarted:
    trigger: Trigger
    message_count: int
    kind: Literal["compaction_started"] = tag("compaction_started")


@record
class CompactionOutcome:
    """What a compaction changed; `committed` is the history an automatic one installed."""

    previous_messages: int
    current_messages: int
    previous_tokens: int
    current_tokens: int
    revision: int
    cost_usd_micros: int | None = None
    committed: History | None = None

    @property
    def removed_tokens(self) -> int:
        """Never negative, though a compactor may have made things longer."""
        return max(0, self.previous_tokens - self.current_tokens)


@record
class CompactionCompleted:
    """After the commit; a cancel never suppresses it (RHO-ORD-11c)."""

    trigger: Trigger
    outcome: CompactionOutcome
    kind: Literal["compaction_completed"] = tag("compaction_completed")


StopReason = Literal["EndTurn", "MaxSteps"]


@record
class RunOutcome:
    """A success. `unapplied_steering`: accepted steers that never entered the history (design §3.7)."""

    text: str
    usage: Usage
    stop_reason: StopReason
    revision: int
    unapplied_steering: tuple[str, ...] = ()


@record
class ProviderDiagnostic:
    detail: str
    kind: Literal["provider_diagnostic"] = tag("provider_diagnostic")


@record
class Completed:
    outcome: RunOutcome
    kind: Literal["completed"] = tag("completed")


@record
class Cancelled:
    revision: int
    kind: Literal["cancelled"] = tag("cancelled")


@record
class Failed:
    message: str
    retryable: bool
    revision: int
    kind: Literal["failed"] = tag("failed")


Delta = AssistantTextDelta | ReasoningDelta | ReasoningSummaryDelta | ToolCallUpdated
Terminal = Completed | Cancelled | Failed
Event = (
    Started
    | StepStarted
    | Delta
    | ToolProposed
    | ToolStarted
    | ToolUpdated
    | ToolDetached
    | ToolFinished
    | ToolHostInputRequested
    | UsageUpdated
    | ProviderContextUpdated
    | ProviderRequestRetry
    | WebSearch
    | HostedToolActivity
    | ProviderServiceTierFallback
    | ModelCallCompleted
    | ProviderStreamReset
    | SteeringApplied
    | SteeringDelivered
    | BoundaryInputApplied
    | CompactionStarted
    | CompactionCompleted
    | ProviderDiagnostic
    | Terminal
)
TERMINAL = (Completed, Cancelled, Failed)
