"""The table a person sees: rules and verdicts, and the history behind each failure."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rho_conformance.judge.conform import Report
from rho_conformance.judge.tally import Verdict
from rho_conformance.report.history import rows
from rho_conformance.report.visible import visible

STYLE = {
    "pass": "green",
    "variant": "cyan",
    "fail": "bold red",
    "vacuous": "yellow",
    "inconclusive": "yellow",
    "error": "bold magenta",
    "n/a": "dim",
    "untestable": "dim",
}


def show(report: Report, console: Console) -> None:
    """Print the verdicts, then a history for each broken rule, then the sum of it."""
    console.print(_table(report))
    for rule, verdict in report.verdicts.items():
        if verdict.verdict == "fail":
            console.print(_failure(report, rule, verdict))
    console.print(_sum(report))


def _table(report: Report) -> Table:
    name, version = report.hello.get("name"), report.hello.get("version")
    table = Table(title=f"{name} {version} by the profile {report.profile}", title_justify="left")
    table.add_column("rule", no_wrap=True)
    table.add_column("what it promises")
    table.add_column("verdict", no_wrap=True)
    table.add_column("live", justify="right", no_wrap=True)
    table.add_column("note", overflow="fold", max_width=60)
    for rule, verdict in report.verdicts.items():
        if verdict.verdict == "untestable":
            continue
        note = verdict.variant or (verdict.detail if verdict.verdict not in ("pass", "fail") else "")
        count = f"{verdict.triggered}/{report.rules[rule].threshold}"
        table.add_row(rule, report.rules[rule].title, _styled(verdict.verdict), count, Text(visible(note)))
    return table


def _styled(verdict: str) -> Text:
    return Text(verdict, style=STYLE.get(verdict, ""))


def _failure(report: Report, rule: str, verdict: Verdict) -> RenderableType:
    title = Text(f"\n{rule} is broken: {report.rules[rule].statement}", style="red")
    parts: list[RenderableType] = [title, Text(f"  {visible(verdict.detail)}")]
    trace = verdict.evidence.trace if verdict.evidence is not None else None
    if trace is not None:
        table = Table("step", "done", "seen", box=None, padding=(0, 2))
        for row in rows(trace):
            table.add_row(*(Text(visible(cell)) for cell in row))
        parts.append(table)
    if verdict.witness is not None:
        parts.append(Text(f"  witness: {verdict.witness}"))
    return Group(*parts)


def _sum(report: Report) -> Text:
    counts = ", ".join(f"{n} {name}" for name, n in report.summary.items())
    text = Text(f"\n{counts}. ")
    text.append("conformant" if report.conformant else "not conformant", style="bold")
    played = ", ".join(f"{n} {origin}" for origin, n in report.played.items())
    text.append(
        f"\nplayed: {played}; seed {report.ask.seed}, examples {report.ask.examples}, steps {report.ask.steps}; "
        f"{report.seconds:.1f} s"
    )
    for note in report.notes:
        text.append(f"\n{visible(note)}", style="yellow")
    if report.coverage is not None:
        found = report.coverage.to_json()
        text.append(f"\nrows of the core's tables taken: {found['taken']} of {found['rows']}")
        if found["missing"]:
            text.append(f"; not taken: {', '.join(found['missing'])}", style="yellow")
    return text
