"""What a run leaves behind: every call answered once, steers and inputs in their place, nothing that was abandoned."""

from __future__ import annotations

from rho_core import effects as out
from rho_core.messages import (
    INTERRUPTED,
    AbortedAssistant,
    Assistant,
    History,
    Text,
    ToolCall,
    ToolResult,
    User,
)

from .ghost import Ghost, Moment


def check_history(g: Ghost, m: Moment) -> None:
    """Judge the committed history of a run that is over."""
    history = m.after.core.ledger.history
    if not g.ending.startswith("commit"):
        if g.commits == 0:
            g.need(history == (), "RHO-PERS-2", "history of a run that committed nothing")
        return
    _calls_answered(g, history)
    _words(g, history)
    _aborted(g, m, history)
    said = sum(isinstance(x, Assistant) and x.provenance is not None for x in history)
    g.need(said == g.said, "RHO-CAN-8", f"the history has {said} responses, announced were {g.said}")


def _calls_answered(g: Ghost, history: History) -> None:
    """Pairs calls and results by order; sync results of one response stand in model order (RHO-ORD-10)."""
    open_calls: list[str] = []
    results: list[ToolResult] = []
    order: list[str] = []
    for message in history:
        if isinstance(message, Assistant):
            ids = [b.id for b in message.content if isinstance(b, ToolCall)]
            open_calls += ids
            order += ids
        elif isinstance(message, ToolResult):
            g.need(message.id in open_calls, "RHO-CAN-12", f"a second result for {message.id}, or one without a call")
            open_calls = [c for c in open_calls if c != message.id]
            results.append(message)
    g.need(not open_calls, "RHO-CAN-12", f"{open_calls} have no result")
    _results(g, results, order)


def _results(g: Ghost, results: list[ToolResult], order: list[str]) -> None:
    if len({c.id for c in g.calls}) < len(g.calls):
        return  # an id was used again: which result belongs to which call is not told apart here
    known = {c.id: c for c in g.calls}
    for result in results:
        call = known.get(result.id)
        text = call.completion.text if call and call.completion else INTERRUPTED
        if call is not None and call.stage == "proposed" and not _registered(g, call.name):
            # An unavailable call that was not announced in time: either text (contract 6.2).
            continue
        g.need(result.content == text, "RHO-CAN-12", f"the result of {result.id} is {result.content!r}, not {text!r}")
    sync = [r.id for r in results if r.id in known and not known[r.id].detach]
    want = [x for x in order if x in known and not known[x].detach]
    g.need(sync == want, "RHO-ORD-10", f"sync results stand as {sync}, called as {want}")


def _registered(g: Ghost, name: str) -> bool:
    return any(t.name == name for t in g.policy.tools)


def _words(g: Ghost, history: History) -> None:
    """Steers and boundary inputs: applied ones once and in order, no other (RHO-STEER-3, RHO-BND-3)."""
    said = [b.text for x in history if isinstance(x, User) for b in x.content if isinstance(b, Text)]
    steers = [t for t in said if g.steer(t) is not None]
    g.need(steers == list(g.applied), "RHO-STEER-3", f"the history has the steers {steers}, applied were {g.applied}")
    notes = [t for t in said if t.startswith("note")]
    g.need(notes == list(g.inputs), "RHO-BND-3", f"the history has the inputs {notes}, accepted were {g.inputs}")
    begun = g.config.begin.call is not None or g.compacted or "hello" in said
    g.need(begun, "RHO-CAN-8", "the user's message is not in the history")


def _aborted(g: Ghost, m: Moment, history: History) -> None:
    """The open attempt's partial text stays; nothing of one that was reset or judged malformed does."""
    found = [x for x in history if isinstance(x, AbortedAssistant)]
    # A cancel may come between the final failure and its commit: what that attempt had shown stays (FAIL-1).
    spent = g.error is not None and (not g.error.retryable or g.attempt == g.policy.request_budget)
    live = (g.turn == "failed" and spent) or (g.cancelled and g.turn in ("open", "returned", "stopped"))
    want = live and bool(g.captured or g.more or g.tokens)
    rule = "RHO-CAN-9" if want else "RHO-RET-7" if g.cancelled else "RHO-FAIL-1"
    g.need(len(found) == want and (not found or history[-1] is found[0]), rule, f"{len(found)} aborted messages")
    if found and want:
        text = "".join(b.text for b in found[0].content if isinstance(b, Text))
        g.need(text == g.captured, "RHO-CAN-9", f"the aborted message says {text!r}, shown was {g.captured!r}")


def unapplied(g: Ghost, e: out.ReportOutcome) -> None:
    """The outcome lists the steers that were accepted and are not in the history (design 3.7)."""
    end = e.outcome
    if end is None:
        return
    listed = end.unapplied_steering
    left = [s.id for s in g.steers if s.stage in ("staged", "claimed", "delivered")]
    missing = [x for x in left if x not in listed]
    g.need(not missing, "RHO-STEER-3", f"the outcome does not list {missing}")
    wrong = [x for x in listed if (s := g.steer(x)) is None or s.stage == "applied"]
    g.need(not wrong, "RHO-STEER-3", f"the outcome lists {wrong}, which are in the history")
