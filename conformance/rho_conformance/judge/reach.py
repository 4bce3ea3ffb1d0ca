"""How much of a rule a target could show at all: what the core shows on the very scripts that the target played.

A rule is kept when it held in so many different live contexts (`threshold`). A target that declares little plays
fewer scripts, and these may not hold so many; then the core, which declares everything, cannot show more on them
either, and no more is asked of the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.judge.exhibit import ERROR, Exhibit, examine
from rho_conformance.judge.liveness import count
from rho_conformance.mutants.base import Mutant
from rho_conformance.scenario.play import NOT_APPLICABLE
from rho_spec.catalogue import Rule


class Reach:
    """The scripts of one target, played on the core when somebody first asks."""

    def __init__(self, exhibits: Sequence[Exhibit], own: Mapping[str, tuple[Mutant, ...]]) -> None:
        self._exhibits = [e for e in exhibits if e.verdict not in (NOT_APPLICABLE, ERROR)]
        self._own = own
        self._shown: list[Exhibit] | None = None

    def wanted(self, rule: Rule) -> int:
        """The live contexts that the rule can be asked for here: its threshold, or what the core shows, maybe none."""
        if self._shown is None:
            self._shown = [examine(e.name, e.source, core_factory, origin=e.origin) for e in self._exhibits]
        found = count(rule, self._shown, self._own.get(rule.id, ()))
        return min(rule.threshold, len(found.live))
