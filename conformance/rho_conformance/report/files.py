"""`report.json` and `report.md` in a folder, with the witnesses of broken rules beside them."""

from __future__ import annotations

import json
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from rho_conformance.judge.conform import Report
from rho_conformance.report.history import rows

TEMPLATE = """\
# {{ report.hello.name }} {{ report.hello.version }}: profile {{ report.profile }}

**{{ "Conformant" if report.conformant else "Not conformant" }}.**
{% for name, n in report.summary.items() %}{{ n }} {{ name }}{{ ", " if not loop.last }}{% endfor %}.

Played: {% for origin, n in report.played.items() %}{{ n }} {{ origin }}{{ ", " if not loop.last }}{% endfor %}; \
seed {{ report.ask.seed }}, examples {{ report.ask.examples }}, steps {{ report.ask.steps }}; \
{{ "%.1f"|format(report.seconds) }} s.
{% if coverage %}
Rows of the core's tables taken: {{ coverage.taken }} of {{ coverage.rows }}\
{% if coverage.missing %}; not taken: {{ coverage.missing|join(", ") }}{% endif %}.
{% endif %}
| rule | what it promises | verdict | live contexts | note |
|---|---|---|---|---|
{% for id, v in report.verdicts.items() -%}
| {{ id }} | {{ report.rules[id].title }} | {{ v.verdict }} | {{ v.triggered }} | {{ (v.variant or v.detail)|cell }} |
{% endfor %}
{%- for id, v in report.verdicts.items() if v.verdict == "fail" %}
## {{ id }} is broken

{{ report.rules[id].statement }}

{{ v.detail|cell }}
{% if v.evidence and v.evidence.trace %}
| step | done | seen |
|---|---|---|
{% for step, done, seen in rows(v.evidence.trace) -%}
| {{ step }} | {{ done|cell }} | {{ seen|cell }} |
{% endfor %}
{%- endif %}
{%- endfor %}
"""


def write(report: Report, folder: Path) -> Path:
    """Write both files; the path of the Markdown one."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    environment.filters["cell"] = _cell
    coverage = None if report.coverage is None else report.coverage.to_json()
    page = environment.from_string(TEMPLATE).render(report=report, coverage=coverage, rows=rows)
    path = folder / "report.md"
    path.write_text(page.rstrip() + "\n", encoding="utf-8")
    return path


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
