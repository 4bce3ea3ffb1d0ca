"""`rho-core conform TARGET`: judge an implementation by every rule of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rho_conformance.cli.common import (
    BROKEN,
    FAULT,
    INCOMPLETE,
    OK,
    Format,
    FormatOption,
    out,
    print_json,
    progress_bar,
)
from rho_conformance.judge.baseline import apply_baseline, read_baseline
from rho_conformance.judge.conform import EXAMPLES, SEED, STEPS, Ask, Report, conform
from rho_conformance.judge.witnesses import write_witnesses
from rho_conformance.report import files, terminal

DEFAULT_FOLDER = Path("build/report")


def register(app: typer.Typer) -> None:
    app.command("conform")(conform_command)


def conform_command(
    target: Annotated[
        str, typer.Argument(help="core, asyncio, trio, chaos[:SEED], mutant:NAME, pydantic-ai, python:M:FACTORY")
    ],
    profile: Annotated[str | None, typer.Option(help="rho or common; the target's own by default")] = None,
    rule: Annotated[list[str] | None, typer.Option(help="judge only this rule; may be repeated")] = None,
    examples: Annotated[int, typer.Option(min=0, help="generated scripts")] = EXAMPLES,
    steps: Annotated[int, typer.Option(min=1, help="longest generated script, in intents")] = STEPS,
    seed: Annotated[int, typer.Option(help="of the generated scripts")] = SEED,
    report: Annotated[
        Path | None, typer.Option(help="folder for report.json, .md, .html, junit.xml and witnesses")
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="known failures, each with a reason; not with --rule")] = None,
    format: FormatOption = Format.text,
) -> int:
    """Play scenarios, directed and generated scripts and sweeps on TARGET, and judge every rule."""
    ask = Ask(target, profile, tuple(rule or ()), examples, steps, seed)
    known = None if baseline is None else read_baseline(baseline, ask)
    with progress_bar() as bar:
        found = conform(ask, bar)
        write_witnesses(found, (report or DEFAULT_FOLDER) / "witnesses", bar)
    if known is not None:
        apply_baseline(found, known)
    path = None if report is None else files.write(found, report)
    if format is Format.json:
        print_json(found.to_json())
    else:
        terminal.show(found, out)
        if path is not None:
            out.print(str(path), soft_wrap=True)
    return status(found)


def status(found: Report) -> int:
    """A proven failure wins over a fault of the harness, which wins over an incomplete run."""
    verdicts = {v.verdict for v in found.verdicts.values()}
    if "fail" in verdicts:
        return BROKEN
    if "error" in verdicts:
        return FAULT
    return OK if found.conformant else INCOMPLETE
