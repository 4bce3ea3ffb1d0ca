"""Moves of the lifecycles that no edge of the core's state graphs takes, and why. Any other must be taken."""

from __future__ import annotations

from types import MappingProxyType

from rho_conformance.lifecycles.relate import Relation, Witness

_FORGETS = "the core forgets what is over: an id that comes again is a new entity to it"
_SESSION = "after the end of a run its session answers, which the state graph of a run does not hold"
_AT_ONCE = "the core passes through this state within one step"
_OUTSIDE = "a lost process and a restored snapshot are the driver's affair: the core is begun anew"

REASONS: MappingProxyType[tuple[str, str, str], str] = MappingProxyType(
    {
        ("channel", "lose", "last"): _AT_ONCE,
        ("detached_job", "lose", "started"): _AT_ONCE,
        ("run", "vanish", "new"): _AT_ONCE,
        ("tool_call", "propose", "finished"): _FORGETS,
        ("tool_call", "propose", "dropped"): _FORGETS,
        ("detached_job", "propose", "finished"): _FORGETS,
        ("detached_job", "propose", "dropped"): _FORGETS,
        ("host_input", "refuse_again", "refused"): _FORGETS,
        ("steering", "retract_nothing", "retracted"): _FORGETS,
        ("steering", "retract_nothing", "refused"): _FORGETS,
        ("steering", "retract_nothing", "unapplied"): _SESSION,
        ("steering", "retract_nothing", "over"): _SESSION,
        ("steering", "retract_again", "retracted"): "decision D27 permits it; the core answers NotFound",
        **dict.fromkeys(
            (
                ("session", "renew", state)
                for state in ("Idle", "Running", "WaitingForHostInput", "Cancelling", "Completed", "Failed")
            ),
            _OUTSIDE,
        ),
    }
)
"""(machine, trigger, source) -> why no edge of the core takes it."""


def unwitnessed(relation: Relation) -> list[Witness]:
    """Edges of the machines that no step has taken so far."""
    every = {
        (name, edge.move.trigger, edge.source, edge.dest)
        for name, machine in relation.machines.items()
        for edge in machine.edges
    }
    return sorted(every - relation.witnessed)
