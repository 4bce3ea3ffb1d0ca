"""A whole scenario file as a type (scenario-format.md, "The file")."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from rho_spec.scenario_base import Name, P, Strict, Text, V, is_placeholder, needs
from rho_spec.scenario_config import Config
from rho_spec.scenario_expect import Expect
from rho_spec.scenario_steps import Step

# A step that can make the scenario fail; one that a case puts in may be such a step.
_JUDGE: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "required": ["until"]},
        {"type": "object", "required": ["check"], "properties": {"check": {"not": {"const": {}}}}},
        {"type": "object", "propertyNames": {"pattern": r"\$\{"}, "minProperties": 1},
    ]
}
_SOME: dict[str, Any] = {"anyOf": [{"type": "string"}, {"contains": _JUDGE}]}


class Sweep(Strict):
    perform: P[Step]
    then: P[list[P[Step]]]


class Scenario(Strict):
    """Scenario format 1: one file."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                needs("expect"),
                {"required": ["steps"], "properties": {"steps": _SOME}},
                {"required": ["sweep"], "properties": {"sweep": {"properties": {"then": _SOME}, "type": "object"}}},
                {"required": ["sweep"], "properties": {"sweep": {"properties": {"perform": _JUDGE}, "type": "object"}}},
                {"required": ["sweep"], "properties": {"sweep": {"type": "string"}}},
            ]
        }
    )

    id: Name | int | float | bool
    rules: V[list[Text]] = None
    profile: V[Literal["rho", "orca", "common"]] = None
    config: V[Config] = None
    steps: P[list[P[Step]]]
    expect: V[Expect] = None
    cases: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = None
    sweep: V[Sweep] = None

    @model_validator(mode="after")
    def _judged(self) -> Self:
        steps: list[Any] = [*self.steps] if isinstance(self.steps, list) else [self.steps]
        if isinstance(self.sweep, Sweep):
            then = self.sweep.then
            steps += [self.sweep.perform, *(then if isinstance(then, list) else [then])]
        elif self.sweep is not None:
            steps.append(self.sweep)
        if self.expect is None and not any(map(_judges, steps)) and not self._by_case:
            raise ValueError("'expect' is missing, and no step is a check or an until: nothing would be judged")
        return self


def _judges(step: Any) -> bool:
    if not isinstance(step, Step) or step._by_case:
        return is_placeholder(step) or isinstance(step, Step)
    asked = step.check
    return bool(step.until or (asked is not None and (not isinstance(asked, Expect) or asked.model_fields_set)))
