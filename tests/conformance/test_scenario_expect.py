"""Every key of `expect`, satisfied and violated, on one trace; then `order`, `any_of` and the names."""

from __future__ import annotations

from typing import Any

import pytest

from rho_conformance.scenario import parse_text
from rho_conformance.scenario.book import read_book
from rho_conformance.scenario.expect import judge
from rho_conformance.scenario.view import View
from rho_conformance.trace import StepRecord, Trace


def step(number: int, stimulus: str, *seen: tuple[str, dict[str, Any]], **more: Any) -> StepRecord:
    """One step; observations are (name, fields), stimuli are YAML-like pairs."""
    observations = [
        {"seq": number * 100 + index, "step": number, "at_ms": 0, name: {"session": "s1", **fields}}
        for index, (name, fields) in enumerate(seen)
    ]
    name, _, value = stimulus.partition(" ")
    performed: list[dict[str, Any]] = [{name: more.pop("value", value or {})}]
    return StepRecord(performed, observations, more.pop("waiting_on", []), more)


def reply(name: str, value: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "Reply", {"name": name, "value": value, **fields}


def event(name: str, run: str = "r1", **fields: Any) -> tuple[str, dict[str, Any]]:
    return name, {"run": run, **fields}


HISTORY = [
    {"user": "hi"},
    {"assistant": {"text": "", "calls": ["A", "B"]}},
    {"result": {"id": "A", "ok": True, "text": "one"}},
    {"result": {"id": "B", "ok": False, "text": "two"}},
    {"assistant": {"text": "done", "calls": []}},
]
OUTCOME = {"ok": {"text": "done", "stop": "EndTurn", "usage": {"input_tokens": 3}, "revision": 1}}
USAGE = {"input_tokens": 3}


def recorded() -> Trace:
    """A run with two calls that ended, then a refused start, and a second session that is still running."""
    steps = [
        step(
            1,
            "start hi",
            reply("r1", "ok", run="r1"),
            event("Started", revision=0),
            event("StepStarted", step=1),
            ("ModelCall", {"n": 1, "messages": HISTORY[:1], "tools": ["t"]}),
            waiting_on=["model"],
        ),
        step(
            2,
            "provider",
            event("AssistantTextDelta", text="do", attempt=1),
            event("BrandNew", x=1),
            event("AssistantTextDelta", text="ne", attempt=1),
            event("ToolProposed", call_id="A"),
            event("ToolStarted", call_id="A"),
            ("ToolExecute", {"call_id": "A"}),
            waiting_on=["tool:A"],
        ),
        step(
            3,
            "tool",
            event("ToolFinished", call_id="A", result="ok"),
            ("Record", {"attempt": 1, "outcome": "Completed", "usage": USAGE}),
            ("ModelCall", {"n": 2, "messages": HISTORY[:1], "tools": ["t"]}),
            event("Completed", outcome={"text": "done"}),
            event("EventsClosed"),
        ),
        step(4, "outcome", reply("outcome1", OUTCOME, run="r1")),
        step(5, "start again", reply("r2", {"error": "SessionBusy"})),
        step(6, "start", reply("mine", "ok"), value={"text": "x", "session": "s2", "as": "mine"}),
        step(
            7,
            "cancel",
            reply("cancel1", "ok"),
            ("Started", {"session": "s2", "run": "r3", "revision": 7}),
            ("ModelCall", {"session": "s2", "n": 1, "messages": [{"user": "x"}], "tools": []}),
            state="Completed",
            busy=False,
            revision=2**64 - 1,
            history=HISTORY,
            sessions={"s2": {"state": "Running", "busy": True, "revision": 7, "history": []}},
            waiting_on=["model", "timer", "model"],
        ),
    ]
    return Trace({"capabilities": ["*"]}, {"sessions": ["s1", "s2"]}, "rho", steps)


def complaints(expectation: str, snapshot: str | None = None) -> tuple[str, ...]:
    (scenario,) = parse_text(f"id: T\nrules: []\nprofile: rho\nsteps: []\nexpect:\n  {expectation}\n")
    trace = recorded()
    return judge(scenario.expect, View(trace, read_book(trace), snapshot)).complaints


HOLDS = [
    "outcome: {ok: {text: done, stop: EndTurn, revision: 1}}",
    "outcomes: {r1: {ok: {usage: {input_tokens: {$min: 3}}}}, r3: pending}",
    "outcome: {$one_of: [{error: Cancelled}, {ok: {text: {$prefix: do}}}]}",
    'events: [Started, StepStarted, {AssistantTextDelta: {text: done}}, ToolProposed, "...", Completed]',
    'events: [{Started: {revision: 0}}, "...", {event: ToolFinished, result: ok}, {opt: Failed}, Completed]',
    'events: [Started, StepStarted, {set: [ToolProposed, {AssistantTextDelta: {attempt: 1}}]}, "..."]',
    "order: [[Started, ToolStarted, Completed], [ModelCall, ToolExecute]]",
    "order: [[ToolStarted, {ToolExecute: {call_id: A}}, ToolFinished, {ModelCall: {n: 2}}]]",
    "count: [{of: ModelCall, is: 3}, {of: AssistantTextDelta, min: 2, max: 2}, {of: Failed, is: 0}]",
    "absent: [Cancelled, {ToolFinished: {result: failed}}]",
    'history: [{user: hi}, {assistant: {calls: [A, B]}}, "...", {assistant: {text: done}}]',
    "history: [{user: hi}, {assistant: {}}, {set: [{result: {id: B}}, {result: {id: A}}]}, {assistant: {}}]",
    "history_unordered: [{result: {id: B}}, {result: {id: A}}, {user: hi}, {assistant: {}}, {assistant: {}}]",
    "requests: 2",
    "requests: {min: 1, max: 2}",
    'requests: ["*", {same_as: 1}]',
    "requests: [[{user: hi}], [{user: {$contains: h}}]]",
    "replies: {r1: ok, r2: {error: SessionBusy}, mine: ok, cancel1: ok, open: ok}",
    "replies: {outcome1: {ok: {text: done}}, cancel2: {$absent: true}, r2: {$any: true}}",
    "replies: {outcome1: ok}",
    "state: Completed",
    "state: {$one_of: [Idle, Completed]}",
    "busy: false",
    "revision: max",
    "executions: {A: 1, B: 0}",
    "records: [{attempt: 1, outcome: Completed, usage: {input_tokens: 3}}]",
    'records: ["..."]',
    'snapshot: {$contains: \'"text":"x"\'}',
    "waiting_on: [model, model, timer]",
    "sessions: {s2: {outcome: pending, state: Running, busy: true, revision: 7, history: []}}",
    "sessions: {s2: {requests: 1, events: [Started]}}",
    "any_of: [{state: Idle}, {state: Completed}]",
]

FAILS = [
    ("outcome: {ok: {text: dome}}", "outcome of r1: expected"),
    ("outcome: pending", "got {"),
    ("outcome: {error: Cancelled}", "outcome of r1: expected"),
    ("outcomes: {r2: {error: SessionBusy}}", "it was refused, so it has none"),
    ("outcomes: {r9: pending}", "there is no run r9"),
    ("outcomes: {r3: {ok: {}}}", "outcome of r3: expected"),
    ("events: [Started, StepStarted]", "left over after the last element: Started"),
    ('events: ["...", Failed]', "element 2, Failed, was not found; near it"),
    ("events: [Started, {AssistantTextDelta: {text: do}}]", "element 2"),
    (
        'events: ["...", {AssistantTextDelta: {text: do}}, {AssistantTextDelta: {text: ne}}, "..."]',
        "element 2",
    ),
    ('events: ["...", Completed, Failed]', "element 3"),
    ("order: [[Completed, ToolStarted]]", "ToolStarted was not seen after Completed; it occurs at step 2"),
    ("order: [[{ModelCall: {n: 2}}, ToolExecute]]", "it occurs at step 2"),
    ("order: [[ToolFinished, ToolExecute]]", "it occurs at step 2"),
    ("order: [[Failed]]", "it occurs nowhere"),
    ("order: [[{set: [ToolStarted, ToolFinished, ToolUpdated]}]]", "must stand next to each other"),
    ("count: [{of: ModelCall, is: 2}]", "ModelCall was seen 3 times, expected is 2"),
    ("count: [{of: Started, min: 3}]", "Started was seen 2 times, expected min 3"),
    ("count: [{of: AssistantTextDelta, max: 1}]", "was seen 2 times"),
    ("absent: [{ToolFinished: {call_id: A}}]", "must not occur, but step 3 has ToolFinished"),
    ("absent: [BoundaryInputApplied, Started]", "step 1 has Started"),
    ("absent: [EventsClosed]", "step 3 has EventsClosed"),
    ("history: [{user: hi}]", "left over after the last element"),
    ('history: ["...", {result: {id: B, ok: true}}, "..."]', "element 2"),
    ("history: [{user: hi}, {aborted: {}}]", "element 2"),
    ("history_unordered: [{user: hi}]", "expected 1 messages in any order"),
    (
        "history_unordered: [{user: ho}, {assistant: {}}, {assistant: {}}, {result: {}}, {result: {}}]",
        'nothing matches {"user": "ho"}',
    ),
    ("requests: 3", "expected 3 model calls, got 2"),
    ("requests: {min: 3}", "got 2"),
    ('requests: ["*"]', "expected 1 model calls, got 2"),
    ('requests: ["*", [{user: ho}]]', "model call 2: element 1"),
    ("replies: {r1: pending}", "r1: expected pending, got ok"),
    ("replies: {r2: ok}", "r2: expected ok, got"),
    ("replies: {cancel2: ok}", "cancel2: expected ok, no command has that name (cancel1, mine"),
    ("replies: {cancel1: {ok: {x: 1}}}", "cancel1: expected"),
    ("replies: {open: {error: InvalidConfiguration}}", "open: expected"),
    ("state: Idle", "expected Idle, got Completed"),
    ("busy: true", "expected true, got false"),
    ("revision: 1", "expected 1, got 18446744073709551615"),
    ("executions: {A: 2}", "the executor of A was entered 1 times, expected 2"),
    ("executions: {B: 1}", "the executor of B was entered 0 times"),
    ("records: []", "left over after the last element"),
    ("records: [{outcome: {Failed: Timeout}}]", "element 1"),
    ("snapshot: {$lacks: text}", "expected"),
    ("waiting_on: [model, timer]", 'expected ["model", "timer"], got ["model", "model", "timer"]'),
    ("sessions: {s2: {revision: 8}}", "s2.revision: expected 8, got 7"),
    ("sessions: {s3: {busy: true}}", "s3.busy: expected true, the driver does not report it"),
    ("sessions: {s3: {history: []}}", "the driver reports no history of s3"),
    ("sessions: {s3: {outcome: pending}}", "s3 has no accepted run"),
    (
        "any_of: [{state: Idle}, {busy: true}]",
        "no alternative of expect.any_of holds: expect.any_of[0].state",
    ),
]


@pytest.mark.parametrize("expectation", HOLDS)
def test_what_holds(expectation: str) -> None:
    assert complaints(expectation, snapshot='{"text":"x"}') == ()


@pytest.mark.parametrize(("expectation", "message"), FAILS)
def test_what_does_not_hold_says_what_was_seen(expectation: str, message: str) -> None:
    (complaint,) = complaints(expectation, snapshot='{"text":"x"}')
    assert message in complaint
    assert complaint.startswith(("expect.", "no alternative"))


def test_the_tables_try_every_key() -> None:
    from rho_conformance.scenario.expectations import ORCA_KEYS, PLAIN_KEYS

    keys = (set(PLAIN_KEYS) | {"any_of"}) - set(ORCA_KEYS)
    assert {text.partition(":")[0] for text in HOLDS} == keys
    assert {text.partition(":")[0] for text, _ in FAILS} == keys


def test_a_complaint_names_the_line() -> None:
    assert complaints("state: Idle")[0].startswith("expect.state (line 6): ")


def test_same_as_compares_messages_tools_and_system() -> None:
    trace = recorded()
    (scenario,) = parse_text("id: T\nsteps: []\nexpect: {requests: ['*', {same_as: 1}]}")
    call = trace.steps[2].observations[2]["ModelCall"]
    for key, value in (("tools", []), ("messages", []), ("system", "other")):
        before = call.get(key)
        call[key] = value
        (complaint,) = judge(scenario.expect, View(trace, read_book(trace))).complaints
        assert f"model call 2: {key} not the same as in call 1" in complaint
        call[key] = before


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        ("{aborted: {text: half}}", True),
        ("{assistant: {text: half}}", True),
        ("{assistant: {}}", True),
        ("{assistant: {text: whole}}", False),
        ("{user: half}", False),
        ("{result: {id: A}}", False),
    ],
)
def test_in_a_request_an_aborted_message_is_one_of_the_assistant_too(entry: str, fits: bool) -> None:
    (scenario,) = parse_text(f"id: T\nsteps: []\nexpect: {{requests: [[{entry}]], history: [{entry}]}}")
    aborted = {"aborted": {"text": "half", "calls": []}}
    call = ("ModelCall", {"n": 1, "messages": [aborted]})
    trace = Trace({}, {}, "rho", [step(1, "start hi", call, history=[aborted])])
    found = judge(scenario.expect, View(trace, read_book(trace))).complaints
    assert any("expect.requests" in complaint for complaint in found) != fits
    # In the history the two are told apart.
    assert any("expect.history" in complaint for complaint in found) != (entry == "{aborted: {text: half}}")


