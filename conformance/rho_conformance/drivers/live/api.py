"""The host's commands, by the runtime's own API: one row for each input that the core's driver would feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rho_conformance.drivers.corework.runs import Run
from rho_core import effects as fx
from rho_core import inputs as i
from rho_core.errors import Error, ErrorName

if TYPE_CHECKING:
    from rho_conformance.drivers.live.port import LivePort

LATER = object()
"""The answer comes by itself."""
GONE = Error(ErrorName.INVALID_HOST_RESPONSE, "there is no such run")


def _start(port: LivePort, _: Run | None, given: i.Start) -> None:
    port.start(given, lambda name: port.handle.start(given.content, run_id=name))


def _start_tool(port: LivePort, _: Run | None, given: i.StartToolCall) -> None:
    port.start(given, lambda name: port.handle.start_with_tool_call(given.call, run_id=name))


def _of_run(port: LivePort, run: Run | None) -> Any:
    handle = None if run is None else port.handles.get(run.name)
    if handle is None or (run is not None and run.lost):
        raise _NoRun(GONE)
    return handle


class _NoRun(Exception):
    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error, self.rule = error, None


def _cancel(port: LivePort, run: Run | None, _: i.Cancel) -> None:
    if run is not None and run.name in port.handles and not run.lost:
        port.handles[run.name].cancel()


def _steer(port: LivePort, run: Run | None, given: i.Steer) -> Any:
    try:
        handle = _of_run(port, run)
    except _NoRun as none:
        port.world.reject(fx.Rejected(given.command_id, none.error, "RHO-STEER-2"))
        return LATER
    handle.steer(given.content, steering_id=given.steering_id)
    return None


def _retract(port: LivePort, run: Run | None, given: i.Retract) -> Any:
    try:
        return _of_run(port, run).retract_steering(given.steering_id)
    except _NoRun:
        return "NotFound"


def _respond(port: LivePort, run: Run | None, given: i.Respond) -> Any:
    try:
        handle = _of_run(port, run)
    except _NoRun as none:
        port.world.reject(fx.Rejected(given.command_id, none.error, "RHO-HOST-5"))
        return LATER
    handle.respond(given.request_id, dict(given.answers))
    return None


def _compact(port: LivePort, _: Run | None, given: i.Compact) -> Any:
    if not port.handle.busy:
        port.active = None  # what it calls is no call of the run before
    port.world.spawn(port.compact, given.command_id)
    return LATER


API: dict[type, Callable[[LivePort, Run | None, Any], Any]] = {
    i.Start: _start,
    i.StartToolCall: _start_tool,
    i.Cancel: _cancel,
    i.Steer: _steer,
    i.Retract: _retract,
    i.Respond: _respond,
    i.Drop: lambda port, run, _: _of_run(port, run).drop(),
    i.ReaderClosed: lambda port, run, _: _of_run(port, run).close_reader(),
    i.Compact: _compact,
    i.AppendMessage: lambda port, _, given: port.handle.append(given.message),
    i.ReplaceHistory: lambda port, _, given: port.handle.replace_history(given.messages),
    i.Reset: lambda port, _, given: port.handle.reset(),
}
