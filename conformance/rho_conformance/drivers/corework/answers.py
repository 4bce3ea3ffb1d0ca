"""Stimuli that answer an upcall, and whether that upcall is open (scenario format §3, "Addressing")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_conformance.drivers.corework import decode, items
from rho_conformance.drivers.corework.interpret import TOOL_PHASES, recorded
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.upcalls import Upcall
from rho_conformance.errors import DriverError
from rho_core import inputs as i


def not_open(port: SessionPort, stimulus: str, **which: Any) -> None:
    """The upcall never opened."""
    run = port.active
    port.see("NotOpen", {"stimulus": stimulus, **which}, run)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def provider(port: SessionPort, value: Any) -> None:
    """To the open model call of the session."""
    upcall = port.find("ModelCall")
    for one in _each(value):
        given = items.provider(one)
        if upcall is None:
            not_open(port, "provider")
        else:
            port.give(upcall, given)


def tool(port: SessionPort, value: Any) -> None:
    """To the preparation, the authorisation or the executor of the call, as the item says."""
    for one in _each(value):
        fields = decode.fields(one, "tool")
        call_id = decode.text(decode.need(fields, "id", "tool"), "tool.id")
        item = items.plain(fields, "tool")
        if item[0] not in items.TOOL and item[0] not in items.TOKEN_ITEMS:
            raise DriverError(f"tool: there is no item {item[0]!r}")
        upcall = _phase(port, item[0], call_id)
        if upcall is None:
            not_open(port, "tool", call_id=call_id)
        else:
            port.give(upcall, [item])


def _phase(port: SessionPort, kind: str, call_id: str) -> Upcall | None:
    if kind not in items.ANY_PHASE:
        return port.find(items.PHASES.get(kind, "ToolExecute"), call_id)
    found = [u for k in reversed(TOOL_PHASES) if (u := port.find(k, call_id)) is not None]
    return next((u for u in found if u.open), found[0] if found else None)


def compactor(port: SessionPort, value: Any) -> None:
    """To the compactor, automatic or by hand."""
    upcall = port.find("Compact")
    item = items.plain(value, "compactor")
    if item[0] not in items.COMPACTOR and item[0] not in items.TOKEN_ITEMS:
        raise DriverError(f"compactor: there is no item {item[0]!r}")
    if upcall is None:
        not_open(port, "compactor")
    else:
        port.give(upcall, [item])


def boundary(port: SessionPort, value: Any) -> None:
    """`none`, `gone` or `{input: text}`, to the collector."""
    upcall = port.find("Collect")
    answer: i.RunInput
    if value == "none":
        answer = i.BoundaryReplied(None)
    elif value == "gone":
        answer = i.BoundaryGone()
    elif isinstance(value, dict):
        answer = i.BoundaryReplied(decode.text(decode.need(value, "input", "boundary"), "boundary.input"))
    else:
        raise DriverError(f"boundary: expected none, gone or {{input: text}}, got {value!r}")
    if upcall is None:
        not_open(port, "boundary")
        return
    if upcall.incarnation == port.incarnation:
        upcall.finish()
        port.feed(port.addressed(upcall.run, answer))


def recorder(port: SessionPort, value: Any) -> None:
    """`ok` or `fail`, to the record that is out: the run goes on all the same."""
    if value not in ("ok", "fail"):
        raise DriverError(f"recorder: expected ok or fail, got {value!r}")
    upcall = port.find("Record")
    if upcall is None:
        not_open(port, "recorder")
    elif upcall.open:
        upcall.finish()
        port.feed(recorded(upcall))


Answer = Callable[[SessionPort, Any], None]
ANSWERS: dict[str, Answer] = {
    "provider": provider,
    "tool": tool,
    "compactor": compactor,
    "boundary": boundary,
    "recorder": recorder,
}
