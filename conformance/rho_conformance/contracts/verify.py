"""Run contracts through CrossHair's interface, and say of each what came out, and within which limits.

"Confirmed" means that every path was explored and none broke the contract; CrossHair's own exit status does not
say that (it is 0 for "Not confirmed" as well), so its messages are read.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

from rho_conformance.contracts.base import Contract
from rho_conformance.contracts.symbolic import register
from rho_conformance.errors import UsageError

Outcome = Literal["confirmed", "not confirmed", "refuted", "vacuous", "error"]

_STATES: dict[str, Outcome] = {
    "CONFIRMED": "confirmed",
    "CANNOT_CONFIRM": "not confirmed",
    "POST_FAIL": "refuted",
    "POST_ERR": "refuted",
    "EXEC_ERR": "refuted",
    "PRE_UNSAT": "vacuous",
    "SYNTAX_ERR": "error",
    "IMPORT_ERR": "error",
}
_WORST: tuple[Outcome, ...] = ("error", "refuted", "vacuous", "not confirmed", "confirmed")


@dataclass(frozen=True)
class Verdict:
    """`paths`: explored; `seconds`: of CPU; `detail`: the counterexample, or why nothing could be said."""

    name: str
    outcome: Outcome
    paths: int
    seconds: float
    detail: str = ""


def versions() -> dict[str, str]:
    """Of the tools the verdicts depend on. Raises UsageError when they are not installed."""
    try:
        return {"crosshair": version("crosshair-tool"), "z3": version("z3-solver")}
    except ImportError as fault:
        raise UsageError("crosshair is not installed: pip install 'rho-core[verify]'") from fault


def verify(contract: Contract, limit: float | None = None) -> Verdict:
    """Explore one contract for at most its limit (CPU seconds a condition). Raises UsageError without CrossHair."""
    versions()
    register()
    from crosshair.core_and_libs import analyze_function, run_checkables
    from crosshair.options import AnalysisKind, AnalysisOptionSet

    seconds = contract.limit if limit is None else limit
    paths: Counter[str] = Counter()
    options = AnalysisOptionSet(
        analysis_kind=[AnalysisKind.PEP316],
        per_condition_timeout=seconds,
        per_path_timeout=seconds,
        report_all=True,
        stats=paths,
    )
    began = time.process_time()
    messages: list[Any] = list(run_checkables(analyze_function(contract.function, options)))
    spent = time.process_time() - began
    found = [_STATES[m.state.name] for m in messages] or ["error"]
    worst = min(found, key=_WORST.index)
    told = next((m.message for m, o in zip(messages, found, strict=False) if o == worst), "no condition was found")
    return Verdict(contract.name, worst, paths["num_paths"], spent, "" if worst == "confirmed" else told)
