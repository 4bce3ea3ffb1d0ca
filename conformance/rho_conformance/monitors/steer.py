"""Steering: RHO-STEER-1 to 11 (contract part 2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import messages as m
from .base import Report, Rules
from .commit import final_history
from .entities import NEVER, Attempt, Obs, Run, Steer, ok_value
from .stimuli import Stim
from .view import View

Json = Any
INSIDE = frozenset({"model", "tool", "host"})
"""Waits inside a turn or a batch, where commands are served and nothing crosses a boundary."""


def steers(view: View) -> Iterator[Steer]:
    """All steers of all runs."""
    for run in view.runs:
        yield from run.steers


def inside(view: View, step: int) -> bool:
    """Whether the runtime had settled inside a turn or a batch, with no send blocked."""
    kinds = set(view.kinds(step))
    return bool(kinds & INSIDE) and not kinds - INSIDE


def preparing(view: View, run: Run, step: int) -> bool:
    """Whether a call was not running yet; commands may wait for the end of a preparation."""
    running = {f"tool:{c.id}" for c in run.calls if c.executes and c.executes[0].step < step}
    return any(w.startswith("tool:") and w not in running for w in view.waiting(step - 1))


def unique(view: View, steer: Steer) -> bool:
    """Whether the text of this steer stands nowhere else in the stimuli."""
    everything = m.dump([s.value for s in view.stims])
    needle = m.dump(steer.text)[1:-1]
    return bool(needle) and everything.count(needle) == 1 and needle not in m.dump(view.config)


def steer_1(view: View, report: Report) -> None:
    """Accepted when served, without waiting for the boundary; never by a run that is over."""
    for steer in steers(view):
        report.opportunity()
        step, run = steer.stim.step, steer.run
        if steer.accepted and step > run.end_step:
            report.bad("a run that is over accepted a steer", steer.stim, run.name)
        quiet = inside(view, step) and inside(view, step - 1) and not preparing(view, run, step)
        prompt = view.single(step) and quiet and view.live(step) == [run]
        if prompt and run.cancel_step > step:
            late = steer.reply is None or steer.reply.step > step
            report.ok_or_bad(not late, f"the steer {steer.name} was not answered at once", steer.stim, run.name)
        if steer.reply is not None:
            report.episode(step, steer.accepted)


def steer_2(view: View, report: Report) -> None:
    """Accepted and not retracted: one user message at the next boundary, in order, listed in
    SteeringApplied."""
    for run in view.runs:
        kept = [s for s in run.steers if s.accepted and _kept(s)]
        for steer in kept:
            report.opportunity()
            _next_request(view, report, steer)
            for extra in steer.applied[1:]:
                report.bad(f"{steer.name} was applied twice", extra)
            if run.ending == "Completed" and not run.severed:
                _not_lost(view, report, run, steer)
        _applied_order(report, run)


def _kept(steer: Steer) -> bool:
    """Whether no retract of it may have succeeded: those of other runs, and those answered otherwise, do
    not count."""
    own = [reply for stim, reply in steer.retracts if stim.run == steer.run.name]
    return all(reply is not None and ok_value(reply) in ("AlreadyApplied", "NotFound") for reply in own)


def _next_request(view: View, report: Report, steer: Steer) -> None:
    run, ack = steer.run, steer.reply.step if steer.reply is not None else NEVER
    following = next((a for a in run.attempts if a.number == 1 and a.opened.step > ack), None)
    if following is None or run.cancel_step <= following.opened.step or not inside(view, ack):
        return
    users = m.users(following.opened.get("messages") or ())
    message = f"the steer {steer.name} is missing in the request after the boundary"
    # Applied before a compaction of the same boundary, it went to the compactor like everything else (D10).
    compacted = [u for u in run.up("Compact") if ack < u.step <= following.opened.step]
    known = steer.text in users or any(steer.text in m.users(u.get("messages") or ()) for u in compacted)
    report.ok_or_bad(known, message, following.opened)
    report.episode(following.opened, bool(steer.delivered), min(len(run.steers), 3))


def _not_lost(view: View, report: Report, run: Run, steer: Steer) -> None:
    if run.whole and not steer.applied:
        report.bad(f"the accepted steer {steer.name} was never applied", run.end_step, run.name)
    history = final_history(view, run)
    if history is not None and not run.up("Compact"):
        message = f"the accepted steer {steer.name} is lost: the run completed without it"
        report.ok_or_bad(steer.text in m.users(history), message, run.end_step, run.name)
    if steer.applied:
        report.episode(steer.applied[0], "completed")


def _applied_order(report: Report, run: Run) -> None:
    if any(s.delivered or s.claims for s in run.steers):
        return
    accepted = sorted((s for s in run.steers if s.accepted), key=lambda s: s.reply.seq if s.reply else 0)
    rank = {s.name: i for i, s in enumerate(accepted)}
    last = -1
    for event in run.of("SteeringApplied"):
        for name in event.get("ids") or ():
            place = rank.get(name, last)
            report.ok_or_bad(place >= last, f"{name} was applied out of the order of acceptance", event)
            last = max(last, place)


def steer_3(view: View, report: Report) -> None:
    """Accepting changes no committed history; a steer never applied is in none (D7)."""
    for steer in steers(view):
        report.opportunity()
        run, step = steer.run, steer.stim.step
        before, after = view.facts(step - 1, run.session), view.facts(step, run.session)
        still = view.single(step) and run.start_step < step < run.end_step
        if still and steer.accepted and "history" in before and "history" in after and inside(view, step):
            same = before["history"] == after["history"] and before.get("revision") == after.get("revision")
            report.ok_or_bad(same, "accepting a steer changed the committed history", steer.stim, run.name)
            report.episode(step, "accepted")
        _unapplied(view, report, steer)


def _unapplied(view: View, report: Report, steer: Steer) -> None:
    run, history = steer.run, final_history(view, steer.run)
    if history is None or not steer.accepted or steer.applied or not unique(view, steer):
        return
    if run.ending not in ("Cancelled", "Failed", "Interrupted") or run.up("CollectAck"):
        return
    shown = any(steer.text in m.users(a.opened.get("messages") or ()) for a in run.attempts)
    if shown or (run.ending != "Interrupted" and not run.whole):
        return
    message = f"{steer.name} was never applied and stands in the committed history"
    report.ok_or_bad(steer.text not in m.users(history), message, run.end_step, run.name)
    report.episode(run.end_step, run.ending)


def steer_4(view: View, report: Report) -> None:
    """The id of an accepted steer can be used to retract it while its run lives, and events name no other."""
    for run in view.runs:
        _named(view, report, run)
    for steer, stim, reply, first in _retracts(view):
        report.opportunity()
        if not first or not steer.accepted or steer.reply is None or steer.reply.step >= stim.step:
            continue
        if stim.run != steer.run.name or stim.step >= steer.run.end_step or steer.run.cancel_step <= stim.step:
            continue
        known = ok_value(reply) != "NotFound"
        report.ok_or_bad(known, f"the accepted steer {steer.name} is unknown to retract", reply)
        report.episode(stim.step, str(ok_value(reply)))


def _named(view: View, report: Report, run: Run) -> None:
    names = {s.name for s in run.steers if s.accepted or s.reply is None}
    for event in run.of("SteeringApplied") + run.of("SteeringDelivered"):
        told = event.get("ids") or () if event.name == "SteeringApplied" else [event.get("id")]
        strange = [x for x in told if x not in names]
        message = f"{event.name} names {strange}, which no steer of the run was answered with"
        report.ok_or_bad(not strange or not view.stims, message, event)
        report.episode(event, event.name, min(len(names), 2))


def _retracts(view: View) -> Iterator[tuple[Steer, Stim, Obs, bool]]:
    """Each answered retract, and whether it is the first one by the handle of the steer's own run."""
    for steer in steers(view):
        own = [stim for stim, _ in steer.retracts if stim.run == steer.run.name]
        for stim, reply in steer.retracts:
            if reply is not None:
                yield steer, stim, reply, stim in own[:1]


