"""Every command is answered exactly once, at once, and rightly (RHO-STEER-1, RHO-STEER-6, RHO-HOST-3, design D22)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rho_core import effects as out
from rho_core import inputs as inp

from .environment import YES
from .ghost import Ghost, Moment

Expected = tuple[str, str, Any]
"""The rule, whether Reply or Rejected comes, and the reply's value."""


def _cancel(g: Ghost, i: inp.Cancel, m: Moment) -> Expected:
    return "RHO-CAN-2", "Reply", None


def _steer(g: Ghost, i: inp.Steer, m: Moment) -> Expected:
    """Accepted until the end is decided (D7); a steerable provider that streams is offered it at once."""
    if g.ending:
        return "RHO-STEER-2", "Rejected", None
    if g.steer(i.steering_id) is not None:
        return "RHO-STEER-4", "Rejected", None
    offered = tuple(e.steering_id for e in m.sent(out.OfferSteer))
    want = (i.steering_id,) if g.policy.steerable and g.turn == "open" else ()
    g.need(offered == want, "RHO-STEER-7", f"offered {offered}, not {want}")
    return "RHO-STEER-1", "Reply", i.steering_id


def _retract(g: Ghost, i: inp.Retract, m: Moment) -> Expected:
    steer = g.steer(i.steering_id)
    if steer is None or steer.stage == "retracted":
        return "RHO-STEER-6", "Reply", "NotFound"
    if steer.stage == "staged":
        withdrawn = len(m.sent(out.WithdrawSteer))
        offered = g.policy.steerable and g.turn == "open" and not g.ending
        g.need(withdrawn == offered, "RHO-STEER-7", f"{withdrawn} offers are withdrawn")
        return "RHO-STEER-5", "Reply", "Retracted"
    if steer.loose and steer.stage == "claimed" and out.Reply(str(i.command_id), "Retracted") in m.effects:
        g.move(steer, "staged")
        return "RHO-STEER-11", "Reply", "Retracted"
    rule = "RHO-STEER-6" if steer.stage == "applied" else "RHO-STEER-11"
    return rule, "Reply", "AlreadyApplied"


def _respond(g: Ghost, i: inp.Respond, m: Moment) -> Expected:
    """The open question of that id takes one answer that fits."""
    open_now = not g.ending and any(r == i.request_id and s == "open" for _, r, s in g.asks)
    fits = open_now and i.answers == YES
    sent = len(m.sent(out.DeliverAnswer))
    g.need(sent == fits, "RHO-HOST-3", f"{sent} answers are delivered")
    if fits:
        return "RHO-HOST-3", "Reply", None
    return "RHO-HOST-3" if open_now else "RHO-HOST-5", "Rejected", None


COMMANDS: dict[type, Callable[[Ghost, Any, Moment], Expected]] = {
    inp.Cancel: _cancel,
    inp.Steer: _steer,
    inp.Retract: _retract,
    inp.Respond: _respond,
}


def judge_replies(g: Ghost, m: Moment, expected: Expected | None) -> None:
    """Exactly one answer to a command that has an id, none to anything else."""
    answers = m.sent(out.Reply, out.Rejected)
    _claims(g, m)
    if expected is None or m.input.command_id is None:
        g.need(not answers, "RHO-COORD-1", f"{len(answers)} answers to no command")
        return
    rule, kind, value = expected
    if len(answers) != 1 or answers[0].command_id != m.input.command_id:
        g.say(rule, f"{type(m.input).__name__} is answered {len(answers)} times")
        return
    found = type(answers[0]).__name__
    said = answers[0].value if isinstance(answers[0], out.Reply) else None
    g.need((found, said) == (kind, value), rule, f"{type(m.input).__name__}: {found} {said}, not {kind} {value}")


def _claims(g: Ghost, m: Moment) -> None:
    """A claim is answered once; a question that may not be asked is refused once."""
    answers = len(m.sent(out.ClaimAnswered))
    g.need(answers == isinstance(m.input, inp.SteerClaimed), "RHO-STEER-7", f"{answers} answers to a claim")
    if isinstance(m.input, inp.ToolAsked):
        call = g.call(m.input.call_id)
        runs = ("execute", m.input.call_id) in g.open or g.doubled
        refuse = runs and call is not None and (call.detach or g.doubled)
        refused = len(m.sent(out.RefuseAsk))
        g.need(refused == refuse, "RHO-COORD-3", f"{refused} refusals of a question")
