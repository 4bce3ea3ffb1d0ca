"""The reports of one target in a folder: `report.json`, `report.md`, `report.html`, `junit.xml`, and witnesses."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from rho_conformance.judge.conform import Report
from rho_conformance.report import junit
from rho_conformance.report.gathered import gather
from rho_conformance.report.history import rows
from rho_conformance.report.page import page
from rho_conformance.report.visible import visible
from rho_conformance.trace import encodable

TEMPLATE = """\
# {{ report.hello.name|string|cell }} {{ report.hello.version|string|cell }}: profile {{ report.profile }}

**{{ "Conformant" if report.conformant else "Not conformant" }}.**
{% for name, n in report.summary.items() %}{{ n }} {{ name }}{{ ", " if not loop.last }}{% endfor %}.

Played: {% for origin, n in report.played.items() %}{{ n }} {{ origin }}{{ ", " if not loop.last }}{% endfor %}; \
seed {{ report.ask.seed }}, examples {{ report.ask.examples }}, steps {{ report.ask.steps }}; \
{{ "%.1f"|format(report.seconds) }} s.
{% if coverage %}
Rows of the core's tables taken: {{ coverage.taken }} of {{ coverage.rows }}\
{% if coverage.missing %}; not taken: {{ coverage.missing|join(", ") }}{% endif %}.
{% endif %}
{%- for note in report.notes %}
{{ note|cell }}
{% endfor %}
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
    """Write all four files; the path of the Markdown one.

    The page and the JUnit file are made of `report.json` and the witnesses, as `rho-core report` makes them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "report.json"
    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    data.write_text(encodable(text) + "\n", encoding="utf-8")
    gathered = gather([data])
    junit.write(gathered, folder / "junit.xml")
    page(gathered).write(folder / "report.html")
    path = folder / "report.md"
    path.write_text(_markdown(report), encoding="utf-8")
    return path


def _markdown(report: Report) -> str:
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    environment.filters["cell"] = _cell
    coverage = None if report.coverage is None else report.coverage.to_json()
    text = environment.from_string(TEMPLATE).render(report=report, coverage=coverage, rows=rows)
    return text.rstrip() + "\n"


_MARKUP = re.compile(r"([\\`*\[\]|])")


def _cell(text: str) -> str:
    """Foreign text as a cell of a Markdown table: no markup, no HTML, one line."""
    plain = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", plain).replace("\n", "<br>")