def staged(view: View, steer: Steer, step: int) -> bool:
    """Whether this steer was certainly staged and unclaimed when the stimulus of ``step`` came."""
    run, ack = steer.run, steer.reply.step if steer.reply is not None and steer.accepted else NEVER
    if ack >= step or run.cancel_step <= step or run.end_step <= step or not view.single(step):
        return False
    crossed = any(ack <= a.opened.step <= step and a.number == 1 for a in run.attempts)
    touched = any(o.step <= step for o in (*steer.claims, *steer.delivered, *steer.applied))
    return not crossed and not touched and all(inside(view, s) for s in range(ack, step))


def steer_5(view: View, report: Report) -> None:
    """A staged, unclaimed steer is retracted, and then it is gone."""
    for steer, stim, reply, first in _retracts(view):
        report.opportunity()
        if first and staged(view, steer, stim.step):
            right = ok_value(reply) == "Retracted"
            report.ok_or_bad(right, f"{steer.name} was staged, retract said {reply.get('value')!r}", reply)
        if ok_value(reply) == "Retracted" and unique(view, steer):
            _gone(view, report, steer, reply)
            report.episode(stim.step)


def _gone(view: View, report: Report, steer: Steer, reply: Obs) -> None:
    for attempt in steer.run.attempts:
        if attempt.opened.step > reply.step and steer.text in m.users(attempt.opened.get("messages") or ()):
            report.bad(f"the retracted {steer.name} stands in a later request", attempt.opened)
    history = final_history(view, steer.run)
    if history is not None and steer.text in m.users(history):
        report.bad(f"the retracted {steer.name} stands in the history", steer.run.end_step, steer.run.name)
    for event in steer.applied:
        report.bad(f"SteeringApplied lists the retracted {steer.name}", event)


