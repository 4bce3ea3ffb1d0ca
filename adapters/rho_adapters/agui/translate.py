"""Run events -> AG-UI events, in the order that its official client checks.

A reset has no event of its own there: the abandoned message is ended, and a MESSAGES_SNAPSHOT without it follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ag_ui import core as ag

from rho_core import events as ev
from rho_core.asks import HostInputRequest, Question
from rho_core.messages import NO_USAGE, Usage

Events = list[Any]
"""AG-UI events; the package's own union is generated and has no common typed base."""


@dataclass(slots=True)
class _Fragment:
    """A call that is being streamed."""

    id: str | None = None
    name: str | None = None
    arguments: str = ""
    begun: bool = False


class Translator:
    """One AG-UI run. `kept`: the messages that a snapshot after a reset would hold."""

    def __init__(self, thread_id: str, run_id: str, messages: Iterable[Any] = ()) -> None:
        self.thread_id, self.run_id = thread_id, run_id
        self.kept: list[Any] = list(messages)
        self.asks: dict[str, tuple[str, HostInputRequest]] = {}
        self._attempt: list[Any] = []
        self._text: str | None = None
        self._said = ""
        self._reasoning: str | None = None
        self._fragments: dict[int, _Fragment] = {}
        self._shown: set[str] = set()
        self._step: str | None = None
        self._serial = 0
        self._usage = NO_USAGE
        self.ended = False

    def already_shown(self, before: Translator) -> None:
        """This run resumes another: the calls that one showed are not shown again."""
        self._shown |= before._shown

    def started(self) -> Events:
        """The first event of every AG-UI run."""
        return [ag.RunStartedEvent(thread_id=self.thread_id, run_id=self.run_id)]

    def translate(self, event: ev.Event) -> Events:
        """What this event is there; nothing for those that have no meaning outside."""
        row = _ROWS.get(type(event))
        return [] if row is None else row(self, event)

    def interrupted(self) -> Events:
        """The run waits for its host: it ends here, and a later one resumes it."""
        interrupts = [_interrupt(call_id, request) for call_id, request in self.asks.values()]
        return [*self._end_step(), self._finished(ag.RunFinishedInterruptOutcome(interrupts=interrupts))]

    def failed(self, message: str, code: str | None = None) -> Events:
        """The run could not begin or go on."""
        return [*self._close_all(), *self._end_step(), ag.RunErrorEvent(message=message, code=code)]

    # -- text --------------------------------------------------------------------------------------------------

    def _id(self, kind: str) -> str:
        self._serial += 1
        return f"{self.run_id}-{kind}{self._serial}"

    def _delta(self, e: ev.AssistantTextDelta) -> Events:
        out = self._end_reasoning()
        if self._text is None:
            self._text, self._said = self._id("m"), ""
            out.append(ag.TextMessageStartEvent(message_id=self._text, role="assistant"))
        if e.text:
            self._said += e.text
            out.append(ag.TextMessageContentEvent(message_id=self._text, delta=e.text))
        return out

    def _reason(self, e: ev.ReasoningDelta | ev.ReasoningSummaryDelta) -> Events:
        out: Events = []
        if self._reasoning is None:
            self._reasoning = self._id("r")
            out.append(ag.ReasoningStartEvent(message_id=self._reasoning))
            out.append(ag.ReasoningMessageStartEvent(message_id=self._reasoning, role="reasoning"))
        if e.text:
            out.append(ag.ReasoningMessageContentEvent(message_id=self._reasoning, delta=e.text))
        return out

    def _end_reasoning(self) -> Events:
        reasoning, self._reasoning = self._reasoning, None
        if reasoning is None:
            return []
        return [ag.ReasoningMessageEndEvent(message_id=reasoning), ag.ReasoningEndEvent(message_id=reasoning)]

    def _end_text(self) -> Events:
        message, self._text = self._text, None
        if message is None:
            return []
        self._attempt.append(ag.AssistantMessage(id=message, role="assistant", content=self._said))
        return [ag.TextMessageEndEvent(message_id=message)]

    # -- calls -------------------------------------------------------------------------------------------------

    def _fragment(self, e: ev.ToolCallUpdated) -> Events:
        at = self._fragments.setdefault(e.index, _Fragment())
        at.id, at.name = e.id or at.id, e.name or at.name
        at.arguments += e.arguments_delta
        if at.id is None or at.name is None:
            return []  # nothing can be said of a call without a name; its text is kept
        if at.begun:
            return [ag.ToolCallArgsEvent(tool_call_id=at.id, delta=e.arguments_delta)] if e.arguments_delta else []
        at.begun = True
        return self._begin_call(at.id, at.name, at.arguments)

    def _begin_call(self, call_id: str, name: str, arguments: str) -> Events:
        out = [*self._end_reasoning(), ag.ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name)]
        self._shown.add(call_id)
        if arguments:
            out.append(ag.ToolCallArgsEvent(tool_call_id=call_id, delta=arguments))
        return out

    def _end_calls(self) -> Events:
        fragments, self._fragments = self._fragments, {}
        begun = [f for f in fragments.values() if f.begun and f.id is not None and f.name is not None]
        if begun:
            self._attempt.append(_calling(self._id("m"), [(f.id or "", f.name or "", f.arguments) for f in begun]))
        return [ag.ToolCallEndEvent(tool_call_id=f.id or "") for f in begun]

    def _proposed(self, e: ev.ToolProposed) -> Events:
        out = self._close_all()
        if e.call.id not in self._shown:
            out += self._begin_call(e.call.id, e.call.name, e.call.arguments)
            out.append(ag.ToolCallEndEvent(tool_call_id=e.call.id))
            self._attempt.append(_calling(self._id("m"), [(e.call.id, e.call.name, e.call.arguments)]))
        self._keep()
        return out

    def _tool_finished(self, e: ev.ToolFinished) -> Events:
        self._shown.discard(e.call_id)  # an id may come again once it is answered
        self.asks = {key: ask for key, ask in self.asks.items() if ask[0] != e.call_id}
        message, text = self._id("t"), e.completion.text
        self.kept.append(ag.ToolMessage(id=message, role="tool", tool_call_id=e.call_id, content=text))
        return [ag.ToolCallResultEvent(message_id=message, tool_call_id=e.call_id, content=text, role="tool")]

    def _progress(self, e: ev.ToolUpdated) -> Events:
        value = {"toolCallId": e.call_id, "progress": e.progress}
        return [ag.CustomEvent(name="rho.tool_progress", value=value)]

    def _asked(self, e: ev.ToolHostInputRequested) -> Events:
        self.asks[e.request.id] = (e.call_id, e.request)
        return []

    # -- attempts and steps ------------------------------------------------------------------------------------

    def _close_all(self) -> Events:
        return [*self._end_reasoning(), *self._end_text(), *self._end_calls()]

    def _keep(self) -> None:
        self.kept += self._attempt
        self._attempt = []

    def _model_done(self, _: ev.ModelCallCompleted) -> Events:
        return self._close_all()

    def _reset(self, e: ev.ProviderStreamReset) -> Events:
        out = self._close_all()
        self._attempt = []
        self._shown.clear()
        out.append(ag.MessagesSnapshotEvent(messages=self.kept))
        reason = type(e.reason).__name__
        return [*out, ag.CustomEvent(name="rho.stream_reset", value={"reason": reason})]

    def _step_started(self, e: ev.StepStarted) -> Events:
        out = [*self._close_all(), *self._end_step()]
        self._keep()
        self._step = f"step {e.step}"
        return [*out, ag.StepStartedEvent(step_name=self._step)]

    def _end_step(self) -> Events:
        step, self._step = self._step, None
        return [] if step is None else [ag.StepFinishedEvent(step_name=step)]

    def _used(self, e: ev.UsageUpdated) -> Events:
        self._usage = e.usage
        return []

    # -- the end -----------------------------------------------------------------------------------------------

    def _completed(self, e: ev.Completed) -> Events:
        self._usage = e.outcome.usage
        return [*self._wind_up(), self._finished(ag.RunFinishedSuccessOutcome(), e.outcome.stop_reason)]

    def _cancelled(self, _: ev.Cancelled) -> Events:
        return [*self._wind_up(), self._finished(ag.RunFinishedCancelledOutcome())]

    def _failed(self, e: ev.Failed) -> Events:
        code = "retryable" if e.retryable else "permanent"
        return [*self._wind_up(), ag.RunErrorEvent(message=e.message, code=code)]

    def _wind_up(self) -> Events:
        self.ended = True
        out = [*self._close_all(), *self._end_step()]
        self._keep()
        return out

    def _finished(self, outcome: Any, result: str | None = None) -> Any:
        return ag.RunFinishedEvent(
            thread_id=self.thread_id,
            run_id=self.run_id,
            outcome=outcome,
            result=None if result is None else {"stopReason": result},
            usage=_usage(self._usage),
        )


