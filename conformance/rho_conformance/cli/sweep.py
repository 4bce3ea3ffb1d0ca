"""`rho-core sweep`: every fault at every point of every scenario, and what the rules say of each."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase
from typing import Annotated, Any

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
    out,
    print_json,
    progress_bar,
)
from rho_conformance.errors import UsageError
from rho_conformance.judge.faults import HARNESS, Found, fault_sweep
from rho_conformance.judge.library import scenarios


def register(app: typer.Typer) -> None:
    app.command("sweep")(sweep_command)


def sweep_command(
    target: Annotated[str, typer.Option(help="what is swept")] = "core",
    every: Annotated[int, typer.Option(min=1, help="only every N-th point of a scenario: a sample")] = 1,
    double: Annotated[int, typer.Option(min=0, help="so many double faults, drawn by the seed")] = 0,
    seed: Annotated[int, typer.Option(help="of the double faults")] = 1,
    only: Annotated[str | None, typer.Option(help="scenarios whose id fits this pattern (CAN/*)")] = None,
    workers: Annotated[int, typer.Option(min=1, help="processes")] = 2,
    format: FormatOption = Format.text,
) -> int:
    """Cancel, drop, close the reader, panic, shut down and crash at every point of every scenario; judge each run."""
    wanted = None if only is None else _fitting(only)
    begun = time.perf_counter()
    with progress_bar() as bar:
        found = fault_sweep(target, every, double, seed, workers, bar, wanted)
    answer = to_json(target, found, seed, time.perf_counter() - begun)
    if format is Format.json:
        print_json(answer)
    else:
        _show(answer)
    return status(found)


def _fitting(pattern: str) -> set[str]:
    found = {one.id for one in scenarios() if fnmatchcase(one.id, pattern)}
    if not found:
        raise UsageError(f"no scenario fits {pattern!r}")
    return found


def to_json(target: str, found: Found, seed: int, seconds: float) -> dict[str, Any]:
    """The answer. `complete`: no point of a swept scenario was skipped, and no play was cut short by a bound."""
    return {
        "target": target,
        "scenarios": found.scenarios,
        "points": found.points,
        "by_fault": dict(sorted(found.swept.items())),
        "doubles": found.doubles,
        "seed": seed,
        "skipped": found.skipped,
        "left_out": found.left_out,
        "truncated": found.truncated,
        "complete": complete(found),
        "failures": [failure.to_json() for failure in found.failures],
        "seconds": round(seconds, 1),
    }


def complete(found: Found) -> bool:
    return not found.skipped and not found.truncated


def status(found: Found) -> int:
    """A proven failure wins over a fault of the harness, which wins over a bound hit or nothing swept.

    A sample that was asked for (`--every`) is no bound hit: the answer says `complete: false`, and that is all.
    """
    rules = {failure.rule for failure in found.failures}
    if rules - {HARNESS}:
        return BROKEN
    if rules:
        return FAULT
    return OK if found.points and not found.truncated else INCOMPLETE


def _show(answer: dict[str, Any]) -> None:
    table = Table("fault", "points")
    for fault, count in answer["by_fault"].items():
        table.add_row(fault, f"{count:,}")
    out.print(table)
    for failure in answer["failures"]:
        what = f"{failure['rule']}  {failure['scenario']}  {failure['fault']} {failure['point']}: {failure['why']}"
        out.print(Text(f"{what} ({failure['times']} times)", style="red"), soft_wrap=True)
    share = "every point" if answer["complete"] else f"a sample, {answer['skipped']:,} points skipped"
    out.print(
        f"{answer['target']}: {answer['points']:,} points in {answer['scenarios']:,} scenarios ({share}), "
        f"{answer['doubles']:,} double faults, {answer['left_out']:,} not declared; "
        f"{len(answer['failures'])} failures; {answer['seconds']} s"
    )
