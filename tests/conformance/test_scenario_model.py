"""Scenario files: what is taken, what is refused with file, line and key, and how cases and sweeps unfold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rho_conformance.errors import UsageError
from rho_conformance.scenario import Scenario, ScenarioFileError, load_scenarios, parse_text

HEAD = "id: T/x\nrules: [RHO-ORD-1]\nprofile: rho\n"


def one(text: str) -> Scenario:
    (scenario,) = parse_text(HEAD + text, "x.yaml")
    return scenario


def steps(text: str) -> list[tuple[str, Any]]:
    return [(step.name, step.value) for step in one(text).steps]


def fault(text: str, head: str = HEAD) -> str:
    with pytest.raises(ScenarioFileError) as raised:
        parse_text(head + text, "x.yaml")
    assert raised.value.line >= 1
    return str(raised.value)


def test_the_example_of_the_format_is_taken() -> None:
    scenario = one(
        """
config: {event_capacity: 64, max_steps: 4, tools: {slow: {mode: async}, plain: {mode: sync}}}
steps:
  - start: "hello"
  - provider: {calls: [{id: A, tool: slow, async: true}, {id: B, tool: plain}]}
  - until: {event: ToolDetached, call_id: A}
  - cancel: {}
expect:
  outcome: {error: Cancelled}
  events: [Started, StepStarted, "...", {ToolDetached: {call_id: A}}, "...", {Cancelled: {revision: 1}}]
  absent: [{ToolStarted: {call_id: B}}]
  history: [{user: hello}, {assistant: {calls: [A, B]}}, {set: [{result: {id: A, ok: false}}]}]
  revision: 1
  requests: 1
