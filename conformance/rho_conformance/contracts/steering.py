"""Contracts of `rho_core.steering`: one side wins every race, nothing is applied twice or lost (RHO-STEER-*)."""

from __future__ import annotations

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core.messages import Text
from rho_core.steering import Stage, Steer, Steers

SMALL = f"two waiting steers of any stage and one applied; {IDS}"


def _steers(one: Stage, two: Stage) -> Steers:
    return Steers((Steer("a", (Text("A"),), one), Steer("b", (), two)), ("c",))


@contract(Steers.retract, Steers.find, bounds=SMALL)
def only_a_staged_steer_comes_back(one: Stage, two: Stage, which: Id) -> str:
    """
    post: (__return__ == "Retracted") == ((which == "a" and one == "staged") or (which == "b" and two == "staged"))
    """
    return _steers(one, two).retract(which)[1]


@contract(Steers.retract, bounds=SMALL)
def a_retraction_takes_out_exactly_that_one(one: Stage, two: Stage, which: Id) -> bool:
    """
    post: __return__
    """
    before = _steers(one, two)
    after, answer = before.retract(which)
    if answer != "Retracted":
        return after == before
    return after == Steers(tuple(s for s in before.waiting if s.id != which), before.applied)


@contract(Steers.retract, Steers.knows, bounds="one waiting steer, an unknown id of at most 3 characters")
def an_unknown_id_is_not_found(stage: Stage, which: str) -> str:
    """
    pre: len(which) <= 3 and which != "a"
    post: __return__ == "NotFound"
    """
    return Steers((Steer("a", (), stage),)).retract(which)[1]


@contract(Steers.move, bounds=SMALL)
def a_steer_moves_only_from_where_it_is(one: Stage, two: Stage, which: Id, source: Stage, target: Stage) -> bool:
    """
    post: __return__
    """
    before = _steers(one, two)
    moved = before.move(which, source, target)
    steer = before.find(which)
    if steer is None or steer.stage != source:
        return moved is None
    if moved is None:
        return False
    after = moved.find(which)
    return after == Steer(which, steer.content, target) and moved.unapplied() == before.unapplied()


@contract(Steers.move, Steers.retract, bounds=SMALL)
def a_claim_and_a_retraction_cannot_both_win(one: Stage, two: Stage, which: Id) -> bool:
    """
    post: __return__
    """
    claimed = _steers(one, two).move(which, "staged", "claimed")
    return claimed is None or claimed.retract(which)[1] == "AlreadyApplied"


@contract(Steers.restage, Steers.staged, bounds=SMALL)
def restaging_stages_all_and_loses_none(one: Stage, two: Stage) -> bool:
    """
    post: __return__
    """
    before = _steers(one, two)
    after = before.restage()
    return after.staged() == after.unapplied() == before.unapplied() and after.applied == before.applied


@contract(Steers.apply, bounds=SMALL)
def applying_moves_exactly_the_named(one: Stage, two: Stage, first: bool, second: bool) -> bool:
    """
    post: __return__
    """
    before = _steers(one, two)
    ids = (*(("a",) if first else ()), *(("b",) if second else ()))
    after, messages = before.apply(ids)
    named = tuple(s for s in before.waiting if s.id in ids)
    entered = tuple(m.content for m in messages) == tuple(s.content for s in named)
    return (
        entered
        and after.applied == ("c", *ids)
        and after.waiting == tuple(s for s in before.waiting if s.id not in ids)
    )


def _delivered(one: Stage, two: Stage) -> tuple[str, ...]:
    return tuple(i for i, stage in (("a", one), ("b", two)) if stage == "delivered")


@contract(Steers.next_group, bounds=SMALL)
def delivered_steers_go_first_and_alone(one: Stage, two: Stage) -> tuple[str, ...]:
    """
    post: __return__ == (_delivered(one, two) or ("a", "b"))
    """
    return _steers(one, two).next_group()


@contract(Steers.accept, Steers.knows, bounds=f"at most one steer waiting and one applied; {IDS}")
def what_was_accepted_is_known_and_last(stage: Stage, new: Id) -> bool:
    """
    post: __return__
    """
    before = Steers((Steer("a", (), stage),), ("b",))
    if before.knows(new):
        return new in ("a", "b")
    after = before.accept(new, ())
    return after.knows(new) and after.waiting[-1] == Steer(new, ()) and after.waiting[:-1] == before.waiting
