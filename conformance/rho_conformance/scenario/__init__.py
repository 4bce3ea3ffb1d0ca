"""Scenario files: parse, run, judge. `load_scenarios` and `run_scenario` are what callers need."""

from rho_conformance.scenario.model import Scenario, Step, load_scenarios, parse_file, parse_text
from rho_conformance.scenario.runner import ScenarioResult, not_applicable, run_scenario, run_scenarios
from rho_conformance.scenario.standing import Violation, standing_violations
from rho_conformance.scenario.tree import ScenarioFileError

__all__ = [
    "Scenario",
    "ScenarioFileError",
    "ScenarioResult",
    "Step",
    "Violation",
    "load_scenarios",
    "not_applicable",
    "parse_file",
    "parse_text",
    "run_scenario",
    "run_scenarios",
    "standing_violations",
]