def test_in_a_request_an_assistant_message_is_no_aborted_one() -> None:
    (scenario,) = parse_text("id: T\nsteps: []\nexpect: {requests: [[{aborted: {}}]]}")
    call = ("ModelCall", {"n": 1, "messages": [{"assistant": {"text": "a", "calls": []}}]})
    trace = Trace({}, {}, "rho", [step(1, "start hi", call)])
    assert judge(scenario.expect, View(trace, read_book(trace))).complaints


def test_without_a_snapshot_its_key_does_not_hold() -> None:
    assert "no snapshot could be taken" in complaints("snapshot: {$lacks: secret}")[0]


# --- variants -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alternatives", "variant"),
    [
        ("[{busy: false}, {busy: false, variant: V}]", None),
        ("[{busy: true}, {busy: false, variant: V}]", "V"),
        ("[{busy: false, variant: V}, {busy: false}]", "V"),
        ("[{busy: true, variant: V}, {busy: false, variant: W}]", "W"),
    ],
)
def test_the_first_alternative_that_holds_decides(alternatives: str, variant: str | None) -> None:
    (scenario,) = parse_text(f"id: T\nsteps: []\nexpect: {{any_of: {alternatives}}}")
    trace = recorded()
    assert judge(scenario.expect, View(trace, read_book(trace))).variant == variant


