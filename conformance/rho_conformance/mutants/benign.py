"""Permitted variants of the core: no rule may call one a failure (design §6).

`permitted_by` names a decision (D3), a race of the contract (R10), or the rule whose page leaves it open.
"""

from __future__ import annotations

from rho_conformance.mutants import (
    benign_calls,
    benign_ends,
    benign_flow,
    benign_host,
    benign_losses,
    benign_race,
    benign_surface,
)
from rho_conformance.mutants.base import Benign

BENIGN: tuple[Benign, ...] = (
    *benign_ends.BENIGN,
    *benign_losses.BENIGN,
    *benign_calls.BENIGN,
    *benign_flow.BENIGN,
    *benign_host.BENIGN,
    *benign_race.BENIGN,
    *benign_surface.BENIGN,
)
