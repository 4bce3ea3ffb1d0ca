"""What a call needs before it may run: resources, a capability, a grace for its end. Becomes the core's `Plan`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rho_core.inputs import Access, Plan

from ._schema import Arguments

Accesses = Sequence[Access] | Callable[[Arguments], Iterable[Access]]
Capability = str | Callable[[Arguments], str | None]


def reads(*resources: str) -> tuple[Access, ...]:
    """Shared accesses: calls that only read a resource may overlap."""
    return tuple(Access(resource, shared=True) for resource in resources)


def writes(*resources: str) -> tuple[Access, ...]:
    """Exclusive accesses: calls that touch the same resource go one after the other, in model order."""
    return tuple(Access(resource, shared=False) for resource in resources)


@dataclass(frozen=True, slots=True)
class Needs:
    """`accesses` and `capability` may be functions of the validated arguments.

    `exclusive` None: a tool that says nothing of its resources runs alone, for nobody knows what it touches;
    `accesses=()` says that it touches nothing. An asynchronous tool is never exclusive: its calls could not
    be detached (RHO-ORD-7).
    """

    accesses: Accesses | None = None
    exclusive: bool | None = None
    capability: Capability | None = None
    complete_within_ms: int | None = None
    asynchronous: bool = False

    def check(self, name: str) -> None:
        """Raises ValueError for needs that contradict each other."""
        if self.asynchronous and self.exclusive:
            raise ValueError(f"tool {name!r}: an exclusive call cannot be detached; it cannot be asynchronous")
        if self.asynchronous and not callable(self.accesses) and any(not a.shared for a in self.accesses or ()):
            raise ValueError(f"tool {name!r}: a call that writes a resource cannot be detached")
        if self.complete_within_ms is not None and self.complete_within_ms < 1:
            raise ValueError(f"tool {name!r}: complete_within_ms must be at least 1")

    def plan(self, arguments: Arguments) -> Plan:
        """The plan of one call. Raises whatever the two functions raise."""
        accesses = self.accesses(arguments) if callable(self.accesses) else self.accesses or ()
        capability = self.capability(arguments) if callable(self.capability) else self.capability
        return Plan(
            exclusive=self._alone(),
            accesses=tuple(accesses),
            capability=capability,
            complete_within_ms=self.complete_within_ms,
        )

    def _alone(self) -> bool:
        if self.exclusive is not None:
            return self.exclusive
        return self.accesses is None and not self.asynchronous
