"""What each letter of the alphabet means at a moment: the stimuli, or none where nothing fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rho_conformance.driver import JsonMap
from rho_conformance.generate import answers
from rho_conformance.generate.intents import Intent
from rho_conformance.generate.situation import RunInfo, Upcall

if TYPE_CHECKING:
    from rho_conformance.generate.interpret import Interpreter

Stimuli = list[JsonMap]
Handler = Callable[["Interpreter", Intent], Stimuli]


def _nth(found: Sequence[Any], index: int) -> Any:
    return found[index % len(found)] if found else None


# --- upcalls ----------------------------------------------------------------------------------------------------------


def _model(classes: tuple[answers.AnswerClass, ...]) -> Handler:
    def handler(ip: Interpreter, intent: Intent) -> Stimuli:
        upcall = _nth(ip.sit.opened("ModelCall"), intent.a)
        return [] if upcall is None else _answer_model(ip, upcall, _nth(classes, intent.b))

    return handler


def _answer_model(ip: Interpreter, upcall: Upcall, answer: answers.AnswerClass) -> Stimuli:
    if not all(map(ip.allowed.feature, answer.needs)):
        return []
    items = answer.build(ip.sit, upcall) or []
    return [{"provider": {**item, **_to_model(ip, upcall)}} for item in items]


def _to_model(ip: Interpreter, upcall: Upcall) -> JsonMap:
    run = ip.sit.runs.get(upcall.run or "")
    return ip.where(upcall.session) if run is None else ip.to_run(run)


def _flood(ip: Interpreter, intent: Intent) -> Stimuli:
    upcall = _nth(ip.sit.opened("ModelCall"), intent.a)
    if upcall is None:
        return []
    where = _to_model(ip, upcall)
    return [{"provider": {"delta": f"drop {k} ", **where}} for k in range(answers.FLOOD)]


def _model_late(ip: Interpreter, intent: Intent) -> Stimuli:
    # An open call of the same session would get it instead: that is then an ordinary answer, not a late one.
    open_in = {upcall.session for upcall in ip.sit.opened("ModelCall")}
    over = [u for u in ip.sit.over if u.kind == "ModelCall" and u.session not in open_in]
    upcall = _nth(over, intent.a)
    if upcall is None:
        return []
    late = _nth(answers.model_late(ip.sit), intent.b)
    return [{"provider": {**late, **ip.where(upcall.session)}}]


def _tool(upcall: Upcall, item: JsonMap, ip: Interpreter) -> JsonMap:
    return {"tool": {"id": upcall.call_id, **item, **ip.where(upcall.session)}}


def _tool_end(ip: Interpreter, intent: Intent) -> Stimuli:
    upcall = _nth(ip.sit.opened(*answers.TOOL_ENDS), intent.a)
    return [] if upcall is None else [_tool(upcall, _nth(answers.TOOL_ENDS[upcall.kind], intent.b), ip)]


def _tool_item(ip: Interpreter, intent: Intent) -> Stimuli:
    upcall = _nth(ip.sit.opened("ToolExecute"), intent.a)
    if upcall is None:
        return []
    return [_tool(upcall, answers.tool_item(ip.sit, upcall, _nth(answers.TOOL_ITEMS, intent.b)), ip)]


def _tool_late(ip: Interpreter, intent: Intent) -> Stimuli:
    upcall = _nth([u for u in ip.sit.over if u.kind in answers.TOOL_LATE], intent.a)
    return [] if upcall is None else [_tool(upcall, _nth(answers.TOOL_LATE[upcall.kind], intent.b), ip)]


def _environment_late(ip: Interpreter, intent: Intent) -> Stimuli:
    """The compactor, the collector or the recorder answers when nobody asks."""
    kinds = set(LATE) - {upcall.kind for upcall in ip.sit.open}
    upcall = _nth([u for u in ip.sit.over if u.kind in kinds and u.session == ip.sit.main], intent.a)
    return [] if upcall is None else [LATE[upcall.kind]]


LATE: dict[str, JsonMap] = {
    "Compact": {"compactor": {"return": ["too late"]}},
    "Collect": {"boundary": {"input": "too late"}},
    "Record": {"recorder": "ok"},
}


def _recorder(ip: Interpreter, intent: Intent) -> Stimuli:
    """A bare answer has no address: only the first session can be given one."""
    found = [u for u in ip.sit.opened("Record") if u.session == ip.sit.main]
    return [{"recorder": ("ok", "fail")[intent.b % 2]}] if found else []


def _compactor(ip: Interpreter, intent: Intent) -> Stimuli:
    upcall = _nth(ip.sit.opened("Compact"), intent.a)
    return (
        [] if upcall is None else [{"compactor": {**_nth(answers.COMPACTIONS, intent.b), **ip.where(upcall.session)}}]
    )


def _boundary(ip: Interpreter, intent: Intent) -> Stimuli:
    upcall = _nth(ip.sit.opened("Collect"), intent.a)
    if upcall is None:
        return []
    answer = _nth(answers.BOUNDARIES, intent.b)
    # A bare answer has no address, so another session than the first can only be given an input.
    if answer == "input" or upcall.session != ip.sit.main:
        said = f"boundary {ip.sit.number('boundary')}"
        return [{"boundary": {"input": said, **ip.where(upcall.session)}}]
    return [{"boundary": answer}]


# --- the host in a run ------------------------------------------------------------------------------------------------


Make = Callable[["Interpreter", RunInfo, Intent], "JsonMap | None"]


def _live(ip: Interpreter) -> list[RunInfo]:
    return ip.sit.unfinished()


def _any(ip: Interpreter) -> list[RunInfo]:
    return [run for run in ip.sit.runs.values() if run.accepted]


def _live_or_last(ip: Interpreter) -> list[RunInfo]:
    """Unfinished runs; when there is none the last one, so that a stale handle is used as well."""
    return _live(ip) or _any(ip)[-1:]


def _run(make: Make, runs: Callable[[Interpreter], list[RunInfo]] = _live) -> Handler:
    """A command to one of these runs."""

    def handler(ip: Interpreter, intent: Intent) -> Stimuli:
        run = _nth(runs(ip), intent.a)
        made = None if run is None else make(ip, run, intent)
        return [] if made is None else [made]

    return handler


def _plain(name: str) -> Make:
    return lambda ip, run, intent: {name: ip.to_run(run)}


def _steer(ip: Interpreter, run: RunInfo, intent: Intent) -> JsonMap:
    number = ip.sit.number("steer")
    return {"steer": {"text": f"steer {number}", "as": f"st{number}", **ip.to_run(run)}}


def _retract(ip: Interpreter, run: RunInfo, intent: Intent) -> JsonMap | None:
    ref = _nth(ip.sit.steers, -1 - intent.b)
    return None if ref is None else {"retract": {"ref": ref, **ip.to_run(run)}}


def _respond(ip: Interpreter, intent: Intent) -> Stimuli:
    open_now = [wait.removeprefix("host:") for wait in ip.sit.waiting if wait.startswith("host:")]
    # An odd class also answers what is no longer asked, which must be refused (RHO-HOST-4).
    asked = open_now or [ask for ask, _ in ip.sit.asks if intent.b % 2]
    ref, runs = _nth(asked, intent.a), _live_or_last(ip)
    answer = _nth(answers.ANSWERS, intent.b)
    return [] if ref is None or not runs else [{"respond": {"ref": ref, **answer, **ip.to_run(runs[0])}}]


# --- the host between runs --------------------------------------------------------------------------------------------


def _start(*, busy: bool) -> Handler:
    def handler(ip: Interpreter, intent: Intent) -> Stimuli:
        session = _nth([s for s in ip.sit.sessions if bool(ip.sit.busy.get(s)) is busy], intent.a)
        if session is None:
            return []
        text = f"prompt {ip.sit.number('prompt')}"
        address = ip.where(session)
        return [{"start": {"text": text, **address} if address else text}]

    return handler


def _start_tool(ip: Interpreter, intent: Intent) -> Stimuli:
    session = _nth([s for s in ip.sit.sessions if not ip.sit.busy.get(s)], intent.a)
    tool = _nth([*ip.sit.tools, answers.UNKNOWN_TOOL], intent.b)
    if session is None:
        return []
    return [{"start_tool": {"call": answers.a_call(ip.sit, tool), **ip.where(session)}}]


def _choice(*choices: JsonMap) -> Handler:
    return lambda ip, intent: [_nth(choices, intent.b)]


def _append(ip: Interpreter, intent: Intent) -> Stimuli:
    session = _nth(ip.sit.sessions, intent.a)
    message = {"user": f"appended {ip.sit.number('append')}"}
    return [{"append": {"message": message, **ip.where(session)}}]


def _advance(ip: Interpreter, intent: Intent) -> Stimuli:
    due = ip.sit.next_due()
    fixed = {3: 1_000, 4: 61_000}.get(intent.b % 5)
    if fixed is None and due is None:
        return []
    left = 0 if due is None else due - ip.sit.now_ms
    by = fixed or max(1, left + (0, -10, 10)[intent.b % 5])
    return [{"advance": f"{by}ms"}]


HANDLERS: dict[str, Handler] = {
    "model_end": _model(answers.MODEL_ENDS),
    "model_item": _model(answers.MODEL_ITEMS),
    "flood": _flood,
    "model_late": _model_late,
    "tool_end": _tool_end,
    "tool_item": _tool_item,
    "tool_late": _tool_late,
    "environment_late": _environment_late,
    "compactor": _compactor,
    "boundary": _boundary,
    "recorder": _recorder,
    "steer": _run(_steer, _live_or_last),
    "retract": _run(_retract, _live_or_last),
    "respond": _respond,
    "cancel": _run(_plain("cancel")),
    "cancel_stale": _run(_plain("cancel"), _any),
    "drop": _run(_plain("drop")),
    "outcome": _run(_plain("outcome"), _any),
    "shutdown": _choice({"shutdown": {}}),
    "start": _start(busy=False),
    "start_busy": _start(busy=True),
    "start_tool": _start_tool,
    "snapshot": _choice({"snapshot": {}}),
    "append": _append,
    "compact": _choice({"compact": {}}),
    "rewrite": _choice({"reset": {}}, {"replace_history": {"messages": [{"user": "another past"}]}}),
    "store": _choice({"save": {}}, {"restore": {}}, {"crash": {}}, {"save": {"fail": True}}),
    "handles": _choice({"query": "state"}, {"drop_session": {}}, {"drop_runtime": {}}, {"query": "pending"}),
    "read": lambda ip, intent: [{"read": 1 + intent.b % 3}] if ip.sit.runs else [],
    "read_all": _choice({"read": "all"}),
    "hold": _choice({"hold_reader": {}}),
    "close_reader": _run(_plain("close_reader")),
    "advance": _advance,
}
"""The meaning of every letter but `together`, which only joins the next ones."""