def steer_6(view: View, report: Report) -> None:
    """Retracted, AlreadyApplied or NotFound, and the answer is true for good (D27)."""
    names = {s.name for s in steers(view)}
    for stim in view.stim("retract"):
        report.opportunity()
        reply = view.reply(stim)
        if reply is not None and stim.get("ref") not in names:
            wrong = ok_value(reply) in ("Retracted", "AlreadyApplied")
            report.ok_or_bad(not wrong, f"an unknown steer is {ok_value(reply)}", reply)
            report.episode(stim.step, "unknown")
    for steer, stim, reply, first in _retracts(view):
        answer = ok_value(reply)
        if stim.run != steer.run.name:
            message = f"the steer of another run is {answer}"
            report.ok_or_bad(answer not in ("Retracted", "AlreadyApplied"), message, reply)
        elif answer == "Retracted" and steer.applied:
            report.bad(f"{steer.name} was Retracted and applied", steer.applied[0])
        elif answer == "AlreadyApplied":
            _really_applied(report, steer, reply)
        elif (
            answer == "NotFound"
            and first
            and steer.applied
            and stim.step < steer.run.end_step
            and reply.step <= steer.applied[0].step
        ):
            report.bad(f"{steer.name} was NotFound and then applied", steer.applied[0])
        # One that a failed attempt gave back may be retracted after an AlreadyApplied (D15).
        earlier = [o for _, o in steer.retracts if o is not None and o.seq < reply.seq]
        if answer == "Retracted" and any(ok_value(o) == "Retracted" for o in earlier):
            report.variant("D27:Retracted")
        report.episode(stim.step, str(answer), first)


def _really_applied(report: Report, steer: Steer, reply: Obs) -> None:
    held = steer.applied or steer.claims or steer.delivered
    if not held and steer.run.whole and steer.run.ending == "Completed":
        report.bad(f"{steer.name} is AlreadyApplied, and it never was", reply)
    if steer.retracted_step < reply.step:
        report.bad(f"{steer.name} was Retracted before it was AlreadyApplied", reply)


def attempt_at(run: Run, step: int) -> Attempt | None:
    """The attempt that was open at the start of ``step``."""
    found = [a for a in run.attempts if a.opened.step < step]
    last = found[-1] if found else None
    return last if last is not None and (last.end is None or last.end.step >= step) else None


def steer_7(view: View, report: Report) -> None:
    """A claim is granted exactly for a staged steer; claim and retraction exclude each other."""
    for steer in steers(view):
        for place, claim in enumerate(c for c in steer.claims if c.get("item") == "claim"):
            report.opportunity()
            granted = bool(claim.get("granted"))
            if claim.run not in (None, steer.run.name):
                report.ok_or_bad(not granted, f"{steer.name} was granted to the provider of another run", claim)
                continue
            if granted and steer.retracted_step < claim.step:
                report.bad(f"the retracted {steer.name} was granted to a provider", claim)
            if granted and not steer.accepted:
                report.bad(f"{steer.name}, which was not accepted, was granted", claim)
            open_one = attempt_at(steer.run, claim.step)
            before = [o.step for o in steer.applied] + [r.step for r, _ in steer.retracts]
            fresh = place == 0 and not any(step <= claim.step for step in before)
            if not granted and fresh and open_one is not None and steer.reply is not None:
                here = open_one.opened.step <= steer.reply.step < claim.step and steer.accepted
                quiet = view.single(claim.step) and steer.run.cancel_step > claim.step
                report.ok_or_bad(not (here and quiet), f"the staged {steer.name} was refused to a provider", claim)
            report.episode(claim, granted, bool(steer.retracts))


