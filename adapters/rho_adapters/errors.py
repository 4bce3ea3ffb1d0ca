"""What the API raises: the core's typed errors as exceptions, each with the rule that made it."""

from __future__ import annotations

from rho_core.errors import Error, ErrorName


class RhoError(Exception):
    """`error`: the typed error of the core. `rule`: the rule it was refused under, where one is known."""

    def __init__(self, error: Error, rule: str | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.rule = rule

    @property
    def name(self) -> ErrorName:
        """The error's name in the contract."""
        return self.error.name

    def __str__(self) -> str:
        suffix = "" if self.rule is None else f" ({self.rule})"
        return f"{self.error.name}: {self.error.message}{suffix}"


class CommandRejected(RhoError):
    """The session or run refused a command; nothing changed."""


class SessionBusy(CommandRejected):
    """The session has an unfinished operation (RHO-DROP-2)."""


class RuntimeShutdown(CommandRejected):
    """The runtime takes no new work (RHO-SHUT-6)."""


class InvalidConfiguration(RhoError):
    """A value that no runtime takes, such as a capacity of zero (RHO-BUF-2)."""


class RunFailed(RhoError):
    """The outcome of a run that did not complete. `unapplied_steering`: accepted steers not in the history (D7)."""

    def __init__(self, error: Error, unapplied_steering: tuple[str, ...] = ()) -> None:
        super().__init__(error)
        self.unapplied_steering = unapplied_steering


class RunCancelled(RunFailed):
    """The run was cancelled; what had been finished is in the history (RHO-CAN-8)."""


class RunInterrupted(RunFailed):
    """The run lost its reader or its worker; nothing of it is in the history (RHO-BUF-7, RHO-LIM-3)."""


class RunDropped(RhoError):
    """The handle was given up before the run had an outcome: none will come (RHO-DROP-1)."""


_REFUSED: dict[ErrorName, type[CommandRejected]] = {
    ErrorName.SESSION_BUSY: SessionBusy,
    ErrorName.RUNTIME_SHUTDOWN: RuntimeShutdown,
}
_ENDED: dict[ErrorName, type[RunFailed]] = {
    ErrorName.CANCELLED: RunCancelled,
    ErrorName.INTERRUPTED: RunInterrupted,
}


def rejected(error: Error, rule: str | None = None) -> CommandRejected:
    """The exception for a refused command."""
    return _REFUSED.get(error.name, CommandRejected)(error, rule)


def ended(error: Error, unapplied_steering: tuple[str, ...] = ()) -> RunFailed:
    """The exception for a run that did not complete."""
    return _ENDED.get(error.name, RunFailed)(error, unapplied_steering)