def _calling(message_id: str, calls: list[tuple[str, str, str]]) -> Any:
    made = [
        ag.ToolCall(id=i, type="function", function=ag.FunctionCall(name=name, arguments=arguments))
        for i, name, arguments in calls
    ]
    return ag.AssistantMessage(id=message_id, role="assistant", tool_calls=made)


def _usage(usage: Usage) -> list[Any] | None:
    if usage.is_empty():
        return None
    return [
        ag.TokenUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            cached_input_tokens=usage.cache_read_tokens,
            cache_write_input_tokens=usage.cache_write_tokens,
        )
    ]


def _interrupt(call_id: str, request: HostInputRequest) -> Any:
    prompts = "; ".join(q.prompt for q in request.questions)
    return ag.Interrupt(
        id=request.id,
        reason="host_input",
        message=f"{request.title}: {prompts}",
        tool_call_id=call_id,
        response_schema={
            "type": "object",
            "properties": {q.id: _question(q) for q in request.questions},
            "required": [q.id for q in request.questions if q.required],
            "additionalProperties": False,
        },
    )


def _question(q: Question) -> dict[str, Any]:
    one: dict[str, Any] = {"type": "string", "title": q.prompt}
    if not q.allow_other:
        one["enum"] = [c.value for c in q.choices]
    return {"type": "array", "items": one, "uniqueItems": True} if q.many else one


