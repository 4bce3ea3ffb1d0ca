"""A baseline: failures an implementation knows of, each with a reason and, if it can be told, a day on which that ends.

TOML, one table for a rule; only `reason` must be there:

    [RHO-CAN-12]
    reason = "interrupted results are lost when a tool ignores its token"
    link = "https://example.org/issues/123"
    until = 2027-01-31
    message = "has no result"

`until` is the last day on which the entry counts. With `message`, only a failure whose words hold that text is
excused: another way to break the same rule is news.

An entry that is expired, speaks of another failure, or stands for a rule that does not fail (any more), is itself a
failure: it hides something. Which entries are needed is known only after everything was judged, so a baseline is
refused together with `--rule`.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rho_conformance.errors import UsageError
from rho_conformance.judge.conform import Ask, Report
from rho_conformance.judge.tally import Verdict

_TEXTS = ("reason", "link", "message")
_KEYS = (*_TEXTS, "until")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one rule's failure."""

    reason: str
    link: str | None = None
    message: str | None = None
    until: datetime.date | None = None

    def to_json(self) -> dict[str, str]:
        """For `verdicts.ID.baseline` of a report."""
        found = {"reason": self.reason, "link": self.link, "until": None if self.until is None else str(self.until)}
        return {key: value for key, value in found.items() if value is not None}

    def __str__(self) -> str:
        until = f" until {self.until}" if self.until is not None else ""
        link = f" ({self.link})" if self.link is not None else ""
        return f"baseline{until}: {self.reason}{link}"


Baseline = Mapping[str, Entry]


def read_baseline(path: Path, ask: Ask) -> Baseline:
    """The entries of a file, for a run as asked. Raises `UsageError` for a bad file and for a filtered run."""
    if ask.rules:
        raise UsageError("--baseline and --rule do not go together: which entries are needed, only a whole run tells")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise UsageError(f"{path}: {fault}") from fault
    return {rule: _entry(f"{path}: {rule}", table) for rule, table in tables.items()}


def _entry(where: str, table: Any) -> Entry:
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table with a reason")
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise UsageError(f"{where}: unknown key {', '.join(unknown)}; known: {', '.join(_KEYS)}")
    if "reason" not in table:
        raise UsageError(f"{where} needs a reason")
    for key in _TEXTS:
        if key in table and (not isinstance(table[key], str) or not table[key].strip()):
            raise UsageError(f"{where}: {key} must be a text that says something")
    if "until" in table and type(table["until"]) is not datetime.date:
        raise UsageError(f"{where}: until must be a day, such as until = 2027-01-31")
    return Entry(**table)


def apply_baseline(report: Report, baseline: Baseline, today: datetime.date | None = None) -> None:
    """Turn known failures into `variant` (named after the baseline); complain about entries that do not fit.

    Raises `UsageError` for an entry of a rule that the profile does not have.
    """
    today = datetime.date.today() if today is None else today
    unknown = [rule for rule in baseline if rule not in report.verdicts]
    if unknown:
        raise UsageError(f"the baseline names {', '.join(unknown)}, no rule of the profile {report.profile}")
    for rule, entry in baseline.items():
        _apply(report.verdicts[rule], entry, today)
    excused = [rule for rule, verdict in report.verdicts.items() if verdict.baseline is not None]
    if excused:
        report.notes.append(f"broken, and excused by the baseline: {', '.join(excused)}")


def _apply(verdict: Verdict, entry: Entry, today: datetime.date) -> None:
    if verdict.verdict == "error":
        return  # Whether the entry is needed is not known; a fault of the harness stays what it is.
    if verdict.verdict != "fail":
        verdict.detail = f"baseline: the entry is not needed, the rule is {verdict.verdict}"
        verdict.verdict, verdict.variant = "fail", None
    elif entry.until is not None and entry.until < today:
        verdict.detail = f"baseline: expired on {entry.until}; {verdict.detail}"
    elif entry.message is not None and entry.message not in verdict.detail:
        verdict.detail = f"baseline: the entry is for another failure ({entry.message!r}); {verdict.detail}"
    else:
        verdict.verdict, verdict.variant, verdict.baseline = "variant", str(entry), entry.to_json()
