"""Scenario files: parse, run, judge. `load_scenarios` and `run_scenario` are what callers need."""

from rho_conformance.scenario.model import (
    Scenario,
    Step,
    files_in,
    load_scenarios,
    parse_file,
    parse_text,
    read_scenarios,
)
from rho_conformance.scenario.runner import ScenarioResult, not_applicable, run_scenario, run_scenarios
from rho_conformance.scenario.standing import Violation, standing_violations
from rho_conformance.scenario.tree import ScenarioFileError, ScenarioFilesError

__all__ = [
    "Scenario",
    "ScenarioFileError",
    "ScenarioFilesError",
    "ScenarioResult",
    "Step",
    "Violation",
    "files_in",
    "load_scenarios",
    "not_applicable",
    "parse_file",
    "parse_text",
    "read_scenarios",
    "run_scenario",
    "run_scenarios",
    "standing_violations",
]
