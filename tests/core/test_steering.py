"""Steers as a machine of their own (RHO-STEER-5…11, D10, D15, D27)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rho_core.messages import Text, User
from rho_core.steering import NO_STEERS, Steers

IDS = st.sampled_from(["s1", "s2", "s3", "s4"])


def staged(*ids: str) -> Steers:
    steers = NO_STEERS
    for steering_id in ids:
        steers = steers.accept(steering_id, (Text(steering_id),))
    return steers


def test_a_staged_steer_comes_back_once() -> None:
    steers, first = staged("a").retract("a")
    _, second = steers.retract("a")
    assert (first, second) == ("Retracted", "NotFound")


def test_a_claimed_or_delivered_steer_does_not_come_back_until_the_attempt_failed() -> None:
    claimed = staged("a").move("a", "staged", "claimed")
    assert claimed is not None and claimed.retract("a")[1] == "AlreadyApplied"
    delivered = claimed.move("a", "claimed", "delivered")
    assert delivered is not None and delivered.retract("a")[1] == "AlreadyApplied"
    assert delivered.restage().retract("a")[1] == "Retracted"


def test_delivered_steers_are_applied_first_and_by_themselves() -> None:
    moved = staged("a", "b").move("b", "staged", "claimed")
    assert moved is not None
    delivered = moved.move("b", "claimed", "delivered")
    assert delivered is not None and delivered.next_group() == ("b",)
    rest, messages = delivered.apply(("b",))
    assert messages == (User((Text("b"),)),)
    assert rest.next_group() == ("a",) and rest.retract("b")[1] == "AlreadyApplied"


class SteeringMachine(RuleBasedStateMachine):
    """Against a plain dict of id -> stage, and a list of what was applied."""

    def __init__(self) -> None:
        super().__init__()
        self.steers = NO_STEERS
        self.model: dict[str, str] = {}
        self.applied: list[str] = []

    @rule(steering_id=IDS)
    def accept(self, steering_id: str) -> None:
        if steering_id in self.model or steering_id in self.applied:
            return
        self.steers = self.steers.accept(steering_id, (Text(steering_id),))
        self.model[steering_id] = "staged"

    @rule(steering_id=IDS)
    def retract(self, steering_id: str) -> None:
        self.steers, answer = self.steers.retract(steering_id)
        stage = self.model.get(steering_id)
        if stage == "staged":
            assert answer == "Retracted"
            del self.model[steering_id]
        elif stage is not None or steering_id in self.applied:
            assert answer == "AlreadyApplied"
        else:
            assert answer == "NotFound"

    @rule(steering_id=IDS, deliver=st.booleans())
    def move(self, steering_id: str, deliver: bool) -> None:
        stage = self.model.get(steering_id)
        moved = (
            self.steers.move(steering_id, "claimed", "delivered")
            if deliver
            else self.steers.move(steering_id, "staged", "claimed")
        )
        assert (moved is not None) == (stage == ("claimed" if deliver else "staged"))
        if moved is not None:
            self.steers = moved
            self.model[steering_id] = "delivered" if deliver else "claimed"

    @rule()
    def fail(self) -> None:
        self.steers = self.steers.restage()
        self.model = dict.fromkeys(self.model, "staged")

    @rule()
    def apply(self) -> None:
        ids = self.steers.next_group()
        self.steers, messages = self.steers.apply(ids)
        assert len(messages) == len(ids)
        for steering_id in ids:
            del self.model[steering_id]
        self.applied += ids

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert self.steers.unapplied() == tuple(self.model)
        assert self.steers.applied == tuple(self.applied)


TestSteering = SteeringMachine.TestCase
