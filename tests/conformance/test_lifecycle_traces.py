"""The lifecycles over observed traces: everything the core shows is accepted, and what wrong cores show is named."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rho_conformance.chaos import factory as chaos_factory
from rho_conformance.driver import DriverFactory
from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.judge.library import Item, library
from rho_conformance.lifecycles import lifecycle_faults
from rho_conformance.lifecycles.accept import Acceptor, Entity, Sighting, accept, acceptors
from rho_conformance.lifecycles.observed import entities
from rho_conformance.mutants import benign, driver_of, mutants
from rho_conformance.mutants.base import Benign
from rho_conformance.scenario import run_scenario
from rho_conformance.trace import StepRecord, Trace
from rho_spec.lifecycles import Letter
from rho_spec.observations import EVENTS

EVERY = 97
"""The sample of the library that each variant plays: every so-many-th item, beginning at another one."""
ITEMS = {item.name: item for item in library("rho")}


def played(item: Item, factory: DriverFactory) -> Trace:
    trace = run_scenario(item.source, factory, repeat=1).trace  # type: ignore[arg-type]
    assert trace is not None, item.name
    return trace


def faults(item: Item, factory: DriverFactory) -> list[str]:
    return [str(fault) for fault in lifecycle_faults(played(item, factory))]


def test_everything_that_the_core_shows_is_accepted() -> None:
    found, seen = {}, dict.fromkeys(acceptors(), 0)
    for item in ITEMS.values():
        trace = run_scenario(item.source, core_factory, repeat=1).trace  # type: ignore[arg-type]
        if trace is None:
            continue
        wrong = lifecycle_faults(trace)
        if wrong:
            found[item.name] = [str(fault) for fault in wrong]
        for entity in entities(trace):
            names = ("tool_call", "detached_job") if entity.machine == "call" else (entity.machine,)
            for name in names:
                seen[name] += 1
    assert found == {}
    assert all(count > 40 for name, count in seen.items() if name != "session"), seen


@pytest.mark.parametrize("variant", benign(), ids=lambda one: one.name)
def test_permitted_variants_are_accepted(variant: Benign) -> None:
    """Every one of them is: the machines hold no more than what every variant keeps."""
    names = list(ITEMS)
    for name in names[benign().index(variant) % EVERY :: EVERY]:
        assert faults(ITEMS[name], partial(driver_of, variant)) == [], name


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_chaos_is_accepted(seed: int) -> None:
    for name in list(ITEMS)[seed::EVERY]:
        assert faults(ITEMS[name], chaos_factory(seed)) == [], name


REFUSED = {
    # mutant -> an item that shows it, what is refused
    "failed-preparation-not-started": ("ORD/preparation-fails[0]", "tool_call: run r1, call A, step 5: in preparing"),
    "finished-again-on-cancel": ("ORD/finished-once-on-cancel[0]", "tool_call: run r1, call A, step 4: in finished"),
    "unavailable-tool-started": ("reported/PB-44/unknown-tool[0]", "tool_call: run r1, call c1, step 2: in proposed"),
    "steer-announced-as-boundary-input": ("BND/opt-in[1]", "run: run r1, step 5: in boundary"),
    "input-takes-text-back": ("BND/text-stays[0]", "run: run r1, step 6: in collecting"),
    "second-cancel-commits-again": ("CAN/twice-while-settling[0]", "channel: run r1, step 8: in last"),
    "terminal-event-doubled": ("common/CP9/end-after-tools[0]", "run: run r1, step 4: in ended"),
    "silent-restart": ("common/CP10/failure-after-output[0]", "attempt: run r1, step 1, attempt 1, step 5: in failed"),
    "lost-event-lost-run": ("reported/PB-70/commit-before-completed[3]", "session: session s1, step 5: in Completed"),
    "answer-delivered-twice": (
        "reported/PB-54/one-decision[0]",
        "host_input: run r1, step 1, question q1, step 5: in answered",
    ),
    "applied-steer-retracted": ("STEER/decided-once[0]", "steering: run r1, steer w1, step 5: in applied"),
    "every-claim-granted": ("STEER/claim-or-retract[0]", "steering: run r1, steer w1, step 7: in retracted"),
    "terminal-event-first": ("TERM/nothing-after-the-terminal-event[0]", "channel: run r1, step 4: in last"),
    "retry-reruns-tools": ("reported/PB-37/provider-classifies[0]", "run: run r1, step 5: in ended"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_wrong_core_shows_is_refused_and_named(name: str) -> None:
    item, text = REFUSED[name]
    mutant = next(m for m in mutants() if m.name == name)
    found = faults(ITEMS[item], partial(driver_of, mutant))
    assert any(fault.startswith(f"{text} there is no move for ") for fault in found), found


# --- the acceptor -----------------------------------------------------------------------------------------------------


def machine(name: str) -> Acceptor:
    return acceptors()[name]


def call(*sightings: tuple[str, int, bool], unread: bool = False) -> Entity:
    """A call, as rows of letter, step and whether it was an event."""
    fields = {"ToolFinished": (("result", "ok"),), "Taken": (("item", "return"), ("upcall", "ToolExecute"))}
    found = [Sighting(Letter(name, fields.get(name, ())), step, event) for name, step, event in sightings]
    return Entity("tool_call", "call A", found, unread)


WORK = (("ToolPrepare", 1, False), ("ToolExecute", 1, False), ("Taken", 2, False))
READ = (("ToolProposed", 3, True), ("ToolStarted", 3, True), ("ToolFinished", 3, True))


def test_events_may_be_read_later_than_they_were_sent() -> None:
    assert accept(machine("tool_call"), call(*WORK, *READ)) is None


def test_events_may_not_be_read_before_they_were_sent() -> None:
    early = [(name, 0, event) for name, _, event in READ]
    refusal = accept(machine("tool_call"), call(*early, *WORK))
    assert refusal is not None
    assert str(refusal) == "tool_call: call A, step 0: in proposed there is no move for ToolStarted"


def test_events_of_the_same_step_are_in_no_order_to_what_is_no_event() -> None:
    together = [(name, 1, event) for name, _, event in (*READ, *WORK)]
    assert accept(machine("tool_call"), call(*together)) is None


def test_what_was_never_read_may_have_been_sent_unless_the_end_was_read() -> None:
    assert accept(machine("tool_call"), call(*WORK, unread=True)) is None
    refusal = accept(machine("tool_call"), call(*WORK))
    assert refusal is not None
    assert (refusal.states, refusal.letter) == (("new",), "ToolPrepare")


def test_a_drained_channel_may_have_gaps() -> None:
    seen = call(*WORK, ("ToolFinished", 3, True))
    assert accept(machine("tool_call"), seen) is not None
    seen.drained = 2
    assert accept(machine("tool_call"), seen) is None


def test_every_run_event_is_known_to_a_machine() -> None:
    legacy = {"HostInputRequested", "ProviderActivity"}
    known = {word for one in acceptors().values() for move in one.lifecycle.moves for word in move.on}
    assert set(EVENTS) - known == legacy


def _state_trace(*states: str, perform: list[dict[str, Any]] | None = None) -> Trace:
    steps = [StepRecord((perform or []) if n == 0 else [], [], [], {"state": s}) for n, s in enumerate(states)]
    return Trace({}, {}, "rho", steps)


def test_a_session_does_not_run_before_it_is_started() -> None:
    assert lifecycle_faults(_state_trace("Running", "Completed", perform=[{"start": "hello"}])) == []
    [fault] = lifecycle_faults(_state_trace("Idle", "Running"))
    assert str(fault) == "session: session s1, step 2: in Idle there is no move for the state Running"
