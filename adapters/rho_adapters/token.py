"""A cancellation token that a run shares with whatever works for it (RHO-CAN-2 to RHO-CAN-4)."""

from __future__ import annotations

from collections.abc import Callable

from anyio import Event


class CancellationToken:
    """One token and all that were handed out are the same object; forgetting one cancels nothing (RHO-CAN-4).

    `request`: what `cancel` asks for. A run's token asks its run, which decides and then sets the token.
    """

    __slots__ = ("_event", "_request")

    def __init__(self, request: Callable[[], None] | None = None) -> None:
        self._event: Event | None = None
        self._request = request

    @property
    def cancelled(self) -> bool:
        """Is it set?"""
        return self._event is not None and self._event.is_set()

    def cancel(self) -> None:
        """Ask for cancellation; idempotent."""
        if self.cancelled:
            return
        if self._request is None:
            self.set()
        else:
            self._request()

    async def wait(self) -> None:
        """Until it is set."""
        if self._event is None:
            self._event = Event()
        await self._event.wait()

    def set(self) -> None:
        """Set it; the runtime's affair."""
        if self._event is None:
            self._event = Event()
        self._event.set()
