"""Put the commands together, and map every way a command can end to its exit status."""

from __future__ import annotations

import sys
import traceback
from importlib.metadata import EntryPoint, entry_points

import typer

import rho_core
from rho_conformance.cli import check, conform, crosshair, explore, mutants, report, rules, scenario, small, sweep, tla
from rho_conformance.cli.common import FAULT, OK, USAGE, printable
from rho_conformance.errors import DriverError, UsageError

app = typer.Typer(
    name="rho-core",
    help="The contract of LLM-agent session runtimes: read it, and judge an implementation by it.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _register in (rules, conform, report, scenario, check, mutants, explore, tla, crosshair, sweep, small):
    _register.register(app)


_BadCall: type[Exception] = typer.BadParameter.__bases__[0]
"""What typer raises for a command line it cannot read: its own status for that, 2, means something else here."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(rho_core.__version__)
        raise typer.Exit(OK)


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="print the version and leave"
    ),
) -> None:
    return None


def _plug_in(arguments: list[str]) -> None:
    """Commands of other packages (`chat`) come by entry point: no import against the arrows of the design.

    They cost nobody else anything: they are loaded when they are called, or to be listed, and the place of one
    that cannot be loaded is taken by a command that says so.
    """
    called = next((word for word in arguments if not word.startswith("-")), None)
    taken = {command.name for command in app.registered_commands}
    for entry in entry_points(group="rho_core.commands"):
        if entry.name in taken or called not in (None, entry.name):
            continue  # ours, plugged in before, or not what is called
        taken.add(entry.name)
        try:
            command = entry.load()
            alone = typer.Typer()
            alone.command(entry.name)(command)
            typer.main.get_command(alone)  # what cannot be a command fails here, by itself
        except Exception as fault:
            _stand_in(entry, fault)
        else:
            app.command(entry.name)(command)


def _stand_in(entry: EntryPoint, fault: Exception) -> None:
    why = str(fault) or type(fault).__name__
    owner = entry.dist.name if entry.dist is not None else entry.value

    def cannot() -> None:
        raise UsageError(f"the command {entry.name!r} of {owner!r} cannot be loaded: {why}")

    everything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(entry.name, help=f"(cannot be loaded: {why})", context_settings=everything)(cannot)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit status: 0, 1, 2, 3 or 4 (design §7)."""
    printable()
    try:
        _plug_in(sys.argv[1:] if arguments is None else arguments)
        status = app(args=arguments, standalone_mode=False)
    except UsageError as fault:
        return _say(str(fault), USAGE)
    except _BadCall as fault:
        return _say(_explained(fault), USAGE)
    except typer.Exit as done:
        return done.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _say("interrupted", FAULT)
    except DriverError as fault:
        return _say(f"the driver is off the protocol: {fault}", FAULT)
    except BaseException:
        # Also what a target throws past every `except Exception`, as sys.exit does: 1 would read as a verdict.
        traceback.print_exc()
        return FAULT
    return status if isinstance(status, int) else OK


def _explained(fault: Exception) -> str:
    context = getattr(fault, "ctx", None)
    message = str(getattr(fault, "message", "") or fault)
    return message if context is None else f"{message}\n{context.get_usage()}"


def _say(text: str, status: int) -> int:
    for line in text.splitlines() or [""]:
        print(f"rho-core: {line}", file=sys.stderr)
    return status
