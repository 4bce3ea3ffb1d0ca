"""Who may use which capability: allow lists, and a person who is asked. Everything not allowed is denied.

What a policy returns is the reason alone; the run's result reads "<capability> capability denied: <reason>".

A capability is a text the tool chooses, often with an argument in it: "fs.read:/srv/data/a.txt". Patterns are those of
`fnmatch`, with case, and `*` matches "/" as well: a tool that puts a path into its capability must resolve
it first, or "/srv/../etc/passwd" matches "/srv/*".
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import anyio

from rho_core.messages import ToolCall

__all__ = ["AllowList", "AskHost", "Decision", "Rule"]

NOT_ALLOWED = "no policy allows it"
_log = logging.getLogger("rho_adapters.tools")


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern for the capability and one for the tool's name; both must match."""

    capability: str = "*"
    tool: str = "*"

    def matches(self, call: ToolCall, capability: str) -> bool:
        """Does the rule speak of this call?"""
        return fnmatchcase(capability, self.capability) and fnmatchcase(call.name, self.tool)


class AllowList:
    """Allows what a rule of `allow` matches and none of `deny` does. A text stands for a rule on the capability."""

    def __init__(self, allow: Iterable[Rule | str] = (), *, deny: Iterable[Rule | str] = ()) -> None:
        self._allow = _rules(allow)
        self._deny = _rules(deny)

    def verdict(self, call: ToolCall, capability: str) -> bool | None:
        """True: allowed; False: denied by a rule; None: no rule speaks of it."""
        if any(rule.matches(call, capability) for rule in self._deny):
            return False
        return True if any(rule.matches(call, capability) for rule in self._allow) else None

    async def authorize(self, call: ToolCall, capability: str) -> str | None:
        """None, or why not."""
        match self.verdict(call, capability):
            case True:
                return None
            case False:
                return "a policy forbids it"
            case _:
                return NOT_ALLOWED


def _rules(given: Iterable[Rule | str]) -> tuple[Rule, ...]:
    if isinstance(given, str):  # a text is iterable, and "*" would be a rule for each of its letters
        raise TypeError("rules are a sequence, not one text")
    return tuple(Rule(rule) if isinstance(rule, str) else rule for rule in given)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a host decided on one call. `remembered`: the same holds for this tool and capability from now on."""

    allowed: bool
    remembered: bool = False
    reason: str = "the host denied it"

    @staticmethod
    def once() -> Decision:
        """Allowed this time."""
        return Decision(True)

    @staticmethod
    def always() -> Decision:
        """Allowed from now on."""
        return Decision(True, remembered=True)

    @staticmethod
    def deny(reason: str = "the host denied it") -> Decision:
        """Denied this time."""
        return Decision(False, reason=reason)

    @staticmethod
    def never(reason: str = "the host denied it") -> Decision:
        """Denied from now on."""
        return Decision(False, remembered=True, reason=reason)


Decide = Callable[[ToolCall, str], Awaitable[Decision]]


class AskHost:
    """Asks `decide` about what `rules` leave open, one question at a time, and remembers what it is told to.

    One object is one memory, and a runtime has one policy for all of its sessions: what one of them had allowed
    from now on is allowed to all. Sessions that must not share it need runtimes of their own. Nothing is allowed by
    mishap: an exception of `decide`, an answer that is no Decision, and `timeout_s` seconds without an answer deny.
    """

    def __init__(self, decide: Decide, *, rules: AllowList | None = None, timeout_s: float | None = None) -> None:
        self._decide = decide
        self._rules = rules or AllowList()
        self._timeout_s = timeout_s
        self._memory: dict[tuple[str, str], Decision] = {}
        self._one_at_a_time = anyio.Lock()

    @property
    def remembered(self) -> dict[tuple[str, str], Decision]:
        """A copy of what is remembered, by tool and capability."""
        return dict(self._memory)

    def forget(self) -> None:
        """Ask about everything again."""
        self._memory.clear()

    async def authorize(self, call: ToolCall, capability: str) -> str | None:
        """None, or why not. Being cancelled while the host thinks remembers nothing."""
        verdict = self._rules.verdict(call, capability)
        if verdict is not None:
            return None if verdict else "a policy forbids it"
        async with self._one_at_a_time:  # two calls of one batch: the second may find the answer remembered
            decision = self._memory.get((call.name, capability)) or await self._ask(call, capability)
            if decision.remembered:
                self._memory[call.name, capability] = decision
        return None if decision.allowed else decision.reason

    async def _ask(self, call: ToolCall, capability: str) -> Decision:
        decision: object = None
        try:
            with anyio.move_on_after(self._timeout_s) as limit:
                decision = await self._decide(call, capability)
        except Exception as error:
            _log.warning("the decision on %s failed", capability, exc_info=error)
            return Decision.deny(f"the decision failed with {type(error).__name__}")
        if limit.cancelled_caught:
            return Decision.deny("nobody decided in time")
        if not isinstance(decision, Decision):
            return Decision.deny(f"the decision was a {type(decision).__name__}, not a Decision")
        return decision
