"""Tool calls as the contract has them: the grammar of one call, the order of a batch, questions (RHO-ORD-4…10)."""

from __future__ import annotations

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import ToolErrorKind
from rho_core.messages import INTERRUPTED

from .ghost import Call, Ghost
from .ghost_turn import pay

CUT = ev.Failure(ToolErrorKind.CANCELLED, INTERRUPTED)


def available(g: Ghost, call: Call) -> bool:
    return any(t.name == call.name for t in g.policy.tools)


# --- events ---------------------------------------------------------------------------------------------------------


def proposed(g: Ghost, e: ev.ToolProposed) -> None:
    due = next((c for c in g.calls if c.stage == "due"), None)
    if due is None or due.id != e.call.id:
        g.say("RHO-ORD-8", f"ToolProposed {e.call.id}, due is {due.id if due else 'nothing'}")
    else:
        g.put(due, stage="proposed")


def started(g: Ghost, e: ev.ToolStarted) -> None:
    c = g.call(e.call_id)
    if c is None or c.stage != "proposed":
        g.say("RHO-ORD-5", f"ToolStarted {e.call_id} while it is {c.stage if c else 'unknown'}")
        return
    g.need(available(g, c), "RHO-ORD-6", f"ToolStarted of {c.id}, which is unavailable")
    g.need(c.plan is not None or c.completion is not None, "RHO-ORD-5", f"ToolStarted {c.id} before it was prepared")
    metadata = c.plan.metadata if c.plan and c.completion is None else ""
    g.need(e.metadata == metadata, "RHO-ORD-5", f"ToolStarted {c.id} has metadata {e.metadata!r}")
    if not c.detach and c.plan is not None:
        for other in _earlier(g, c):
            clash = other.stage != "finished" and other.plan is not None and _conflict(other.plan, c.plan)
            g.need(not clash, "RHO-ORD-8", f"{c.id} starts before {other.id}, which is in its way")
    g.put(c, stage="started")


def _earlier(g: Ghost, call: Call) -> tuple[Call, ...]:
    """The sync calls of the same response before this one."""
    batch = tuple(c for c in g.calls if not c.detach)
    return batch[: batch.index(call)]


def _conflict(a: inp.Plan, b: inp.Plan) -> bool:
    if a.exclusive or b.exclusive:
        return True
    writes = {x.resource for x in a.accesses if not x.shared} | {x.resource for x in b.accesses if not x.shared}
    return bool(writes & {x.resource for x in a.accesses} & {x.resource for x in b.accesses})


def updated(g: Ghost, e: ev.ToolUpdated) -> None:
    c = g.call(e.call_id)
    g.need(
        c is not None and c.stage in ("started", "detached"), "RHO-ORD-5", f"ToolUpdated {e.call_id} is out of place"
    )
    pay(g, e, "RHO-ORD-5")


def detached(g: Ghost, e: ev.ToolDetached) -> None:
    c = g.call(e.call_id)
    fit = c is not None and c.stage == "started" and c.detach and c.ran
    g.need(fit, "RHO-ORD-7", f"ToolDetached {e.call_id} is out of place")
    if c is not None:
        g.put(c, stage="detached")


def finished(g: Ghost, e: ev.ToolFinished) -> None:
    c = g.call(e.call_id)
    if c is None:
        g.say("RHO-ORD-9", f"ToolFinished of unknown {e.call_id}")
        return
    if not available(g, c):
        g.need(c.stage == "proposed", "RHO-ORD-6", f"ToolFinished {c.id} while it is {c.stage}")
        g.need(type(e.completion) is ev.Unavailable, "RHO-ORD-6", f"{c.id} finishes with {e.completion}")
        g.put(c, stage="finished", completion=e.completion, step=g.step)
        return
    g.need(c.stage in ("started", "detached"), "RHO-ORD-5", f"ToolFinished {c.id} while it is {c.stage}")
    ends = bool(g.ending) or g.over
    early = c.detach and c.ran and c.stage != "detached" and not ends
    g.need(not early, "RHO-ORD-7", f"{c.id} finishes before it was detached")
    g.need(c.completion is not None or ends, "RHO-ORD-5", f"{c.id} finishes before it returned")
    want = c.completion or CUT
    g.need(e.completion == want, "RHO-CAN-12", f"{c.id} finishes with {e.completion}, not {want}")
    held = any(isinstance(o, ev.ToolUpdated) and o.call_id == c.id for o in g.owed)
    g.need(not held or ends, "RHO-ORD-5", f"{c.id} finishes before its progress was shown")
    g.put(c, stage="finished", completion=want, step=g.step)


def asked(g: Ghost, e: ev.ToolHostInputRequested) -> None:
    pay(g, e, "RHO-COORD-2")
    g.asks = tuple((c, r, "open") if (c, r, s) == (e.call_id, e.request.id, "due") else (c, r, s) for c, r, s in g.asks)


# --- effects ----------------------------------------------------------------------------------------------------------


def prepare(g: Ghost, e: out.Prepare) -> None:
    c = g.call(e.call.id)
    if c is None or c.stage != "proposed" or c.asked:
        g.say("RHO-ORD-4", f"Prepare {e.call.id} while it is {c.stage if c else 'unknown'}")
        return
    g.need(not any(x.stage == "due" for x in g.calls), "RHO-ORD-4", "a preparation before every call was proposed")
    g.need(available(g, c), "RHO-ORD-6", f"Prepare of {c.id}, which is unavailable")
    g.need(not g.ending, "RHO-CAN-7", "a preparation after the end was decided")
    g.need(e.detachable == c.detach, "RHO-ORD-7", f"Prepare {c.id} with detachable={e.detachable}")
    g.put(c, asked=True)


