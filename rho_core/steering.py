"""Steers of one run: staged, claimed by the provider, delivered, applied (RHO-STEER-*)."""

from __future__ import annotations

from typing import Literal

from .messages import Block, User
from .record import record

Stage = Literal["staged", "claimed", "delivered"]
Retraction = Literal["Retracted", "AlreadyApplied", "NotFound"]


@record
class Steer:
    """An accepted steer that is not in the history yet."""

    id: str
    content: tuple[Block, ...]
    stage: Stage = "staged"


@record
class Steers:
    """`waiting` in acceptance order; `applied`: ids that entered the history."""

    waiting: tuple[Steer, ...] = ()
    applied: tuple[str, ...] = ()

    def find(self, steering_id: str) -> Steer | None:
        """The accepted, unapplied steer of that id."""
        return next((s for s in self.waiting if s.id == steering_id), None)

    def knows(self, steering_id: str) -> bool:
        """Was this id accepted in this run and not retracted?"""
        return self.find(steering_id) is not None or steering_id in self.applied

    def accept(self, steering_id: str, content: tuple[Block, ...]) -> Steers:
        """Stage one more."""
        return Steers((*self.waiting, Steer(steering_id, content)), self.applied)

    def staged(self) -> tuple[str, ...]:
        """Ids the provider may still claim."""
        return tuple(s.id for s in self.waiting if s.stage == "staged")

    def unapplied(self) -> tuple[str, ...]:
        """Ids that were accepted and never entered the history (D7)."""
        return tuple(s.id for s in self.waiting)

    def retract(self, steering_id: str) -> tuple[Steers, Retraction]:
        """Decide the race: only a staged steer comes back (RHO-STEER-6, RHO-STEER-11, D27)."""
        steer = self.find(steering_id)
        if steer is None:
            return self, "AlreadyApplied" if steering_id in self.applied else "NotFound"
        if steer.stage != "staged":
            return self, "AlreadyApplied"
        return Steers(tuple(s for s in self.waiting if s.id != steering_id), self.applied), "Retracted"

    def move(self, steering_id: str, source: Stage, target: Stage) -> Steers | None:
        """The registry with that steer moved, or None when it is not at `source`."""
        steer = self.find(steering_id)
        if steer is None or steer.stage != source:
            return None
        return Steers(
            tuple(Steer(s.id, s.content, target) if s.id == steering_id else s for s in self.waiting),
            self.applied,
        )

    def restage(self) -> Steers:
        """The attempt failed: what it claimed or delivered is staged again (D15)."""
        return Steers(tuple(Steer(s.id, s.content) for s in self.waiting), self.applied)

    def next_group(self) -> tuple[str, ...]:
        """Ids of the next SteeringApplied: delivered ones first and by themselves (D10)."""
        delivered = tuple(s.id for s in self.waiting if s.stage == "delivered")
        return delivered or self.unapplied()

    def apply(self, ids: tuple[str, ...]) -> tuple[Steers, tuple[User, ...]]:
        """Move them into the history, in acceptance order."""
        entering = tuple(s for s in self.waiting if s.id in ids)
        rest = tuple(s for s in self.waiting if s.id not in ids)
        applied = (*self.applied, *(s.id for s in entering))
        return Steers(rest, applied), tuple(User(s.content) for s in entering)


NO_STEERS = Steers()
