"""The ledger of symbolic verdicts fits the code, its quick part is confirmed again, and wrong cores are refuted."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.contracts import contracts
from rho_conformance.contracts.faults import FAULTS
from rho_conformance.contracts.invariant import RESUMES, broken
from rho_conformance.contracts.record import Entry, entry, quick, read, stale, write
from rho_conformance.contracts.shapes import SENDING, WAITING, Numbers, sending, waiting, within
from rho_conformance.contracts.verify import Verdict
from rho_conformance.explore import explore
from rho_core.run import state as s
from rho_core.run import step as machine

LEDGER = Path(__file__).parents[2] / "spec" / "evidence" / "crosshair.toml"
QUICK_SECONDS = 25.0


@cache
def ledger() -> dict[str, Entry]:
    return read(LEDGER)[1]


def child(code: str) -> Any:
    """What a process of its own prints as JSON: CrossHair keeps what it was told of types, and traces every call."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=170, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def verdicts(names: list[str], faults: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Outcome and detail of contracts by name, with or without faults in the core."""
    return dict(
        child(
            "import json\n"
            "from rho_conformance.contracts import contracts\n"
            "from rho_conformance.contracts.faults import FAULTS\n"
            "from rho_conformance.contracts.verify import verify\n"
            "from rho_conformance.mutants.base import applied\n"
            f"patches = tuple(p for f in {faults!r} for p in FAULTS[f].patches)\n"
            "known = contracts()\n"
            "with applied(patches):\n"
            f"    found = [verify(known[n]) for n in {names!r}]\n"
            "print(json.dumps({v.name: [v.outcome, v.detail] for v in found}))\n"
        )
    )


# --- the ledger ---------------------------------------------------------------------------------------------------


def test_the_ledger_fits_the_code() -> None:
    assert stale(ledger(), contracts()) == [], "run: rho-core crosshair --all --write"


def test_the_ledger_holds_what_the_project_claims() -> None:
    confirmed = [e for e in ledger().values() if e.verdict == "confirmed"]
    assert len(confirmed) >= 100
    assert {e.verdict for e in ledger().values()} <= {"confirmed", "not confirmed", "not run"}
    assert all(e.paths >= 1 for e in confirmed)
    machine_wide = [e for e in confirmed if e.name.startswith("inductive.")]
    assert len(machine_wide) >= 25


def test_every_contract_says_its_bounds() -> None:
    assert [e.name for e in ledger().values() if not e.bounds] == []
    assert all(c.function.__doc__ and "post:" in c.function.__doc__ for c in contracts().values())


def test_a_changed_source_asks_for_another_run() -> None:
    name, one = next(iter(ledger().items()))
    changed = {**ledger(), name: dataclasses.replace(one, digest="0" * 16)}
    assert [issue.split(":")[0] for issue in stale(changed, contracts())] == [name]
    extra = {**ledger(), "gone.gone": dataclasses.replace(one, name="gone.gone")}
    assert stale(extra, contracts()) == ["gone.gone: no such contract"]
    assert stale({n: e for n, e in ledger().items() if n != name}, contracts()) == [f"{name}: not in the ledger"]


def test_a_ledger_that_was_written_is_read_back(tmp_path: Path) -> None:
    one = next(iter(contracts().values()))
    made = entry(one, Verdict(one.name, "not confirmed", 3, 1.25, 'a "quoted" \\ text'))
    write(tmp_path / "x" / "ledger.toml", {"crosshair": "1"}, [made])
    assert read(tmp_path / "x" / "ledger.toml") == ({"crosshair": "1"}, {one.name: made})


# --- the invariant ------------------------------------------------------------------------------------------------

CHOSEN = Numbers(
    capacity=3,
    free=1,
    max_steps=5,
    step=2,
    parallel=2,
    request_budget=4,
    malformed_budget=2,
    base_delay=7,
    requests=2,
    malformed=1,
    physical=1,
    revision=3,
    serial=2,
    gone=False,
    steer=True,
    recorder=True,
    boundary=True,
    cooperative=True,
    steerable=True,
    finish=True,
    job=1,
    delay=9,
)


def _shapes(n: Numbers) -> dict[str, s.Run]:
    return {
        **{f"waits {w}": waiting(w, n) for w in WAITING},
        **{f"sends {b}": sending(b, n, "prepared") for b in SENDING},
    }


def test_no_shape_is_outside_the_invariant_whatever_its_numbers() -> None:
    """Else a contract about it would hold for nothing."""
    failed = dataclasses.replace(CHOSEN, malformed=0)
    other = dataclasses.replace(CHOSEN, finish=False, job=3)
    assert all(within(n) for n in (CHOSEN, failed, other))
    finished = {"sends CallFinished": sending("CallFinished", CHOSEN, "returned")}
    inside = {
        name for n in (CHOSEN, failed, other) for name, run in {**_shapes(n), **finished}.items() if broken(run) is None
    }
    assert inside == set(_shapes(CHOSEN))


def test_every_phase_and_every_blocked_continuation_has_a_shape() -> None:
    made = _shapes(CHOSEN)
    assert {type(run.phase) for run in made.values()} == set(s.Phase.__args__)
    resumed = {(type(r.phase), type(r.blocked.then)) for r in made.values() if r.blocked is not None}
    assert resumed == {(phase, then) for phase, all_of in RESUMES.items() for then in all_of}


def test_every_reached_run_satisfies_the_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invariant that is inductive and false would prove nothing."""
    real, faults, seen = machine.step, set(), 0

    def watched(run: s.Run, i: Any) -> Any:
        nonlocal seen
        after = real(run, i)
        seen += 1
        clause = broken(after.state)
        if clause is not None:
            faults.add((clause, type(run.phase).__name__, type(i).__name__))
        return after

    monkeypatch.setattr(machine, "step", watched)
    explore("tiny", workers=1)
    assert seen > 2_000
    assert faults == set()


# --- CrossHair again ----------------------------------------------------------------------------------------------


def test_what_is_quick_is_confirmed_again() -> None:
    names = quick(ledger(), QUICK_SECONDS)
    assert len(names) >= 60
    found = verdicts(names)
    assert {n: v for n, v in found.items() if v[0] != "confirmed"} == {}
    assert set(found) == set(names)


def test_false_claims_about_records_are_refuted() -> None:
    """A record that CrossHair made of its defaults alone would confirm anything."""
    found = child(
        "import json, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from crosshairclaims import CLAIMS\n"
        "from rho_conformance.contracts.base import Contract\n"
        "from rho_conformance.contracts.verify import verify\n"
        "print(json.dumps([verify(Contract(f, (), '', 5)).outcome for f in CLAIMS]))\n"
    )
    assert found == ["refuted"] * 4


QUICK_FAULTS = (
    "a request is not counted",
    "a hint without a cap",
    "a claimed steer comes back",
    "many answers to one question",
    "a channel without a bound",
    "the machine's channel has no bound",
)


@pytest.mark.parametrize("fault", QUICK_FAULTS)
def test_a_wrong_core_is_refuted_with_a_counterexample(fault: str) -> None:
    name = FAULTS[fault].contract
    outcome, detail = verdicts([name], (fault,))[name]
    assert outcome == "refuted" and "when calling" in detail


def test_every_fault_is_meant_for_a_contract_that_holds() -> None:
    found = [ledger()[f.contract].verdict for f in FAULTS.values()]
    assert len(FAULTS) >= 10
    assert set(found) <= {"confirmed", "not confirmed"} and found.count("confirmed") >= 14
