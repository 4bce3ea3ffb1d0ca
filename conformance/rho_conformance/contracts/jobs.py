"""Contracts of `rho_core.jobs`: the pool of detached calls (RHO-ORD-7, RHO-ORD-10, RHO-CAN-14)."""

from __future__ import annotations

from typing import Literal

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import jobs
from rho_core.calls import INTERRUPTED_COMPLETION
from rho_core.events import Success
from rho_core.inputs import Access, Plan
from rho_core.jobs import Job, Pool, Stage
from rho_core.messages import ToolCall

PAIR = f"a pool of two jobs of any stage; {IDS}"
Other = Literal["running", "returned", "parked"]
BESIDE = f"a pool of two jobs, one of any stage, the other running, returned or parked; {IDS}"
DONE = Success("done")


def _job(call_id: str, serial: int, stage: Stage, completed: bool = False) -> Job:
    return Job(ToolCall(call_id, "t", "{}"), serial, stage, Plan(), DONE if completed else None)


def _pool(one: Stage, two: Stage) -> Pool:
    return (_job("a", 0, one), _job("b", 1, two))


def _ids(pool: Pool) -> tuple[str, ...]:
    return tuple(j.call.id for j in pool)


@contract(jobs.opened, jobs.open_ids, bounds=PAIR)
def an_opened_job_is_last_and_preparing(one: Stage, two: Stage, serial: int) -> bool:
    """
    post: __return__
    """
    after = jobs.opened(_pool(one, two), ToolCall("c", "t", "{}"), serial)
    return after[:2] == _pool(one, two) and after[2] == _job("c", serial, "preparing") and "c" in jobs.open_ids(after)


@contract(jobs.find, bounds=BESIDE)
def finding_a_job_is_by_id_and_stage(one: Stage, two: Other, which: Id, wanted: Stage) -> bool:
    """
    post: __return__
    """
    found = jobs.find(_pool(one, two), which, {wanted})
    expected = (which == "a" and one == wanted) or (which == "b" and two == wanted)
    return (found is not None) == expected and (found is None or found.call.id == which)


@contract(jobs.put, jobs.move_last, bounds=BESIDE)
def replacing_keeps_every_id_once(one: Stage, two: Other, which: bool, to: Stage, last: bool) -> bool:
    """
    post: __return__
    """
    pool = _pool(one, two)
    job = pool[0 if which else 1].at(to)
    after = jobs.move_last(pool, job) if last else jobs.put(pool, job)
    kept = sorted(_ids(after)) == ["a", "b"] and job in after
    return kept and (after[-1] == job if last else _ids(after) == ("a", "b"))


@contract(jobs.returned, bounds=PAIR)
def a_completion_is_stored_and_found_last(stage: Stage, other: Stage, serial: int) -> bool:
    """
    post: __return__
    """
    pool = (_job("a", serial, stage), _job("b", serial + 1, other))
    after = jobs.returned(pool, pool[0], DONE)
    if stage == "started":  # its ToolDetached is on its way: it keeps its place
        return after[0] == _job("a", serial, "started", True) and after[1] == pool[1]
    return after == (pool[1], _job("a", serial, "returned", True))


@contract(jobs.detached)
def a_detached_job_runs_unless_it_has_returned(completed: bool, other: Stage) -> str:
    """
    post: __return__ == ("returned" if completed else "running")
    """
    pool = (_job("a", 0, "started", completed), _job("b", 1, other))
    found = next(j for j in jobs.detached(pool, pool[0]) if j.call.id == "a")
    return found.stage


@contract(jobs.drain, bounds=PAIR)
def draining_takes_the_parked_and_nothing_else(one: Stage, two: Stage) -> bool:
    """
    post: __return__
    """
    pool = _pool(one, two)
    after, results = jobs.drain(pool)
    parked = tuple(j.call.id for j in pool if j.stage == "parked")
    return tuple(r.id for r in results) == parked and after == tuple(j for j in pool if j.stage != "parked")


@contract(jobs.stopped)
def a_stopped_job_keeps_its_completion_or_is_interrupted(stage: Stage, completed: bool) -> bool:
    """
    post: __return__
    """
    after = jobs.stopped(_job("a", 0, stage, completed))
    stored = DONE if completed else INTERRUPTED_COMPLETION
    return after.completion == stored and after.stage == ("closed" if stage in jobs.OPENING else "returned")


@contract(jobs.running, jobs.any_live, bounds=PAIR)
def running_jobs_are_counted(one: Stage, two: Stage) -> int:
    """
    post: __return__ == (one in ("started", "running", "stopping")) + (two in ("started", "running", "stopping"))
    """
    return jobs.running(_pool(one, two))


@contract(jobs.any_live, bounds=PAIR)
def a_pool_lives_while_one_is_not_parked(one: Stage, two: Stage) -> bool:
    """
    post: __return__ == (not (one == "parked" and two == "parked"))
    """
    return jobs.any_live(_pool(one, two))


@contract(jobs.first_returned, bounds=PAIR)
def the_first_returned_is_the_first(one: Stage, two: Stage) -> str:
    """
    post: __return__ == ("a" if one == "returned" else "b" if two == "returned" else "")
    """
    found = jobs.first_returned(_pool(one, two))
    return "" if found is None else found.call.id


@contract(jobs.prepared, bounds="at most two accesses")
def only_a_detachable_plan_is_prepared(exclusive: bool, n: int, first: bool, second: bool) -> str:
    """
    pre: 0 <= n <= 2
    post: (__return__ == "prepared") == (not exclusive and (n < 1 or first) and (n < 2 or second))
    """
    accesses = (Access("x", first), Access("y", second))[:n]
    return jobs.prepared(_job("a", 0, "preparing"), Plan(exclusive, accesses)).stage
