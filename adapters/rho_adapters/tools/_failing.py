"""What becomes of an exception that a tool's code raises."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..tool import PrepareFailure, ToolCancelled, ToolFailure

_log = logging.getLogger("rho_adapters.tools")
_MESSAGE_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Failing:
    """`panics`: an unexpected exception is a panic and interrupts the run (D30). Otherwise it is a failed call.

    Its text names the class alone. A message goes to the model, the history and every snapshot, and nobody can
    tell whether it holds a password or a connection string; `messages` shows its first line all the same.
    Whoever has something to tell the model raises ToolFailure. The log gets everything.
    """

    panics: bool = False
    messages: bool = False

    @contextmanager
    def guard(self, name: str, kind: type[PrepareFailure] | type[ToolFailure]) -> Iterator[None]:
        """Turns what the body raises into `kind`; the tool's own words stay as they are."""
        try:
            yield
        except Exception as error:
            cause = _alone(error)
            if isinstance(cause, ToolCancelled):
                raise cause from error.__cause__
            if isinstance(cause, (PrepareFailure, ToolFailure)):
                raise kind(str(cause)) from error
            if self.panics:
                raise
            _log.warning("tool %s raised %s", name, type(cause).__name__, exc_info=error)
            raise kind(self.text(name, cause)) from error

    def text(self, name: str, error: Exception) -> str:
        """What the model is told: never a traceback."""
        text = f"tool {name!r} raised {type(error).__name__}"
        line = next(iter(str(error).splitlines()), "")[:_MESSAGE_CHARACTERS] if self.messages else ""
        return f"{text}: {line}" if line else text


def _alone(error: Exception) -> Exception:
    """A task group wraps the one thing that went wrong; unwrap it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
