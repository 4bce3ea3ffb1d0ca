"""The model's view of a growing candidate, and its size, without looking at old messages again (design §3.6).

A value of this is derived from the candidate, so it takes no part in comparisons.
"""

from __future__ import annotations

from .estimate import BASE, message_tokens
from .ledger import model_view
from .messages import History
from .record import record


@record
class Shown:
    """The view of the first `covered` messages, in which every call is answered, and the tokens of that view."""

    covered: int = 0
    messages: History = ()
    tokens: int = 0


NOTHING_SHOWN = Shown()


def show(shown: Shown, history: History, pending: frozenset[str], tool_spec_tokens: int) -> tuple[Shown, History, int]:
    """What a model may be shown of `history`, the estimate of it in tokens, and what to remember.

    Nothing of a history with pending calls is remembered: their results are still to come. The answer is
    `model_view(history, pending)`, whatever was remembered before (a test holds it to that).
    """
    tail = model_view(history[shown.covered :], pending)
    messages, size = shown.messages + tail, shown.tokens + sum(map(message_tokens, tail))
    after = shown if pending else Shown(len(history), messages, size)
    return after, messages, BASE + tool_spec_tokens + size
