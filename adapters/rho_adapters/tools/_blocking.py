"""`BlockingToolContext`: a call's context for a function that runs in a worker thread."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import from_thread, get_cancelled_exc_class

from ..tool import Answers, HostInputRequest, ToolCall, ToolCancelled, ToolContext

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class BlockingToolContext:
    """Its methods block the worker thread they are called from and do their work in the event loop.

    Once the call is over (cancelled while the thread went on) each of them raises ToolCancelled, so that a
    function which reports now and then ends soon after; `cancelled` says so without raising.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._over = threading.Event()
        self._scopes: set[anyio.CancelScope] = set()

    @property
    def call(self) -> ToolCall:
        """The call being executed."""
        return self._context.call

    @property
    def detachable(self) -> bool:
        """May the call run on while the model continues?"""
        return self._context.detachable

    @property
    def cancelled(self) -> bool:
        """Is the token set, or the call over? To be looked at now and then: nothing can stop a thread."""
        return self._over.is_set() or self._context.token.cancelled

    def raise_if_cancelled(self) -> None:
        """Raises ToolCancelled when `cancelled`."""
        if self.cancelled:
            raise ToolCancelled("the call was cancelled")

    def cancel(self) -> None:
        """Set the call's token."""
        self._in_loop(self._cancel)

    def wait_cancelled(self, timeout_s: float) -> bool:
        """A sleep that a cancellation ends: True when there was one. Seconds."""
        if self.cancelled:
            return True
        try:
            return self._in_loop(self._wait_cancelled, timeout_s)
        except ToolCancelled:
            return True

    def progress(self, text: str) -> None:
        """Say how far it is; waits while the reader is behind (RHO-BUF-4)."""
        self._in_loop(self._context.progress, text)

    def ask(self, request: HostInputRequest) -> Answers:
        """Put a question to the host and wait for its answer. Raises AskRefused."""
        return self._in_loop(self._context.ask, request)

    def close(self) -> None:
        """The call is over; whatever the thread still says is dropped. Called in the event loop."""
        self._over.set()
        for scope in self._scopes:
            scope.cancel()

    def _in_loop(self, function: Callable[[*Ts], Awaitable[T]], *arguments: *Ts) -> T:
        if self._over.is_set():
            raise ToolCancelled("the call is over")
        try:
            return from_thread.run(self._guarded, function, *arguments)
        except BaseException:
            # A loop that ends puts a cancellation exception of its own into the thread; the function need not know it.
            if self._over.is_set():
                raise ToolCancelled("the call is over") from None
            raise

    async def _guarded(self, function: Callable[[*Ts], Awaitable[T]], *arguments: *Ts) -> T:
        # trio runs what an abandonable thread asks for in a task of its own, which nobody would cancel.
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await function(*arguments)
            except get_cancelled_exc_class():
                self._over.set()
                raise
            finally:
                self._scopes.remove(scope)
        raise ToolCancelled("the call is over")

    async def _cancel(self) -> None:
        self._context.token.cancel()

    async def _wait_cancelled(self, timeout_s: float) -> bool:
        with anyio.move_on_after(timeout_s):
            await self._context.token.wait()
        return self._context.token.cancelled
