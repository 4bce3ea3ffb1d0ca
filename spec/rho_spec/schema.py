"""The JSON Schema of scenario files, derived from the types. `python -m rho_spec.schema` rewrites it."""

import json
import sys
from pathlib import Path
from typing import Any

from rho_spec.paths import data_root
from rho_spec.scenario_base import PLACEHOLDER
from rho_spec.scenario_models import Scenario
from rho_spec.scenario_patterns import NAMED_DEFINITION, pattern_definitions

FILE_NAME = "scenario.schema.json"
_NO_CASE_NAMES_A_KEY = {"propertyNames": {"not": {"pattern": PLACEHOLDER}}}
_ABOUT_KEYS = ("required", "oneOf", "anyOf", "allOf", "not", "if", "then", "else")


def scenario_schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) as a plain value."""
    schema = Scenario.model_json_schema(by_alias=True)
    schema["$defs"].update(pattern_definitions())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_finished(schema),
        "title": "Scenario format 1",
    }


def _finished(node: Any) -> Any:
    """What the types cannot say: keys that a case names, and definitions of our own."""
    if isinstance(node, list):
        return [_finished(item) for item in node]
    if not isinstance(node, dict):
        return node
    if NAMED_DEFINITION in node:
        return {"$ref": f"#/$defs/{node[NAMED_DEFINITION]}"}
    result = {key: _finished(value) for key, value in node.items() if key != "default" or value is not None}
    if result.get("type") == "object" and result.get("additionalProperties") is False and "properties" in result:
        return _open_to_cases(result)
    if result.get("type") == "object" and "patternProperties" in result:
        result["additionalProperties"] = False
    return result


def _open_to_cases(schema: dict[str, Any]) -> dict[str, Any]:
    """A map with known keys: where a case names one of them, nothing can be said about which are there."""
    about_keys = {key: schema.pop(key) for key in _ABOUT_KEYS if key in schema}
    schema["patternProperties"] = {PLACEHOLDER: {}}
    if about_keys:
        schema |= {"if": _NO_CASE_NAMES_A_KEY, "then": about_keys}
    return schema


def text() -> str:
    """The schema as the file holds it."""
    return json.dumps(scenario_schema(), indent=1, ensure_ascii=False) + "\n"


def path() -> Path:
    """Where the published schema is."""
    return data_root() / "schemas" / FILE_NAME


def is_current() -> bool:
    """Whether the published file is what the types say now."""
    return path().is_file() and path().read_text(encoding="utf-8") == text()


def main() -> int:
    """Rewrite the published file."""
    path().write_text(text(), encoding="utf-8", newline="\n")
    print(path().name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
