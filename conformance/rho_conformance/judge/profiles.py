"""What a profile asks every implementation to be able to do (design §6, "Profiles").

A rule that needs a mandatory capability which a target does not declare is *inconclusive*, not excused: a target
that declares nothing must not come out conformant.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from rho_conformance.errors import UsageError

MANDATORY: dict[str, tuple[str, ...]] = {
    "rho": (
        "start",
        "cancel",
        "steer",
        "retract",
        "respond",
        "outcome",
        "read",
        "hold_reader",
        "shutdown",
        "drop",
        "advance",
        "provider.delta",
        "provider.reasoning",
        "provider.call_delta",
        "provider.usage",
        "provider.return",
        "provider.fail",
        "tool.*",
        "config.event_capacity",
        "config.max_steps",
        "config.max_parallel_tools",
        "config.tools.*",
        "observe.*",
    ),
    "common": (
        "start",
        "cancel",
        "outcome",
        "provider.return",
        "tool.return",
        "observe.outcome",
        "observe.requests",
    ),
}


def profile_for(declared: list[str], asked: str | None) -> str:
    """The profile to judge by: the one asked for, else the target's first one that we can judge."""
    if asked is not None:
        if asked not in MANDATORY:
            known = ", ".join(MANDATORY)
            raise UsageError(f"profile {asked!r} is not judged yet; known: {known}")
        return asked
    return next((p for p in declared if p in MANDATORY), "common")


def is_mandatory(profile: str, feature: str) -> bool:
    """Must every implementation of the profile have this capability?"""
    return any(fnmatchcase(feature, pattern) for pattern in MANDATORY[profile])
