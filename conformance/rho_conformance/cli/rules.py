"""`rho-core rules [ID]`: the catalogue, and what stands behind a rule."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer
from rich.table import Table

from rho_conformance.cli.common import BROKEN, OK, Format, FormatOption, out, print_json
from rho_conformance.errors import UsageError
from rho_conformance.judge.library import scenarios
from rho_conformance.judge.liveness import own_mutants
from rho_core.run import table as run_table
from rho_spec.catalogue import PROFILES, Rule, load
from rho_spec.sources import verify_page


def register(app: typer.Typer) -> None:
    app.command("rules")(rules)


def rules(
    rule: Annotated[str | None, typer.Argument(help="a rule id, such as RHO-CAN-13")] = None,
    profile: Annotated[str | None, typer.Option(help="only rules of this profile: rho, orca or common")] = None,
    verify_page_: Annotated[
        str | None, typer.Option("--verify-page", help="compare a source page with the sentence ledger")
    ] = None,
    format: FormatOption = Format.text,
) -> int:
    """List the rules, or explain one."""
    if verify_page_ is not None:
        return _verify(verify_page_, format)
    if profile is not None and profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; known: {', '.join(PROFILES)}")
    found = [r for r in load(profile) if rule is None or r.id == rule]
    if rule is not None and not found:
        raise UsageError(f"there is no rule {rule!r}; `rho-core rules` lists them")
    described = [_describe(r) for r in found]
    if format is Format.json:
        print_json({"rules": described})
    elif rule is not None:
        _explain(described[0])
    else:
        _list(found)
    return OK


def _verify(path: str, format: Format) -> int:
    from pathlib import Path

    if not Path(path).is_file():
        raise UsageError(f"there is no page {path!r}")
    problems = [str(p) for p in verify_page(Path(path))]
    if format is Format.json:
        print_json({"page": path, "problems": problems})
    else:
        for problem in problems:
            out.print(problem)
        out.print(f"{len(problems)} differences from the sentence ledger")
    return BROKEN if problems else OK


def _describe(rule: Rule) -> dict[str, Any]:
    rows = {
        **{f"{p.__name__} × {i.__name__}": r for (p, i), r in run_table.WAIT.items()},
        **{f"any phase × {i.__name__}": r for i, r in run_table.COMMON.items()},
        **{f"→ {c.__name__}": r for c, r in run_table.FLOW.items()},
    }
    return rule.as_dict() | {
        "mutants": [m.name for m in own_mutants().get(rule.id, ())],
        "scenarios": sorted({s.id for s in scenarios() if rule.id in s.rules}),
        "rows": [name for name, row in rows.items() if rule.id in row.rules],
    }


def _list(found: list[Rule]) -> None:
    counts = Counter(s for scenario in scenarios() for s in scenario.rules)
    table = Table("rule", "what it promises", "kind", "level", "testable", "scenarios", "mutants")
    for r in found:
        killers = str(len(own_mutants().get(r.id, ())))
        table.add_row(r.id, r.title, r.kind, r.level, r.testable, str(counts[r.id]), killers)
    out.print(table)
    out.print(f"{len(found)} rules; `rho-core rules ID` explains one")


def _explain(rule: dict[str, Any]) -> None:
    out.print(f"[bold]{rule['id']}[/bold]  {rule['title']}\n")
    out.print(rule["statement"], "\n")
    source = rule["source"]
    sentences = ", ".join(map(str, source["sentences"]))
    facts = {
        "kind": f"{rule['kind']}, {rule['level']}",
        "source": f"page {source['page']}, {source['section']!r}, sentences {sentences}",
        "known from a release": rule["release"],
        "decisions": ", ".join(rule["decisions"]),
        "testable": rule["testable"] + (f": {rule['why']}" if rule["why"] else ""),
        "check": ", ".join(f"{k} = {v}" for k, v in rule["check"].items()),
        "rows of the core": ", ".join(rule["rows"]),
        "mutants": ", ".join(rule["mutants"]),
        "scenarios": ", ".join(rule["scenarios"]),
    }
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value:
            table.add_row(name, value)
    out.print(table)