# --- order --------------------------------------------------------------------------------------------------


def ordered(elements: str, *steps: StepRecord) -> bool:
    (scenario,) = parse_text(f"id: T\nsteps: []\nexpect: {{order: [{elements}]}}")
    trace = Trace({}, {}, "rho", list(steps))
    return not judge(scenario.expect, View(trace, read_book(trace))).complaints


CALL = ("ToolExecute", {"call_id": "A"})
BEGAN, ENDED = event("ToolStarted", call_id="A"), event("ToolFinished", call_id="A")


def test_events_and_upcalls_of_one_step_are_unordered() -> None:
    together = step(1, "tool", CALL, BEGAN)
    assert ordered("[ToolStarted, ToolExecute]", together)
    assert ordered("[ToolExecute, ToolStarted]", together)


def test_events_and_upcalls_of_two_steps_are_ordered() -> None:
    apart = (step(1, "tool", CALL), step(2, "tool", BEGAN))
    assert ordered("[ToolExecute, ToolStarted]", *apart)
    assert not ordered("[ToolStarted, ToolExecute]", *apart)


def test_two_events_keep_their_order_across_an_upcall() -> None:
    together = step(1, "tool", BEGAN, ENDED, CALL)
    assert ordered("[ToolStarted, ToolExecute, ToolFinished]", together)
    assert not ordered("[ToolFinished, ToolExecute, ToolStarted]", together)


