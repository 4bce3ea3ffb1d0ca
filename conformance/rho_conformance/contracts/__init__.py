"""Contracts of the core's pure functions, and an inductive invariant of the run machine, for CrossHair.

One module for each module of the core; `inductive` is about the machine as a whole. The verdicts are committed in
`spec/evidence/crosshair.toml`, and `rho-core crosshair` makes them again.
"""

from __future__ import annotations

from importlib import import_module

from rho_conformance.contracts.base import CONTRACTS, Contract

MODULES = (
    "budget",
    "retry_after",
    "messages",
    "capture",
    "rope",
    "steering",
    "calls",
    "jobs",
    "resources",
    "asks",
    "ledger",
    "config",
    "errors",
    "snapshot",
    "estimate",
    "shown",
    "outbox",
    "runtime",
    "inductive",
)


def contracts() -> dict[str, Contract]:
    """Every contract by name, in the order of the modules."""
    for module in MODULES:
        import_module(f"{__name__}.{module}")
    return CONTRACTS
