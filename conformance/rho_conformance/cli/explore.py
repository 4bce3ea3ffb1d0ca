"""`rho-core explore`: search the real reducer exhaustively, with the monitors inside; or walk through it by hand."""

from __future__ import annotations

import sys
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
    err,
    out,
    print_json,
    progress_bar,
)
from rho_conformance.cli.walk import walk
from rho_conformance.errors import UsageError
from rho_conformance.explore import SCOPES, Configuration, Report, Result, explore, names


def register(app: typer.Typer) -> None:
    app.command("explore")(explore_command)


def explore_command(
    scope: Annotated[
        str, typer.Option(help="tiny or small (seconds to a minute or two), medium (minutes), large (hours)")
    ] = "small",
    workers: Annotated[int, typer.Option(min=1, help="processes, one configuration at a time each")] = 2,
    config: Annotated[
        list[str] | None, typer.Option("--config", help="Only this configuration of the scope; may be repeated.")
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Walk through one configuration by hand; reads commands.")
    ] = False,
    format: FormatOption = Format.text,
) -> int:
    """Visit every state of the named configurations; report violations, deadlocks and the rows taken."""
    if scope not in names():
        raise UsageError(f"there is no scope {scope!r}; known: {', '.join(names())}")
    if interactive:
        return walk(_one(scope, config), sys.stdin, out)
    known = [c.name for c in SCOPES[scope]]
    for name in config or ():
        if name not in known:
            raise UsageError(f"there is no configuration {name!r} in scope {scope}; known: {', '.join(known)}")
    with progress_bar() as bar:
        report = explore(scope, config, on_progress=bar, workers=workers, on_result=_told)
    if format is Format.json:
        print_json(report.to_json())
    else:
        _show(report)
    if report.violations or report.deadlocks:
        return BROKEN
    return OK if report.complete else INCOMPLETE


def _one(scope: str, wanted: list[str] | None) -> Configuration:
    """The configuration to walk through: of the scope, or else of any."""
    runs = {
        c.name: c for c in (*SCOPES[scope], *(c for s in SCOPES.values() for c in s)) if isinstance(c, Configuration)
    }
    name = (wanted or ["async and sync"])[0]
    if name not in runs or len(wanted or ()) > 1:
        raise UsageError(f"--interactive takes one configuration of a run; known: {', '.join(runs)}")
    return runs[name]


def _told(result: Result, done: int, total: int) -> None:
    """One line on stderr for each configuration, as it is done."""
    found = len(result.violations) + len(result.deadlocks)
    end = "complete" if result.complete else "NOT complete"
    line = (
        f"{done}/{total} {result.name}: {result.states} states, {result.transitions} transitions, {end}, {found} found"
    )
    err.print(Text(line), soft_wrap=True)


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
