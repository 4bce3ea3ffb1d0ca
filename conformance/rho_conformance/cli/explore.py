"""`rho-core explore`: search the real reducer exhaustively, with the monitors inside."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from rho_conformance.cli.common import (
    BROKEN,
    INCOMPLETE,
    OK,
    Format,
    FormatOption,
    out,
    print_json,
    progress_bar,
)
from rho_conformance.errors import UsageError
from rho_conformance.explore import Report, explore, names


def register(app: typer.Typer) -> None:
    app.command("explore")(explore_command)


def explore_command(
    scope: Annotated[str, typer.Option(help="tiny or small")] = "small",
    workers: Annotated[int, typer.Option(min=1, help="processes")] = 2,
    format: FormatOption = Format.text,
) -> int:
    """Visit every state of the named configurations; report violations, deadlocks and the rows taken."""
    if scope not in names():
        raise UsageError(f"there is no scope {scope!r}; known: {', '.join(names())}")
    with progress_bar() as bar:
        report = explore(scope, on_progress=bar, workers=workers)
    if format is Format.json:
        print_json(report.to_json())
    else:
        _show(report)
    if report.violations or report.deadlocks:
        return BROKEN
    return OK if report.complete else INCOMPLETE


def _show(report: Report) -> None:
    table = Table("configuration", "states", "transitions", "complete", "deadlocks", "violations")
    for c in report.to_json()["configurations"]:
        table.add_row(*(str(c[k]) for k in ("name", "states", "transitions", "complete", "deadlocks", "violations")))
    out.print(table)
    for v in (*report.violations, *report.deadlocks):
        out.print(Text(f"{v.rule} in {v.configuration}: {v.message}", style="red"))
        for line in v.trace:
            out.print(Text(f"    {line}"))
    complete = "complete" if report.complete else "NOT complete: a bound was hit"
    out.print(
        f"{report.states} states, {report.transitions} transitions, {complete}; "
        f"{len(report.violations)} violations, {len(report.deadlocks)} deadlocks; {report.seconds:.1f} s"
    )
