"""Contracts of `rho_core.estimate`: the size of a context is positive and grows (RHO-ORD-2)."""

from __future__ import annotations

from rho_conformance.contracts.base import contract
from rho_core import estimate
from rho_core.messages import Text, ToolResult, User


@contract(estimate._quarter)
def a_quarter_rounds_up(n: int) -> int:
    """
    pre: n >= 0
    post: 4 * __return__ >= n and 4 * (__return__ - 1) < n
    """
    return estimate._quarter(n)


@contract(estimate.context_tokens, bounds="no message, or one of at most 8 characters of text")
def a_context_is_never_empty(empty: bool, text: str, tools: int) -> int:
    """
    pre: tools >= 0 and len(text) <= 8
    post: __return__ >= 3 + tools
    """
    return estimate.context_tokens(() if empty else (User((Text(text),)),), tools)


@contract(estimate.message_tokens, bounds="one text block of at most 12 characters")
def text_counts_by_the_quarter(text: str) -> int:
    """
    pre: len(text) <= 12
    post: __return__ == 5 + (len(text) + 3) // 4
    """
    return estimate.message_tokens(User((Text(text),)))


@contract(estimate.context_tokens, estimate.message_tokens, bounds="two text messages of at most 4 characters")
def a_context_is_the_sum_of_its_messages(one: str, two: str, tools: int) -> bool:
    """
    pre: len(one) <= 4 and len(two) <= 4
    post: __return__
    """
    a, b = User((Text(one),)), User((Text(two),))
    whole = estimate.context_tokens((a, b), tools)
    return whole == estimate.BASE + tools + estimate.message_tokens(a) + estimate.message_tokens(b)


@contract(estimate.message_tokens, bounds="a result of at most 1 character", limit=10)
def a_result_costs_at_least_its_frame(text: str) -> int:
    """
    pre: len(text) <= 1
    post: __return__ >= 7
    """
    return estimate.message_tokens(ToolResult("a", True, text))
