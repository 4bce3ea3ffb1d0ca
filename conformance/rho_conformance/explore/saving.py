"""A walk as a scenario file: each input as the step of Scenario format 1 that makes a driver give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.config import ToolDecl
from rho_core.errors import ErrorName
from rho_core.messages import Text, ToolCall, User

from .configuration import Configuration
from .play import Play

Step = dict[str, Any]


class NotExpressible(ValueError):
    """The scenario format has no step for this input, or no setting for this configuration."""


def scenario(play: Play, name: str) -> str:
    """YAML text of one scenario. Raises NotExpressible."""
    steps = _Clock().steps(play)
    body = {
        "id": name,
        "rules": [],
        "profile": "rho",
        "config": _settings(play),
        "steps": steps,
        "expect": _expected(play),
    }
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=110)


# --- the configuration ---------------------------------------------------------------------------------------------


def _tool(call: ToolCall) -> str:
    """A tool of its own for each call: a file sets plans by tool, a walk chooses them by call."""
    return f"{call.name}-{call.id}"


def _settings(play: Play) -> Step:
    config, policy = play.config, play.config.policy
    if policy.step_limit != "complete":
        raise NotExpressible("a run that fails at its step limit has no setting in the format")
    found: Step = {
        "event_capacity": policy.event_capacity,
        "max_steps": policy.max_steps,
        "max_parallel_tools": policy.max_parallel_tools,
        "reader": "held",
        "tools": {_tool(c): _plan(play, c) for c in _calls(config) if _declared(config, c) is not None},
    }
    if policy.steerable or policy.cooperative_provider:
        mode = "cooperative" if policy.cooperative_provider else "external"
        found["provider"] = {"steerable": policy.steerable, "mode": mode}
    if policy.compaction is not None:
        found["compaction"] = {"messages": policy.compaction.messages}
        found["compactor"] = "cooperative" if policy.compaction.cooperative else "external"
    if policy.boundary:
        found["boundary"] = "gated"
    if policy.recorder:
        found["recorder"] = "gated"
    if config.revision:
        found["revision"] = config.revision
    return found


def _calls(config: Configuration) -> list[ToolCall]:
    calls = [b for r in config.menu for b in r.content if isinstance(b, ToolCall)]
    return [*calls, *([config.begin.call] if config.begin.call is not None else [])]


def _declared(config: Configuration, call: ToolCall) -> ToolDecl | None:
    return next((t for t in config.policy.tools if t.name == call.name), None)


def _plan(play: Play, call: ToolCall) -> Step:
    """What the walk has prepared the call with, or the first plan that it may have."""
    declared = _declared(play.config, call)
    found: Step = {"prepare": "gated"}
    if declared is not None and declared.asynchronous:
        found["mode"] = "async"
    taken = [s.input.plan for s in play.steps if isinstance(s.input, inp.Prepared) and s.input.call_id == call.id]
    plan = next(iter(taken), inp.Plan())
    if any(other != plan for other in taken):
        raise NotExpressible(f"call {call.id} was prepared in two ways")
    writes = [a.resource for a in plan.accesses if not a.shared]
    if plan.exclusive:
        found["access"] = "exclusive"
    elif writes:
        found["access"] = {"write": writes}
    if plan.capability is not None:
        found["authorize"] = "gated"
    if plan.complete_within_ms is not None:
        found["on_cancel"] = {"complete": f"{plan.complete_within_ms}ms"}
    return found


# --- the steps ---------------------------------------------------------------------------------------------------


class _Clock:
    """Turns timers into time: a file cannot fire one, it lets time pass."""

    def __init__(self) -> None:
        self._now = 0
        self._due: dict[str, int] = {}
        self._commands = 0

    def steps(self, play: Play) -> list[Step]:
        found = []
        for taken in play.steps:
            found.append(self._step(taken.input))
            for e in taken.effects:
                if isinstance(e, out.StartTimer):
                    self._due[e.timer_id] = self._now + e.milliseconds
                elif isinstance(e, out.CancelTimer):
                    self._due.pop(e.timer_id, None)
        return found

    def _step(self, i: Any) -> Step:
        if isinstance(i, inp.TimerFired):
            return self._advance(i.timer_id)
        if isinstance(i, inp.Retract):
            self._commands += 1
            return {"retract": {"ref": i.steering_id, "as": f"retract-{self._commands}"}}
        make = STEPS.get(type(i))
        if make is None:
            raise NotExpressible(f"the format has no step for {type(i).__name__}")
        return make(i)

    def _advance(self, timer_id: str) -> Step:
        due = self._due.pop(timer_id)
        if any(other <= due for other in self._due.values()):
            raise NotExpressible(f"timer {timer_id} fires and another one is due before it")
        passed, self._now = max(due - self._now, 0), max(due, self._now)
        return {"advance": f"{passed}ms"}


def _begin(i: inp.Begin) -> Step:
    if i.call is not None:
        return {"start_tool": {"call": _call(i.call)}}
    return {"start": "".join(_text(m.content) for m in i.messages if isinstance(m, User))}


def _text(content: tuple[Any, ...]) -> str:
    return "".join(b.text for b in content if isinstance(b, Text))


def _call(call: ToolCall) -> Step:
    return {"id": call.id, "tool": _tool(call)}


def _returned(i: inp.ModelReturned) -> Step:
    calls = [_call(b) for b in i.content if isinstance(b, ToolCall)]
    found: Step = {"text": _text(i.content)} if _text(i.content) else {}
    return {"provider": {"return": {**found, **({"calls": calls} if calls else {})}}}


def _failed(i: inp.ModelFailed) -> Step:
    e = i.error
    found: Step = {"kind": e.error_kind, "retryable": e.retryable, "message": e.message}
    if e.retry_after_ms is not None:
        found["retry_after"] = f"{e.retry_after_ms}ms"
    if e.diagnostic is not None:
        found["diagnostic"] = e.diagnostic
    return {"provider": {"fail": found}}


def _tool_end(i: inp.ToolReturned) -> Step:
    word = "return" if isinstance(i.completion, ev.Success) else "fail"
    return {"tool": {"id": i.call_id, word: i.completion.text}}


def _compactor_failed(i: inp.CompactorFailed) -> Step:
    if i.error.name is ErrorName.INTERRUPTED:
        return {"compactor": {"interrupted": True}}
    return {"compactor": {"fail": {"kind": str(i.error.name.value)}}}


def _provider(name: str, value: Callable[[Any], Any]) -> Callable[[Any], Step]:
    return lambda i: {"provider": {name: value(i)}}


def _of_tool(name: str, value: Callable[[Any], Any]) -> Callable[[Any], Step]:
    return lambda i: {"tool": {"id": i.call_id, name: value(i)}}


STEPS: dict[type, Callable[[Any], Step]] = {
    inp.Begin: _begin,
    inp.Taken: lambda i: {"read": i.n},
    inp.ReaderClosed: lambda i: {"close_reader": {}},
    inp.Cancel: lambda i: {"cancel": {}},
    inp.Drop: lambda i: {"drop": {}},
    inp.Steer: lambda i: {"steer": {"text": _text(i.content), "as": i.steering_id}},
    inp.Respond: lambda i: {"respond": {"ref": i.request_id, "answers": {q: list(a) for q, a in i.answers}}},
    inp.TextDelta: _provider("delta", lambda i: i.text),
    inp.RawReasoning: _provider("reasoning", lambda i: i.text),
    inp.SummaryDelta: _provider("summary", lambda i: i.text),
    inp.CallDelta: _provider(
        "call_delta", lambda i: {"index": i.index, "id": i.id, "name": i.name, "arguments": i.arguments}
    ),
    inp.ContextBlock: _provider("context", lambda i: {"kind": i.context_kind, "data": i.data}),
    inp.UsageReported: _provider("usage", lambda i: {"output_tokens": i.usage.output_tokens}),
    inp.GenerationTokensReported: _provider("generation_tokens", lambda i: getattr(i.tokens, "tokens", "unavailable")),
    inp.WebSearched: _provider("web_search", lambda i: i.detail),
    inp.HostedTool: _provider("hosted", lambda i: {"name": i.name, "detail": i.detail}),
    inp.PhysicalAttemptFailed: _provider("physical_retry", lambda i: {"kind": i.error_kind}),
    inp.ModelReturned: _returned,
    inp.ModelFailed: _failed,
    inp.ModelPanicked: _provider("panic", lambda i: True),
    inp.SteerClaimed: _provider("claim", lambda i: i.steering_id),
    inp.SteerDelivered: _provider("deliver", lambda i: i.steering_id),
    inp.SteerReleased: _provider("release", lambda i: i.steering_id),
    inp.Prepared: _of_tool("prepared", lambda i: True),
    inp.PrepareFailed: _of_tool("prep_fail", lambda i: i.message),
    inp.Authorized: _of_tool("authorize", lambda i: "allow"),
    inp.Denied: _of_tool("authorize", lambda i: "deny"),
    inp.ToolProgress: _of_tool("progress", lambda i: i.progress),
    inp.ToolAsked: _of_tool("ask", lambda i: i.request.id),
    inp.ToolReturned: _tool_end,
    inp.ToolPanicked: _of_tool("panic", lambda i: True),
    inp.CompactorReturned: lambda i: {"compactor": {"return": [_text(m.content) for m in i.messages]}},
    inp.CompactorFailed: _compactor_failed,
    inp.CompactorPanicked: lambda i: {"compactor": {"panic": True}},
    inp.BoundaryReplied: lambda i: {"boundary": "none" if i.input is None else {"input": i.input}},
    inp.BoundaryGone: lambda i: {"boundary": "gone"},
    inp.UsageRecorded: lambda i: {"recorder": "ok"},
}

# --- what must be observed -----------------------------------------------------------------------------------------

JOINED = (ev.AssistantTextDelta, ev.ReasoningDelta, ev.ReasoningSummaryDelta, ev.ToolCallUpdated)


def _expected(play: Play) -> Step:
    """The events by name, in order; when the run is over, its outcome and the revision it leaves."""
    events = play.events()
    closed = any(isinstance(s.input, (inp.ReaderClosed, inp.Drop)) for s in play.steps)
    if closed:
        events = events[: sum(s.input.n for s in play.steps if isinstance(s.input, inp.Taken))]
    names: list[str] = []
    for e in events:
        if not (isinstance(e, JOINED) and names[-1:] == [type(e).__name__]):
            names.append(type(e).__name__)
    found: Step = {"events": names if play.over else [*names, "..."]}
    if play.over:
        end = play.outcome()
        found["revision"] = play.node.run.core.ledger.revision
        if end is not None and not closed:
            found["outcome"] = {"ok": {}} if isinstance(end, ev.RunOutcome) else {"error": end.error.name.value}
    return found