def answers_of(payload: Any) -> dict[str, list[str]]:
    """Answers by question from the payload of a resume. Raises ValueError for another shape."""
    if isinstance(payload, str):
        payload = json.loads(payload)
    if not isinstance(payload, dict):
        raise ValueError("the payload of a resume is an object: question id -> answer, or a list of answers")
    return {str(q): [str(v) for v in (given if isinstance(given, list) else [given])] for q, given in payload.items()}


_ROWS: dict[type, Callable[[Translator, Any], Events]] = {
    ev.StepStarted: Translator._step_started,
    ev.AssistantTextDelta: Translator._delta,
    ev.ReasoningDelta: Translator._reason,
    ev.ReasoningSummaryDelta: Translator._reason,
    ev.ToolCallUpdated: Translator._fragment,
    ev.ToolProposed: Translator._proposed,
    ev.ToolUpdated: Translator._progress,
    ev.ToolFinished: Translator._tool_finished,
    ev.ToolHostInputRequested: Translator._asked,
    ev.UsageUpdated: Translator._used,
    ev.ModelCallCompleted: Translator._model_done,
    ev.ProviderStreamReset: Translator._reset,
    ev.Completed: Translator._completed,
    ev.Cancelled: Translator._cancelled,
    ev.Failed: Translator._failed,
}
