"""What an observation may be called, and which fields each kind has (protocol.md, "Observations")."""

from __future__ import annotations

ALWAYS = frozenset({"session", "run"})
"""The fields that every observation may carry."""

_DELTA = "text attempt"
_PROVIDER_CALL = "call_id name arguments"

EVENTS = {
    "Started": "run_id revision",
    "StepStarted": "step estimated_context_tokens",
    "AssistantTextDelta": _DELTA,
    "ReasoningDelta": _DELTA,
    "ReasoningSummaryDelta": _DELTA,
    "ToolCallUpdated": "index id name arguments_delta attempt",
    "ToolProposed": "call_id call",
    "ToolStarted": "call_id name metadata",
    "ToolUpdated": "call_id progress",
    "ToolDetached": "call_id",
    "ToolFinished": "call_id result kind text",
    "ToolHostInputRequested": "call_id ask request",
    "HostInputRequested": "request",
    "UsageUpdated": "usage attempt",
    "ProviderContextUpdated": "kind attempt",
    "ProviderRequestRetry": "attempt",
    "ProviderActivity": "kind detail",
    "WebSearch": "detail attempt",
    "HostedToolActivity": "name detail attempt",
    "ProviderServiceTierFallback": "requested used attempt",
    "ModelCallCompleted": "profile metrics attempt",
    "ProviderStreamReset": "reason detail attempt",
    "SteeringApplied": "ids",
    "SteeringDelivered": "id",
    "BoundaryInputApplied": "session_id run_id input",
    "CompactionStarted": "trigger message_count",
    "CompactionCompleted": "trigger outcome",
    "ProviderDiagnostic": "detail",
    "Completed": "outcome",
    "Cancelled": "revision",
    "Failed": "message retryability revision",
}

ORCA_EVENTS = {
    "AgentStart": "",
    "AssistantDelta": "text",
    "ToolInputDelta": "text",
    "Assistant": "message",
    "ToolCall": "tool_call_id tool_name input",
    "ToolResult": "tool_call_id tool_name output is_error",
    "Usage": "usage",
    "Result": "message",
    "Error": "message",
    "Overflow": "dropped",
}

NOTIFICATIONS = {
    "SubagentFinished": "worker ok",
    "CompletionsReady": "pending",
    "CompletionsDelivered": "workers",
    "ProcessNotified": "process kind",
    "Lagged": "n",
}

UPCALLS = {
    "ModelCall": "n step attempt messages tools system",
    "ToolPrepare": _PROVIDER_CALL,
    "ToolAuthorize": _PROVIDER_CALL,
    "ToolExecute": _PROVIDER_CALL,
    "HostAnswer": "call_id ask answers",
    "AskRefused": "call_id ask",
    "Compact": "messages trigger",
    "Collect": "kind",
    "CollectAck": "accepted",
    "Record": "step attempt outcome usage",
    "Abandoned": "upcall call_id n how",
    "Taken": "upcall call_id n item",
    "SteerClaim": "n item id granted",
}

COMMANDS = {"Reply": "name value", "NotOpen": "stimulus", "Refused": "stimulus feature"}

# Orca names three events as Rho does, with other fields: a pattern may use either set.
_SHARED = {
    "ReasoningDelta": "text",
    "ToolStarted": "tool_call_id tool_name",
    "ToolFinished": "tool_call_id tool_name is_error",
}

CLOSED = "EventsClosed"
"""The reader saw the end of the stream: an observation, but not an event of the run."""


def _fields() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {CLOSED: ALWAYS}
    for group in (EVENTS, ORCA_EVENTS, NOTIFICATIONS, UPCALLS, COMMANDS, _SHARED):
        for name, text in group.items():
            table[name] = table.get(name, ALWAYS) | frozenset(text.split())
    return table


FIELDS = _fields()
"""Name of an observation -> the fields it may hold."""
