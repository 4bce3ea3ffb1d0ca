"""The types of scenario format 1 accept what the format allows, refuse the rest, and are published."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from rho_spec import features, schema
from rho_spec.paths import data_root
from rho_spec.scenario_config import Config
from rho_spec.scenario_items import ProviderItem, ToolItem
from rho_spec.scenario_models import Scenario
from rho_spec.scenario_steps import Step

EXAMPLE = """
id: CAN/async-then-sync
rules: [RHO-CAN-12, RHO-CAN-13]
profile: rho
config: {event_capacity: 64, max_steps: 4, tools: {slow: {mode: async, on_cancel: {complete: 2s}}, plain: {}}}
cases: [{text: hello, n: 3}, {text: bye, n: null}]
steps:
  - start: "${text}"
  - provider: {calls: [{id: A, tool: slow, async: true}, {id: B, tool: plain, args: {x: 1}}]}
  - until: {event: ToolDetached, call_id: A}
  - tool: [{id: A, progress: half}, {id: A, return: done}]
  - together: [{cancel: {}}, {maybe: {provider: {return: {}}}}, {advance: 1.5s}]
  - read: "${n}"
  - check: {state: Idle}
sweep: {perform: {cancel: {}}, then: [{start: again}]}
expect:
  outcome: {error: Cancelled}
  events: [Started, "...", {opt: {ToolDetached: {call_id: A}}}, "...", {Cancelled: {revision: 1}}]
  count: [{of: ModelCall, is: 1}]
  requests: [[{user: hello}], {same_as: 1}, "*"]
  any_of: [{revision: 1}, {variant: D24, revision: {$min: 1}}]
"""


def step(value: Any) -> Step:
    return Step.model_validate(value)


def test_a_full_example_is_accepted() -> None:
    scenario = Scenario.model_validate(yaml.safe_load(EXAMPLE))
    assert scenario.id == "CAN/async-then-sync"
    assert len(scenario.steps) == 7


@pytest.mark.parametrize(
    "value",
    [
        {"strat": "hello"},
        {"start": "hello", "cancel": {}},
        {},
        {"advance": "soon"},
        {"advance": 3},
        {"cancel": {"force": True}},
        {"provider": {"delta": "a", "return": {}}},
        {"provider": {"text": "a", "web_search": "b"}},
        {"provider": {"session": "s1"}},
        {"tool": {"return": "x"}},
        {"tool": {"id": "A"}},
        {"tool": {"id": "A", "return": "x", "panic": True}},
        {"recorder": "maybe"},
        {"boundary": "later"},
        {"together": [{"cancel": {}, "drop": {}}]},
        {"start_tool": {"call": {"id": "A"}}},
    ],
)
def test_bad_steps_are_refused(value: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        step(value)


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "rust"},
        {"id": ""},
        {"config": {"event_capacity": "64"}},
        {"config": {"colour": 1}},
        {"config": {"tools": {"t": {"mode": "later"}}}},
        {"expect": {"events": "Started"}},
        {"expect": {"outcomme": "pending"}},
        {"expect": {"any_of": [{"any_of": []}]}},
        {"title": "x"},
    ],
)
def test_bad_files_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Scenario.model_validate(yaml.safe_load(EXAMPLE) | change)


def test_the_types_and_the_features_are_one_vocabulary() -> None:
    assert set(features.STIMULI) <= set(Step.model_fields)

    def aliases(model: type[ProviderItem] | type[ToolItem]) -> set[str]:
        return {field.alias or name for name, field in model.model_fields.items()}

    assert set(features.PROVIDER_ITEMS) <= aliases(ProviderItem)
    assert set(features.TOOL_ITEMS) <= aliases(ToolItem)
    assert set(features.CONFIG_KEYS) <= set(Config.model_fields)


def test_the_published_schema_is_current() -> None:
    assert schema.is_current()
    assert schema.path() == data_root() / "schemas" / "scenario.schema.json"


def test_every_reference_in_the_schema_resolves() -> None:
    published = schema.scenario_schema()
    names = {reference.removeprefix("#/$defs/") for reference in _references(published)}
    assert names
    assert names <= set(published["$defs"])


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for value in node.values() for found in _references(value)]
    if isinstance(node, list):
        return [found for value in node for found in _references(value)]
    return []


def test_every_scenario_of_the_project_fits() -> None:
    """Bad files are refused above; here the files that exist must be accepted."""
    for path in sorted((data_root() / "scenarios").rglob("*.yaml")):
        Scenario.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
