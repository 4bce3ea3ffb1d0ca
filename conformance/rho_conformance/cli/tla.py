"""`rho-core tla`: check the TLA+ model with TLC, and compare its state graph with the reducer's."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from rho_conformance.cli.common import BROKEN, INCOMPLETE, OK, Format, FormatOption, err, out, print_json, progress_bar
from rho_conformance.errors import UsageError
from rho_conformance.tla import Checked, Report, Unavailable, check, names


def register(app: typer.Typer) -> None:
    app.command("tla")(tla)


def tla(
    setting: Annotated[list[str] | None, typer.Option(help="only this setting (repeatable)")] = None,
    format: FormatOption = Format.text,
) -> int:
    """Check the model's rules with TLC, and every labelled edge of its state graph against the reducer."""
    try:
        known = names()
        unknown = [name for name in setting or () if name not in known]
        if unknown:
            raise UsageError(f"there is no setting {unknown[0]!r}; known: {', '.join(known)}")
        with progress_bar() as bar:
            report = check(setting or None, bar)
    except Unavailable as missing:
        return _unavailable(str(missing), format)
    if format is Format.json:
        print_json(report.to_json())
    else:
        _show(report)
    return OK if report.holds else BROKEN


def _unavailable(why: str, format: Format) -> int:
    """Nothing was checked, and nobody shall take it for a pass."""
    if format is Format.json:
        print_json({"unavailable": why, "states": 0, "settings": []})
    err.print(Text(f"NOT CHECKED: {why}", style="bold red"))
    return INCOMPLETE


def _show(report: Report) -> None:
    table = Table("setting", "states", "transitions", "steps", "mismatches", "violated", "seconds")
    for c in report.checked:
        d = c.to_json()
        mismatches = str(len(d["mismatches"]) + d["missed"]) if d["compared"] else "–"
        figures = (str(d[k]) if d["compared"] or k == "states" else "–" for k in ("states", "transitions", "steps"))
        table.add_row(c.name, *figures, mismatches, "yes" if c.violation else "no", f"{c.seconds:.1f}")
    out.print(table)
    for c in report.checked:
        _explain(c)
    total = report.to_json()
    out.print(
        f"{total['states']} states, {total['transitions']} transitions, compared in {total['steps']} steps: "
        f"{total['mismatches']} mismatches, {total['violations']} violations; {total['seconds']:.1f} s"
    )


def _explain(c: Checked) -> None:
    if c.violation is not None:
        out.print(Text(f"{c.name}: {c.violation}", style="red"))
    for m in c.comparison.mismatches if c.comparison else ():
        out.print(Text(f"{c.name}: {m}", style="red"))
        for line in (*m.state, *(f"only the model: {x}" for x in m.only_model)):
            out.print(Text(f"    {line}"))
        for line in m.only_reducer:
            out.print(Text(f"    only the reducer: {line}"))
