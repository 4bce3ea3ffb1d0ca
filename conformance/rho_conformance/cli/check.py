"""`rho-core check TRACE.jsonl` and `rho-core replay WITNESS`: judge what was recorded, and try it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rho_conformance.cli.common import BROKEN, FAULT, OK, Format, FormatOption, out, print_json
from rho_conformance.cli.conform import status
from rho_conformance.errors import UsageError
from rho_conformance.generate.witness import read_witness, replay
from rho_conformance.judge.recorded import check
from rho_conformance.judge.witnesses import broken_rules
from rho_conformance.report import terminal
from rho_conformance.targets import resolve
from rho_conformance.trace import read_trace


def register(app: typer.Typer) -> None:
    app.command("check")(check_command)
    app.command("replay")(replay_command)


def check_command(
    trace: Annotated[Path, typer.Argument(help="a recorded trace, JSON lines")],
    profile: Annotated[str | None, typer.Option(help="rho or common; the trace's own by default")] = None,
    format: FormatOption = Format.text,
) -> int:
    """Judge a recorded trace."""
    report = check(str(trace), read_trace(_existing(trace)), profile)
    if format is Format.json:
        print_json(report.to_json())
    else:
        terminal.show(report, out)
    return status(report)


def replay_command(
    witness: Annotated[Path, typer.Argument(help="a witness file that conform wrote")],
    target: Annotated[str | None, typer.Option(help="where to run it again; the witness's own by default")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="how often")] = 3,
    format: FormatOption = Format.text,
) -> int:
    """Judge a witness's recorded trace, then play its script again: broken k of n times."""
    path = _existing(witness)
    name = target or read_witness(path).target
    found = replay(path, resolve(name), repeat, judge=broken_rules)
    answer = {
        "rule": found.witness.rule,
        "message": found.witness.message,
        "recorded": found.recorded,
        "target": name,
        "k": found.reproduced,
        "n": found.runs,
        "errors": list(found.errors),
    }
    if format is Format.json:
        print_json(answer)
    else:
        out.print(
            f"{answer['rule']}: the recorded trace {'breaks it' if found.recorded else 'is clean'}", highlight=False
        )
        out.print(f"played again on {name}: broken {found.reproduced} of {found.runs} times", highlight=False)
        for error in found.errors:
            out.print(f"fault of the driver: {error}", highlight=False)
    if found.recorded or found.reproduced:
        return BROKEN
    return FAULT if found.errors else OK


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}")
    return path
