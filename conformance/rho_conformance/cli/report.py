"""`rho-core report REPORT.json…`: one self-contained page of several targets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from rho_conformance.cli.common import OK, Format, FormatOption, out, print_json
from rho_conformance.errors import UsageError
from rho_conformance.report import junit
from rho_conformance.report.gathered import Gathered, gather
from rho_conformance.report.page import Page, page
from rho_conformance.report.visible import visible


def register(app: typer.Typer) -> None:
    app.command("report")(report_command)


def report_command(
    reports: Annotated[list[Path], typer.Argument(help="report.json files of conform --report, one for each target")],
    output: Annotated[Path, typer.Option("--out", help="the HTML page to write")],
    mutants: Annotated[Path | None, typer.Option(help="the answer of rho-core mutants --format json")] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="also write a JUnit file of all targets")] = None,
    format: FormatOption = Format.text,
) -> int:
    """Merge reports of several targets, and the kill matrix, into one page that needs no network.

    The status says whether the page was written; what the targets come to is the business of `conform`.
    """
    gathered = gather(reports, mutants)
    made = page(gathered)
    try:
        size = made.write(output)
        if junit_file is not None:
            junit.write(gathered, junit_file)
    except OSError as fault:
        raise UsageError(f"{fault.filename}: {fault.strerror}") from fault
    if format is Format.json:
        print_json(_answer(gathered, made, output, size))
    else:
        _show(gathered, made, output, size)
    return OK


def _answer(gathered: Gathered, made: Page, output: Path, size: int) -> dict[str, Any]:
    return {
        "out": str(output),
        "bytes": size,
        "rules": len(gathered.rules),
        "targets": [
            {
                "target": t.label,
                "profile": t.report.profile,
                "conformant": t.conformant,
                "summary": t.summary,
                "excused": t.excused,
            }
            for t in gathered.targets
        ],
        "score": None if gathered.mutants is None else gathered.mutants.score,
        "witnesses_left_out": made.left_out,
        "not_proved": {s.name: [gap.to_json() for gap in s.gaps] for s in made.sections},
    }


def _show(gathered: Gathered, made: Page, output: Path, size: int) -> None:
    table = Table("target", "profile", "claim", "verdicts")
    for t in gathered.targets:
        counts = ", ".join(f"{n} {name}" for name, n in t.summary.items())
        claim = Text("conformant", "green") if t.conformant else Text("not conformant", "bold red")
        table.add_row(Text(visible(t.label)), Text(visible(t.report.profile)), claim, counts)
    out.print(table)
    gaps = ", ".join(f"{len(s.gaps)} {s.name}" for s in made.sections)
    out.print(f"not proved: {gaps}")
    out.print(f"{output} ({size:,} bytes)", soft_wrap=True, highlight=False)
