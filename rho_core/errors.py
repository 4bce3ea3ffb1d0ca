"""The typed errors of a run, a session and the runtime (rho.md 1.2)."""

from __future__ import annotations

from enum import StrEnum

from .record import record


class ErrorName(StrEnum):
    """Names of `Error`; the run itself produces only the last five."""

    INVALID_CONFIGURATION = "InvalidConfiguration"
    AUTHENTICATION = "Authentication"
    TOOL = "Tool"
    POLICY_DENIED = "PolicyDenied"
    RUNTIME_SHUTDOWN = "RuntimeShutdown"
    SESSION_BUSY = "SessionBusy"
    PROVIDER = "Provider"
    PERSISTENCE = "Persistence"
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"
    INVALID_HOST_RESPONSE = "InvalidHostResponse"


class ProviderErrorKind(StrEnum):
    """What went wrong at the provider. Says nothing of retryability, which the provider states by itself."""

    AUTHENTICATION = "Authentication"
    RATE_LIMIT = "RateLimit"
    TIMEOUT = "Timeout"
    INVALID_RESPONSE = "InvalidResponse"
    UNAVAILABLE = "Unavailable"
    INTERRUPTED = "Interrupted"
    OTHER = "Other"


class ToolErrorKind(StrEnum):
    """Why a tool call failed."""

    INVALID_ARGUMENTS = "InvalidArguments"
    EXECUTION = "Execution"
    POLICY_DENIED = "PolicyDenied"
    CANCELLED = "Cancelled"


@record
class ProviderError:
    """A failed model request. `retry_after_ms`: the provider's hint, uncapped; None or 0 = none given."""

    error_kind: str
    message: str
    retryable: bool
    retry_after_ms: int | None = None
    diagnostic: str | None = None


@record
class Error:
    """A typed outcome or refusal. `retryable` only ever with Provider; `provider_kind` likewise."""

    name: ErrorName
    message: str
    retryable: bool = False
    provider_kind: str | None = None
    diagnostic: str | None = None


DIAGNOSTIC_BYTES = 16 * 1024


def from_provider(error: ProviderError) -> Error:
    """The run's error for a final provider failure; its text never holds the diagnostic (RHO-TERM-5)."""
    return Error(
        ErrorName.PROVIDER,
        f"provider failed: {error.message}",
        error.retryable,
        error.error_kind,
        error.diagnostic,
    )


def invalid_response(issue: str) -> Error:
    """The malformed budget is spent (RHO-RET-1, D12)."""
    return from_provider(ProviderError(ProviderErrorKind.INVALID_RESPONSE, issue, retryable=False))


CANCELLED = Error(ErrorName.CANCELLED, "the run was cancelled")
INTERRUPTED = Error(ErrorName.INTERRUPTED, "the run was interrupted")
REVISION_EXHAUSTED = Error(ErrorName.PERSISTENCE, "the session's revision is exhausted")
STEP_LIMIT = invalid_response("the model loop exceeded its step limit")
