"""The standing checks: none fires on a clean trace, and one changed thing makes each of them fire."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from rho_conformance.scenario.calls import answer_faults
from rho_conformance.scenario.standing import standing_violations
from rho_conformance.trace import StepRecord, Trace

Fields = dict[str, Any]


def record(
    stimulus: Fields, *seen: tuple[str, Fields], waiting_on: list[str] | None = None, **facts: Any
) -> StepRecord:
    return StepRecord([stimulus], [{kind: fields} for kind, fields in seen], waiting_on or [], facts)


def numbered(steps: list[StepRecord], profile: str = "rho", **config: Any) -> Trace:
    """A trace whose observations have their counters, a session and a run."""
    seq = 0
    for number, item in enumerate(steps, 1):
        for observation in item.observations:
            seq += 1
            ((kind, fields),) = observation.items()
            observation[kind] = {"session": "s1", "run": "r1", **fields}
            observation.update(seq=seq, step=number, at_ms=0)
    return Trace({"capabilities": ["*"]}, config, profile, steps)


def event(kind: str, **fields: Any) -> tuple[str, Fields]:
    return kind, fields


OUTCOME = {"ok": {"text": ""}}
ANSWERED = [
    {"user": "hi"},
    {"assistant": {"text": "", "calls": ["A"]}},
    {"result": {"id": "A", "ok": True, "text": "a"}},
]


def clean() -> list[StepRecord]:
    return [
        record(
            {"start": "hi"},
            event("Reply", name="r1", value="ok"),
            event("Started"),
            waiting_on=["model"],
            busy=True,
            revision=0,
            history=[],
        ),
        record(
            {"provider": {"reasoning": "secret thoughts"}},
            event("ToolProposed", call={"id": "A"}),
            event("ToolStarted", call_id="A"),
            event("ToolUpdated", call_id="A"),
            waiting_on=["tool:A"],
            busy=True,
            revision=0,
            history=[],
        ),
        record(
            {"tool": {"id": "A", "return": "a"}},
            event("ToolFinished", call_id="A", result="ok"),
            event("ModelCall", n=2, messages=deepcopy(ANSWERED)),
            event("Completed"),
            event("EventsClosed"),
            busy=False,
            revision=1,
            history=deepcopy(ANSWERED),
        ),
        record(
            {"outcome": {"run": "r1"}},
            event("Reply", name="outcome1", value={"ok": {"text": ""}}),
            busy=False,
            revision=1,
            history=deepcopy(ANSWERED),
        ),
    ]


def found(steps: list[StepRecord], profile: str = "rho", **config: Any) -> list[tuple[str, str, int]]:
    return [(v.rule, v.message, v.step) for v in standing_violations(numbered(steps, profile, **config))]


def rules(steps: list[StepRecord], profile: str = "rho", **config: Any) -> list[str]:
    return [rule for rule, _, _ in found(steps, profile, **config)]


def test_a_clean_trace_has_no_violation() -> None:
    assert found(clean()) == []


def test_s1_two_terminal_events() -> None:
    steps = clean()
    steps[2].observations.insert(3, {"Cancelled": {}})
    assert found(steps) == [("CORE-S1", "r1: Cancelled after Completed", 3)]


def test_s1_an_event_after_the_end() -> None:
    steps = clean()
    steps[3].observations.append({"UsageUpdated": {}})
    assert found(steps) == [("CORE-S1", "r1: UsageUpdated after Completed", 4)]


def test_s2_an_unanswered_call_at_rest() -> None:
    steps = clean()
    for step in steps[2:]:
        step.facts["history"] = ANSWERED[:2]
    assert found(steps) == [("CORE-S2", "history of s1: call A has no answer", 3)]


def test_s2_is_not_asked_while_a_run_is_active() -> None:
    steps = clean()
    for step in steps[2:]:
        step.facts.update(history=ANSWERED[:2], busy=True)
        step.waiting_on = ["model"]
    assert found(steps) == []


def test_s2_a_call_answered_twice() -> None:
    steps = clean()
    for step in steps[2:]:
        step.facts["history"] = [*ANSWERED, ANSWERED[2]]
    assert found(steps) == [("CORE-S2", "history of s1: call A is answered twice", 3)]


def test_s2_a_call_answered_twice_in_a_request() -> None:
    steps = clean()
    steps[2].observations[1]["ModelCall"]["messages"].append(ANSWERED[2])
    assert found(steps) == [("CORE-S2", "model call 2: call A is answered twice", 3)]


def test_s2_calls_that_the_host_left_open_are_exempt() -> None:
    steps = clean()
    for step in steps:
        step.facts["history"] = ANSWERED[:2]
        step.facts["revision"] = 0
    assert rules(deepcopy(steps), history=ANSWERED[:2]) == []
    steps[0].perform.append({"append": {"message": ANSWERED[1]}})
    assert rules(steps) == []


def test_s2_an_id_may_come_again() -> None:
    assert list(answer_faults([*ANSWERED, *ANSWERED[1:]], frozenset(), settled=True)) == []
    assert list(answer_faults([*ANSWERED, ANSWERED[1]], frozenset(), settled=True)) == ["call A has no answer"]
    assert list(answer_faults([*ANSWERED[:2], *ANSWERED[1:]], frozenset(), settled=True)) == ["call A has no answer"]


def test_s3_reasoning_that_the_driver_marks() -> None:
    steps = clean()
    for step in steps[2:]:
        step.facts["history"] = [{"assistant": {"text": "x", "calls": [], "reasoning": "hm"}}]
    assert found(steps) == [("CORE-S3", "history of s1: reasoning hm", 3)]


def test_s3_reasoning_that_hides_in_a_text() -> None:
    steps = clean()
    steps[2].observations[1]["ModelCall"]["messages"][0]["user"] = "I had secret thoughts"
    assert found(steps) == [("CORE-S3", "model call 2: reasoning secret thoughts", 3)]


def test_s3_a_text_that_the_provider_also_said_is_no_leak() -> None:
    steps = clean()
    steps[2].observations[1]["ModelCall"]["messages"][0]["user"] = "secret thoughts"
    steps[1].perform.append({"provider": {"delta": "my secret thoughts"}})
    assert rules(steps) == []


def test_s4_a_revision_that_goes_back() -> None:
    steps = clean()
    steps[3].facts["revision"] = 0
    assert found(steps) == [("CORE-S4", "s1: the revision went from 1 back to 0", 4)]


def test_s4_another_history_at_the_same_revision() -> None:
    steps = clean()
    steps[3].facts["history"] = [{"user": "else"}]
    ((rule, message, number),) = found(steps)
    assert (rule, number) == ("CORE-S4", 4)
    assert message.startswith('s1: another history at revision 1: [{"user": "else"}], before')


@pytest.mark.parametrize(("stimulus", "expected"), [("crash", []), ("restore", []), ("reset", ["CORE-S4"])])
def test_s4_restore_and_crash_begin_a_new_incarnation(stimulus: str, expected: list[str]) -> None:
    steps = [*clean(), record({stimulus: {}}, busy=False, revision=0, history=[])]
    assert rules(steps) == expected


def test_s4_looks_at_every_session() -> None:
    steps = clean()
    steps[0].facts["sessions"] = {"s2": {"revision": 4}}
    steps[1].facts["sessions"] = {"s2": {"revision": 3}}
    assert found(steps) == [("CORE-S4", "s2: the revision went from 4 back to 3", 2)]


def test_s5_something_before_started() -> None:
    steps = clean()
    steps[0].observations.insert(1, {"StepStarted": {}})
    assert found(steps) == [
        ("CORE-S5", "r1: the first event is StepStarted", 1),
        ("CORE-S5", "r1: Started again", 1),
    ]


def test_s5_is_not_asked_after_the_outcome_drained() -> None:
    steps = clean()
    drained = record({"outcome": {}}, event("Reply", name="outcome1", value="pending"), waiting_on=["model"])
    del steps[0].observations[1]
    steps.insert(1, drained)
    steps[4].perform = [{"read": "all"}]
    steps[4].observations = [{"Reply": {"name": "outcome1", "value": OUTCOME}}]
    assert rules(steps) == []


def test_s5_a_common_runtime_need_not_map_started() -> None:
    steps = clean()
    del steps[0].observations[1]
    assert rules(deepcopy(steps), profile="common") == []
    assert rules(steps) == ["CORE-S5"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda steps: steps[1].observations.insert(1, {"ToolProposed": {"call_id": "A"}}),
            "ToolProposed twice",
        ),
        (lambda steps: steps[1].observations.append({"ToolStarted": {"call_id": "A"}}), "ToolStarted twice"),
        (
            lambda steps: steps[2].observations.insert(0, {"ToolFinished": {"call_id": "A"}}),
            "ToolFinished twice",
        ),
        (
            lambda steps: steps[2].observations.insert(1, {"ToolUpdated": {"call_id": "A"}}),
            "ToolUpdated after ToolFinished",
        ),
        (lambda steps: steps[1].observations.pop(0), "ToolStarted without ToolProposed before it"),
    ],
)
def test_s6_the_events_of_a_call(change: Any, message: str) -> None:
    steps = clean()
    change(steps)
    first = found(steps)[0]
    assert first[:2] == ("CORE-S6", f"r1: call A: {message}")


def test_s6_a_started_after_an_update() -> None:
    steps = clean()
    steps[1].observations[1:] = reversed(steps[1].observations[1:])
    assert "CORE-S6" in rules(steps)


def test_s6_an_unavailable_tool_is_never_started() -> None:
    steps = clean()
    del steps[1].observations[1:]
    steps[2].observations[0]["ToolFinished"]["result"] = "unavailable"
    assert rules(deepcopy(steps)) == []
    steps[2].observations[0]["ToolFinished"]["result"] = "ok"
    assert rules(steps) == ["CORE-S6"]


def test_s6_an_id_may_be_proposed_again_after_it_finished() -> None:
    steps = clean()
    again = [
        {"ToolProposed": {"call_id": "A"}},
        {"ToolStarted": {"call_id": "A"}},
        {"ToolFinished": {"call_id": "A"}},
    ]
    steps[2].observations[1:1] = again
    assert rules(steps) == []


def test_s7_an_outcome_that_changes() -> None:
    steps = clean()
    steps.append(record({"outcome": {"run": "r1"}}, event("Reply", name="outcome2", value={"error": "Cancelled"})))
    ((rule, message, number),) = found(steps)
    assert (rule, number) == ("CORE-S7", 5)
    assert message == 'r1: outcome {"error": "Cancelled"} after {"ok": {"text": ""}}'


def test_s7_asking_again_may_be_refused() -> None:
    steps = clean()
    steps.append(record({"outcome": {}}, event("Reply", name="outcome2", value={"error": "InvalidHostResponse"})))
    assert rules(steps) == []


def test_live_an_unfinished_run_that_waits_on_nothing() -> None:
    steps = clean()
    steps[1].waiting_on = []
    assert found(steps) == [("CORE-LIVE", "a run is unfinished, and the runtime waits for nothing", 2)]


def test_live_an_outcome_that_stays_pending() -> None:
    steps = clean()
    steps[3].observations[0]["Reply"]["value"] = "pending"
    assert found(steps) == [("CORE-LIVE", "the outcome of r1 is pending, and the runtime waits for nothing", 4)]


def test_live_a_second_settle_decides() -> None:
    steps = clean()
    steps[1].waiting_on = []
    second = deepcopy(steps[1])
    second.perform, second.observations = [], []
    steps.insert(2, second)
    assert rules(deepcopy(steps)) == ["CORE-LIVE"]
    second.waiting_on = ["tool:A"]
    assert rules(steps) == []


def test_live_is_not_asked_of_a_driver_that_cannot_say() -> None:
    steps = clean()
    steps[1].waiting_on = []
    trace = numbered(steps)
    trace.hello = {"capabilities": ["observe.events"]}
    assert standing_violations(trace) == []


def test_orca_has_its_own_events() -> None:
    steps = clean()
    steps[0].observations[1] = {"AgentStart": {}}
    assert rules(steps, profile="orca") == []
