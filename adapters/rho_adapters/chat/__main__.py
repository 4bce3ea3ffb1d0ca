"""`python -m rho_adapters.chat`: the same as `rho-core chat`, where the suite is not installed."""

from __future__ import annotations

import sys

import typer

from rho_adapters.chat.app import USAGE, chat

_BadCall: type[Exception] = typer.BadParameter.__bases__[0]
"""What typer raises for a command line it cannot read."""


def main() -> int:
    """The exit status."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(chat)
    try:
        status = app(standalone_mode=False)
    except typer.Exit as done:
        return done.exit_code
    except _BadCall as fault:
        print(f"rho-core chat: {getattr(fault, 'message', fault)}", file=sys.stderr)
        return USAGE
    return status if isinstance(status, int) else 0


if __name__ == "__main__":
    sys.exit(main())
