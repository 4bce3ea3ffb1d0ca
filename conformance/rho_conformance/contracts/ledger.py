"""Contracts of `rho_core.ledger`: revisions, commits, counters, and the model's view (RHO-CAN-11, D9, D29)."""

from __future__ import annotations

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import config, ledger
from rho_core.errors import Error
from rho_core.ledger import CompactionState, Ledger
from rho_core.messages import AbortedAssistant, Assistant, Message, Text, ToolCall, ToolResult, Usage, user


@contract(Ledger.commit, Ledger.replace, bounds="a history of one message, a suffix of at most 2")
def a_commit_appends_and_counts_one(revision: int, n: int) -> bool:
    """
    pre: 0 <= revision < config.MAX_REVISION and 0 <= n <= 2
    post: __return__
    """
    suffix = (user("x"), user("y"))[:n]
    after = Ledger((user("h"),), revision).commit(suffix)
    return after == Ledger((user("h"), *suffix), revision + 1)


@contract(Ledger.commit, Ledger.replace, config)
def an_exhausted_revision_commits_nothing(revision: int) -> Ledger | Error:
    """
    pre: revision >= config.MAX_REVISION
    post: isinstance(__return__, Error) and __return__.name == "Persistence"
    """
    return Ledger((), revision).commit((user("x"),))


@contract(Ledger.replace)
def no_revision_passes_the_largest(revision: int) -> Ledger | Error:
    """
    pre: 0 <= revision <= config.MAX_REVISION
    post: isinstance(__return__, Error) or revision < __return__.revision <= config.MAX_REVISION
    """
    return Ledger((), revision).replace((user("x"),))


@contract(Ledger.compact)
def counters_of_compaction_never_shrink(old: CompactionState, removed: int, before: int, after: int) -> bool:
    """
    post: __return__
    """
    done = Ledger((), 7, old).compact((), removed, before, after, Usage())
    if isinstance(done, Error):
        return False
    new = done.compaction
    shrunk = new.removed_messages < old.removed_messages or new.removed_tokens < old.removed_tokens
    return not shrunk and new.completed_compactions == old.completed_compactions + 1


@contract(Ledger.compact)
def a_compaction_adds_what_it_removed(old: CompactionState, removed: int, before: int, after: int, cost: int) -> bool:
    """
    pre: removed >= 0 and before >= after
    post: __return__
    """
    done = Ledger((), 7, old).compact((), removed, before, after, Usage(cost_usd_micros=cost))
    if isinstance(done, Error):
        return False
    new = done.compaction
    sums = (new.removed_messages, new.removed_tokens, new.removed_cost_usd_micros)
    grown = (old.removed_messages + removed, old.removed_tokens + before - after, old.removed_cost_usd_micros + cost)
    return sums == grown and (new.last_revision, new.last_previous_tokens, new.last_current_tokens) == (
        8,
        before,
        after,
    )


def _message(kind: int, call_id: str) -> Message:
    if kind == 0:
        return Assistant((Text("t"), ToolCall(call_id, "t", "{}")))
    if kind == 1:
        return ToolResult(call_id, True, "done")
    if kind == 2:
        return AbortedAssistant((Text("p"), ToolCall(call_id, "t", "{}")))
    return user("u")


def _balanced(view: tuple[Message, ...]) -> bool:
    """Is every call answered, once and after it was made, and nothing else?"""
    owed: list[str] = []
    for message in view:
        if isinstance(message, ToolResult):
            if message.id not in owed:
                return False
            owed.remove(message.id)
        elif isinstance(message, (Assistant, AbortedAssistant)):
            owed.extend(b.id for b in message.content if isinstance(b, ToolCall))
    return not owed


Two = ("a", "b")
KINDS = "a call, a result, an aborted message with a call, or prose"


@contract(
    ledger.model_view, bounds=f"histories of at most 2 messages, each {KINDS}; two ids; any of them pending", limit=60
)
def the_model_sees_every_call_answered_once(
    n: int, k: tuple[int, int, int], i: tuple[bool, bool, bool], pending: bool
) -> bool:
    """
    pre: 0 <= n <= 2 and all(0 <= x <= 3 for x in k)
    post: __return__
    """
    history = tuple(_message(k[x], Two[i[x]]) for x in range(n))
    view = ledger.model_view(history, frozenset({"a"} if pending else ()))
    return _balanced(view)


@contract(ledger.model_view, bounds=f"histories of at most 2 messages, each {KINDS}; two ids", limit=60)
def the_view_of_a_view_is_itself(n: int, k: tuple[int, int, int], i: tuple[bool, bool, bool]) -> bool:
    """
    pre: 0 <= n <= 2 and all(0 <= x <= 3 for x in k)
    post: __return__
    """
    view = ledger.model_view(tuple(_message(k[x], Two[i[x]]) for x in range(n)))
    return ledger.model_view(view) == view


@contract(ledger._stand_in, bounds=f"{IDS}")
def a_pending_call_stands_as_running_else_as_interrupted(call_id: Id, pending: Id) -> ToolResult:
    """
    post: __return__.id == call_id and __return__.ok == (call_id == pending)
    """
    return ledger._stand_in(call_id, frozenset({pending}))
