"""`rho-core mutants`: does every rule catch its deliberate fault, and let every permitted variant pass?"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from rho_conformance.cli.common import BROKEN, OK, Format, FormatOption, out, print_json, progress_bar
from rho_conformance.errors import UsageError
from rho_conformance.judge.kill import Matrix, kill_matrix
from rho_conformance.judge.liveness import own_mutants


def register(app: typer.Typer) -> None:
    app.command("mutants")(mutants)


def mutants(
    rule: Annotated[str | None, typer.Option(help="only the mutants that this rule must kill")] = None,
    full: Annotated[bool, typer.Option("--full", help="every item, every rule: much longer")] = False,
    workers: Annotated[int, typer.Option(min=1, help="processes")] = 2,
    format: FormatOption = Format.text,
) -> int:
    """Play every scenario and directed script on every mutant of the core, and print who catches what."""
    if rule is not None and rule not in own_mutants():
        raise UsageError(f"no mutant is meant for {rule!r}; see: rho-core rules {rule}")
    with progress_bar() as bar:
        matrix = kill_matrix(None if rule is None else [rule], bar, workers, full)
    if format is Format.json:
        print_json(matrix.to_json())
    else:
        _show(matrix)
    harmed = any(matrix.benign.values())
    return OK if matrix.score == 1.0 and not harmed else BROKEN


def _show(matrix: Matrix) -> None:
    table = Table("mutant", "meant for", "killed", "by", "shown by")
    for k in matrix.kills:
        by = ", ".join(k.by[:5]) + (f" and {len(k.by) - 5} more" if len(k.by) > 5 else "")
        state = Text("yes", style="green") if k.killed else Text("NO", style="bold red")
        table.add_row(k.mutant, k.intended, state, by, k.where or "–")
    out.print(table)
    if matrix.benign:
        variants = Table("permitted variant", "called a failure by")
        for name, fails in matrix.benign.items():
            variants.add_row(name, Text(", ".join(sorted(fails)), style="bold red") if fails else Text("–"))
        out.print(variants)
    killed = sum(k.killed for k in matrix.kills)
    harmed = sum(bool(f) for f in matrix.benign.values())
    out.print(
        f"{killed} of {len(matrix.kills)} mutants killed by their rule (score {matrix.score:.3f}); "
        f"{harmed} of {len(matrix.benign)} permitted variants called a failure"
    )
