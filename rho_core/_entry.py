"""The console script: finds the command line, which lives in another package, or says which extra brings it."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module

FAULT, USAGE = 3, 4


def main() -> int:
    """Run `rho-core`. Status 4 when the `[conformance]` extra is not installed (design §2), 3 for a fault of ours."""
    try:
        cli = import_module("rho_conformance.cli")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0].startswith("rho_"):
            raise
        print(
            f"rho-core: the command line needs the package {missing.name!r}; "
            "install it with: pip install 'rho-core[conformance]'",
            file=sys.stderr,
        )
        return USAGE
    except Exception:  # python's own status for this, 1, means that a rule failed
        traceback.print_exc()
        return FAULT
    status: int = cli.main()
    return status
