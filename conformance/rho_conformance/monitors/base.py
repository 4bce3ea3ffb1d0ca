"""What a monitor says about a trace: violations, episodes, opportunities, variants; and the notebook it
writes them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .view import View

Json = Any
"""A plain JSON value. Traces come from implementations we do not control, so nothing narrower is promised."""


class StepLike(Protocol):
    """One ``perform`` of a trace and its answer (spec/protocol.md, "Recorded traces")."""

    @property
    def perform(self) -> Sequence[Any]: ...
    @property
    def observations(self) -> Sequence[Any]: ...
    @property
    def waiting_on(self) -> Sequence[str]: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...


class TraceLike(Protocol):
    """What the monitors need of ``rho_conformance.trace.Trace``."""

    @property
    def hello(self) -> Mapping[str, Any]: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def profile(self) -> str: ...
    @property
    def steps(self) -> Sequence[StepLike]: ...


@dataclass(frozen=True, slots=True)
class Violation:
    """The rule was broken: where (``step`` of the trace, ``seq`` of the observation) and how."""

    rule: str
    message: str
    step: int
    seq: int | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """One distinct context in which the rule's antecedent occurred and its obligation closed."""

    rule: str
    signature: tuple[object, ...]
    step: int


@dataclass
class Finding:
    """All that one monitor says about one trace. ``variants`` are labels such as ``D1:fail``."""

    violations: list[Violation] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    opportunities: int = 0
    variants: set[str] = field(default_factory=set)
    untestable: str | None = None


class Located(Protocol):
    """Anything that stands at a step of the trace: an observation or a stimulus."""

    @property
    def step(self) -> int: ...


class Report:
    """The notebook of one monitor on one trace. Writing never raises; episodes are kept once per
    signature."""

    def __init__(self, rule: str, view: View, settled: Mapping[str, str]) -> None:
        self.rule = rule
        self.view = view
        self.settled = settled
        self.finding = Finding()
        self._signatures: set[tuple[object, ...]] = set()

    def bad(self, message: str, at: Located | int, run: str | None = None) -> None:
        """Record a violation at an observation, a stimulus or a bare step number."""
        step = at if isinstance(at, int) else at.step
        seq = None if isinstance(at, int) else getattr(at, "seq", None)
        owner = run if run is not None or isinstance(at, int) else getattr(at, "run", None)
        self.finding.violations.append(Violation(self.rule, message, step, seq, owner))

    def ok_or_bad(self, holds: bool, message: str, at: Located | int, run: str | None = None) -> None:
        """Record a violation unless ``holds``."""
        if not holds:
            self.bad(message, at, run)

    def episode(self, at: Located | int, *extra: object) -> None:
        """Record that the rule applied here; ``extra`` distinguishes contexts of this rule alone."""
        step = at if isinstance(at, int) else at.step
        signature = (*self.view.context(step), *extra)
        if signature not in self._signatures:
            self._signatures.add(signature)
            self.finding.episodes.append(Episode(self.rule, signature, step))

    def opportunity(self, times: int = 1) -> None:
        """Count a chance that the stimuli alone gave the implementation."""
        self.finding.opportunities += times

    def variant(self, label: str) -> None:
        """Record a permitted deviation. An answer settled before by a probe binds: another one is a
        violation."""
        key, _, answer = label.partition(":")
        wanted = self.settled.get(key)
        if wanted is not None and wanted != answer:
            self.bad(f"{key} was settled as {wanted!r} for this implementation, here it is {answer!r}", 0)
        self.finding.variants.add(label)

    def untestable(self, reason: str) -> None:
        """Say that this trace cannot decide the rule. The first reason stands."""
        if self.finding.untestable is None:
            self.finding.untestable = reason


Monitor = Callable[["View", Report], None]
Rules = Mapping[str, Monitor]
