"""Contracts of `rho_core.config`: which numbers are accepted (RHO-BUF-2)."""

from __future__ import annotations

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import config
from rho_core.config import Compaction, Policy, ToolDecl
from rho_core.errors import Error


@contract(config.check_policy)
def a_policy_is_accepted_exactly_when_nothing_is_zero(
    capacity: int, steps: int, parallel: int, requests: int, malformed: int, base: int, cap: int, tokens: int
) -> Error | None:
    """
    post: (__return__ is None) == (min(capacity, steps, parallel, requests, malformed, base, cap) >= 1 and tokens >= 0)
    """
    return config.check_policy(
        Policy(capacity, steps, parallel, requests, malformed, base, cap, tool_spec_tokens=tokens)
    )


def _useful(messages: int | None, tokens: int | None) -> bool:
    some = messages is not None or tokens is not None
    return some and (messages is None or messages >= 1) and (tokens is None or tokens >= 1)


@contract(config.check_policy)
def a_compaction_needs_a_threshold(messages: int | None, tokens: int | None) -> Error | None:
    """
    post: (__return__ is None) == _useful(messages, tokens)
    """
    return config.check_policy(Policy(compaction=Compaction(messages, tokens)))


@contract(config.check_policy, bounds=f"three tools; {IDS} or blank")
def tools_are_named_and_only_once(one: Id, two: Id, blank: bool) -> Error | None:
    """
    post: (__return__ is None) == (not blank and one != two)
    """
    return config.check_policy(Policy(tools=(ToolDecl(one), ToolDecl(two), ToolDecl("" if blank else "d"))))
