"""Judges of recorded traces: one monitor for every testable rule, written from the contract and not from
any code.

A monitor reads the digest of a trace (:class:`~.view.View`) and writes into a :class:`~.base.Report`. It
never raises
on what an implementation did; a fault inside a monitor is reported as ``untestable``, never as a violation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from . import (
    bnd,
    buf,
    can,
    can_commit,
    common,
    common_ends,
    coord,
    drop,
    host,
    lim,
    metr,
    ord_calls,
    pers,
    ret,
    ret_usage,
    shut,
    state,
    steer,
    term,
)
from . import ord as ordering
from .base import Episode, Finding, Monitor, Report, TraceLike, Violation
from .grammar import grammar
from .patterns import pattern_monitors
from .view import View, context

__all__ = ["RULES", "Episode", "Finding", "Violation", "context", "judge", "rules_of"]

_AREAS = (ordering, ord_calls, term, can, can_commit, ret, ret_usage, steer, host, coord, buf, state, shut)
_MORE = (drop, pers, bnd, metr, lim, common, common_ends)
RULES: Mapping[str, Monitor] = MappingProxyType(
    {rule: monitor for area in (*_AREAS, *_MORE) for rule, monitor in area.RULES.items()}
)
"""Rule id -> the predicate written for it. Patterns of the catalogue are judged beside it."""

_GRAMMAR = ("RHO-ORD-9", "RHO-ORD-12")


def rules_of(profile: str) -> tuple[str, ...]:
    """The rules that are judged for a profile: ``rho`` or ``common``."""
    prefix = "CP" if profile == "common" else "RHO-"
    return tuple(rule for rule in RULES if rule.startswith(prefix))


def judge(
    trace: TraceLike,
    rules: Collection[str] | None = None,
    *,
    variants: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Finding]:
    """Judge a trace by these rules (by default all of its profile).

    Args:
        trace: what was done and seen (spec/protocol.md, "Recorded traces").
        rules: rule ids; an id that has no monitor gets a finding that says so.
        variants: answers settled before, by decision: ``{"D1": "fail"}``. Another answer is then a violation.

    Returns:
        A finding for each rule.
    """
    wanted = rules_of(trace.profile) if rules is None else tuple(rules)
    try:
        view = View(trace)
    except Exception as fault:
        broken = f"the trace could not be read: {fault!r}"
        return {rule: Finding(untestable=broken) for rule in wanted}
    patterns = pattern_monitors()
    return {rule: _judge_one(rule, view, variants, patterns) for rule in wanted}


def _judge_one(rule: str, view: View, variants: Mapping[str, str], patterns: Mapping[str, Monitor]) -> Finding:
    report = Report(rule, view, variants)
    monitors = [table[rule] for table in (RULES, patterns) if rule in table]
    if not monitors:
        report.untestable("no monitor is written for this rule")
    if rule in _GRAMMAR:
        monitors.append(grammar(rule))
    for monitor in monitors:
        try:
            monitor(view, report)
        except Exception as fault:
            report.untestable(f"the monitor failed: {fault!r}")
    return report.finding
