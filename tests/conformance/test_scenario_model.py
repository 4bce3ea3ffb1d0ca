"""Scenario files: what is taken, what is refused with file, line and key, and how cases and sweeps unfold."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rho_conformance.errors import UsageError
from rho_conformance.scenario import (
    Scenario,
    ScenarioFileError,
    ScenarioFilesError,
    load_scenarios,
    parse_text,
    read_scenarios,
)
from rho_conformance.scenario.reading import parse_tree
from rho_conformance.scenario.tree import plain
from rho_spec.scenario_models import Scenario as ScenarioType

HEAD = "id: T/x\nrules: [RHO-ORD-1]\nprofile: rho\n"


def one(text: str) -> Scenario:
    (scenario,) = parse_text(HEAD + text + ("" if "expect:" in text else "\nexpect: {}"), "x.yaml")
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


FAULTS = [
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
    ("steps: []\nexpect: {revision: least}", "expect.revision: expected an integer or max, got 'least'"),
    ("steps: []\nexpect: {absent: [Startd]}", r"expect.absent\[0\]: there is no observation 'Startd'"),
    ("steps: []\nexpect: {events: [{set: Started}]}", r"expect.events\[0\].set: expected a list"),
    ("steps: []\nexpect: {count: [{of: Started}]}", r"expect.count\[0\]: expected 'is', 'min' or 'max'"),
    ("steps: []\nexpect: {outcome: {ok: {txt: x}}}", "expect.outcome.ok: unknown key 'txt'"),
    ("steps: []\nexpect: {outcome: {ok: {}, error: X}}", "expect.outcome: unknown key 'error'"),
    (
        "steps: []\nexpect: {outcome: done}",
        "expect.outcome: expected pending or a map with 'ok' or 'error', got 'done'",
    ),
    (
        "steps: []\nexpect: {replies: {r1: fine}}",
        "expect.replies.r1: expected ok, pending or a map with 'ok' or 'error'",
    ),
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
    ("steps: [advance: 0.5ms]", "a duration is whole milliseconds, got '0.5ms'"),
    ("steps: [advance: 1.0005s]", "a duration is whole milliseconds"),
    ("steps: [provider: []]", r"steps\[0\].provider: the list is empty"),
    ("steps: [tool: []]", r"steps\[0\].tool: the list is empty"),
    ("steps: [read: -1]", "read: expected an integer from 0 to 2\\^64-1, got -1"),
    ("steps: [read: some]", "read: expected an integer or all, got 'some'"),
    ("steps: [cancel: {as: ''}]", "cancel.as: the name is empty"),
    ("steps: [cancel: {as: 3}]", "cancel.as: expected a name, which is a text, got 3"),
    ("steps: [provider: {usage: {input_tokens: -1}}]", "expected an integer from 0"),
    ("steps: [provider: {usage: {input_tokens: 18446744073709551616}}]", "expected an integer from 0"),
    ("steps: [provider: {generation_tokens: lots}]", "expected an integer or unavailable, got 'lots'"),
    ("steps: [provider: {generation_tokens: -2}]", "expected an integer from 0"),
    ("steps: [provider: {fail: {kind: Tiemout}}]", "kind: expected one of .*; did you mean Timeout?"),
    ("steps: [provider: {physical_retry: {kind: Nope}}]", "kind: expected one of Authentication"),
    ("steps: [compactor: {fail: {kind: Nope}}]", "kind: expected one of InvalidConfiguration"),
    ("config: {sessions: []}\nsteps: []", "config.sessions: the list is empty"),
    ("config: {sessions: [a, a]}\nsteps: []", r"config.sessions\[1\]: the session 'a' stands twice"),
    ("config: {revision: -1}\nsteps: []", "config.revision: expected an integer from 0 to 2"),
    ("config: {revision: 18446744073709551616}\nsteps: []", "config.revision: expected an integer from 0"),
    ("config: {revision: lots}\nsteps: []", "config.revision: expected an integer or max, got 'lots'"),
    ("config: {boundary: auto}\nsteps: []", "config.boundary: expected gated, got 'auto'"),
    ("config: {max_steps: 1e999}\nsteps: []", "'1e999' is no float"),
    ("steps: []\nexpect: {snapshot: {$contains: 3}}", "contains: expected a text, got 3; a number needs quotes"),
    ("steps: []\nexpect: {history: [{user: {$prefix: 3}}]}", "prefix: expected a text, got 3"),
    ("steps: []\nexpect: {any_of: [{variant: V}]}", r"any_of\[0\]: an alternative that asks for nothing"),
    ("steps: []\nexpect: {any_of: [{}]}", r"any_of\[0\]: an alternative that asks for nothing"),
    ("steps: []\nexpect: {requests: ['*', {same_as: 2}]}", "same_as: there is no entry 2 before this one"),
    ("steps: []\nexpect: {requests: [{same_as: 2}, '*']}", "same_as: there is no entry 2 before this one"),
    ("steps: []\nexpect: {requests: ['**']}", "expected a message sequence, same_as or"),
    ("steps: []\nexpect: {requests: many}", "expected an integer, a map with 'min' or 'max', or a list"),
    ("steps: []\nexpect: {count: [{of: Started, is: 1, min: 1}]}", r"count\[0\]: 'is' stands alone"),
    ("steps: []\nexpect: {count: [{of: Started, is: -1}]}", "expected an integer from 0"),
    ("steps: []\nexpect: {waiting_on: [modle]}", r"waiting_on\[0\]: expected one of model, .*tool:ID, host:ASK"),
    ("steps: []\nexpect: {waiting_on: ['tool:']}", "expected one of model"),
    ("steps: []\nexpect: {state: Finished}", "expect.state: expected one of Idle, Running"),
    ("steps: []\nexpect: {outcome: {error: Canceled}}", "error: expected one of .*; did you mean Cancelled?"),
    ("steps: []\nexpect: {replies: {r1: {error: Busy}}}", "replies.r1.error: expected one of"),
    ("steps: []\nexpect: {events: [ToolExecute]}", r"events\[0\]: ToolExecute is no event and never stands here"),
    ("steps: []\nexpect: {events: [{opt: {ModelCall: {n: 1}}}]}", "ModelCall is no event"),
    ("steps: []\nexpect: {events: [EventsClosed]}", "EventsClosed is no event"),
    ("steps: []\nexpect: {sessions: {s1: {events: [{event: Record}]}}}", "Record is no event"),
    ("steps: []\nsteps: []", "the key 'steps' stands twice"),
    ("steps: [", "not YAML"),
    ("steps: !!python/name:os.system x", "has no meaning here"),
    ("steps: &a [*a]", "an alias holds itself"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_a_fault_names_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(ScenarioFileError, match=message):
        parse_text(HEAD + text, "x.yaml")


@pytest.mark.parametrize("identity", ["", " ", "''"])
def test_an_id_is_not_empty(identity: str) -> None:
    assert fault("steps: []\nexpect: {}", head=f"id: {identity}\n").startswith("x.yaml:1: ")


TAKEN = [
    "steps: [advance: 1.5s, advance: 0.25m, advance: 2.0ms, advance: 0ms]",
    "steps: [read: 0, read: all, read: {n: 2, run: r1}]",
    "steps: [until: {ToolExecute: {call_id: A}}]\nexpect: {order: [[ToolExecute, Started]], absent: [ToolPrepare]}",
    "config: {revision: 18446744073709551615, sessions: [b, a]}\nsteps: []",
    "steps: [provider: {fail: {kind: RateLimit}}, compactor: {fail: {kind: Cancelled}}]",
    "steps: []\nexpect: {state: {$one_of: [Idle, Odd]}, outcome: {error: {$prefix: Inter}}}",
    "steps: []\nexpect: {waiting_on: [model, 'tool:A', 'host:Q', timer, timer]}",
    "steps: []\nexpect: {requests: ['*', [{user: hi}], {same_as: 2}]}",
    "steps: []\nexpect: {any_of: [{variant: V, busy: true}]}",
    "steps: []\nexpect: {snapshot: {$contains: '3'}}",
]


@pytest.mark.parametrize("text", TAKEN)
def test_what_is_in_the_format_is_taken(text: str) -> None:
    assert one(text).id == "T/x"


def test_a_profile_has_its_own_names_of_errors() -> None:
    text = "id: a\nrules: []\nprofile: {}\nsteps: [provider: {{fail: {{kind: OutputLimit}}}}]\n"
    text += "expect: {{replies: {{r1: {{error: BusySession}}}}}}"
    for profile in ("orca", "common"):
        assert len(parse_text(text.format(profile))) == 1
    assert "kind: expected one of" in fault(text.format("rho"), head="")


def test_a_long_list_of_known_keys_is_cut_to_the_nearest() -> None:
    told = fault("steps: [provder: {text: a}]")
    assert "unknown key 'provder'; did you mean provider?" in told
    assert "nearest of the" in told and "replace_history" not in told
    assert fault("steps: [cancel: {rnu: r1}]").endswith("did you mean run? known here: as, run, session, token")


def test_async_inside_return_is_a_warning() -> None:
    call = "calls: [{id: A, tool: t, async: true}]"
    silent = one(f"steps:\n  - provider: {{return: {{{call}}}}}\n  - provider: {{{call}}}\n")
    assert [warning for warning in silent.warnings if "marker" in warning] == [
        "x.yaml:5: async inside return sends no marker; a marker is sent for calls beside it"
    ]


# --- texts that are hardly YAML -----------------------------------------------------------------------------

BILLION = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmnop"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: [start: h\0i]", "x.yaml:4: not YAML: the character #x0000 is not allowed"),
        ("steps:\n  - start: '\ufffe'", "x.yaml:5: not YAML: the character #xfffe is not allowed"),
        ('steps: [start: "\\UFFFFFFFF"]', "not YAML: "),
        ("steps:\n  - start: " + "[" * 5000, "x.yaml:5: more than 64 maps and lists stand in each other"),
        ("steps: " + "{a: " * 5000, "more than 64 maps and lists"),
        (BILLION, "the aliases come to more than 10000 values"),
        ("config: {max_steps: " + "9" * 5000 + "}", "x.yaml:4: '9999"),
        ("steps: !!set {a}", "has no meaning here"),
    ],
)
def test_what_is_hardly_yaml_is_refused_with_its_line(text: str, message: str) -> None:
    told = fault(text)
    assert message in told
    assert len(told) < 300


def test_deep_aliases_are_refused() -> None:
    rungs = "".join(f"  - &{b} {'[' * 9}*{a}{']' * 9}\n" for a, b in pairwise("abcdefghijk"))
    assert "aliases make more than 64" in fault(f"steps:\n  - &a x\n{rungs}")


def test_a_few_aliases_are_welcome() -> None:
    text = "steps:\n  - provider: &p {text: a}\n  - provider: *p\n  - start: &t hi\n  - steer: {text: *t}\n"
    assert steps(text)[1:] == [("provider", {"text": "a"}), ("start", "hi"), ("steer", {"text": "hi"})]


def test_half_of_a_surrogate_pair_is_a_text() -> None:
    assert steps('steps: [start: "\\ud800"]') == [("start", "\ud800")]


def test_a_file_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("id: a\nsteps: [start: h\xe9]\n".encode("latin-1"))
    with pytest.raises(ScenarioFileError, match=r"latin.yaml:2: cannot be read"):
        load_scenarios([path])


def test_files_that_are_no_map_are_refused() -> None:
    assert "holds one map" in fault("", head="")
    assert "holds one map" in fault("- 1", head="")
    assert "x.yaml:1: unknown key 'titel'" in fault("titel: x\nid: a\nsteps: []", head="")


def test_unknown_rules_and_missing_heads_are_warnings() -> None:
    body = "steps: []\nexpect: {state: Idle}"
    (known,) = parse_text(HEAD + body, "x.yaml", known_rules={"RHO-ORD-1"})
    (unknown,) = parse_text(HEAD + body, "x.yaml", known_rules={"RHO-ORD-2"})
    (bare,) = parse_text(f"id: a\n{body}", "x.yaml")
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


def test_the_steps_of_a_race_may_be_left_out_too() -> None:
    race = "[{cancel: '${c}'}, {maybe: {recorder: '${r}'}}, {drop: {}}]"
    text = f"steps: [together: {race}, maybe: {{boundary: '${{r}}'}}]\n"
    (only,) = parse_text(HEAD + text + "expect: {}\ncases: [{c: null, r: null}]")
    assert [(step.name, step.value) for step in only.steps] == [("together", [{"drop": {}}])]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("cancel:", "x.yaml:6: steps[1]: cancel needs a value; write cancel: {}"),
        ("start:", "x.yaml:6: steps[1]: start needs a value"),
        ("provider: ~", "x.yaml:6: steps[1]: provider needs a value"),
        ("check:", "x.yaml:6: steps[1]: check needs a value"),
        ("together: [{drop: }]", "x.yaml:6: steps[1].together[0]: drop needs a value; write drop: {}"),
        ("together: [{maybe: }]", "x.yaml:6: steps[1].together[0]: maybe needs a value"),
        ("maybe: {recorder: }", "x.yaml:6: steps[1].maybe: recorder needs a value"),
        ("{cancel: {}, drop: }", "x.yaml:6: steps[1]: drop needs a value; write drop: {}"),
    ],
)
@pytest.mark.parametrize("tail", ["", "cases: [{c: null}, {c: {}}]\n"])
def test_a_step_that_the_file_leaves_without_a_value_is_refused(step: str, message: str, tail: str) -> None:
    other = "  - drop: ${c}\n" if tail else ""
    assert fault(f"steps:\n  - start: hi\n  - {step}\n{other}expect: {{}}\n{tail}") == message


def test_a_misspelt_step_without_a_value_is_told_so() -> None:
    assert "unknown key 'cancle'; did you mean cancel?" in fault("steps:\n  - cancle:\n")


def test_a_name_without_a_value_is_refused() -> None:
    assert fault("steps:\n  - start: ${who}\ncases: [{what: x}]") == "x.yaml:5: no value for ${who} in this case"
    assert fault("steps:\n  - start: ${who}\n") == "x.yaml:5: no value for ${who}: the file has no cases"


def test_without_cases_nothing_is_substituted() -> None:
    assert steps("steps: [start: 'costs ${n}']") == [("start", "costs ${n}")]


def test_a_map_cannot_stand_inside_a_text() -> None:
    assert "is a map or a list in this case" in fault("steps: [start: 'a ${m}']\nexpect: {}\ncases: [{m: {x: 1}}]")


def test_a_name_that_nothing_uses_is_a_warning() -> None:
    text = HEAD + "steps: [start: '${who}']\nexpect: {}\ncases:\n  - {who: a, whom: b}\n"
    (scenario,) = parse_text(text, "x.yaml", known_rules={"RHO-ORD-1"})
    assert "x.yaml:7: nothing in the file uses ${whom}" in scenario.warnings
    assert not [warning for warning in scenario.warnings if "${who}" in warning]


# --- what must be judged ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["steps: [start: hi]", "steps: [start: hi]\nexpect:", "steps: [check: {}]"])
def test_a_scenario_that_nothing_judges_is_refused(text: str) -> None:
    assert "the key 'expect' is missing, and no step is a check or an until" in fault(text)


@pytest.mark.parametrize(
    "text",
    [
        "steps: [check: {state: Idle}]",
        "steps: [start: hi, until: Started]",
        "steps: [start: hi]\nsweep: {perform: {cancel: {}}, then: [check: {busy: false}]}",
        "steps: [start: hi]\nsweep: {perform: {check: {busy: true}}, then: []}",
        "steps: [start: hi]\nexpect: {}",
    ],
)
def test_a_check_judges_as_well_as_expect_does(text: str) -> None:
    (scenario,) = parse_text(HEAD + text, "x.yaml")
    told = [warning for warning in scenario.warnings if "only the standing checks judge" in warning]
    assert bool(told) == text.endswith("expect: {}")


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("[cancel: {as: X}, drop: {as: X}]", "as: X is also the name of the command of line 4"),
        ("[together: [cancel: {as: X}, cancel: {as: X}]]", "as: X is also the name of the command"),
        ("[start: hi, cancel: {as: r1}]", "as: r1 is the name of a run"),
        ("[start: {text: hi, as: r2}, start: ho]", "as: r2 is the name of a run"),
        ("[cancel: {}, drop: {as: cancel1}]", "as: cancel1 is the name of a command"),
        ("[cancel: {as: open}]", "as: open is the name of the answer to the configuration"),
    ],
)
def test_two_commands_cannot_have_one_name(steps: str, message: str) -> None:
    assert fault(f"steps: {steps}\nexpect: {{}}").startswith(f"x.yaml:4: {message}")


def test_the_name_a_command_has_anyway_may_be_written() -> None:
    assert len(steps("steps: [start: {text: hi, as: r1}, cancel: {as: cancel1}, cancel: {as: r3}]")) == 3


def test_names_of_a_sweep_are_looked_at_too() -> None:
    swept = "steps: [cancel: {as: X}]\nsweep: {perform: {drop: {as: X}}, then: []}\nexpect: {}"
    assert "as: X is also the name" in fault(swept)


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
expect: {}
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
expect: {}
"""
    )
    assert [(s.id, s.steps[1].name) for s in swept] == [("T/x[0][1]", "cancel"), ("T/x[1][1]", "drop")]


