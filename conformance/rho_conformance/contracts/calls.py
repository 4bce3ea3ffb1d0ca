"""Contracts of `rho_core.calls`: the life of one call of a synchronous batch (RHO-ORD-5, RHO-CAN-12)."""

from __future__ import annotations

from typing import Literal

from rho_conformance.contracts.base import IDS, Id, contract
from rho_core import calls
from rho_core.calls import Slot, Stage
from rho_core.events import Failure, Success, Unavailable
from rho_core.inputs import Plan
from rho_core.messages import INTERRUPTED, ToolCall

CALL = ToolCall("a", "t", "{}")


@contract(calls.opened, bounds="names and ids of at most 2 characters")
def a_call_opens_by_whether_its_tool_is_there(call: ToolCall, available: bool) -> Slot:
    """
    pre: len(call.id) <= 2 and len(call.name) <= 2 and len(call.arguments) <= 2
    post: __return__ == Slot(call, "preparing" if available else "unavailable")
    """
    return calls.opened(call, available)


@contract(calls.started)
def a_started_call_goes_where_its_plan_says(stage: Stage, capability: bool) -> str:
    """
    post: __return__ == ("returned" if stage == "refused" else "authorizing" if capability else "ready")
    """
    return calls.started(Slot(CALL, stage, Plan(capability="net" if capability else None))).stage


@contract(calls.denied, calls.refused, calls.result)
def a_call_that_may_not_run_is_answered_not_ok(stage: Stage, denied: bool) -> bool:
    """
    post: __return__
    """
    slot = Slot(CALL, stage, Plan(capability="net"))
    after = calls.denied(slot, "no") if denied else calls.refused(slot, "no")
    answer = calls.result(after)
    return after.call == CALL and answer.id == "a" and not answer.ok and answer.content != INTERRUPTED


@contract(calls.result, bounds="texts of at most 2 characters")
def a_result_is_its_completion_else_interrupted(stage: Stage, kind: int, text: str) -> bool:
    """
    pre: 0 <= kind <= 3 and len(text) <= 2
    post: __return__
    """
    completion = (None, Success(text), Failure("Execution", text), Unavailable(text))[kind]  # type: ignore[arg-type]
    answer = calls.result(Slot(CALL, stage, Plan(), completion))
    return answer.id == "a" and answer.ok == (kind == 1) and answer.content == (text if kind else INTERRUPTED)


@contract(calls.announced)
def announced_are_started_calls_that_are_not_done(stage: Stage) -> bool:
    """
    post: __return__ == (stage in ("authorizing", "ready", "running", "returned", "panicked"))
    """
    return calls.announced(Slot(CALL, stage))


@contract(calls.find, bounds=f"a batch of two calls, one of any stage, the other running or done; {IDS}")
def finding_a_call_is_by_id_and_stage(one: Stage, two: Literal["running", "done"], which: Id, wanted: Stage) -> int:
    """
    post: __return__ == (0 if which == "a" and one == wanted else 1 if which == "b" and two == wanted else -1)
    """
    slots = (Slot(CALL, one), Slot(ToolCall("b", "t", "{}"), two))
    return calls.find(slots, which, (wanted,))


@contract(calls.put, bounds="a batch of one to three calls")
def putting_replaces_one_and_keeps_the_others(n: int, index: int, stage: Stage) -> bool:
    """
    pre: 1 <= n <= 3 and 0 <= index < n
    post: __return__
    """
    slots = tuple(Slot(ToolCall(str(k), "t", "{}"), "ready") for k in range(n))
    new = slots[index].at(stage)
    after = calls.put(slots, index, new)
    return len(after) == n and all(after[k] == (new if k == index else slots[k]) for k in range(n))


@contract(calls.unavailable, calls.result)
def an_unavailable_call_stays_and_is_answered(stage: Stage) -> bool:
    """
    post: __return__
    """
    after = calls.unavailable(Slot(CALL, stage))
    return after.stage == "unavailable" and not calls.result(after).ok
