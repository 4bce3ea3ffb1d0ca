"""`rho-core scenario PATH…`: run scenario files, ours or anyone's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from rho_conformance.cli.common import (
    BROKEN,
    FAULT,
    INCOMPLETE,
    OK,
    Format,
    FormatOption,
    err,
    out,
    print_json,
    progress_bar,
)
from rho_conformance.errors import UsageError
from rho_conformance.report.terminal import STYLE
from rho_conformance.scenario import (
    ScenarioFilesError,
    ScenarioResult,
    files_in,
    read_scenarios,
    run_scenario,
)
from rho_conformance.targets import resolve
from rho_spec.catalogue import load


def register(app: typer.Typer) -> None:
    app.command("scenario")(scenario)


def scenario(
    paths: Annotated[list[Path], typer.Argument(help="files or folders of Scenario format 1")],
    target: Annotated[str, typer.Option(help="as for conform")] = "core",
    repeat: Annotated[int, typer.Option(min=1, help="runs on a target that is not deterministic")] = 1,
    format: FormatOption = Format.text,
) -> int:
    """Run scenario files on a target and say which of them hold."""
    missing = [str(p) for p in paths if not p.exists()]
    if missing:
        raise UsageError(f"no such file or folder: {', '.join(missing)}")
    factory = resolve(target)
    found, faults = read_scenarios(paths, known_rules={r.id for r in load()})
    if faults:
        if format is Format.json:
            print_json({"errors": [{"file": f.path, "line": f.line, "message": f.message} for f in faults]})
        raise ScenarioFilesError(faults)
    for empty in [path for path in paths if not files_in(path)]:
        err.print(f"{empty}: no scenario file (.yaml, .yml) in this folder", highlight=False, soft_wrap=True)
    for warning in dict.fromkeys(w for one in found for w in one.warnings):
        err.print(f"warning: {warning}", style="yellow", highlight=False, soft_wrap=True)
    results: list[ScenarioResult] = []
    with progress_bar() as bar:
        for done, one in enumerate(found, 1):
            results.append(run_scenario(one, factory, repeat=repeat))
            bar("scenarios", done, len(found))
    passed = sum(r.passed for r in results)
    failed = sum(r.verdict == "fail" for r in results)
    if format is Format.json:
        rows = [{"id": r.id, "verdict": r.verdict, "detail": r.detail} for r in results]
        print_json({"results": rows, "passed": passed, "failed": failed})
    else:
        _show(results, passed, failed)
    return _status(results)


def _show(results: list[ScenarioResult], passed: int, failed: int) -> None:
    # Left to itself, the table would give long ids as much room as the details, which people read.
    table = Table(expand=any(r.detail for r in results))
    table.add_column("scenario", overflow="fold", ratio=1)
    table.add_column("verdict", no_wrap=True)
    table.add_column("detail", overflow="fold", ratio=2)
    for r in results:
        table.add_row(Text(r.id), Text(r.verdict, style=STYLE.get(r.verdict, "")), Text(r.detail))
    out.print(table)
    out.print(f"{passed} passed, {failed} failed, {len(results)} in all")


def _status(results: list[ScenarioResult]) -> int:
    verdicts = {r.verdict for r in results}
    if "fail" in verdicts:
        return BROKEN
    if "error" in verdicts:
        return FAULT
    # Nothing ran, or nothing could be asked: that is no proof of anything.
    return OK if verdicts & {"pass", "variant"} else INCOMPLETE