# --- files --------------------------------------------------------------------------------------------------


def test_folders_are_searched_and_ids_are_unique(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.yml").write_text("id: two\nprofile: rho\nrules: []\nsteps: []\nexpect: {}\n")
    (tmp_path / "a.yaml").write_text("id: one\nprofile: rho\nrules: []\nsteps: []\nexpect: {}\n")
    (tmp_path / "notes.txt").write_text("id: [")
    assert [s.id for s in load_scenarios([tmp_path])] == ["one", "two"]
    (tmp_path / "c.yaml").write_text("id: one\nprofile: rho\nrules: []\nsteps: []\nexpect: {}\n")
    with pytest.raises(ScenarioFileError, match=r"c.yaml:1: the id 'one' is also that of .*a.yaml"):
        load_scenarios([tmp_path])


def test_every_file_at_fault_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"id: {name}\nsteps: [cancel]\n")
    (tmp_path / "c.yaml").write_text("id: c\nrules: []\nsteps: []\nexpect: {}\n")
    found, faults = read_scenarios([tmp_path])
    assert [scenario.id for scenario in found] == ["c"]
    assert [(Path(fault.path).name, fault.line) for fault in faults] == [("a.yaml", 2), ("b.yaml", 2)]
    with pytest.raises(ScenarioFilesError, match=r"(?s)a\.yaml:2: .*b\.yaml:2: "):
        load_scenarios([tmp_path])


