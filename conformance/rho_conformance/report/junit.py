"""JUnit XML for CI: a test case for each rule.

A rule that was not really tried is not green: `vacuous`, `inconclusive` and `error` are errors. Skipped is only
what does not apply (`n/a`) or cannot be decided (`untestable`), with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as xml

from rho_conformance.report.gathered import Cell, Gathered, Target
from rho_conformance.report.history import rows
from rho_conformance.report.visible import visible
from rho_conformance.trace import Trace

HELD_AT_ALL = "at least one rule was tried and held"
"""A case of its own: a report in which every rule is skipped must not look green."""


def write(gathered: Gathered, path: Path) -> None:
    """Write one suite for each target."""
    xml.ElementTree(document(gathered)).write(path, encoding="utf-8", xml_declaration=True)


def document(gathered: Gathered) -> xml.Element:
    """The `testsuites` element."""
    root = xml.Element("testsuites", name="rho-core")
    for target in gathered.targets:
        root.append(_suite(target, gathered))
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    xml.indent(root)
    return root


def _suite(target: Target, gathered: Gathered) -> xml.Element:
    suite = _element("testsuite", name=f"{target.label}: {target.report.profile}", time=f"{target.report.seconds:.3f}")
    suite.append(_properties(target))
    for rule, cell in target.verdicts.items():
        known = gathered.rules.get(rule)
        case = _element(
            "testcase",
            classname=f"{target.report.profile}.{known.area if known is not None else 'unknown'}",
            name=f"{rule}: {known.title}" if known is not None else rule,
        )
        _outcome(case, rule, cell, target)
        suite.append(case)
    suite.append(_held(target))
    cases = suite.findall("testcase")
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    return suite


def _properties(target: Target) -> xml.Element:
    report = target.report
    found = _element("properties")
    about = {name: report.implementation.get(name) for name in ("name", "version", "time", "deterministic")}
    bounds = {"seed": report.seed, "examples": report.examples, "steps": report.steps}
    for name, value in {**about, **bounds, "conformant": target.conformant}.items():
        found.append(_element("property", name=name, value=str(value)))
    return found


def _outcome(case: xml.Element, rule: str, cell: Cell, target: Target) -> None:
    _VERDICTS[cell.verdict](case, cell)
    trace = target.traces.get(rule)
    if isinstance(trace, Trace):
        text = "\n".join(f"step {step}: {done}\n{_indented(seen)}" for step, done, seen in rows(trace))
        _log(case, text)
    elif trace is not None:
        _log(case, trace)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _held(target: Target) -> xml.Element:
    case = _element("testcase", classname=f"{target.report.profile}.claim", name=HELD_AT_ALL)
    if "pass" not in target.summary:
        case.append(_element("error", type="incomplete", message="no rule has the verdict pass"))
    return case


def _pass(case: xml.Element, cell: Cell) -> None:
    return None


def _variant(case: xml.Element, cell: Cell) -> None:
    _log(case, "\n".join(part for part in (f"variant: {cell.variant}", cell.detail) if part))


def _with(tag: str) -> Callable[[xml.Element, Cell], None]:
    def add(case: xml.Element, cell: Cell) -> None:
        case.append(_element(tag, type=cell.verdict, message=cell.detail or cell.verdict))

    return add


def _skip(case: xml.Element, cell: Cell) -> None:
    case.append(_element("skipped", message=f"{cell.verdict}: {cell.detail or 'no reason is given'}"))


_VERDICTS: dict[str, Callable[[xml.Element, Cell], None]] = {
    "pass": _pass,
    "variant": _variant,
    "fail": _with("failure"),
    "vacuous": _with("error"),
    "inconclusive": _with("error"),
    "error": _with("error"),
    "n/a": _skip,
    "untestable": _skip,
}


def _log(case: xml.Element, text: str) -> None:
    found = _element("system-out")
    found.text = visible(text)
    case.append(found)


def _element(tag: str, **attributes: str) -> xml.Element:
    return xml.Element(tag, {name: visible(value) for name, value in attributes.items()})
