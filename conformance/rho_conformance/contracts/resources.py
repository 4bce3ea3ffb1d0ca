"""Contracts of `rho_core.resources`: who may overlap whom (rho.md 3.6)."""

from __future__ import annotations

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import resources
from rho_core.inputs import Access, Plan


def _plan(exclusive: bool, resource: str, shared: bool) -> Plan:
    return Plan(exclusive, (Access(resource, shared),))


@contract(resources.conflict, bounds=f"one access a plan; {IDS} for resources")
def a_conflict_is_exclusive_or_an_unshared_resource(e: bool, f: bool, x: Id, y: Id, s: bool, t: bool) -> bool:
    """
    post: __return__ == (e or f or (x == y and not (s and t)))
    """
    return resources.conflict(_plan(e, x, s), _plan(f, y, t))


@contract(resources.conflict, bounds=f"two accesses against one; {IDS} for resources")
def a_conflict_is_symmetric(e: bool, x: Id, y: Id, z: Id, s: bool, t: bool, u: bool) -> bool:
    """
    post: __return__
    """
    a, b = Plan(e, (Access(x, s), Access(y, t))), Plan(False, (Access(z, u),))
    return resources.conflict(a, b) == resources.conflict(b, a)


@contract(resources.blockers, bounds="three calls of one resource")
def only_earlier_conflicting_calls_block(e: bool, f: bool, g: bool, s: bool, t: bool, u: bool, index: int) -> bool:
    """
    pre: 0 <= index <= 2
    post: __return__
    """
    plans = (_plan(e, "x", s), _plan(f, "x", t), _plan(g, "x", u))
    found = resources.blockers(plans, index)
    return found == tuple(i for i in range(index) if resources.conflict(plans[i], plans[index]))


@contract(resources.blockers, bounds="three calls of one resource")
def the_first_call_not_done_is_never_blocked(e: bool, f: bool, g: bool, s: bool, t: bool, u: bool, done: int) -> bool:
    """No deadlock: of the calls that are left, the first waits for none that is left.

    pre: 0 <= done <= 2
    post: __return__
    """
    plans = (_plan(e, "x", s), _plan(f, "x", t), _plan(g, "x", u))
    return all(i < done for i in resources.blockers(plans, done))


@contract(resources.detachable, resources.conflict, bounds=f"one access a plan; {IDS} for resources")
def detachable_plans_never_conflict(e: bool, f: bool, x: Id, y: Id, s: bool, t: bool) -> bool:
    """
    post: __return__
    """
    a, b = _plan(e, x, s), _plan(f, y, t)
    return not (resources.detachable(a) and resources.detachable(b)) or not resources.conflict(a, b)