def test_a_file_that_is_named_twice_is_taken_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("id: a\nsteps: []\nexpect: {}\n")
    assert len(load_scenarios([tmp_path, tmp_path / "a.yaml"])) == 1


def test_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        load_scenarios([tmp_path / "none"])


# --- the published types ------------------------------------------------------------------------------------

SAID_BY_NO_TYPE = ("there is no entry", "the key '", "not YAML", "alias", "has no meaning", "is no float")
"""What the types of the JSON Schema cannot see: how the YAML is written, and which entry another one means."""

CASES_OF_TYPES = [
    "id: T/${n}\nrules: ['${r}']\nprofile: ${p}\nconfig: ${c}\nsteps: ${s}\nexpect: ${e}",
    "steps: ['${step}', start: '${t}', {'${what}': {}}, advance: '${n}ms', together: ['${a}', {cancel: '${c}'}]]",
    "steps: [provider: ['${item}', {calls: ['${call}', {id: '${i}', tool: t, async: '${a}'}]}], cancel: {as: '${x}'}]",
    "steps: [{cancel: '${c}', drop: '${d}'}, steer: {'${k}': x}, maybe: '${m}', read: '${r}', until: '${u}']",
    "steps: [provider: {'${k}': x}, tool: {'${k}': x}, provider: {fail: {kind: '${k}'}}, provider: {usage: '${u}'}]",
    "steps: []\nexpect: {order: ['${o}', ['${p}', {set: '${s}'}, {opt: '${p}'}]], requests: ['${q}', ['${m}']]}",
    "steps: []\nexpect: {events: ['${v}', {'${n}': {}}, {Started: '${f}'}, {Started: {'${f}': 1}}], count: ['${c}']}",
    "steps: []\nexpect: {count: [{of: '${o}', is: '${n}'}], absent: ['${a}'], history: [{user: '${u}'}, '${h}']}",
    "steps: []\nexpect: {waiting_on: ['${w}', 'tool:${t}'], state: '${s}', busy: '${b}', revision: '${r}'}",
    "steps: []\nexpect: {any_of: ['${a}', {busy: '${b}'}], executions: {'${id}': '${n}'}, outcome: {error: '${e}'}}",
    "steps: []\nexpect: {sessions: {'${s}': {'${k}': 1}}, records: ['${r}', {outcome: '${o}'}], replies: {r1: '${p}'}}",
    "config: {tools: {'${t}': {mode: '${m}'}}, sessions: ['${s}'], history: ['${h}']}\nsteps: []",
    "steps: [start: hi]\nsweep: {perform: '${p}', then: ['${t}']}",
]


