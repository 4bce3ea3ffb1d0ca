"""One self-contained HTML page: rules × targets, witnesses, the kill matrix, the machine, what is not proved.

No script, style, font or picture comes from elsewhere, and the page's own policy forbids it to try: only the one
script and the one style whose digests it names are obeyed, whatever a foreign text might smuggle in.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import rho_core
from rho_conformance.judge.tally import VERDICTS
from rho_conformance.report import drawing, killgrid
from rho_conformance.report import machine as machines
from rho_conformance.report.drawing import Drawn, draw
from rho_conformance.report.expected import Comparison, compare
from rho_conformance.report.gathered import Gathered, Target
from rho_conformance.report.sequence import LANES, chart, lean
from rho_conformance.report.unproved import Section, not_proved
from rho_conformance.report.visible import visible
from rho_conformance.trace import Trace

LARGEST = 1_900_000
"""Bytes that a page should not exceed: 80 rules by 10 targets stay under 2 MB however long their witnesses are."""
LEAST = 200_000
"""Room for witnesses, however much the rest of the page takes."""
LEAN_SIZE = 4_000
"""Bytes that are kept free for each witness still to come: about what the leanest form of one takes."""
MOST_ROWS = 1_000
"""Rows that a chart may hold in its folds; of a longer history the folds are counted, not drawn."""


@dataclass(frozen=True)
class Page:
    """The text, and what stands in it for programs. `left_out`: charts that found no room."""

    html: str
    sections: Sequence[Section]
    left_out: int

    def write(self, path: Path) -> int:
        """Write it and give its size in bytes."""
        data = self.html.encode("utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return len(data)


def page(gathered: Gathered) -> Page:
    """The page of some targets, and of the mutants where they are given."""
    environment = _environment()
    covered = _covered(gathered.targets)
    sections = not_proved(gathered)
    style, script = _asset("page.css"), _asset("page.js")
    context = {
        "gathered": gathered,
        "areas": list(dict.fromkeys(rule.area for rule in gathered.rules.values() if rule is not None)),
        "verdicts": [v for v in VERDICTS if any(v in t.summary for t in gathered.targets)],
        "kills": None if gathered.mutants is None else killgrid.kill_grid(gathered, gathered.mutants),
        "covered": covered,
        "machine": machines.machine(None if covered is None else covered.report.coverage),
        "sections": sections,
        "style": style,
        "script": script,
        "style_digest": _digest(style),
        "script_digest": _digest(script),
        "version": rho_core.__version__,
    }
    template = environment.get_template("page.html.j2")
    bare = template.render(context, witnesses={}, left_out=0)
    witnesses = _Witnesses(environment, gathered, max(LEAST, LARGEST - len(bare.encode("utf-8"))))
    if not witnesses.made:
        return Page(bare, sections, witnesses.left_out)
    html = template.render(context, witnesses=witnesses.made, left_out=witnesses.left_out)
    return Page(html, sections, witnesses.left_out)


class _Witnesses:
    """(rule, target's label) -> its chart as markup: as rich as leaves room for those to come."""

    def __init__(self, environment: Environment, gathered: Gathered, room: int) -> None:
        self._macro = environment.get_template("chart.html.j2").module.chart  # type: ignore[attr-defined]
        self.made: dict[tuple[str, str], Markup] = {}
        self.left_out = 0
        self._room = room
        having = [(rule, t) for rule in gathered.rules for t in gathered.targets if rule in t.traces]
        for done, (rule, target) in enumerate(having, 1):
            trace = target.traces[rule]
            if isinstance(trace, Trace):
                self._add(rule, target, trace, self._room - LEAN_SIZE * (len(having) - done))

    def _add(self, rule: str, target: Target, trace: Trace, free: int) -> None:
        """`free`: what this one may take, so that every other one still finds the room of its leanest form."""
        for markup in self._forms(rule, target, trace, free):
            size = len(markup.encode("utf-8"))
            if size <= free:
                self.made[rule, target.label] = markup
                self._room -= size
                return
        self.left_out += 1

    def _forms(self, rule: str, target: Target, trace: Trace, free: int) -> Iterator[Markup]:
        """The richest form first: with folds, without, and only what is next to the break."""
        shown = chart(trace, rule, target.verdicts[rule].detail)
        if free > 2 * LEAN_SIZE:
            beside = compare(trace, shown) if target.report.target != "core" else None
            if len(shown.rows) <= MOST_ROWS:
                yield self._markup(rule, target, draw(shown, rule), beside)
            yield self._markup(rule, target, draw(shown, rule, folds=False), beside)
        yield self._markup(rule, target, draw(lean(shown), rule, folds=False), None)

    def _markup(self, rule: str, target: Target, parts: Sequence[Drawn], beside: Comparison | None) -> Markup:
        return Markup(self._macro(rule, target.label, parts, beside))


def _covered(targets: Sequence[Target]) -> Target | None:
    """Whose coverage is drawn: the unmutated core's, else the first that has one."""
    having = [t for t in targets if t.report.coverage is not None]
    return next((t for t in having if t.report.target == "core"), having[0] if having else None)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("rho_conformance.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.globals |= {
        "lanes": list(zip(LANES, drawing.LANE_X, strict=True)),
        "width": drawing.WIDTH,
        "text": drawing.TEXT,
        "left": machines.LEFT,
        "right": machines.RIGHT,
    }
    return made


def _shown(value: Any) -> Any:
    """Every text that a template puts out goes through here; markup of ours stays as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> Markup:
    """Our own style or script: the only text that is put into the page as it is, with names the templates give."""
    return Markup((Path(__file__).parent / "templates" / name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
