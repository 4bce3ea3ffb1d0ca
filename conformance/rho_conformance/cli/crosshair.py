"""`rho-core crosshair`: are the core's contracts still confirmed?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from rho_conformance.cli.common import BROKEN, INCOMPLETE, OK, Format, FormatOption, out, print_json, progress_bar
from rho_conformance.contracts import contracts
from rho_conformance.contracts.record import Entry, entry, quick, read, stale, write
from rho_conformance.contracts.verify import Verdict, verify, versions
from rho_conformance.errors import UsageError

LEDGER = Path("spec/evidence/crosshair.toml")


def register(app: typer.Typer) -> None:
    app.command("crosshair")(crosshair)


def crosshair(
    every: Annotated[bool, typer.Option("--all", help="every contract: minutes; else those that fit")] = False,
    only: Annotated[str | None, typer.Option(help="contracts whose name contains this")] = None,
    budget: Annotated[float, typer.Option(help="CPU seconds for a run without --all")] = 120,
    ledger: Annotated[Path, typer.Option(help="the ledger of verdicts")] = LEDGER,
    changed: Annotated[bool, typer.Option("--stale", help="those whose source has changed since the verdict")] = False,
    rewrite: Annotated[bool, typer.Option("--write", help="put the verdicts into the ledger")] = False,
    format: FormatOption = Format.text,
) -> int:
    """Explore contracts of the core symbolically, and compare the verdicts with the committed ledger.

    Fails (1) when a contract is refuted or a confirmed one is no longer confirmed; 2 when one that is new, or was
    never confirmed, is not.
    """
    known = contracts()
    entries = read(ledger)[1] if ledger.is_file() else {}
    if changed:
        pool = [issue.split(":")[0] for issue in stale(entries, known)]
    else:
        pool = list(known) if every or only else quick(entries, budget)
    chosen = [name for name in known if name in pool and (only or "") in name]
    if not chosen and not changed:
        raise UsageError(f"nothing to run: no contract is meant, or {ledger} is not there; see --all and --only")
    with progress_bar() as bar:
        verdicts: list[Verdict] = []
        fresh: dict[str, Entry] = {}
        for done, name in enumerate(chosen):
            bar("contracts", done, len(chosen))
            verdicts.append(verify(known[name]))
            fresh[name] = entry(known[name], verdicts[-1])
            if rewrite:  # after each, so that a run that is stopped has not been for nothing
                merged = {**entries, **fresh}
                write(ledger, versions(), [merged[n] for n in known if n in merged])
    issues = stale({**entries, **fresh} if rewrite else entries, known)
    if format is Format.json:
        print_json({"tools": versions(), "functions": [vars(e) for e in fresh.values()], "stale": issues})
    else:
        _show(verdicts, issues)
    return _status(verdicts, entries, issues)


def _status(verdicts: list[Verdict], entries: dict[str, Entry], issues: list[str]) -> int:
    failed = [v for v in verdicts if v.outcome != "confirmed"]
    lost = [v for v in failed if v.name in entries and entries[v.name].verdict == "confirmed"]
    if lost or any(v.outcome != "not confirmed" for v in failed):
        return BROKEN
    return INCOMPLETE if failed or issues else OK


def _show(verdicts: list[Verdict], issues: list[str]) -> None:
    table = Table("contract", "verdict", "paths", "CPU s")
    for v in verdicts:
        style = "green" if v.outcome == "confirmed" else "yellow" if v.outcome == "not confirmed" else "bold red"
        table.add_row(v.name, Text(v.outcome, style=style), str(v.paths), f"{v.seconds:.1f}")
    out.print(table)
    for v in verdicts:
        if v.outcome not in ("confirmed", "not confirmed"):
            out.print(Text(f"{v.name}: {v.detail}", style="red"))
    for issue in issues:
        out.print(Text(f"stale: {issue}", style="yellow"))
    confirmed = sum(v.outcome == "confirmed" for v in verdicts)
    out.print(f"{confirmed} of {len(verdicts)} confirmed; {sum(v.seconds for v in verdicts):.1f} s of CPU")
