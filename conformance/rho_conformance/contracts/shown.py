"""Contract of `rho_core.shown`: what is remembered changes nothing of what is shown (design §3.6)."""

from __future__ import annotations

from rho_conformance.contracts.base import contract
from rho_core import shown
from rho_core.estimate import context_tokens
from rho_core.ledger import model_view
from rho_core.messages import Assistant, Message, ToolCall, ToolResult, user
from rho_core.shown import NOTHING_SHOWN


def _history(calls: int, answered: bool) -> tuple[Message, ...]:
    asked: tuple[Message, ...] = (Assistant((ToolCall("a", "t", "{}"),)),) if calls else ()
    return (user("u"), *asked, *((ToolResult("a", True, "r"),) if answered else ()))


@contract(shown.show, bounds="two looks at a history of at most 5 messages with at most one call open", limit=30)
def remembering_changes_nothing_of_the_view(
    first: bool, second: bool, answered: bool, pending: bool, tools: int
) -> bool:
    """
    pre: tools >= 0 and (not first or answered)
    post: __return__
    """
    old = _history(first, first and answered)
    new = (*old, *_history(second, False))
    waiting = frozenset({"a"}) if pending else frozenset[str]()
    remembered, _, _ = shown.show(NOTHING_SHOWN, old, frozenset(), tools)
    _, view, size = shown.show(remembered, new, waiting, tools)
    return view == model_view(new, waiting) and size == context_tokens(view, tools)