def test_events_of_two_sessions_are_ordered_by_step_alone() -> None:
    other = ("Started", {"session": "s2", "run": "r2"})
    assert ordered("[{Started: {session: s2}}, ToolStarted]", step(1, "tool", BEGAN, other))
    assert not ordered("[{Started: {session: s2}}, ToolStarted]", step(1, "tool", BEGAN), step(2, "tool", other))


def test_a_later_occurrence_is_found() -> None:
    steps = (step(1, "tool", BEGAN, ENDED), step(2, "tool", CALL), step(3, "tool", BEGAN))
    assert ordered("[ToolFinished, ToolExecute, ToolStarted]", *steps)
    assert not ordered("[ToolExecute, ToolStarted, ToolFinished]", *steps)


def test_a_set_in_an_order_stands_together() -> None:
    between = event("UsageUpdated")
    wanted = "[{set: [ToolFinished, ToolStarted]}, ToolExecute]"
    assert ordered(wanted, step(1, "tool", BEGAN, ENDED), step(2, "tool", CALL))
    assert not ordered(wanted, step(1, "tool", BEGAN, between, ENDED), step(2, "tool", CALL))
    assert not ordered(wanted, step(1, "tool", CALL), step(2, "tool", BEGAN, ENDED))


def test_gaps_and_options_in_an_order_say_nothing() -> None:
    assert ordered('["...", ToolStarted, {opt: Failed}, "...", ToolFinished]', step(1, "tool", BEGAN, ENDED))


