"""An AG-UI endpoint: one POST a run, answered by a stream of events; a thread is a session.

A run that asks its host something ends as an AG-UI run with the outcome `interrupt`, and waits; a later POST with
`resume` answers it, and streams the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
from ag_ui.core import RunAgentInput
from ag_ui.encoder import EventEncoder
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from rho_adapters.agui.history import history_of, split
from rho_adapters.agui.translate import Events, Translator, answers_of
from rho_adapters.errors import RhoError
from rho_adapters.runtime.rho import Rho
from rho_adapters.runtime.run import Run
from rho_adapters.runtime.session import Session

LEAVE_S = 5.0
"""How long the run of a client that went away may take to commit its cancellation, in seconds."""


@dataclass(slots=True)
class Waiting:
    """A run that waits for answers, and what its translator knows."""

    run: Run
    translator: Translator


class Endpoint:
    """Threads of one runtime. `system`: the prompt of new sessions."""

    def __init__(self, rho: Rho, system: str | None = None) -> None:
        self._rho = rho
        self._system = system
        self._waiting: dict[str, Waiting] = {}

    async def stream(self, given: RunAgentInput) -> AsyncIterator[Any]:
        """The AG-UI events of one POST. A client that goes away cancels the run; its history stays valid."""
        translator = Translator(given.thread_id, given.run_id, given.messages)
        for event in translator.started():
            yield event
        try:
            session = await self._rho.open(given.thread_id, system=self._system)
            run = await self._begin(session, given, translator)
        except (RhoError, ValueError) as refused:
            code = str(refused.name) if isinstance(refused, RhoError) else "InvalidInput"
            for event in translator.failed(str(refused), code):
                yield event
            return
        settled = False
        try:
            async for event in self._follow(session, run, translator):
                yield event
            settled = True
        finally:
            if not settled:
                await self._leave(run)

    async def _begin(self, session: Session, given: RunAgentInput, translator: Translator) -> Run:
        waiting = self._waiting.pop(session.id, None)
        if given.resume:
            if waiting is None:
                raise ValueError(f"thread {session.id!r} has no run that waits for an answer")
            try:
                self._resume(waiting, given.resume, translator)
            except (RhoError, ValueError):
                self._waiting[session.id] = waiting  # it still waits: a better answer may come
                raise
            return waiting.run
        if waiting is not None:
            await self._leave(waiting.run)  # the user went on without answering
        before, text = split(given.messages)
        if text is None:
            raise ValueError("the last message must be the user's, or the run must resume another")
        if not session.busy and session.revision == 0 and before:
            session.replace_history(history_of(before))
        return session.start(text)

    def _resume(self, waiting: Waiting, entries: list[Any], translator: Translator) -> None:
        asks = waiting.translator.asks
        for entry in entries:
            if entry.interrupt_id not in asks:
                raise ValueError(f"no interrupt {entry.interrupt_id!r} is open in this thread")
        for entry in entries:
            if entry.status == "cancelled":
                waiting.run.cancel()
                return
            waiting.run.respond(entry.interrupt_id, answers_of(entry.payload))
            del asks[entry.interrupt_id]
        translator.asks = dict(asks)
        translator.already_shown(waiting.translator)

    async def _follow(self, session: Session, run: Run, translator: Translator) -> AsyncIterator[Any]:
        if self._only_waits(session, translator):
            self._waiting[session.id] = Waiting(run, translator)
            for out in translator.interrupted():
                yield out
            return
        async for event in run:
            for out in translator.translate(event):
                yield out
            if self._only_waits(session, translator):
                self._waiting[session.id] = Waiting(run, translator)
                for out in translator.interrupted():
                    yield out
                return
        try:
            await run.outcome()
        except RhoError as ended:
            if not translator.ended:  # interrupted: no terminal event came (RHO-TERM-6)
                for out in translator.failed(str(ended), str(ended.name)):
                    yield out
        finally:
            await run.aclose()

    def _only_waits(self, session: Session, translator: Translator) -> bool:
        """Does nothing go on but questions, so that an answer alone can move the run?"""
        if not translator.asks:
            return False
        asking = {call_id for call_id, _ in translator.asks.values()}
        known = {f"host:{request_id}" for request_id in translator.asks} | {f"tool:{call_id}" for call_id in asking}
        return set(session.waiting_on) <= known

    async def _leave(self, run: Run) -> None:
        with anyio.move_on_after(LEAVE_S, shield=True):
            run.cancel()
            with suppress(RhoError):  # cancelled, as it was meant
                await run.outcome()
            await run.aclose()


def create_app(make: Callable[[], Rho], *, system: str | None = None, path: str = "/") -> Starlette:
    """A Starlette application that owns the runtime `make` builds: it is opened and closed with it."""
    endpoint: list[Endpoint] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with make() as rho:
            endpoint.append(Endpoint(rho, system))
            yield
            endpoint.clear()

    async def post(request: Request) -> Response:
        try:
            given = RunAgentInput.model_validate_json(await request.body())
        except ValidationError as fault:
            return JSONResponse({"error": "not an AG-UI run input", "detail": fault.errors(include_url=False)}, 422)
        encoder = EventEncoder()
        events = endpoint[0].stream(given)
        return StreamingResponse(_encoded(encoder, events), media_type=encoder.get_content_type())

    return Starlette(routes=[Route(path, post, methods=["POST"])], lifespan=lifespan)


async def _encoded(encoder: EventEncoder, events: AsyncIterator[Any]) -> AsyncIterator[str]:
    try:
        async for event in events:
            yield encoder.encode(event)
    finally:
        aclose = getattr(events, "aclose", None)
        if aclose is not None:
            await aclose()


__all__ = ["Endpoint", "Events", "create_app"]
