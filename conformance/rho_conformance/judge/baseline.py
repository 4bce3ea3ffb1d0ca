"""A baseline: failures an implementation knows of, each with a reason and a day on which that ends.

TOML, one table for a rule:

    [RHO-CAN-12]
    reason = "issue 123"
    until = 2027-01-31

An entry that is expired, or whose rule does not fail (any more), is itself a failure: it hides something.
"""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Any

from rho_conformance.errors import UsageError
from rho_conformance.judge.conform import Report


def apply_baseline(report: Report, path: Path, today: datetime.date | None = None) -> None:
    """Turn known failures into `variant` (named after the baseline); complain about entries that do not fit."""
    today = datetime.date.today() if today is None else today
    for rule, entry in _read(path).items():
        verdict = report.verdicts.get(rule)
        if verdict is None:
            raise UsageError(f"{path}: {rule} is not a rule of the profile {report.profile}")
        if verdict.verdict != "fail":
            verdict.verdict, verdict.detail = (
                "fail",
                f"baseline: the entry is not needed, the rule is {verdict.verdict}",
            )
        elif entry["until"] < today:
            verdict.detail = f"baseline: expired on {entry['until']}; {verdict.detail}"
        else:
            verdict.verdict = "variant"
            verdict.variant = f"baseline until {entry['until']}: {entry['reason']}"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise UsageError(f"{path}: {fault}") from fault
    for rule, entry in entries.items():
        if not isinstance(entry, dict) or set(entry) != {"reason", "until"}:
            raise UsageError(f"{path}: {rule} needs exactly `reason` and `until`")
        if not isinstance(entry["reason"], str) or not entry["reason"].strip():
            raise UsageError(f"{path}: {rule} needs a reason")
        if type(entry["until"]) is not datetime.date:
            raise UsageError(f"{path}: {rule} needs a day, such as until = 2027-01-31")
    return entries
