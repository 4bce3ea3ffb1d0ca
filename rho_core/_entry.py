"""The console script: finds the command line, which lives in another package, or says which extra brings it."""

from __future__ import annotations

import sys
from importlib import import_module

USAGE = 4


def main() -> int:
    """Run `rho-core`. Exit status 4 when the `[conformance]` extra is not installed (design §2)."""
    try:
        cli = import_module("rho_conformance.cli")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "rho_core":
            raise
        print(
            f"rho-core: the command line needs the package {missing.name!r}; "
            "install it with: pip install 'rho-core[conformance]'",
            file=sys.stderr,
        )
        return USAGE
    status: int = cli.main()
    return status
