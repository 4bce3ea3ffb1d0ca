"""The two faults that are not verdicts on a rule: bad input by the user, and a driver off the protocol."""

from __future__ import annotations


class UsageError(Exception):
    """The command line, a target name or a scenario file is wrong; exit status 4 (design §7)."""


class DriverError(Exception):
    """A driver raised, or its answer is not what `spec/protocol.md` fixes; the verdict is `error`."""
