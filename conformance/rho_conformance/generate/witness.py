"""Witness files: the recorded trace that breaks a rule, judged first; running it again is a second step.

A target that answers in another order each time shows its fault with some probability only. So the trace itself
is the proof, and `replay` says beside it in how many of how many runs the fault came again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rho_conformance.driver import DriverFactory, JsonMap
from rho_conformance.errors import DriverError, UsageError
from rho_conformance.generate.script import DEFAULT_BOUNDS, Bounds, Judge, Script, play, violated
from rho_conformance.trace import Trace, completed, read_trace, write_trace

KEY = "witness"


@dataclass(frozen=True, slots=True)
class Witness:
    """A trace with what it shows: that `target` broke `rule`, found with `seed`, in these words."""

    rule: str
    target: str
    message: str
    trace: Trace
    seed: int | None = None

    @property
    def script(self) -> Script:
        """What was done."""
        return Script.from_trace(self.trace)


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay found.

    `recorded`: the recorded trace violates the rule. `reproduced` of `runs` new runs did so too; `errors` are the
    faults of the driver in the other ones.
    """

    witness: Witness
    recorded: bool
    reproduced: int
    runs: int
    errors: tuple[str, ...]


def write_witness(witness: Witness, path: Path) -> None:
    """Write a trace whose first line also holds the `witness` (protocol, "Recorded traces")."""
    about: JsonMap = {"rule": witness.rule, "target": witness.target}
    if witness.seed is not None:
        about["seed"] = witness.seed
    about["message"] = witness.message
    write_trace(replace(witness.trace, witness=about), path)


def read_witness(path: Path) -> Witness:
    """Read a witness file; raises `UsageError` for a file that is none."""
    trace = read_trace(path)
    about = trace.witness
    if not isinstance(about, dict):
        raise UsageError(f"{path}:1: a trace, but no witness: the first line has no map {KEY!r}")
    for key in ("rule", "target"):
        if not isinstance(about.get(key), str):
            raise UsageError(f"{path}:1: {KEY}.{key} must be a text, got {about.get(key)!r}")
    seed = about.get("seed")
    if seed is not None and type(seed) is not int:
        raise UsageError(f"{path}:1: {KEY}.seed must be an integer, got {seed!r}")
    return Witness(about["rule"], about["target"], str(about.get("message", "")), completed(trace), seed)


def replay(
    path: Path,
    target_factory: DriverFactory | None = None,
    repeat: int = 1,
    *,
    judge: Judge = violated,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Replay:
    """Judge the recorded trace; with a target, run its script `repeat` times more."""
    witness = read_witness(path)
    recorded = witness.rule in judge(witness.trace)
    reproduced, errors = 0, []
    runs = repeat if target_factory is not None else 0
    for _ in range(runs):
        assert target_factory is not None
        try:
            trace = play(target_factory, witness.script, source=f"replay of {path.name}", bounds=bounds)
        except DriverError as fault:
            errors.append(str(fault))
            continue
        reproduced += witness.rule in judge(trace)
    return Replay(witness, recorded, reproduced, runs, tuple(errors))
