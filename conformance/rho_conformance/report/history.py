"""The shortest history that shows a broken rule, as rows a person can read."""

from __future__ import annotations

import json
from typing import Any

from rho_conformance.scenario.normalise import show
from rho_conformance.trace import Trace

Row = tuple[str, str, str]
"""(step, what was done, what was seen)."""

LONGEST = 100


def rows(trace: Trace) -> list[Row]:
    """One row for each stimulus set: what was done, and every observation that followed."""
    found: list[Row] = []
    for number, record in enumerate(trace.steps, 1):
        done = "; ".join(_short(s) for s in record.perform) or "(settle)"
        seen = [f"{o.name}{_fields(o.fields)}" for o in record.seen()]
        found.append((str(number), done, "\n".join(_cut(line) for line in seen) or "–"))
    return found


def _short(stimulus: Any) -> str:
    return _cut(show(stimulus))


def _fields(fields: dict[str, Any]) -> str:
    kept = {k: v for k, v in fields.items() if k not in ("session", "run", "metadata", "profile")}
    return "" if not kept else " " + json.dumps(kept, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
