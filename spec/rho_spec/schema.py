"""The JSON Schema of scenario files, derived from the types. `python -m rho_spec.schema` rewrites it."""

import json
import sys
from pathlib import Path
from typing import Any

from rho_spec.paths import data_root
from rho_spec.scenario_models import Scenario

FILE_NAME = "scenario.schema.json"


def scenario_schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) as a plain value."""
    schema = Scenario.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Scenario format 1"}


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
