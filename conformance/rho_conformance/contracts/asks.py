"""Contracts of `rho_core.asks`: requests, answers, and the registry (rho.md 1.3, RHO-HOST-*)."""

from __future__ import annotations

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import asks
from rho_core.asks import Asks, Choice, HostInputRequest, Question

YES_NO = (Choice("a"), Choice("b"))
ONE = f"one question with the choices a and b; {IDS} for answers"


def _request(many: bool, other: bool, required: bool) -> HostInputRequest:
    return HostInputRequest("r", "", (Question("q", "", YES_NO, many, other, required),))


@contract(asks.validate, bounds=ONE)
def no_answer_fits_only_an_optional_question(many: bool, other: bool, required: bool, empty: bool) -> str | None:
    """
    post: (__return__ is None) == (not required)
    """
    return asks.validate(_request(many, other, required), (("q", ()),) if empty else ())


@contract(asks.validate, bounds=ONE)
def one_answer_fits_when_it_is_offered_or_free(many: bool, other: bool, required: bool, given: Id) -> str | None:
    """
    post: (__return__ is None) == (given != "c" or other)
    """
    return asks.validate(_request(many, other, required), (("q", (given,)),))


@contract(asks.validate, bounds=ONE)
def two_answers_fit_when_many_and_different(many: bool, other: bool, required: bool, one: Id, two: Id) -> str | None:
    """
    post: (__return__ is None) == (many and one != two and (other or "c" not in (one, two)))
    """
    return asks.validate(_request(many, other, required), (("q", (one, two)),))


@contract(asks.validate, bounds="one optional question; an unknown id of at most 3 characters")
def an_unknown_question_is_refused(key: str) -> str | None:
    """
    pre: len(key) <= 3 and key != "q"
    post: __return__ is not None
    """
    return asks.validate(_request(True, True, False), ((key, ("a",)),))


@contract(asks.validate, bounds=ONE)
def a_doubled_answer_is_refused(many: bool, other: bool, required: bool, one: Id, two: Id) -> str | None:
    """
    post: __return__ is not None
    """
    return asks.validate(_request(many, other, required), (("q", (one,)), ("q", (two,))))


@contract(asks.check_request, bounds=f"two questions with at most 2 choices each; {IDS} or blank")
def a_request_is_made_exactly_when_it_can_be_answered(
    one: Id, two: Id, blank: bool, n: int, first: Id, second: Id
) -> str | None:
    """
    pre: 0 <= n <= 2
    post: (__return__ is None) == (not blank and one != two and n > 0 and (n < 2 or first != second))
    """
    choices = (Choice(first), Choice(second))[:n]
    questions = (Question(one, "", YES_NO), Question(" " if blank else two, "", choices))
    return asks.check_request(HostInputRequest("r", "", questions))


def _two(one: Id, two: Id) -> Asks:
    empty = HostInputRequest("x", "", ())
    first = Asks().announce(one, HostInputRequest("a", "", ()))
    return first.announce(two, HostInputRequest("b", empty.title, ()))


@contract(Asks.announce, Asks.find, bounds=f"two open questions; {IDS}")
def an_announced_question_is_found_and_used(one: Id, two: Id, which: Id) -> bool:
    """
    post: __return__
    """
    registry = _two(one, two)
    found = registry.find(which)
    return (found is not None) == (which in ("a", "b")) == (which in registry.used)


@contract(Asks.close, bounds=f"two open questions; {IDS}")
def closing_a_question_closes_that_one(one: Id, two: Id, which: Id) -> bool:
    """
    post: __return__
    """
    before = _two(one, two)
    after = before.close(which)
    return after.used == before.used and after.open == tuple(a for a in before.open if a.request.id != which)


@contract(Asks.close_call, bounds=f"two open questions; {IDS}")
def a_call_that_returns_closes_its_own_questions(one: Id, two: Id, which: Id) -> bool:
    """
    post: __return__
    """
    before = _two(one, two)
    after = before.close_call(which)
    return after.used == before.used and all((a in after.open) == (a.call_id != which) for a in before.open)
