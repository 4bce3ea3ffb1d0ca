"""Permitted variants of the core: no rule may call one a failure."""

from __future__ import annotations

from rho_conformance.mutants.base import Benign

BENIGN: tuple[Benign, ...] = ()
