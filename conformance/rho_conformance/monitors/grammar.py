"""The trace grammar (contract 3.10) as one strict pass, tolerant to the variants D2 and D3.

It belongs to no rule of its own: what is wrong about the calls is said for RHO-ORD-9, what is wrong about
the run as a
whole for RHO-ORD-12.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .base import Monitor, Report
from .entities import CALL_EVENTS, PROVIDER_EVENTS, TERMINALS, Obs, Run
from .view import View

ORDER = ("CompactionStarted", "CompactionCompleted", "BoundaryInputApplied", "SteeringApplied", "StepStarted")
"""What may stand at a step boundary. Their order among each other is not fixed (D10)."""


@dataclass
class _State:
    phase: str = "start"
    compacting: bool = False
    invalid: int = 0
    resets: int = 0
    detached: set[str] = field(default_factory=set)
    wrong: list[tuple[str, Obs]] = field(default_factory=list)


def grammar(rule: str) -> Monitor:
    """The part of the grammar that is reported under this rule."""

    def monitor(view: View, report: Report) -> None:
        for run in view.runs:
            # Without any ModelCallCompleted the end of a turn cannot be seen.
            if run.gap or not run.of("ModelCallCompleted"):
                continue
            for message, event in _walk(run):
                if (event.name in CALL_EVENTS) == (rule == "RHO-ORD-9"):
                    report.bad(message, event)

    return monitor


def _walk(run: Run) -> list[tuple[str, Obs]]:
    state = _State()
    for event in run.events:
        if event.name in CALL_EVENTS:
            _call(state, event)
        elif event.name in PROVIDER_EVENTS or event.name in ("ModelCallCompleted", "ProviderStreamReset"):
            _turn(state, event)
        elif event.name in ORDER:
            _boundary(state, event)
        elif event.name in TERMINALS:
            _terminal(state, event)
    return state.wrong


def _call(state: _State, event: Obs) -> None:
    name = event.call_id or ""
    if event.name == "ToolDetached":
        state.detached.add(name)
    detached = name in state.detached
    if event.name == "ToolFinished":
        state.detached.discard(name)
    # D2 puts the ToolFinished of interrupted calls behind the commit; a host's own call comes before
    # any step.
    calm = detached or event.name == "ToolFinished" or state.phase in ("tail", "start")
    if not calm:
        state.wrong.append((f"{event.name} of {name} inside a model turn", event))


def _turn(state: _State, event: Obs) -> None:
    if event.name == "ProviderStreamReset":
        state.phase = "turn"
        state.resets += 1
        state.invalid += event.get("reason") == "InvalidResponse"
        if state.resets > 3:
            state.wrong.append(("more than three resets in one turn", event))
        if state.invalid > 1:
            state.wrong.append(("two resets for malformed responses in one turn", event))
    elif event.name == "ModelCallCompleted":
        if state.phase != "turn":
            state.wrong.append(("ModelCallCompleted outside a model turn", event))
        state.phase = "tail"


def _boundary(state: _State, event: Obs) -> None:
    if event.name == "CompactionStarted":
        if state.compacting:
            state.wrong.append(("a compaction inside a compaction", event))
        state.compacting = True
    elif event.name == "CompactionCompleted":
        if not state.compacting:
            state.wrong.append(("CompactionCompleted without CompactionStarted", event))
        state.compacting = False
    elif state.compacting:
        state.wrong.append((f"{event.name} inside a compaction", event))
    if event.name != "StepStarted":
        if state.phase == "turn":
            state.wrong.append((f"{event.name} inside a model turn", event))
        return
    if state.phase == "turn":
        state.wrong.append(("StepStarted inside a model turn that has not completed", event))
    state.phase, state.resets, state.invalid = "turn", 0, 0


def _terminal(state: _State, event: Obs) -> None:
    if event.name == "Completed" and state.phase == "turn":
        state.wrong.append(("Completed inside a model turn that has not completed", event))
    if event.name == "Completed" and state.compacting:
        state.wrong.append(("Completed inside a compaction", event))