def typed(text: str) -> ScenarioType:
    head = "" if text.startswith("id:") else HEAD
    whole = head + text + ("" if "expect:" in text else "\nexpect: {}")
    return ScenarioType.model_validate(plain(parse_tree(whole, "x.yaml")))


@pytest.mark.parametrize("text", [text for text, told in FAULTS if not any(part in told for part in SAID_BY_NO_TYPE)])
def test_the_published_types_refuse_the_same(text: str) -> None:
    with pytest.raises(ValidationError):
        typed(text)


@pytest.mark.parametrize("text", [*TAKEN, *CASES_OF_TYPES])
def test_the_published_types_take_the_same(text: str) -> None:
    assert isinstance(typed(text), ScenarioType)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("steps: [start: hi]", False),
        ("steps: [check: {}]", False),
        ("steps: [check: {busy: true}]", True),
        ("steps: [until: Started]", True),
        ("steps: ['${step}']", True),
        ("steps: [start: hi]\nsweep: {perform: {cancel: {}}, then: []}", False),
        ("steps: [start: hi]\nsweep: {perform: {cancel: {}}, then: [until: Started]}", True),
        ("steps: [start: hi]\nsweep: {perform: {check: {busy: true}}, then: []}", True),
    ],
)
def test_the_published_types_ask_for_a_judgement_too(text: str, good: bool) -> None:
    tree = plain(parse_tree(HEAD + text, "x.yaml"))
    if good:
        assert ScenarioType.model_validate(tree).expect is None
    else:
        with pytest.raises(ValidationError, match="nothing would be judged"):
            ScenarioType.model_validate(tree)
