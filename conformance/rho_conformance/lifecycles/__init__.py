"""The lifecycles against what was seen, and against the core's tables: an independent second model at work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rho_conformance.lifecycles.accept import Acceptor, Entity, Refusal, accept, acceptors
from rho_conformance.lifecycles.observed import entities
from rho_conformance.lifecycles.sessions import session_faults
from rho_conformance.trace import Trace

__all__ = ["Refusal", "lifecycle_faults"]


def lifecycle_faults(trace: Trace, machines: Mapping[str, Acceptor] | None = None) -> list[Refusal]:
    """What the machines do not accept in a trace of the profile rho; at most one refusal for each entity."""
    known = machines or acceptors()
    return [*session_faults(known["session"], trace), *_faults(known, trace)]


def _faults(machines: Mapping[str, Acceptor], trace: Trace) -> Iterator[Refusal]:
    for entity in entities(trace):
        refusal = _call(machines, entity) if entity.machine == "call" else accept(machines[entity.machine], entity)
        if refusal is not None:
            yield refusal


def _call(machines: Mapping[str, Acceptor], entity: Entity) -> Refusal | None:
    """A call is synchronous or detached, and its events say which only when it is: either machine may accept it."""
    refusals = [accept(machines[name], entity) for name in ("tool_call", "detached_job")]
    wrong = [r for r in refusals if r is not None]
    return None if len(wrong) < len(refusals) else max(wrong, key=lambda r: (r.taken, r.step))
