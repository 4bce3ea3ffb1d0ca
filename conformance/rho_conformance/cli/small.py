"""`rho-core diagram` and `rho-core bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rho_conformance.bench import bench
from rho_conformance.cli.common import OK, Format, FormatOption, out, print_json
from rho_conformance.errors import UsageError
from rho_conformance.lifecycles.drawing import svg
from rho_core import diagrams
from rho_spec import lifecycles, machines

LIFECYCLE = "lifecycle:"


def register(app: typer.Typer) -> None:
    app.command("diagram")(diagram)
    app.command("bench")(bench_command)


def diagram(
    machine: Annotated[str, typer.Argument(help="run, call, job, steer, session; lifecycle:NAME of the spec")] = "run",
    pictures: Annotated[
        Path | None, typer.Option("--svg", help="Write a picture of every lifecycle into this folder.")
    ] = None,
    format: FormatOption = Format.text,
) -> int:
    """Print a machine of the core, or a lifecycle of the specification, as Mermaid text."""
    if pictures is not None:
        written = draw(pictures)
        if format is Format.json:
            print_json({"written": written})
        else:
            typer.echo("".join(f"{name}\n" for name in written), nl=False)
        return OK
    text = _mermaid(machine)
    if format is Format.json:
        print_json({"machine": machine, "mermaid": text})
    else:
        typer.echo(text, nl=False)
    return OK


def _mermaid(machine: str) -> str:
    if machine in diagrams.MACHINES:
        return diagrams.MACHINES[machine]()
    known = lifecycles.load()
    if machine.startswith(LIFECYCLE) and machine.removeprefix(LIFECYCLE) in known:
        return machines.mermaid(known[machine.removeprefix(LIFECYCLE)])
    names = (*diagrams.MACHINES, *(LIFECYCLE + name for name in known))
    raise UsageError(f"there is no machine {machine!r}; known: {', '.join(names)}")


def draw(folder: Path) -> list[str]:
    """Write a picture of every lifecycle; the names of the files, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, lifecycle in lifecycles.load().items():
        path = folder / f"{name}.svg"
        path.write_text(svg(lifecycle), encoding="utf-8", newline="\n")
        written.append(path.name)
    return written


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
