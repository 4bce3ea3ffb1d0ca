"""The committed ledger of verdicts, `spec/evidence/crosshair.toml`: read, written, and compared with the code."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rho_conformance.contracts.base import Contract
from rho_conformance.contracts.verify import Verdict

HEADER = """\
# What CrossHair says of the core's contracts. Made by `rho-core crosshair --all --write`; not by hand.
# seconds: CPU; limit: CPU seconds a condition; paths: explored. "not confirmed": no counterexample within the limit.
"""


@dataclass(frozen=True)
class Entry:
    """One function of the ledger. `digest`: of the contract's and the target's source when the verdict was made."""

    name: str
    target: str
    verdict: str
    bounds: str
    seconds: float
    limit: float
    paths: int
    digest: str


def entry(contract: Contract, verdict: Verdict) -> Entry:
    """A verdict as it is written down."""
    return Entry(
        contract.name,
        contract.target,
        verdict.outcome,
        contract.bounds,
        round(verdict.seconds, 1),
        contract.limit,
        verdict.paths,
        contract.digest(),
    )


def write(path: Path, tools: dict[str, str], entries: Iterable[Entry]) -> None:
    """The whole ledger, in the order of the entries."""
    lines = [HEADER, "[tools]", *(f"{k} = {json.dumps(v)}" for k, v in tools.items())]
    for one in entries:
        lines += ["", "[[function]]", *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in vars(one).items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[dict[str, str], dict[str, Entry]]:
    """Versions of the tools, and entries by name."""
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return data["tools"], {e["name"]: Entry(**e) for e in data["function"]}


def stale(entries: dict[str, Entry], contracts: dict[str, Contract]) -> list[str]:
    """What of the ledger does not fit the code: a contract without an entry, the reverse, or another source."""
    missing = [f"{name}: not in the ledger" for name in contracts if name not in entries]
    gone = [f"{name}: no such contract" for name in entries if name not in contracts]
    changed = [
        f"{name}: its source or its target's has changed since the verdict"
        for name, one in contracts.items()
        if name in entries and entries[name].digest != one.digest()
    ]
    return missing + gone + changed


def quick(entries: dict[str, Entry], seconds: float) -> list[str]:
    """As many confirmed functions as fit, the cheapest first: what a check of every change runs again."""
    chosen: list[str] = []
    for one in sorted(entries.values(), key=lambda e: (e.seconds, e.name)):
        seconds -= one.seconds + 0.1
        if seconds < 0:
            break
        if one.verdict == "confirmed":
            chosen.append(one.name)
    return chosen
