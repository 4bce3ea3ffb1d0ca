"""The command line `rho-core` (design §7)."""

from rho_conformance.cli.app import main

__all__ = ["main"]
