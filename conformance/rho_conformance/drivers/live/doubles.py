"""The provider and the tools of the environment, as the hosted runtime calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio

from rho_conformance.drivers.corework import items
from rho_conformance.drivers.corework.settings import ToolHabit
from rho_conformance.drivers.corework.upcalls import Item, ModelUpcall, ToolUpcall, Upcall
from rho_core import inputs as i
from rho_core.messages import ToolCall
from rho_core.normal import encode

if TYPE_CHECKING:
    from rho_conformance.drivers.live.port import LivePort
    from rho_conformance.drivers.live.world import LiveWorld


class Panic(Exception):
    """What a double raises when the scenario says that it panics."""


class Provider:
    """The model: one request plays the items that the scenario gives it."""

    def __init__(self, world: LiveWorld) -> None:
        policy = world.settings.policy
        self._world = world
        self.identity = policy.identity
        self.cooperative = policy.cooperative_provider
        self.steerable = policy.steerable

    async def stream(self, request: Any) -> AsyncIterator[i.ModelInput]:
        """Items become inputs when they are handed over; `Taken` is seen when the core took them."""
        port = self._world.port_of(request.session_id)
        port.requests += 1
        upcall = ModelUpcall("ModelCall", port.run_now(), port.incarnation)
        upcall.n, upcall.step, upcall.attempt = port.requests, request.step, request.attempt
        upcall.started_ms = self._world.now_ms
        shown = {
            "step": request.step,
            "attempt": request.attempt,
            "messages": encode.messages(request.messages),
            "tools": [spec.name for spec in request.tools],
        }
        port.open_live(upcall, shown, request.token)
        try:
            while upcall.open:
                item = await port.next_item(upcall)
                given = items.model_input(upcall, item, self._world.around)
                if item[0] == "claim":
                    name = self._world.names.steer(given.steering_id)  # type: ignore[union-attr]
                    granted = request.steering.claim(given.steering_id)  # type: ignore[union-attr]
                    if granted:
                        upcall.granted.add(name)
                    port.steer_seen(upcall, "claim", name, granted)
                elif item[0] == "release":
                    request.steering.release(given.steering_id)  # type: ignore[union-attr]
                elif item[0] == "panic":
                    raise Panic("provider")
                else:
                    yield given
        finally:
            port.left(upcall)


class Tool:
    """A tool: preparation, authorisation and execution play the items of the scenario."""

    def __init__(self, world: LiveWorld, habit: ToolHabit, spec: Any) -> None:
        self._world, self._habit, self.spec = world, habit, spec

    async def prepare(self, call: ToolCall) -> i.Plan:
        """At once, or when the scenario says so."""
        port = self._world.port_of_call("prepare", call.id)
        upcall = _tool(port, "ToolPrepare", call, port.detachable.get(call.id, False))
        if not self._habit.gated_prepare:
            upcall.finish()
            return self._habit.plan
        try:
            item = await port.next_item(upcall)
        finally:
            port.left(upcall)
        if item[0] == "prepared":
            return self._habit.plan
        if item[0] == "prep_fail":
            raise self._world.hosting.prepare_failure(item[1])
        raise Panic("preparation")

    async def execute(self, context: Any) -> str:
        """Until an item ends it; questions are asked beside it."""
        port = self._world.port_of_call("execute", context.call.id)
        upcall = _tool(port, "ToolExecute", context.call, context.detachable, context.token)
        last: Item | None = None
        try:
            async with anyio.create_task_group() as group:
                last = await self._serve(port, upcall, context, group)
                group.cancel_scope.cancel()
        finally:
            port.left(upcall)
        kinds = self._world.hosting
        if last is None or last[0] == "panic":
            raise Panic("tool")
        if last[0] == "fail":
            raise kinds.tool_failure(last[1])
        if last[0] == "cancelled":
            raise kinds.tool_cancelled
        return str(last[1])

    async def _serve(self, port: LivePort, upcall: Upcall, context: Any, group: Any) -> Item:
        asking: dict[str, anyio.CancelScope] = {}
        while True:
            item = await port.next_item(upcall)
            if upcall.ends_with(item[0]):
                return item
            if item[0] == "progress":
                await context.progress(item[1])
            elif item[0] == "ask":
                asking[item[1]] = anyio.CancelScope()
                accepted = port.expect_ask(context.call.id)
                group.start_soon(self._ask, port, context, item[1], asking[item[1]])
                await accepted.wait()
            elif item[0] == "withdraw" and item[1] in asking:
                asking[item[1]].cancel()

    async def _ask(self, port: LivePort, context: Any, name: str, scope: anyio.CancelScope) -> None:
        from rho_conformance.drivers.corework import decode

        request = decode.request(self._world.names.ask_id(name), name)
        shown = {"call_id": context.call.id, "ask": name}
        with scope:
            try:
                answers = await context.ask(request)
            except self._world.hosting.ask_refused:
                port.see("AskRefused", shown, port.run_now())
                return
            port.see("HostAnswer", {**shown, "answers": encode.answers(answers)}, port.run_now())


class Authorizer:
    """Allows or denies when the scenario says so."""

    def __init__(self, world: LiveWorld) -> None:
        self._world = world

    async def authorize(self, call: ToolCall, capability: str) -> str | None:
        port = self._world.port_of_call("authorize", call.id)
        upcall = _tool(port, "ToolAuthorize", call, port.detachable.get(call.id, False))
        try:
            item = await port.next_item(upcall)
        finally:
            port.left(upcall)
        if item[0] == "panic":
            raise Panic("authorisation")
        return None if item[1] == "allow" else items.DENIAL


def _tool(port: LivePort, kind: str, call: ToolCall, detachable: bool, token: Any = None) -> ToolUpcall:
    upcall = ToolUpcall(kind, port.run_now(), port.incarnation, call.id)
    upcall.name, upcall.arguments, upcall.detachable = call.name, call.arguments, detachable
    shown = {"name": call.name, "arguments": encode.arguments(call.arguments)}
    port.open_live(upcall, shown, token)
    return upcall
