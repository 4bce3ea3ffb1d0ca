"""`rho-core diagram` and `rho-core bench`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from rho_conformance.bench import bench
from rho_conformance.cli.common import OK, Format, FormatOption, out, print_json
from rho_conformance.errors import UsageError
from rho_core import diagrams


def register(app: typer.Typer) -> None:
    app.command("diagram")(diagram)
    app.command("bench")(bench_command)


def diagram(
    machine: Annotated[str, typer.Argument(help="run, call, job, steer, session")] = "run",
    format: FormatOption = Format.text,
) -> int:
    """Print a machine of the core as Mermaid text."""
    if machine not in diagrams.MACHINES:
        raise UsageError(f"there is no machine {machine!r}; known: {', '.join(diagrams.MACHINES)}")
    text = diagrams.MACHINES[machine]()
    if format is Format.json:
        print_json({"machine": machine, "mermaid": text})
    else:
        typer.echo(text, nl=False)
    return OK


def bench_command(format: FormatOption = Format.text) -> int:
    """Measure the core, and what is installed beside it, against named yardsticks in the same run."""
    found = bench()
    if format is Format.json:
        print_json(found)
    else:
        table = Table("figure", "value", "unit")
        for name, figure in found.items():
            value = figure["value"]
            table.add_row(name, "—" if value is None else f"{value:,}", figure["unit"])
        out.print(table)
    return OK