"""
    )
    assert [step.name for step in scenario.steps] == ["start", "provider", "until", "cancel"]
    assert scenario.steps[1].line == 8
    assert scenario.steps[1].value["calls"][0] == {"id": "A", "tool": "slow", "async": True}
    assert (scenario.profile, scenario.rules, scenario.main_session) == ("rho", ("RHO-ORD-1",), "s1")


def test_the_words_of_yaml_1_1_are_texts() -> None:
    ((_, value),) = steps("steps: [respond: {ref: q1, answers: {q: [yes, no, on, off, 1:30, 2000-01-01]}}]")
    assert value["answers"] == {"q": ["yes", "no", "on", "off", "1:30", "2000-01-01"]}


def test_a_number_where_a_text_stands_is_that_text() -> None:
    ((_, value),) = steps("steps: [provider: {fail: {kind: RateLimit, retry_after_header: 3, retryable: true}}]")
    assert value["fail"] == {"kind": "RateLimit", "retry_after_header": "3", "retryable": True}


def test_values_reach_the_driver_as_plain_data() -> None:
    ((_, value),) = steps("steps: [provider: {calls: [{id: A, tool: t, args: {a: [1, {b: true}]}}]}]")
    assert type(value) is dict
    assert type(value["calls"]) is list
    assert type(value["calls"][0]["args"]["a"][1]) is dict


def test_keys_that_are_null_count_as_absent() -> None:
    assert steps("config: {system: null}\nsteps: [start: {text: hi, as: null}]") == [("start", {"text": "hi"})]
    assert one("config: {system: null}\nsteps: []").config == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: []\nexpects: {}", "x.yaml:5: unknown key 'expects'"),
        ("config:\n  max_stepz: 3\nsteps: []", "x.yaml:5: config: unknown key 'max_stepz'"),
        ("config: {tools: {t: {mod: sync}}}\nsteps: []", "x.yaml:4: config.tools.t: unknown key 'mod'"),
        ("config: {tools: {t: {mode: fast}}}\nsteps: []", "expected one of sync, async, got 'fast'"),
        ("config: {reader: slow}\nsteps: []", "config.reader: expected one of eager, held"),
        ("config: {max_steps: lots}\nsteps: []", "config.max_steps: expected an integer"),
        ("config: {compaction: {messages: 1, tokens: 2}}\nsteps: []", "expected exactly one of the keys"),
        ("steps:\n  - start: hi\n  - cancle: {}", r"x.yaml:6: steps\[1\]: unknown key 'cancle'"),
        ("steps:\n  - start: hi\n    cancel: {}", r"x.yaml:5: steps\[0\]: a step is a map with one key"),
        ("steps: [cancel: {when: now}]", r"steps\[0\].cancel: unknown key 'when'"),
        ("steps: [cancel]", r"steps\[0\]: expected a map, got 'cancel'"),
        ("steps: [advance: 5 seconds]", "expected a duration such as 500ms"),
        ("steps: [provider: {}]", "expected one item of"),
        ("steps: [provider: {delta: a, reasoning: b}]", "expected one item of"),
        ("steps: [provider: {text: a, delta: b}]", "unknown key 'delta'"),
        ("steps: [provider: {panic: false}]", "expected true, got False"),
        ("steps: [provider: {fail: {kind: X, retry: 1s}}]", "unknown key 'retry'"),
        ("steps: [tool: {return: x}]", "the key 'id' is missing"),
        ("steps: [tool: {id: A, return: x, fail: y}]", "expected one item of"),
        ("steps: [respond: {answers: {}}]", "the key 'ref' is missing"),
        ("steps: [maybe: {cancel: {}}]", "cancel answers no upcall"),
        ("steps: [maybe: {until: Started}]", "unknown key 'until'"),
        ("steps: [together: [{until: Started}]]", r"together\[0\]: unknown key 'until'"),
        ("steps: [together: []]", "the list is empty"),
        ("steps: [until: {event: Startd}]", "until.event: there is no observation 'Startd'"),
        ("steps: [until: {Startd: {}}]", "there is no observation 'Startd'"),
        ("steps: [until: {Started: {id: r1}}]", "until.Started: unknown key 'id'"),
        ("steps: [check: {stat: Idle}]", r"check: unknown key 'stat'"),
        ("steps: [append: {message: {human: x}}]", "message: unknown key 'human'"),
        ("steps: []\nexpect: {revision: least}", "expect.revision: expected one of max"),
        ("steps: []\nexpect: {absent: [Startd]}", r"expect.absent\[0\]: there is no observation 'Startd'"),
        ("steps: []\nexpect: {events: [{set: Started}]}", r"expect.events\[0\].set: expected a list"),
        ("steps: []\nexpect: {count: [{of: Started}]}", r"expect.count\[0\]: expected 'is', 'min' or 'max'"),
        ("steps: []\nexpect: {outcome: {ok: {txt: x}}}", "expect.outcome.ok: unknown key 'txt'"),
        ("steps: []\nexpect: {outcome: {ok: {}, error: X}}", "expect.outcome: unknown key 'error'"),
        ("steps: []\nexpect: {outcome: done}", "expect.outcome: expected one of pending"),
        ("steps: []\nexpect: {replies: {r1: fine}}", "expect.replies.r1: expected one of ok, pending"),
        ("steps: []\nexpect: {requests: [{same_as: 2}]}", "same_as: there is no entry 2"),
        ("steps: []\nexpect: {snapshot: text}", "expect.snapshot: expected an operator"),
        ("steps: []\nexpect: {history: [{user: {$like: x}}]}", r"unknown key '\$like'"),
        ("steps: []\nexpect: {history: [{user: {$min: 1, $max: 2}}]}", "an operator stands alone"),
        ("steps: []\nexpect: {history: [{user: hi, system: x}]}", "a message is one of"),
        ("steps: []\nexpect: {any_of: []}", "expect.any_of: the list is empty"),
        ("steps: []\nexpect: {any_of: [{any_of: []}]}", r"expect.any_of\[0\]: unknown key 'any_of'"),
        ("steps: []\nexpect: {variant: V}", "expect: unknown key 'variant'"),
        ("steps: []\nexpect: {sessions: {s2: {order: []}}}", "expect.sessions.s2: unknown key 'order'"),
        ("steps: []\nsweep: {perform: {cancel: {}}}", "sweep: the key 'then' is missing"),
        ("expect: {}", "the key 'steps' is missing"),
        ("steps: []\nsteps: []", "the key 'steps' stands twice"),
        ("steps: [", "not YAML"),
        ("steps: !!python/name:os.system x", "has no meaning here"),
        ("steps: &a [*a]", "an alias holds itself"),
    ],
)
def test_a_fault_names_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(ScenarioFileError, match=message):
        parse_text(HEAD + text, "x.yaml")


def test_files_that_are_no_map_are_refused() -> None:
    assert "holds one map" in fault("", head="")
    assert "holds one map" in fault("- 1", head="")
    assert "x.yaml:1: unknown key 'titel'" in fault("titel: x\nid: a\nsteps: []", head="")


def test_unknown_rules_and_missing_heads_are_warnings() -> None:
    (known,) = parse_text(HEAD + "steps: []", "x.yaml", known_rules={"RHO-ORD-1"})
    (unknown,) = parse_text(HEAD + "steps: []", "x.yaml", known_rules={"RHO-ORD-2"})
    (bare,) = parse_text("id: a\nsteps: []", "x.yaml")
    assert known.warnings == ()
    assert unknown.warnings == ("x.yaml:2: unknown rule 'RHO-ORD-1'",)
    assert [w.split(": ")[1] for w in bare.warnings] == [
        "no 'rules'; the scenario shows no rule",
        "no 'profile'; taken as rho",
    ]


# --- cases --------------------------------------------------------------------------------------------------

CASES = """
steps:
  - start: "${who} asks for ${n}"
  - provider: ${answer}
  - cancel: ${cancel}
