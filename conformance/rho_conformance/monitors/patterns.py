"""Monitors compiled from the ``check`` tables of the catalogue (spec/pages/patterns.md gives their
meaning)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from rho_conformance.scenario.match import MISSING, matches

from .base import Monitor, Report
from .entities import EVENTS, NEVER, TERMINALS, Obs, Run
from .ord import must_announce
from .view import View

Json = Any
Check = Mapping[str, Json]


def listed(value: Json) -> list[Json]:
    """One matcher or several, as a list."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def fits(matcher: Json, obs: Obs) -> bool:
    """Whether an observation fits a matcher: a name, or a name with fields; ``event`` is any event of a
    run."""
    name, fields = next(iter(matcher.items())) if isinstance(matcher, Mapping) else (matcher, {})
    if obs.name != name and not (name == "event" and obs.name in EVENTS):
        return False
    return all(matches(wanted, obs.data.get(key, MISSING), key) for key, wanted in fields.items())


def any_fits(matchers: Sequence[Json], obs: Obs) -> bool:
    """Whether one of the matchers fits."""
    return any(fits(m, obs) for m in matchers)


def stream(run: Run) -> list[Obs]:
    """All of one run in order: events, upcalls, the end of the stream, its outcome."""
    ends = [o for o in (run.closed, run.outcome_reply, run.reply) if o is not None]
    return sorted([*run.events, *run.upcalls, *ends], key=lambda o: o.seq)


def _cut(seen: Sequence[Obs], names: tuple[str, ...]) -> list[list[Obs]]:
    out: list[list[Obs]] = []
    for obs in seen:
        if obs.name in names:
            out.append([])
        if out:
            out[-1].append(obs)
    return out


def instances(check: Check, run: Run) -> list[list[Obs]]:
    """The instances of the check's scope in one run, divided by ``per``, filtered by ``when`` and
    ``unless``."""
    seen, scope = stream(run), check["scope"]
    if scope == "call":
        found = [sorted([*c.events, *c.prepares, *c.executes], key=lambda o: o.seq) for c in run.calls]
    elif scope == "step":
        found = _cut(seen, ("StepStarted",))
    elif scope == "attempt":
        found = _cut(seen, ("StepStarted", "ProviderStreamReset"))
    elif scope == "after":
        start = next((i for i, o in enumerate(seen) if any_fits(listed(check["after"]), o)), len(seen))
        found = [seen[start + 1 :]]
    else:
        found = [seen]
    if "per" in check:
        found = [part for one in found for part in _divide(one, str(check["per"]))]
    when, unless = listed(check.get("when")), listed(check.get("unless"))
    kept = [one for one in found if not when or any(any_fits(when, o) for o in one)]
    return [one for one in kept if not any(any_fits(unless, o) for o in one) and not _withdrawn(check, run, one)]


def _withdrawn(check: Check, run: Run, seen: Sequence[Obs]) -> bool:
    """Whether an instance is about a steer that was retracted: nothing more is owed to it (D15)."""
    gone = {s.name for s in run.steers if s.retracted_step != NEVER} if check.get("per") == "id" else set()
    return bool(gone) and any(o.get("id") in gone or gone & set(o.get("ids") or ()) for o in seen)


def _divide(seen: Sequence[Obs], key: str) -> list[list[Obs]]:
    out: dict[str, list[Obs]] = {}
    for obs in seen:
        value = obs.get(key)
        many = obs.get("ids") if key == "id" else None
        for one in many if isinstance(many, list) else [value]:
            if one is not None:
                out.setdefault(str(one), []).append(obs)
    return list(out.values())


def finished(check: Check, view: View, run: Run) -> bool:
    """Whether what is missing in this run is missing for good, and nothing excuses it."""
    if run.gap or run.severed or run.panics:
        return False
    of = listed(check.get("of"))
    if of and all(isinstance(m, str) and m in TERMINALS for m in of) and not must_announce(view, run):
        return False
    closing = listed(check.get("closed_by")) or list(TERMINALS)
    return any(any_fits(closing, o) for o in stream(run))


def compile_check(check: Check) -> Monitor:
    """The monitor of a pattern check."""
    judge_one = _PATTERNS[str(check["pattern"])]

    def monitor(view: View, report: Report) -> None:
        for run in view.runs:
            if check["scope"] == "call":
                _nameless(check, report, run)
            for instance in instances(check, run):
                judge_one(check, view, report, run, instance)

    return monitor


