"""Puts a conversation together: model, tools, store, recording, screen; and takes it apart again."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import anyio

from rho_adapters.chat.choose import CannotStart, Wanted, open_provider, open_store, open_tools
from rho_adapters.chat.plain import PlainScreen
from rho_adapters.chat.screen import Screen
from rho_adapters.chat.talk import Talk
from rho_adapters.errors import RhoError
from rho_adapters.host import Authorizer
from rho_adapters.recording import Recording
from rho_adapters.runtime.config import RhoConfig
from rho_adapters.runtime.rho import Rho
from rho_adapters.runtime.session import Session
from rho_adapters.tools.policy import AskHost


def run(wanted: Wanted) -> int:
    """Hold the conversation; the exit status. Raises CannotStart."""
    return anyio.run(_run, wanted)


async def _run(wanted: Wanted) -> int:
    async with AsyncExitStack() as stack:
        voice = _Voice()
        provider = await open_provider(wanted, stack, voice)
        tools = await open_tools(wanted, stack)
        store = await open_store(wanted, stack)
        recording = _recording(wanted, stack)
        screen = await _screen(stack)
        talk = Talk(screen, provider.identity.model)
        approval: Authorizer = AskHost(talk.decide)
        rho = Rho(
            provider if recording is None else recording.provider(provider),
            tools if recording is None else recording.tools(tools),
            RhoConfig(event_capacity=wanted.event_capacity),
            authorizer=approval if recording is None else recording.authorizer(approval),
            store=store,
            checkpoint=store is not None,
            journal=None if recording is None else recording.journal,
        )
        with voice.through(talk), _logged(talk.note):
            async with rho:
                session = await _open(rho, wanted)
                if recording is None:
                    return await talk.hold(session)
                with recording:
                    return await talk.hold(recording.session(session))


def _recording(wanted: Wanted, stack: AsyncExitStack) -> Recording | None:
    if wanted.record is None:
        return None
    try:
        return stack.enter_context(Recording(wanted.record, name="rho-core chat"))
    except OSError as fault:
        raise CannotStart(f"--record {wanted.record}: {fault.strerror}") from fault


async def _open(rho: Rho, wanted: Wanted) -> Session:
    try:
        return await rho.open(wanted.session, system=wanted.system)
    except (RhoError, ValueError) as fault:
        raise CannotStart(f"session {wanted.session!r} cannot be opened: {fault}") from fault


async def _screen(stack: AsyncExitStack) -> Screen:
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from rho_adapters.chat.terminal import TerminalScreen

        return await stack.enter_async_context(TerminalScreen())
    return PlainScreen()


class _Voice:
    """What a provider tells of its start: on standard error, and as notes while there is a conversation."""

    def __init__(self) -> None:
        self._talk: Talk | None = None

    def __call__(self, text: str) -> None:
        if self._talk is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._talk.note(text)

    @contextmanager
    def through(self, talk: Talk) -> Iterator[None]:
        """Speak through the conversation."""
        self._talk = talk
        try:
            yield
        finally:
            self._talk = None


class _Notes(logging.Handler):
    """Log records as notes: written to standard error they would go across the screen."""

    def __init__(self, note: Callable[[str, bool], None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[1] if record.exc_info else None
        text = record.getMessage()
        self._note(text if fault is None else f"{text}: {fault}", True)


@contextmanager
def _logged(note: Callable[[str, bool], None]) -> Iterator[None]:
    handler = _Notes(note)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