def steer_8(view: View, report: Report) -> None:
    """SteeringDelivered: only for accepted, acknowledged ids, once an attempt."""
    for run in view.runs:
        names = {s.name: s for s in run.steers}
        seen: set[str] = set()
        for event in run.events:
            if event.name in ("StepStarted", "ProviderStreamReset"):
                seen.clear()
            if event.name != "SteeringDelivered":
                continue
            name = str(event.get("id"))
            report.ok_or_bad(name not in seen, f"{name} was delivered twice in one attempt", event)
            seen.add(name)
            steer = names.get(name)
            known = steer is not None and (steer.accepted or steer.reply is None)
            report.ok_or_bad(known or not view.stims, f"{name} was delivered and never accepted", event)
            report.episode(event)
        _acknowledged(view, report, run)


def _acknowledged(view: View, report: Report, run: Run) -> None:
    for attempt in run.attempts:
        for item in (i for i in attempt.items if i.kind == "deliver"):
            report.opportunity()
            steer = next((s for s in run.steers if s.name == item.value), None)
            granted = steer is not None and any(c.get("granted") for c in steer.claims if c.get("item") != "release")
            if steer is not None and granted and not steer.delivered and run.whole and attempt.good:
                report.bad(f"{steer.name} was acknowledged, SteeringDelivered never sent", attempt.opened)
    if view.taken_known:
        given = {i.value for a in run.attempts for i in a.items if i.kind == "deliver"}
        for event in run.of("SteeringDelivered"):
            told = event.get("id") in given
            report.ok_or_bad(told, f"no provider acknowledged {event.get('id')}", event)


def steer_9(view: View, report: Report) -> None:
    """What was delivered is also applied, later, if the run completes."""
    for steer in steers(view):
        if not steer.delivered:
            continue
        report.opportunity()
        run = steer.run
        if not steer.applied:
            if run.whole and run.ending == "Completed" and steer.retracted_step == NEVER:
                report.bad(f"the delivered {steer.name} was never applied", run.end_step, run.name)
            continue
        order = run.place(steer.applied[0]) > run.place(steer.delivered[0])
        report.ok_or_bad(order, f"{steer.name} was applied before it was delivered", steer.applied[0])
        report.episode(steer.applied[0], len(steer.delivered))


def steer_10(view: View, report: Report) -> None:
    """A provider without a steering port delivers nothing."""
    if (view.config.get("provider") or {}).get("steerable"):
        return
    for run in view.runs:
        for event in run.of("SteeringDelivered"):
            report.bad("SteeringDelivered, and the provider takes no part in steering", event)
        for steer in run.steers:
            report.opportunity()
            if steer.applied:
                report.episode(steer.applied[0])


def steer_11(view: View, report: Report) -> None:
    """Retracting what the provider holds in this attempt: AlreadyApplied (D15)."""
    for steer, stim, reply, _ in _retracts(view):
        run, attempt = steer.run, attempt_at(steer.run, stim.step)
        if attempt is None or not view.single(stim.step) or stim.run != run.name:
            continue
        if min(run.cancel_step, run.end_step) <= stim.step:
            continue  # through the handle of a run that is over, or about to be
        held = [c for c in steer.claims if c.get("granted") and attempt.opened.step <= c.step < stim.step]
        if not held or held[-1].get("item") == "release":
            continue
        report.opportunity()
        right = ok_value(reply) == "AlreadyApplied"
        message = f"the provider holds {steer.name}, retract said {reply.get('value')!r}"
        report.ok_or_bad(right, message, reply)
        report.episode(stim.step, str(held[-1].get("item")))


RULES: Rules = {
    "RHO-STEER-1": steer_1,
    "RHO-STEER-2": steer_2,
    "RHO-STEER-3": steer_3,
    "RHO-STEER-4": steer_4,
    "RHO-STEER-5": steer_5,
    "RHO-STEER-6": steer_6,
    "RHO-STEER-7": steer_7,
    "RHO-STEER-8": steer_8,
    "RHO-STEER-9": steer_9,
    "RHO-STEER-10": steer_10,
    "RHO-STEER-11": steer_11,
}