def _nameless(check: Check, report: Report, run: Run) -> None:
    named = [m for key in ("of", "first", "then") for m in listed(check.get(key))]
    plain = {x.rstrip("?*") for m in named if isinstance(m, str) for x in m.split("|")} - {"event"}
    for event in run.events:
        if event.name in plain and not event.call_id:
            report.bad(f"{event.name} carries no call id", event)


def _absence(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    for obs in seen:
        if any_fits(listed(check["of"]), obs):
            report.bad(f"{obs.name} must not occur here", obs)


def _existence(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    if seen and finished(check, view, run) and not any(any_fits(listed(check["of"]), o) for o in seen):
        report.bad(f"{check['of']} never occurred", seen[-1], run.name)


def _universality(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    for obs in seen:
        if any_fits(listed(check["of"]), obs):
            wrong = [k for k, v in check["holds"].items() if not matches(v, obs.data.get(k, MISSING), k)]
            report.ok_or_bad(not wrong, f"{obs.name} does not hold {wrong}", obs)


def _precedence(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    if run.gap:
        return
    before = False
    for obs in seen:
        before = before or any_fits(listed(check["first"]), obs)
        if not before and any_fits(listed(check["then"]), obs):
            report.bad(f"{obs.name} before any {check['first']}", obs)
            return


def _response(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    owed: Obs | None = None
    for obs in seen:
        if any_fits(listed(check["then"]), obs):
            owed = None
        elif any_fits(listed(check["first"]), obs):
            owed = obs
    if owed is not None and finished(check, view, run):
        report.bad(f"{owed.name} was not followed by {check['then']}", owed)


def _count(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    found = [o for o in seen if any_fits(listed(check["of"]), o)]
    most, least = check.get("max"), check.get("min")
    if most is not None and len(found) > most:
        report.bad(f"{len(found)} of {check['of']}, at most {most}", found[most])
    if least is not None and len(found) < least and finished(check, view, run):
        report.bad(f"{len(found)} of {check['of']}, at least {least}", seen[-1] if seen else run.start_step, run.name)


def _happens_before(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    first = next((o for o in seen if any_fits(listed(check["first"]), o)), None)
    for obs in seen:
        if any_fits(listed(check["then"]), obs) and (first is None or obs.step < first.step):
            report.bad(f"{obs.name} before any {check['first']}", obs)
            return


def _elements(of: Sequence[Json]) -> list[tuple[frozenset[str], str]]:
    out = []
    for element in of:
        mode = element[-1] if element[-1] in "?*" else ""
        out.append((frozenset(element.rstrip("?*").split("|")), mode))
    return out


def _closure(states: set[int], elements: Sequence[tuple[frozenset[str], str]]) -> set[int]:
    out = set(states)
    for place in range(len(elements)):
        if place in out and elements[place][1]:
            out.add(place + 1)
    return out


def _sequence(check: Check, view: View, report: Report, run: Run, seen: Sequence[Obs]) -> None:
    if run.gap:
        return
    elements = _elements(listed(check["of"]))
    names = frozenset().union(*(e[0] for e in elements))
    states, last = _closure({0}, elements), None
    for obs in (o for o in seen if o.name in names):
        moved = {
            p if elements[p][1] == "*" else p + 1 for p in states if p < len(elements) and obs.name in elements[p][0]
        }
        last = obs
        if not moved:
            report.bad(f"{obs.name} is out of the sequence {check['of']}", obs)
            return
        states = _closure(moved, elements)
    if last is not None and len(elements) not in states and finished(check, view, run):
        report.bad(f"the sequence {check['of']} was not finished", last)


_PATTERNS: Mapping[str, Callable[[Check, View, Report, Run, Sequence[Obs]], None]] = {
    "absence": _absence,
    "existence": _existence,
    "universality": _universality,
    "precedence": _precedence,
    "response": _response,
    "sequence": _sequence,
    "count": _count,
    "happens_before": _happens_before,
}


@cache
def pattern_monitors() -> Mapping[str, Monitor]:
    """Rule id -> monitor for every rule of the catalogue whose check is a pattern (the standing checks
    aside)."""
    return MappingProxyType(dict(_compiled()))


def _compiled() -> Iterator[tuple[str, Monitor]]:
    from rho_spec.catalogue import load

    for rule in load():
        if rule.pattern is not None and not rule.id.startswith("CORE-"):
            yield rule.id, compile_check(rule.check)
