"""The permitted variants: every decision and race has one, each shows something, and no rule calls one a failure.

The whole library against each of them is what `rho-core mutants` plays; here is a sample of it.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import pytest

from rho_conformance.chaos import RIVALS, Chaos, is_race
from rho_conformance.chaos import factory as chaos_factory
from rho_conformance.driver import DriverFactory
from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.generate.script import Script
from rho_conformance.judge.exhibit import Exhibit, examine, same
from rho_conformance.judge.library import Item, library
from rho_conformance.mutants import benign, driver_of, find
from rho_conformance.mutants.base import Benign
from rho_core.run import end, table, turn

DECISIONS = tuple(f"D{n}" for n in (*range(1, 16), *range(20, 32)))
RACES = tuple(f"R{n}" for n in range(1, 31))

NO_VARIANT = {
    "D7": "accepted steering never enters the history of a cancelled run, here or elsewhere",
    "D8": "a steer accepted during the last response gets its step, here or elsewhere",
    "D11": "what a failing compactor does is settled",
    "D12": "what a second malformed response does is settled",
    "D13": "the forms of Retry-After are settled",
    "D14": "doubled call ids are malformed",
    "D21": "a crash is a stimulus of the driver; any valid history may be restored",
}
"""Decisions that leave nothing to differ in."""

BY_INPUT_ORDER = {
    "R2": "an event that has room is delivered before any later cancel",
    "R5": "preparations before the cancel, or after it",
    "R6": "authorisation before the cancel, or after it",
    "R9": "the failure before the cancel, or after it",
    "R11": "the last answer before the cancel, or after it",
    "R13": "the claim before the retract, or after it",
    "R14": "the steer before the last answer, or after it",
    "R16": "the response before the tool's return, or after it",
    "R17": "of two responses the first wins",
    "R27": "the shutdown before the last answer, or after it",
    "R30": "the steer before the failure, or after it",
}
"""Races whose every result the core shows for some order of inputs: `hosts-first` and `hosts-last` turn them round."""

SHOWN_BY = {
    "step-limit-fails": "common/CP8/step-limit[0]",
    "open-calls-unfinished": "common/CP1/cancel-in-batch[0]",
    "jobs-finish-before-commit": "CAN/raced-with-job-sends[7]",
    "jobs-finish-first": "common/CP1/cancel-in-batch[2]",
    "aborted-calls-answered": "common/CP1/cancel-in-stream[1]",
    "job-results-first": "reported/PB-02/behind-a-job[0]",
    "nothing-aborted": "common/CP1/cancel-in-stream[0]",
    "usage-of-the-last-response": "METR/total-per-attempt[0]",
    "revisions-without-end": "reported/PB-29/commit-refused[0]",
    "cancelled-response-kept": "CAN/blocked-sends[11]",
    "lost-reader-fails-the-stream": "common/CP13/close-reader[0]",
    "panic-fails": "reported/PB-25/one-end-anywhere[2][1]",
    "unread-cancel-interrupts": "CAN/reader-lost-before[0]",
    "drop-commits": "common/CP13/drop[0]",
    "async-proposed-first": "reported/PB-02/behind-a-job[1]",
    "sync-proposed-when-scheduled": "reported/PB-02/behind-a-job[0]",
    "panicked-job-hangs": "JOBS/panicked[0]",
    "question-refused": "reported/PB-53/one-id-twice[0]",
    "last-finished-first": "BUF/batch-on-a-full-channel[1]",
    "run-at-once": "BUF/batch-on-a-full-channel[0]",
    "steering-before-compaction": "reported/PB-52/compaction-and-steer[0]",
    "boundary-before-compaction": "BND/then-compaction[0]",
    "steers-in-one-group": "STEER/acknowledged[0]",
    "delivered-stays-held": "STEER/again-after-a-reset[0]",
    "capped-hint": "reported/PB-34/hint-is-capped[0]",
    "late-compaction-left": "CAN/cooperative-parties[1]",
    "compaction-by-hand-raced": "SHUT/compactions-count[0]",
    "recorder-unawaited": "CAN/while-recording[0]",
    "applied-on-its-way": "STEER/while-applied-is-blocked[0]",
    "steer-accepted-while-ending": "STEER/after-the-cancel[0]",
    "shutdown-before-busy": "SHUT/shut-for-good[0]",
    "released-after-the-step": "STATE/start-right-after[0]",
    "commands-wait-for-the-send": "BUF/stalled-behind-a-blocked-send[0]",
    "commands-wait-for-the-run": "RET/retry-of-a-later-step[0]",
    "retracted-twice": "STEER/second-retract[0]",
    "refused-in-other-words": "common/CP12/both-at-once",
    "outcome-once": "common/S7/asked-again[0]",
    "nothing-left-over": "reported/PB-46/turn-once[3]",
    "never-cancelling": "reported/PB-02/never-scheduled[0]",
    "cancelling-late": "reported/PB-18/provider-completes-anyway[0]",
    "terminal-state-at-exit": "reported/PB-70/commit-before-completed[0]",
    "hosts-last": "reported/PB-20/cancel-meets-the-batch[1]",
    "hosts-first": "reported/PB-20/cancel-meets-the-batch[0]",
    "tools-first": "CAN/raced-with-a-tool[1]",
    "shutdown-first": "SHUT/start-meets-shutdown[0]",
    "last-tool-first": "COORD/asked-together[0]",
    "cancelled-before-the-first-step": "ORD/cancelled-at-once[2]",
    "cancelled-between-steps": "reported/PB-20/cancel-meets-the-batch[2]",
    "timer-before-cancel": "RET/cancel-meets-the-timer[0]",
    "deltas-halved": "common/CP1/cancel-in-batch[0]",
    "deltas-joined": "common/CP14/flood[0]",
    "delivered-overtaken": "STEER/acknowledged[1]",
    "unknown-kinds": "common/CP1/cancel-in-batch[0]",
    "other-estimates": "common/CP1/cancel-in-batch[0]",
    "real-clock": "common/CP1/cancel-in-batch[0]",
    "pending-text": "BND/not-while-a-job-runs[0]",
    "pending-unanswered": "BND/not-while-a-job-runs[0]",
}
"""Variant -> an item of the library on which it differs from the core."""

EVERY = 211
"""The sample: every so-many-th item, each variant beginning at another one."""


@cache
def items() -> dict[str, Item]:
    return {item.name: item for item in library()}


@cache
def on_core(name: str) -> Exhibit:
    return examine(name, items()[name].source, core_factory)


def on(make: DriverFactory, name: str) -> Exhibit:
    return examine(name, items()[name].source, make, known=on_core(name).trace)


def assert_no_failure(shown: Exhibit) -> None:
    """Nothing that the core does not show as well; and no fault of ours either."""
    new = {rule: why for rule, why in shown.broken.items() if rule not in on_core(shown.name).broken}
    assert new == {}, shown.name
    assert shown.verdict != "error", f"{shown.name}: {shown.detail}"


def named(one: Benign) -> str:
    return one.name


# --- the list ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", DECISIONS)
def test_every_decision_has_a_variant_or_leaves_none(decision: str) -> None:
    variants = [b.name for b in benign() if b.permitted_by == decision]
    assert bool(variants) is not (decision in NO_VARIANT)


@pytest.mark.parametrize("race", RACES)
def test_every_race_has_an_alternative_or_is_one_of_input_order(race: str) -> None:
    alternatives = [b.name for b in benign() if b.permitted_by == race]
    assert bool(alternatives) is not (race in BY_INPUT_ORDER)


def test_what_permits_a_variant_is_a_decision_a_race_or_a_rule() -> None:
    from rho_spec.catalogue import load

    known = {*DECISIONS, *RACES, *(rule.id for rule in load())}
    assert {b.permitted_by for b in benign()} <= known


def test_names_are_unique_and_found() -> None:
    assert len({b.name for b in benign()}) == len(benign())
    assert all(find(b.name) is b for b in benign())


# --- each of them -----------------------------------------------------------------------------------------------------


def test_every_variant_is_shown_by_an_item() -> None:
    assert set(SHOWN_BY) == {b.name for b in benign()}


@pytest.mark.parametrize("variant", benign(), ids=named)
def test_a_variant_differs_and_is_no_failure(variant: Benign) -> None:
    shown = on(partial(driver_of, variant), SHOWN_BY[variant.name])
    assert not same(shown.trace, on_core(shown.name).trace), f"{variant.name} is the core on {shown.name}"
    assert_no_failure(shown)


@pytest.mark.parametrize("variant", benign(), ids=named)
def test_no_rule_calls_a_variant_a_failure(variant: Benign) -> None:
    names = list(items())
    for name in names[benign().index(variant) % EVERY :: EVERY]:
        assert_no_failure(on(partial(driver_of, variant), name))


CALL = {"provider": {"calls": [{"id": "c1", "tool": "t"}]}}
FOUND: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    # Asked again before the first question was answered: the refusal is not the outcome of the run.
    "outcome-once": (
        {"tools": {"t": {}}},
        [{"start": "go"}, {"outcome": {}}, CALL, {"outcome": {}}, {"cancel": {}}, {"read": "all"}],
    ),
    # A snapshot may hold such a revision too.
    "revisions-without-end": (
        {"revision": "max", "history": [{"user": "a"}]},
        [{"append": {"message": {"user": "b"}}}, {"save": {}}, {"snapshot": {}}, {"restore": {}}, {"crash": {}}],
    ),
}
"""Variant -> a history that a long search found, on which it was once called a failure or crashed."""


@pytest.mark.parametrize("name", FOUND)
def test_a_variant_that_once_failed_does_not(name: str) -> None:
    config, steps = FOUND[name]
    script = Script(config, tuple((step,) for step in steps))
    core, shown = examine(name, script, core_factory), examine(name, script, partial(driver_of, find(name)))
    assert (core.broken, shown.broken, shown.detail) == ({}, {}, "")
    assert not same(core.trace, shown.trace)


@pytest.mark.parametrize("variant", benign(), ids=named)
def test_a_variant_is_gone_when_its_driver_has_worked(variant: Benign) -> None:
    tables: list[dict[Any, Any]] = [table.FLOW, table.WAIT, table.COMMON, end.CANCEL, turn.FOLD]
    before = [dict(one) for one in tables]
    on(partial(driver_of, variant), SHOWN_BY[variant.name])
    assert [dict(one) for one in tables] == before


# --- chaos ------------------------------------------------------------------------------------------------------------


def played(seed: int, name: str) -> tuple[Exhibit, tuple[str, ...]]:
    """An item on a fresh driver, and what was mixed for it."""
    made: list[Chaos] = []

    def make() -> Chaos:
        made.append(Chaos(seed))
        return made[-1]

    shown = on(make, name)
    return shown, tuple(b.name for b in made[-1].mixed)


@pytest.mark.parametrize("name", ["common/CP8/step-limit[0]", "CAN/blocked-sends[11]", "STEER/acknowledged[1]"])
def test_chaos_is_the_same_for_a_seed(name: str) -> None:
    first, mixed = played(3, name)
    played(4, name)
    again, mixed_again = played(3, name)
    assert mixed == mixed_again
    assert same(first.trace, again.trace)


def test_seeds_are_different_implementations_and_configurations_different_races() -> None:
    made = {tuple(b.name for b in Chaos(seed).made) for seed in range(5)}
    assert len(made) == 5
    races = set()
    for name in list(items())[::40]:
        _, mixed = played(0, name)
        races.add(tuple(b for b in mixed if is_race(find(b))))  # type: ignore[arg-type]
    assert len(races) > 5


def test_rivals_are_variants_and_never_together() -> None:
    assert set().union(*RIVALS) <= {b.name for b in benign()}
    for seed in range(30):
        driver = Chaos(seed)
        driver.open({})
        names = {b.name for b in driver.mixed}
        assert all(len(rivals & names) <= 1 for rivals in RIVALS)


def test_every_variant_is_mixed_sooner_or_later() -> None:
    seen: set[str] = set()
    for seed in range(40):
        driver = Chaos(seed)
        driver.open({})
        seen |= {b.name for b in driver.mixed}
    assert seen == {b.name for b in benign()}


@pytest.mark.parametrize("seed", range(5))
def test_no_rule_calls_chaos_a_failure(seed: int) -> None:
    for name in list(items())[seed::67]:
        assert_no_failure(on(chaos_factory(seed), name))


def test_chaos_says_who_it_is() -> None:
    assert chaos_factory(7)().hello()["name"] == "chaos:7"  # type: ignore[index]
