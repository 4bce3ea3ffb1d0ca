"""Reports to make pages of: real traces and real rules, with the verdicts that a test wants to see."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.generate.script import Script, play
from rho_conformance.generate.witness import Witness, write_witness
from rho_conformance.judge.coverage import recording
from rho_conformance.judge.exhibit import examine_trace
from rho_conformance.trace import Trace
from rho_spec.catalogue import load
from tests.conformance.tracebuilder import Sim

BROKEN = "RHO-ORD-5"
CALL = {"id": "A", "tool": "t"}
ABOUT = {"name": "hand", "version": "1", "time": "virtual", "deterministic": True}


def broken_trace(runs: int = 0, said: str = "p1") -> Trace:
    """A run that shows progress of call A under another name (`RHO-ORD-5`), after so many good ones."""
    sim = Sim()
    for _ in range(runs):
        sim.start()
        sim.ret("good", [])
        sim.outcome()
    sim.start()
    sim.ret("a", [CALL])
    sim.tool("A", progress=said)
    sim.tool("A", **{"return": "x"})
    sim.ret("end")
    sim.outcome()
    sim.edit("ToolUpdated", call_id="Z")
    return sim.done()


def message(trace: Trace) -> str:
    """What the rule says of it."""
    return examine_trace("sample", trace, (BROKEN,)).broken[BROKEN]


def write_report(
    folder: Path,
    target: str,
    verdicts: Mapping[str, Mapping[str, Any]],
    traces: Mapping[str, Trace] | None = None,
    **more: Any,
) -> Path:
    """`report.json` of a target with its witnesses beside it, as `conform --report` writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = {rule: dict(cell) for rule, cell in verdicts.items()}
    for rule, trace in (traces or {}).items():
        path = folder / "witnesses" / f"{rule}.jsonl"
        write_witness(Witness(rule, target, str(cells[rule].get("detail", "")), trace, 1), path)
        cells[rule]["witness"] = str(path)
    report = {"target": target, "profile": "rho", "seed": 1, "examples": 200, "steps": 30, "seconds": 1.5}
    report |= {"verdicts": cells, "implementation": ABOUT, "played": {"scenario": 10, "generated": 200}}
    path = folder / "report.json"
    path.write_text(json.dumps(report | more), encoding="utf-8")
    return path


def cell(verdict: str, **more: Any) -> dict[str, Any]:
    """One verdict, with words where it needs some."""
    if verdict in ("vacuous", "inconclusive", "error", "n/a", "untestable"):
        more.setdefault("detail", f"why it is {verdict}")
    if verdict == "variant":
        more.setdefault("variant", "D1:fail")
    return {"verdict": verdict, "triggered": 3, "opportunities": 40} | more


EVERY = ("pass", "variant", "fail", "vacuous", "inconclusive", "error", "n/a", "untestable")


def of_every_sort(**more: Any) -> dict[str, dict[str, Any]]:
    """One rule for each verdict; the broken one is `RHO-ORD-5`."""
    others = [r.id for r in load("rho") if r.id.startswith("RHO-CAN")]
    return {BROKEN if v == "fail" else others[n]: cell(v, **more) for n, v in enumerate(EVERY)}


@cache
def coverage() -> dict[str, Any]:
    """What is taken of the core's tables by one plain run: little, and truly watched."""
    script = Script({}, (({"start": "hello"},), ({"provider": {"text": "hi"}},)), "rho")
    with recording() as watched:
        play(core_factory, script)
    return watched.to_json()


MUTANTS: dict[str, Any] = {
    "matrix": {
        "progress-lost": {"kills_by": [BROKEN, "RHO-BUF-3"], "intended": BROKEN, "killed": True, "where": "ORD/one"},
        "cancel-unheard": {"kills_by": ["RHO-BUF-3"], "intended": "RHO-CAN-1", "killed": False, "where": None},
    },
    "benign": {
        "D1-fail": {"fails": [], "why": {}},
        "D2-none": {"fails": ["RHO-CAN-2"], "why": {"RHO-CAN-2": "CAN/two: it says so"}},
    },
    "score": 1.0,
}


def write_mutants(folder: Path, answer: Mapping[str, Any] = MUTANTS) -> Path:
    """The answer of `rho-core mutants --format json`; its own `score` is not to be believed."""
    path = folder / "mutants.json"
    path.write_text(json.dumps(answer), encoding="utf-8")
    return path


def big(folder: Path, rules: int = 80, targets: int = 10) -> list[Path]:
    """A matrix of a hostile size: every third verdict a failure, half of these with a long witness."""
    draw = random.Random(7)
    others = [r.id for r in load("rho") if r.testable != "no" and r.id != BROKEN]
    chosen = [BROKEN, *others[: rules - 1]]
    short, long = broken_trace(), broken_trace(15)
    paths = []
    for n in range(targets):
        kinds = {rule: draw.choice(["fail", *EVERY, "pass", "fail"]) for rule in chosen} | {BROKEN: "fail"}
        verdicts = {rule: cell(kind, detail="words of some length, " * 4) for rule, kind in kinds.items()}
        traces = {rule: draw.choice([short, long]) for rule, kind in kinds.items() if kind == "fail"}
        paths.append(write_report(folder / f"t{n}", f"target-{n}", verdicts, traces, coverage=coverage()))
    return paths
