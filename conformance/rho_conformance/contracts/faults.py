"""Seeded faults in the real core, each with the contract that must refute it: a check of the contracts themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rho_conformance.mutants.base import Patch, attr, row
from rho_core import asks, budget, calls, jobs, messages, resources, snapshot
from rho_core.budget import Budget
from rho_core.events import Success
from rho_core.ledger import Ledger
from rho_core.run import control, outbox, table
from rho_core.run import state as s
from rho_core.steering import Steers


@dataclass(frozen=True)
class Fault:
    """`contract`: its name in the ledger; `title`: what the core does wrong."""

    contract: str
    title: str
    patches: tuple[Patch, ...]


def _counts_nothing(original: Any) -> Any:
    return lambda b: b


def _one_malformed_too_many(original: Any) -> Any:
    return lambda b, policy: original(b, replace(policy, malformed_budget=policy.malformed_budget + 1))


def _one_request_too_many(original: Any) -> Any:
    def after(b: Budget, policy: Any, retryable: bool, hint: int | None) -> Any:
        return original(b, replace(policy, request_budget=policy.request_budget + 1), retryable, hint)

    return after


def _uncapped(original: Any) -> Any:
    return lambda failed, hint, base, cap: original(failed, hint, base, max(cap, hint or 0))


def _none_is_zero(original: Any) -> Any:
    return lambda a, b: (a or 0) + (b or 0)


def _claimed_comes_back(original: Any) -> Any:
    def retract(self: Steers, steering_id: str) -> Any:
        given = Steers(tuple(replace(x, stage="staged") for x in self.waiting if x.stage != "delivered"), self.applied)
        return original(given, steering_id)

    return retract


def _forgets_completion(original: Any) -> Any:
    return lambda job: original(replace(job, completion=None))


def _readers_conflict_too(original: Any) -> Any:
    return lambda a, b: any(x.resource == y.resource for x in a.accesses for y in b.accesses)


def _many_is_not_looked_at(original: Any) -> Any:
    return lambda question, values: original(replace(question, many=True), values)


def _same_revision(original: Any) -> Any:
    return lambda self, history: Ledger(history, self.revision, self.compaction)


def _reads_schema_zero(original: Any) -> Any:
    return lambda version: None if version == 0 else original(version)


def _room_without_end(original: Any) -> Any:
    def pump(run: s.Run, fx: Any, taken: int) -> Any:
        if run.blocked is None:
            return s.Run(run.phase, run.free + taken, None, run.core), None
        return original(run, fx, taken)

    return pump


def _any_stage_will_do(original: Any) -> Any:
    def find(slots: Any, call_id: str, stages: Any) -> int:
        return next((k for k, slot in enumerate(slots) if slot.call.id == call_id), -1)

    return find


def _no_step_limit(original: Any) -> Any:
    def consider(run: s.Run, k: Any, fx: Any) -> Any:
        after, then = original(run, k, fx)
        return after, s.BeginStep() if isinstance(then, s.Limit) else then

    return consider


def _failure_is_ok(original: Any) -> Any:
    return lambda call_id, completion: messages.ToolResult(
        call_id, True, completion.text if isinstance(completion, Success) else "failed"
    )


FAULTS: dict[str, Fault] = {
    "a request is not counted": Fault(
        "budget.sent_counts_one", "sent() gives back what it got", (attr(budget, "sent", _counts_nothing),)
    ),
    "one malformed response too many": Fault(
        "budget.malformed_again_only_within_both_budgets",
        "the malformed budget is one too large",
        (attr(budget, "after_malformed", _one_malformed_too_many),),
    ),
    "one request too many": Fault(
        "budget.requests_never_exceed_the_budget",
        "the request budget is one too large after a failure",
        (attr(budget, "after_failure", _one_request_too_many),),
    ),
    "a hint without a cap": Fault(
        "budget.delay_at_most_cap_or_exponential", "Retry-After is not capped", (attr(budget, "delay_ms", _uncapped),)
    ),
    "no usage is zero usage": Fault(
        "messages.no_usage_is_neutral", "what was not reported becomes 0", (attr(messages, "_sum", _none_is_zero),)
    ),
    "a claimed steer comes back": Fault(
        "steering.only_a_staged_steer_comes_back",
        "a retraction takes back what the provider has claimed",
        (attr(Steers, "retract", _claimed_comes_back),),
    ),
    "a finished job is interrupted": Fault(
        "jobs.a_stopped_job_keeps_its_completion_or_is_interrupted",
        "a stored completion is lost at the end",
        (attr(jobs, "stopped", _forgets_completion),),
    ),
    "readers conflict": Fault(
        "resources.a_conflict_is_exclusive_or_an_unshared_resource",
        "shared accesses of one resource wait for each other, exclusive calls do not",
        (attr(resources, "conflict", _readers_conflict_too),),
    ),
    "many answers to one question": Fault(
        "asks.two_answers_fit_when_many_and_different",
        "a question that takes one answer takes two",
        (attr(asks, "_check_answer", _many_is_not_looked_at),),
    ),
    "a commit that is not counted": Fault(
        "ledger.a_commit_appends_and_counts_one",
        "the revision stays",
        (attr(Ledger, "replace", _same_revision),),
    ),
    "schema 0 is read": Fault(
        "snapshot.a_schema_is_read_exactly_when_it_is_known",
        "an unknown schema is accepted",
        (attr(snapshot, "check_schema", _reads_schema_zero),),
    ),
    "a channel without a bound": Fault(
        "outbox.room_never_exceeds_the_capacity",
        "room grows past the capacity",
        (attr(outbox, "pump", _room_without_end),),
    ),
    "a failed call is ok": Fault(
        "calls.a_result_is_its_completion_else_interrupted",
        "a failure is reported as a success",
        (attr(calls, "result_of", _failure_is_ok),),
    ),
    "the machine's channel has no bound": Fault(
        "inductive.taken_preserves_it_waiting",
        "the machine gives itself more room than there is",
        (attr(control, "pump", _room_without_end),),
    ),
    "the machine retries for ever": Fault(
        "inductive.a_failed_request_preserves_it",
        "the machine sends one request more than the budget",
        (attr(budget, "after_failure", _one_request_too_many),),
    ),
    "a result is stored twice": Fault(
        "inductive.a_result_is_stored_once",
        "a late result replaces the one that is stored",
        (attr(calls, "find", _any_stage_will_do),),
    ),
    "no step limit": Fault(
        "inductive.taken_preserves_it_at_a_boundary",
        "a step begins past the limit",
        (row(table.FLOW, s.ConsiderSteering, _no_step_limit),),
    ),
}
