"""Host-input questions: every branch of rho.md 1.3, and the registry of a batch."""

from __future__ import annotations

import pytest

from rho_core.asks import NO_ASKS, Answers, Choice, HostInputRequest, Question, check_request, validate

YES_NO = (Choice("yes"), Choice("no"))


def request(*questions: Question) -> HostInputRequest:
    return HostInputRequest("r", "title", questions)


@pytest.mark.parametrize(
    ("questions", "issue"),
    [
        ((), "at least one question"),
        ((Question(" \t", "?", YES_NO),), "blank id"),
        ((Question("a", "?", YES_NO), Question("a", "?", YES_NO)), "'a' is used twice"),
        ((Question("a", "?", ()),), "'a' has no choices"),
        ((Question("a", "?", (Choice("x"), Choice("x", "other label"))),), "'a' offers a choice twice"),
        ((Question("a", "?", YES_NO), Question("b", "?", (Choice(""),), default="nothing known")), None),
    ],
)
def test_a_request(questions: tuple[Question, ...], issue: str | None) -> None:
    found = check_request(request(*questions))
    assert found is None if issue is None else found is not None and issue in found


ONE = Question("one", "?", YES_NO)
MANY = Question("many", "?", YES_NO, many=True, required=False)
FREE = Question("free", "?", YES_NO, allow_other=True, required=False)
OPTIONAL = Question("optional", "?", YES_NO, required=False)
FORM = request(ONE, MANY, FREE, OPTIONAL)
GIVEN = ("one", ("yes",))


@pytest.mark.parametrize(
    ("answers", "issue"),
    [
        ((GIVEN,), None),
        ((), "'one' is required"),
        ((("one", ()),), "'one' is required"),
        ((GIVEN, ("optional", ())), None),
        ((("one", ("yes", "no")),), "'one' takes one answer"),
        ((GIVEN, ("optional", ("yes", "no"))), "'optional' takes one answer"),
        ((GIVEN, ("many", ("yes", "no"))), None),
        ((GIVEN, ("many", ("yes", "yes"))), "'many' has an answer twice"),
        ((("one", ("maybe",)),), "'one' does not offer 'maybe'"),
        ((GIVEN, ("free", ("maybe",))), None),
        ((GIVEN, ("free", ("",))), None),
        ((GIVEN, GIVEN), "'one' is answered twice"),
        ((("zz", ()), ("aa", ()), GIVEN), "no question has the id 'aa'"),
        # the first failure wins: unknown key, then question by question, then count, doubled, not offered
        ((("zz", ()),), "no question has the id 'zz'"),
        ((("many", ("maybe", "maybe")),), "'one' is required"),
        ((("one", ("maybe", "maybe")),), "'one' takes one answer"),
        ((GIVEN, ("many", ("maybe", "maybe"))), "'many' has an answer twice"),
        ((("optional", ("maybe",)), ("one", ("maybe",))), "'one' does not offer"),
    ],
)
def test_a_response(answers: Answers, issue: str | None) -> None:
    found = validate(FORM, answers)
    assert found is None if issue is None else found is not None and issue in found


def test_the_registry_keeps_announcing_order_and_every_id() -> None:
    first, second = HostInputRequest("r1", "", (ONE,)), HostInputRequest("r2", "", (ONE,))
    asks = NO_ASKS.announce("A", first).announce("B", second)
    assert [(a.call_id, a.request.id) for a in asks.open] == [("A", "r1"), ("B", "r2")]
    found = asks.find("r2")
    assert found is not None and found.call_id == "B"
    answered = asks.close("r1")
    assert answered.find("r1") is None and answered.find("r2") is not None
    assert answered.used == ("r1", "r2")  # an answered id is still used up in this batch (RHO-COORD-3)


def test_a_call_that_returns_closes_its_questions_alone() -> None:
    asks = NO_ASKS.announce("A", HostInputRequest("r1", "", (ONE,))).announce("B", HostInputRequest("r2", "", (ONE,)))
    assert [a.request.id for a in asks.close_call("A").open] == ["r2"]
    assert asks.close_call("C") == asks
