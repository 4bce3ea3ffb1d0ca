"""The closed lists of names that scenario files speak of: errors, kinds of errors, states, waits.

Those of Rho are the core's own; a scenario of another profile may also use what that profile has.
"""

from __future__ import annotations

from rho_core.errors import ErrorName, ProviderErrorKind

STATES = ("Idle", "Running", "WaitingForHostInput", "Cancelling", "Completed", "Failed")
ERRORS = tuple(str(name) for name in ErrorName)
PROVIDER_KINDS = tuple(str(kind) for kind in ProviderErrorKind)

ORCA_PROVIDER_KINDS = (
    "Request",
    "OutputLimit",
    "ContentFiltered",
    "IncompleteResponse",
    "MalformedToolArguments",
)
ORCA_ERRORS = (
    "Config",
    "Io",
    "Harness",
    "Session",
    "Memory",
    "Mcp",
    "Skill",
    "Subagent",
    "Process",
    "Workflow",
    "BusySession",
    "SessionClosed",
    "ShutdownTimeout",
    "SessionNotFound",
    "EphemeralSession",
    "InvalidContext",
    "Image",
    "Model",
    "Extension",
    "DeadlineExceeded",
    "StepLimitExceeded",
    "InvalidToolCall",
    "Internal",
    *PROVIDER_KINDS,
    *ORCA_PROVIDER_KINDS,
)

COMPACTOR_KINDS = tuple(dict.fromkeys((*ERRORS, *PROVIDER_KINDS)))
"""A compactor fails with an error of its own, or with one of its provider."""

PLAIN_WAITS = ("model", "timer", "compactor", "collector", "reader", "recorder")
NAMED_WAITS = ("tool:", "host:")
"""What a settled runtime may wait for; a call or a question follows the colon."""

MOST = 2**64 - 1
"""The largest revision, and the largest number of tokens."""
