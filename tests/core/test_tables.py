"""The two tables of a run: total, honest about their exits, tied to the catalogue."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rho_conformance.monitors import RULES
from rho_conformance.monitors.patterns import pattern_monitors
from rho_core import diagrams, effects, inputs, session
from rho_core.calls import Stage as CallStage
from rho_core.config import Policy
from rho_core.jobs import Stage as JobStage
from rho_core.messages import Text
from rho_core.run import state, step, table
from rho_core.step import Step
from rho_spec.catalogue import load

ROWS = [*table.WAIT.values(), *table.COMMON.values(), *table.FLOW.values()]
RULE_IDS = {rule.id for rule in load("rho")}


def test_every_continuation_has_a_row_and_every_row_a_continuation() -> None:
    assert set(table.FLOW) == set(table.CONTINUATIONS)


def test_every_common_row_is_a_control_input_and_no_wait_row_is() -> None:
    control = {i for i, kind in inputs.INPUT_CLASS.items() if kind == "control"}
    assert set(table.COMMON) == control - {inputs.Begin}
    assert not {i for _, i in table.WAIT} & set(table.COMMON)


def test_every_exit_is_a_phase_or_a_continuation() -> None:
    known = {*table.PHASES, *table.CONTINUATIONS}
    assert [e for row in ROWS for e in row.exits if e not in known] == []


def test_every_rule_on_a_row_is_in_the_catalogue() -> None:
    assert sorted({rule for row in ROWS for rule in row.rules} - RULE_IDS) == []


def test_every_testable_rule_names_a_row_or_a_monitor() -> None:
    named = {rule for row in ROWS for rule in row.rules} | set(RULES) | set(pattern_monitors())
    testable = {rule.id for rule in load("rho") if rule.testable == "yes" and rule.id.startswith("RHO-")}
    assert sorted(testable - named) == []


def test_an_input_of_another_type_is_a_programming_error() -> None:
    run = state.new_run("s1", "r1", Policy(), session.new_session("s1", Policy()).ledger)
    with pytest.raises(TypeError, match="not an input of a run"):
        step.step(run, "cancel")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not an input of a session"):
        session.step(session.new_session("s1", Policy()), 3)  # type: ignore[arg-type]


def streaming(capacity: int) -> state.Run:
    run = state.new_run("s1", "r1", Policy(event_capacity=capacity), session.new_session("s1", Policy()).ledger)
    return step.step(run, inputs.Begin(())).state


DELTAS = st.lists(st.tuples(st.text(max_size=300), st.integers(1, 2), st.sampled_from([0, 1, 5])), max_size=30)


@given(st.integers(1, 5), DELTAS)
def test_the_hot_path_is_the_generic_step(capacity: int, deltas: list[tuple[str, int, int]]) -> None:
    run = streaming(capacity)
    for text, attempt, taken in deltas:
        given_: inputs.RunInput = inputs.TextDelta(1, attempt, text)
        assert step.step(run, given_) == step.generic(run, given_)
        run = step.step(run, given_).state
        run = step.step(run, inputs.Taken(taken)).state if taken else run


@pytest.mark.parametrize("width", [1, 7, 4096])
def test_cancelled_text_does_not_depend_on_chunks(width: int) -> None:
    text = "".join(chr(97 + n % 26) for n in range(4096))
    run = streaming(10_000)
    for at in range(0, len(text), width):
        run = step.step(run, inputs.TextDelta(1, 1, text[at : at + width])).state
    run = step.step(run, inputs.Cancel()).state
    [message] = run.core.ledger.history
    assert getattr(message, "content", None) == (Text(text),)


def edges(rows: tuple[tuple[str, str, str], ...]) -> set[str]:
    return {end for a, b, _ in rows for end in (a, b)} - {"[*]"}


def literals(alias: Any) -> set[str]:
    return set(alias.__args__)


def test_the_leaf_diagrams_show_the_stages_of_the_code() -> None:
    assert edges(diagrams.CALL) == literals(CallStage) - {"panicked"}
    assert edges(diagrams.JOB) == literals(JobStage) - {"closed"}


@pytest.mark.parametrize("machine", sorted(diagrams.MACHINES))
def test_every_machine_is_drawn(machine: str) -> None:
    text = diagrams.MACHINES[machine]()
    assert text.startswith("stateDiagram-v2\n") and text.count("-->") > 5


def test_every_row_of_the_tables_is_in_the_run_diagram() -> None:
    text = diagrams.run()
    for phase, trigger in table.WAIT:
        assert f"    {phase.__name__} --> " in text and f": {trigger.__name__}\n" in text


def test_not_ready_hands_the_input_back() -> None:
    run = streaming(1)
    assert run.blocked is not None
    delta = inputs.RawReasoning(1, 1, "x")
    assert step.step(run, delta) == Step(run, (effects.NotReady(delta),))
