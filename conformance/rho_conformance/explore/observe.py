"""The ghost at work: it is shown one step of the core, the input first, then the effects in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp

from . import ghost_boundary as boundary
from . import ghost_calls as calls
from . import ghost_end as end
from . import ghost_turn as turn
from . import ghost_usage as usage
from .ghost import Ghost, Moment
from .ghost_commands import COMMANDS, judge_replies
from .ghost_history import unapplied
from .work import answer, effect, refused

Hook = Callable[[Ghost, Any], None]

INPUTS: dict[type, Hook] = {
    inp.Begin: calls.begun,
    inp.Drop: end.dropped,
    inp.ReaderClosed: end.reader_lost,
    inp.ModelPanicked: end.worker_lost,
    inp.CompactorPanicked: end.worker_lost,
    inp.Steer: boundary.steered,
    inp.Retract: boundary.retracted,
    **dict.fromkeys((*turn.SHOWN, inp.UsageReported, inp.GenerationTokensReported), turn.stream),
    inp.ModelReturned: turn.returned,
    inp.ModelFailed: turn.failed,
    inp.TimerFired: turn.timer_fired,
    inp.Prepared: calls.prepared,
    inp.PrepareFailed: calls.prepare_failed,
    inp.Authorized: calls.authorized,
    inp.Denied: calls.denied,
    inp.ToolReturned: calls.tool_returned,
    inp.ToolPanicked: calls.tool_panicked,
    inp.ToolProgress: calls.progress,
    inp.ToolAsked: calls.ask,
    inp.AskWithdrawn: calls.withdrawn,
    inp.SteerDelivered: boundary.delivered,
    inp.SteerReleased: boundary.released,
    inp.CompactorReturned: boundary.compactor_returned,
    inp.CompactorFailed: boundary.compactor_failed,
    inp.BoundaryReplied: boundary.replied,
    inp.BoundaryGone: boundary.gone,
}
EVENTS: dict[type, Hook] = {
    ev.Started: end.started,
    ev.StepStarted: turn.step_started,
    **dict.fromkeys(
        (
            ev.AssistantTextDelta,
            ev.ReasoningDelta,
            ev.ReasoningSummaryDelta,
            ev.ToolCallUpdated,
            ev.ProviderContextUpdated,
            ev.WebSearch,
            ev.HostedToolActivity,
            ev.ProviderServiceTierFallback,
            ev.ProviderRequestRetry,
        ),
        turn.shown,
    ),
    ev.UsageUpdated: turn.usage,
    ev.ModelCallCompleted: turn.completed,
    ev.ProviderStreamReset: turn.reset,
    ev.ToolProposed: calls.proposed,
    ev.ToolStarted: calls.started,
    ev.ToolUpdated: calls.updated,
    ev.ToolDetached: calls.detached,
    ev.ToolFinished: calls.finished,
    ev.ToolHostInputRequested: calls.asked,
    ev.SteeringApplied: boundary.applied,
    ev.SteeringDelivered: boundary.announced,
    ev.CompactionStarted: boundary.compaction_started,
    ev.CompactionCompleted: boundary.compacted,
    ev.BoundaryInputApplied: boundary.input_applied,
    ev.ProviderDiagnostic: end.diagnostic,
    **dict.fromkeys(end.LAST, end.terminal),
}
EFFECTS: dict[type, Hook] = {
    out.CallModel: turn.call_model,
    out.StartTimer: turn.timer_started,
    out.Prepare: calls.prepare,
    out.Authorize: calls.authorize,
    out.Execute: calls.execute,
    out.CancelJob: calls.job_cancelled,
    out.DeliverAnswer: calls.answered,
    out.CallCompactor: boundary.call_compactor,
    out.AskBoundary: boundary.ask_boundary,
    out.RecordUsage: usage.recorded,
    out.CloseEvents: end.closed,
}


def observe(g: Ghost, m: Moment) -> None:
    """Judge one step and remember it."""
    if refused(m.effects):
        return
    i = m.input
    command = COMMANDS.get(type(i))
    expected = None if command is None else command(g, i, m)
    hook = INPUTS.get(type(i))
    if hook is not None:
        hook(g, i)
    g.open = answer(g.open, i)
    end.cancel_accepted(g, m)
    usage.cut_short(g, m)
    g.over = m.after.core.ledger.revision > end.revision(g)
    for e in m.effects:
        _effect(g, e, m)
        if not usage.forgotten(g, m, e):
            g.open = effect(g.open, e, g.issues)
    judge_replies(g, m, expected)
    if isinstance(i, inp.Cancel):
        end.stopped_at_once(g)
    end.decided(g, m)
    end.state_shown(g, m)
    if m.sent(out.ReportOutcome):
        end.settled(g, m)


def _effect(g: Ghost, e: Any, m: Moment) -> None:
    kind = type(e)
    if g.closed:
        g.say("RHO-ORD-12", f"{kind.__name__} after the stream was closed")
    if kind is out.Deliver:
        end.delivered(g, e.event)
        EVENTS[type(e.event)](g, e.event)
    elif kind is out.ReportOutcome:
        unapplied(g, e)
        end.reported(g, e, m)
    elif kind is out.AckBoundary:
        boundary.ack(g, e, m.input)
    elif kind is out.ClaimAnswered:
        boundary.claimed(g, e, m.input)
    elif kind in EFFECTS:
        EFFECTS[kind](g, e)