def authorize(g: Ghost, e: out.Authorize) -> None:
    c = g.call(e.call_id)
    fit = c is not None and c.plan is not None and c.plan.capability == e.capability and c.access == "none"
    g.need(fit, "RHO-ORD-5", f"Authorize {e.call_id} is out of place")
    g.need(not g.ending, "RHO-CAN-7", "an authorisation after the end was decided")
    if c is not None:
        g.need(c.detach or c.stage == "started", "RHO-ORD-5", f"{c.id} is authorised before ToolStarted")
        g.put(c, access="asked")


def execute(g: Ghost, e: out.Execute) -> None:
    c = g.call(e.call_id)
    if c is None or c.plan is None or c.ran or c.completion is not None:
        g.say("RHO-RET-19", f"Execute {e.call_id} is out of place")
        return
    g.need(c.stage == "started", "RHO-ORD-4", f"Execute {c.id} while it is {c.stage}")
    g.need(c.plan.capability is None or c.access == "granted", "RHO-CAN-5", f"{c.id} runs without its capability")
    g.need(not g.ending, "RHO-CAN-7", "an executor is entered after the end was decided")
    running = sum(w[0] == "execute" for w in g.open)
    g.need(running < g.policy.max_parallel_tools, "RHO-COORD-1", f"{running + 1} executors run at once")
    g.put(c, ran=True)


def job_cancelled(g: Ghost, e: out.CancelJob) -> None:
    c = g.call(e.call_id)
    live = c is not None and c.ran and c.completion is None and e.call_id not in g.stopping
    g.need(live, "RHO-CAN-14", f"CancelJob {e.call_id} is out of place")
    g.stopping = (*g.stopping, e.call_id)


def answered(g: Ghost, e: out.DeliverAnswer) -> None:
    fit = (e.call_id, e.request_id, "open") in g.asks
    g.need(fit, "RHO-HOST-3", f"an answer to {e.request_id}, which is not open")
    close(g, e.request_id)


def close(g: Ghost, request_id: str) -> None:
    g.asks = tuple((c, r, "closed") if r == request_id else (c, r, s) for c, r, s in g.asks)


# --- inputs ----------------------------------------------------------------------------------------------------------


def begun(g: Ghost, i: inp.Begin) -> None:
    """The host may ask for a call itself, before the first request."""
    if i.call is not None:
        g.calls = (Call(i.call.id, i.call.name, False),)


def prepared(g: Ghost, i: inp.Prepared) -> None:
    c = _open(g, "prepare", i.call_id)
    if c is None:
        return
    exclusive = i.plan.exclusive or any(not a.shared for a in i.plan.accesses)
    if c.detach and exclusive:
        text = "an async tool call must not need exclusive access"
        g.put(c, plan=i.plan, completion=ev.Failure(ToolErrorKind.EXECUTION, text))
    else:
        g.put(c, plan=i.plan)


def _open(g: Ghost, kind: str, call_id: str) -> Call | None:
    """The call, if that work is open for it; a late answer says nothing."""
    return g.call(call_id) if (kind, call_id) in g.open else None


def prepare_failed(g: Ghost, i: inp.PrepareFailed) -> None:
    c = _open(g, "prepare", i.call_id)
    if c is not None:
        g.put(c, completion=ev.Failure(ToolErrorKind.EXECUTION, i.message))


def authorized(g: Ghost, i: inp.Authorized) -> None:
    c = _open(g, "authorize", i.call_id)
    if c is not None:
        g.put(c, access="granted")


def denied(g: Ghost, i: inp.Denied) -> None:
    c = _open(g, "authorize", i.call_id)
    if c is not None and c.plan is not None:
        text = f"{c.plan.capability} capability denied: {i.reason}"
        g.put(c, access="denied", completion=ev.Failure(ToolErrorKind.POLICY_DENIED, text))


def tool_returned(g: Ghost, i: inp.ToolReturned) -> None:
    c = _open(g, "execute", i.call_id)
    if c is not None:
        g.put(c, completion=i.completion)
        g.asks = tuple((k, r, "closed") if k == c.id else (k, r, s) for k, r, s in g.asks)


def tool_panicked(g: Ghost, i: inp.ToolPanicked) -> None:
    c = next((c for kind in ("prepare", "authorize", "execute") if (c := _open(g, kind, i.call_id))), None)
    if c is None:
        return
    if not c.detach:
        g.abnormal = g.abnormal or "panic"
    elif c.id in g.stopping:
        g.put(c, completion=CUT)
    else:
        g.put(c, completion=ev.Failure(ToolErrorKind.EXECUTION, "the tool panicked"))


def progress(g: Ghost, i: inp.ToolProgress) -> None:
    if _open(g, "execute", i.call_id) is not None and not g.ending:
        g.owed = (*g.owed, ev.ToolUpdated(i.call_id, i.progress))


def ask(g: Ghost, i: inp.ToolAsked) -> None:
    c = _open(g, "execute", i.call_id)
    if c is None or g.ending:
        return
    if not c.detach and any(r == i.request.id for _, r, _ in g.asks):
        g.doubled = True
    elif not c.detach:
        g.asks = (*g.asks, (c.id, i.request.id, "due"))
        g.owed = (*g.owed, ev.ToolHostInputRequested(c.id, i.request))


def withdrawn(g: Ghost, i: inp.AskWithdrawn) -> None:
    close(g, i.request_id)