expect:
  executions: {"${id}": "${n}"}
  requests: ${n}
cases:
  - {who: one, n: 1, id: A, answer: {text: fine}, cancel: {}}
  - {who: two, n: 2, id: B, answer: [{delta: a}, {return: {text: "${who}"}}], cancel: null}
"""


def test_cases_unfold_with_whole_values_and_parts_of_texts() -> None:
    first, second = parse_text(HEAD + CASES)
    assert (first.id, second.id) == ("T/x[0]", "T/x[1]")
    assert [step.name for step in first.steps] == ["start", "provider", "cancel"]
    assert first.steps[0].value == "one asks for 1"
    assert first.expect == {"executions": {"A": 1}, "requests": 1}
    assert second.steps[1].value == [{"delta": "a"}, {"return": {"text": "${who}"}}]


def test_a_step_whose_key_is_null_in_a_case_is_left_out() -> None:
    second = parse_text(HEAD + CASES)[1]
    assert [step.name for step in second.steps] == ["start", "provider"]


def test_a_step_without_a_value_is_no_step_outside_of_cases_either() -> None:
    assert steps("steps:\n  - start: hi\n  - cancel:\n") == [("start", "hi")]


def test_a_name_without_a_value_is_refused() -> None:
    assert fault("steps:\n  - start: ${who}\ncases: [{what: x}]") == "x.yaml:5: no value for ${who} in this case"


def test_without_cases_nothing_is_substituted() -> None:
    assert steps("steps: [start: 'costs ${n}']") == [("start", "costs ${n}")]


def test_empty_cases_are_refused() -> None:
    assert "cases: the list is empty" in fault("steps: []\ncases: []")


def test_faults_inside_a_case_are_found_with_their_line() -> None:
    found = fault("steps: [cancel: '${c}']\ncases:\n  - {c: {wen: x}}")
    assert found.startswith("x.yaml:6: steps[0].cancel: unknown key 'wen'")


# --- sweep --------------------------------------------------------------------------------------------------


def test_a_sweep_performs_after_every_prefix() -> None:
    swept = parse_text(
        HEAD
        + """
steps: [start: hi, provider: {delta: a}, provider: {return: {}}]
sweep: {perform: {cancel: {}}, then: [advance: 1s]}
"""
    )
    assert [s.id for s in swept] == ["T/x[1]", "T/x[2]", "T/x[3]"]
    assert [[step.name for step in s.steps] for s in swept] == [
        ["start", "cancel", "advance"],
        ["start", "provider", "cancel", "advance"],
        ["start", "provider", "provider", "cancel", "advance"],
    ]


def test_a_sweep_inside_cases_has_two_numbers() -> None:
    swept = parse_text(
        HEAD
        + """
steps: [start: "${t}"]
sweep: {perform: {"${what}": {}}, then: []}
cases: [{t: a, what: cancel}, {t: b, what: drop}]
"""
    )
    assert [(s.id, s.steps[1].name) for s in swept] == [("T/x[0][1]", "cancel"), ("T/x[1][1]", "drop")]


# --- files --------------------------------------------------------------------------------------------------


def test_folders_are_searched_and_ids_are_unique(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.yml").write_text("id: two\nprofile: rho\nrules: []\nsteps: []\n")
    (tmp_path / "a.yaml").write_text("id: one\nprofile: rho\nrules: []\nsteps: []\n")
    (tmp_path / "notes.txt").write_text("id: [")
    assert [s.id for s in load_scenarios([tmp_path])] == ["one", "two"]
    (tmp_path / "c.yaml").write_text("id: one\nprofile: rho\nrules: []\nsteps: []\n")
    with pytest.raises(ScenarioFileError, match=r"c.yaml:1: the id 'one' is also that of .*a.yaml"):
        load_scenarios([tmp_path])


def test_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        load_scenarios([tmp_path / "none"])