# --- names --------------------------------------------------------------------------------------------------


def test_the_book_knows_runs_and_commands() -> None:
    steps = [
        step(1, "start hi", reply("r1", "ok")),
        step(2, "cancel", reply("mine", "ok"), value={"as": "mine"}),
        step(3, "snapshot", reply("snapshot1", {"ok": "{}"})),
        step(4, "snapshot", reply("snapshot2", {"ok": "{2}"})),
        step(5, "cancel", reply("cancel2", "ok")),
        step(6, "outcome"),
        step(7, "drop"),
        step(8, "start ho", reply("r2", "ok")),
        step(9, "close_reader"),
        step(10, "crash"),
    ]
    book = read_book(Trace({}, {}, "rho", steps), implicit=frozenset({3}))
    assert book.reply("mine") == (True, "ok")
    assert book.reply("cancel1") == (False, None)
    assert book.reply("cancel2") == (True, "ok")
    # The snapshot of the runner is not the file's first.
    assert book.reply("snapshot1") == (True, {"ok": "{2}"})
    assert book.reply("outcome1") == (True, "pending")
    assert (book.runs["r1"].gone, book.runs["r2"].gone) == ("dropped", "crashed")
    assert (book.runs["r1"].reader_closed, book.runs["r2"].reader_closed) == (False, True)
    assert book.runs["r1"].asked == ["outcome1"]


def test_a_refused_start_takes_a_name_but_is_not_the_newest_run() -> None:
    steps = [
        step(1, "start hi", reply("r1", "ok")),
        step(2, "start ho", reply("r2", {"error": "SessionBusy"})),
        step(3, "outcome", reply("outcome1", {"error": "Cancelled"})),
    ]
    book = read_book(Trace({}, {}, "rho", steps))
    newest = book.newest("s1")
    assert newest is not None and newest.name == "r1"
    assert book.outcome(newest) == {"error": "Cancelled"}
    assert book.runs["r2"].gone == "refused"
