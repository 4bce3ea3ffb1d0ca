"""The runner against small scripted drivers: what it sends, how it ends, and which verdict that is."""

from __future__ import annotations

from typing import Any

import pytest

from rho_conformance.drivers.core import factory
from rho_conformance.errors import UsageError
from rho_conformance.scenario import Scenario, ScenarioResult, parse_text, run_scenario, run_scenarios

Json = dict[str, Any]
Answer = dict[str, Any]

OK = {"ok": {"text": "fine"}}


class Scripted:
    """A tiny runtime by table: `answers` maps a stimulus name to what each delivery of it causes.

    A cause is a list of (name, fields) to observe. Commands without an entry are accepted. The session is
    busy from `start` until `Completed` or `Cancelled` is observed, and waits for the model meanwhile.
    """

    def __init__(self, answers: dict[str, list[Any]] | None = None, **changes: Any) -> None:
        self.answers = {name: list(table) for name, table in (answers or {}).items()}
        self.changes = changes
        self.config: Json | None = None
        self.performed: list[list[Json]] = []
        self.counts: dict[str, int] = {}
        self.seq = 0
        self.busy = False
        self.closed = False

    def hello(self) -> Json:
        hello = {
            "protocol": 1,
            "name": "scripted",
            "version": "1",
            "profiles": ["rho"],
            "time": "virtual",
            "deterministic": True,
        }
        return {**hello, **self.changes.get("hello", {})}

    def open(self, config: Json) -> Json:
        self.config = config
        refusal: Json = self.changes.get("opened", {})
        return refusal

    def close(self) -> None:
        self.closed = True

    def perform(self, stimuli: list[Json]) -> Json:
        self.performed.append(stimuli)
        seen: list[Json] = []
        if not stimuli:
            self._cause(seen, "settle", {})
        for stimulus in stimuli:
            ((name, value),) = stimulus.items()
            self._cause(seen, name, value)
        waits = ["model"] if self.busy else []
        facts = {"busy": self.busy, "state": "Idle", "revision": 0, "history": []}
        return {
            "observations": seen,
            "waiting_on": self.changes.get("waiting_on", waits),
            "facts": {**facts, **self.changes.get("facts", {})},
        }

    def _cause(self, seen: list[Json], name: str, value: Any) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        fields = value if isinstance(value, dict) else {}
        if name == "start":
            self.busy = True
            self._see(seen, "Reply", {"name": fields.get("as", f"r{self.counts[name]}"), "value": "ok"})
            self._see(seen, "Started", {"revision": 0})
        queue = self.answers.get(name)
        if queue is None and name in ("cancel", "steer", "drop", "outcome", "snapshot"):
            given: Any = {"outcome": OK, "snapshot": {"ok": "{}"}}.get(name, "ok")
            given = "pending" if name == "outcome" and self.busy else given
            queue = [[("Reply", {"name": fields.get("as", f"{name}{self.counts[name]}"), "value": given})]]
            self.busy = self.busy and name not in ("cancel", "drop")
        for kind, observed in queue.pop(0) if queue else []:
            self._see(seen, kind, observed)

    def _see(self, seen: list[Json], kind: str, fields: Json) -> None:
        self.seq += 1
        self.busy = self.busy and kind not in ("Completed", "Cancelled")
        step = len(self.performed)
        seen.append({"seq": self.seq, "step": step, "at_ms": 0, kind: {"session": "s1", "run": "r1", **fields}})


DONE = [("AssistantTextDelta", {"text": "fine"}), ("Completed", {"outcome": {"text": "fine"}})]
TEXT = """
id: T/x
rules: [RHO-ORD-1]
profile: rho
steps: [start: hi, provider: {text: fine}]
expect: {outcome: {ok: {text: fine}}, events: [Started, AssistantTextDelta, Completed]}
"""


def scenario(text: str = TEXT) -> Scenario:
    whole = text if text.lstrip().startswith("id:") else f"id: T/x\nrules: []\nprofile: rho\n{text}"
    (parsed,) = parse_text(whole if "expect:" in whole else f"{whole}\nexpect: {{}}")
    return parsed


def played(text: str, driver: Scripted | None = None) -> tuple[ScenarioResult, Scripted]:
    driver = driver or Scripted({"provider": [DONE]})
    return run_scenario(scenario(text), lambda: driver), driver


def verdict(text: str, driver: Scripted | None = None) -> tuple[str, str]:
    result, _ = played(text, driver)
    return result.verdict, result.detail


# --- what is sent -------------------------------------------------------------------------------------------


def test_a_scenario_passes_and_ends_with_reading_and_the_outcome() -> None:
    result, driver = played(TEXT)
    assert (result.verdict, result.detail, result.passed) == ("pass", "", True)
    assert (result.id, result.rules) == ("T/x", ("RHO-ORD-1",))
    assert driver.performed == [
        [{"start": "hi"}],
        [{"provider": {"text": "fine"}}],
        [{"read": "all"}],
        [{"outcome": {"run": "r1", "session": "s1"}}],
    ]
    assert driver.closed
    assert result.trace is not None and len(result.trace.steps) == 4


def test_the_config_reaches_the_driver() -> None:
    _, driver = played("config: {max_steps: 3, reader: held, tools: {t: {mode: async}}}\nsteps: []")
    assert driver.config == {"max_steps": 3, "reader": "held", "tools": {"t": {"mode": "async"}}}


def test_lists_are_that_many_steps_and_races_are_one() -> None:
    _, driver = played(
        "steps: [start: hi, provider: [{delta: a}, {delta: b}], "
        "together: [{cancel: {}}, {tool: [{id: A, return: x}, {id: B, return: y}]}]]"
    )
    assert driver.performed[1:4] == [
        [{"provider": {"delta": "a"}}],
        [{"provider": {"delta": "b"}}],
        [{"cancel": {}}, {"tool": {"id": "A", "return": "x"}}, {"tool": {"id": "B", "return": "y"}}],
    ]


def test_an_explicit_outcome_is_not_taken_again() -> None:
    _, driver = played("steps: [start: hi, provider: {text: fine}, outcome: {}]\nexpect: {outcome: {ok: {}}}")
    assert sum("outcome" in stimulus for step in driver.performed for stimulus in step) == 1


def test_nothing_is_read_or_asked_of_a_dropped_run() -> None:
    result, driver = played("steps: [start: hi, drop: {}]\nexpect: {outcome: pending}")
    assert driver.performed[2:] == []
    assert (result.verdict, "it was dropped, so it has none" in result.detail) == ("fail", True)


def test_a_closed_reader_is_not_read_but_the_outcome_is_taken() -> None:
    _, driver = played("steps: [start: hi, provider: {text: fine}, close_reader: {}]")
    assert driver.performed[3:] == [[{"outcome": {"run": "r1", "session": "s1"}}]]


def test_what_is_not_declared_is_not_done_at_the_end() -> None:
    driver = Scripted({"provider": [DONE]}, hello={"capabilities": ["start", "provider.*"]})
    assert verdict("steps: [start: hi, provider: {text: fine}]", driver) == ("pass", "")
    assert len(driver.performed) == 2


def test_several_runs_are_each_read_and_asked() -> None:
    _, driver = played("steps: [start: hi, provider: {text: fine}, start: ho, cancel: {}]")
    assert driver.performed[4:] == [
        [{"read": {"n": "all", "run": "r1", "session": "s1"}}],
        [{"outcome": {"run": "r1", "session": "s1"}}],
        [{"read": "all"}],
        [{"outcome": {"run": "r2", "session": "s1"}}],
    ]


# --- until, check, maybe, together --------------------------------------------------------------------------


def test_until_holds_once_it_was_observed() -> None:
    text = "steps: [start: hi, provider: {text: fine}, until: {event: Completed, outcome: {text: fine}}]"
    assert verdict(text) == ("pass", "")


def test_until_fails_when_it_was_not() -> None:
    kind, detail = verdict("steps: [start: hi, until: Completed]")
    assert kind == "fail"
    assert detail == "step until (line 4): Completed has not been observed; seen last: {near}".format(
        near='Started {"revision": 0}, >>the end<<'
    )


def test_a_check_is_judged_where_it_stands() -> None:
    text = "steps: [start: hi, check: {busy: true, outcome: pending}, provider: {text: a}, check: {busy: false}]"
    assert verdict(text) == ("pass", "")
    kind, detail = verdict("steps: [start: hi, check: {busy: false}]")
    assert (kind, detail) == ("fail", "check (line 4).busy (line 4): expected false, got true")


def test_a_check_takes_the_outcome_of_a_finished_run_once() -> None:
    result, driver = played(
        "steps: [start: hi, check: {outcome: pending}, provider: {text: fine}, check: {outcome: {ok: {}}}]\n"
        "expect: {outcome: {ok: {text: fine}}}"
    )
    assert result.verdict == "pass"
    assert driver.counts["outcome"] == 1
    assert driver.performed[2] == [{"outcome": {"run": "r1", "session": "s1"}}]


def test_a_check_of_the_snapshot_does_not_shift_the_names_of_the_file() -> None:
    taken = [[("Reply", {"name": f"snapshot{k}", "value": {"ok": text}})] for k, text in ((1, "a"), (2, "b"))]
    driver = Scripted({"snapshot": taken})
    text = "steps: [check: {snapshot: {$contains: a}}, snapshot: {}]\nexpect: {replies: {snapshot1: {ok: b}}}"
    assert verdict(text, driver) == ("pass", "")


@pytest.mark.parametrize(
    "text",
    [
        "steps: [check: {busy: false, revision: 0}, start: hi, cancel: {}]",
        "steps: []\nexpect: {state: Idle, history: []}",
    ],
)
def test_before_the_first_stimulus_the_runtime_is_asked_how_it_is(text: str) -> None:
    _, driver = played(text)
    assert verdict(text) == ("pass", "")
    assert driver.performed[0] == [] and driver.performed.count([]) == 1


def test_a_check_before_the_first_stimulus_can_fail() -> None:
    kind, detail = verdict("steps: [check: {busy: true}, start: hi]")
    assert (kind, detail) == ("fail", "check (line 4).busy (line 4): expected true, got false")


def test_until_before_the_first_stimulus_sees_what_there_is() -> None:
    assert verdict("steps: [until: Lagged, start: hi]")[0] == "n/a"
    kind, detail = verdict("steps: [until: Started, start: hi]")
    assert (kind, "Started has not been observed" in detail) == ("fail", True)


# --- addresses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "detail"),
    [
        ("start: hi, cancel: {run: r9}", "step cancel (line 4): there is no run r9"),
        ("cancel: {run: r1}, start: hi", "step cancel (line 4): there is no run r1"),
        ("start: hi, cancel: {session: s9}", "step cancel (line 4): there is no session s9"),
        ("start: {text: hi, session: s2}", "step start (line 4): there is no session s2"),
        ("start: hi, provider: {text: a, run: r2}", "step provider (line 4): there is no run r2"),
        ("start: hi, together: [cancel: {run: r2}, start: ho]", "step together (line 4): there is no run r2"),
        ("start: hi, read: {n: all, run: r3}", "step read (line 4): there is no run r3"),
    ],
)
def test_an_address_that_does_not_exist_yet_fails_the_scenario(steps: str, detail: str) -> None:
    assert verdict(f"steps: [{steps}]") == ("fail", detail)


@pytest.mark.parametrize(
    "steps",
    [
        "start: hi, cancel: {run: r1}",
        "together: [start: hi, cancel: {run: r1}]",
        "start: {text: hi, session: s1}, cancel: {}",
        "new_session: {as: s2}, start: {text: hi, session: s2}, cancel: {session: s2}",
        "together: [new_session: {as: s2}, cancel: {session: s2}]",
        "new_session: {}, cancel: {session: s2}",
    ],
)
def test_an_address_that_exists_is_sent(steps: str) -> None:
    kind, detail = verdict(f"steps: [{steps}]")
    assert "there is no" not in detail
    assert kind == "pass"


def test_the_names_of_sessions_are_those_of_the_config_and_of_the_facts() -> None:
    text = "config: {{sessions: [a, b]}}\nsteps: [start: {{text: hi, session: {}}}, cancel: {{session: {}}}]"
    assert verdict(text.format("b", "b"))[0] == "pass"
    assert verdict(text.format("a", "s1")) == ("fail", "step cancel (line 5): there is no session s1")
    told = Scripted(facts={"sessions": {"s7": {"busy": False}}})
    assert verdict("steps: [start: hi, cancel: {}, new_session: {}, cancel: {session: s7}]", told)[0] == "pass"


# --- a crash ------------------------------------------------------------------------------------------------


def test_a_run_that_was_over_before_the_crash_keeps_its_outcome() -> None:
    text = "steps: [start: hi, provider: {text: fine}, crash: {}]\nexpect: {outcome: {ok: {text: fine}}}"
    result, driver = played(text, Scripted({"provider": [DONE], "crash": [[]]}))
    assert (result.verdict, result.detail) == ("pass", "")
    assert driver.performed[2:] == [[{"outcome": {"run": "r1", "session": "s1"}}], [{"crash": {}}]]


@pytest.mark.parametrize("reader", ["eager", "held"])
def test_only_a_run_that_the_crash_met_has_no_outcome(reader: str) -> None:
    steps = f"config: {{reader: {reader}}}\nsteps: [start: hi, provider: {{text: fine}}, start: ho, crash: {{}}]\n"
    over = run_scenario(scenario(steps + "expect: {outcomes: {r1: {ok: {text: fine}}}, history: []}"), factory)
    assert (over.verdict, over.detail) == ("pass", "")
    met = run_scenario(scenario(steps + "expect: {outcomes: {r2: pending}}"), factory)
    assert (met.verdict, "it was crashed, so it has none" in met.detail) == ("fail", True)


NOT_OPEN = [("NotOpen", {"stimulus": "tool", "call_id": "A"})]


def test_an_answer_to_what_never_opened_fails() -> None:
    kind, detail = verdict("steps: [start: hi, tool: {id: A, return: x}]", Scripted({"tool": [NOT_OPEN]}))
    assert kind == "fail"
    assert detail == 'step tool (line 4): not open: no upcall for {"tool": {"id": "A", "return": "x"}} was ever open'


@pytest.mark.parametrize("told", ["tool", {"tool": {"id": "A", "return": "x"}}])
def test_under_maybe_it_is_skipped(told: Any) -> None:
    driver = Scripted({"tool": [[("NotOpen", {"stimulus": told})]]})
    assert verdict("steps: [start: hi, cancel: {}, maybe: {tool: {id: A, return: x}}]", driver) == (
        "pass",
        "",
    )


def test_in_a_race_maybe_excuses_only_its_own() -> None:
    race = "steps: [start: hi, cancel: {}, together: [maybe: {tool: {id: A, return: x}}, tool: {id: B, return: y}]]"
    assert verdict(race, Scripted({"tool": [NOT_OPEN]})) == ("pass", "")
    other = [("NotOpen", {"stimulus": "tool", "call_id": "B"})]
    kind, detail = verdict(race, Scripted({"tool": [[], other]}))
    assert kind == "fail"
    assert '"id": "B"' in detail


@pytest.mark.parametrize(("waiting_on", "sent"), [(["host:q"], 1), (["model"], 0)])
def test_maybe_respond_looks_at_what_is_open(waiting_on: list[str], sent: int) -> None:
    answered = {"respond": [[("Reply", {"name": "respond1", "value": "ok"})]]}
    _, driver = played("steps: [start: hi, maybe: {respond: {ref: q}}]", Scripted(answered, waiting_on=waiting_on))
    assert driver.counts.get("respond", 0) == sent


# --- opening ------------------------------------------------------------------------------------------------

REFUSED = {"error": "InvalidConfiguration"}


def test_a_refused_configuration_is_the_reply_open() -> None:
    driver = Scripted(opened=REFUSED)
    text = "config: {max_steps: 0}\nsteps: [start: hi]\nexpect: {replies: {open: {error: InvalidConfiguration}}}"
    assert verdict(text, driver) == ("pass", "")
    assert driver.performed == []


def test_an_unexpected_refusal_fails_though_nothing_else_could() -> None:
    kind, detail = verdict("steps: [start: hi]\nexpect: {absent: [Failed]}", Scripted(opened=REFUSED))
    assert (kind, detail) == ("fail", "the configuration was refused: InvalidConfiguration")


def test_an_expected_refusal_that_does_not_come_fails() -> None:
    kind, detail = verdict("steps: []\nexpect: {replies: {open: {error: InvalidConfiguration}}}")
    assert kind == "fail"
    assert "open: expected" in detail


# --- n/a ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hello", "detail"),
    [
        ("steps: [worker: {spawn: w}]", {}, "not yet: worker"),
        ("steps: []\nexpect: {pending: 0}", {}, "not yet: expect.pending"),
        (
            "steps: [start: hi, steer: {text: x}]\nexpect: {state: Idle}",
            {"capabilities": ["start"]},
            "scripted does not declare observe.state, steer",
        ),
        ("id: a\nrules: []\nprofile: orca\nsteps: []", {}, "profile orca: scripted declares rho"),
    ],
)
def test_what_cannot_be_asked_is_not_applicable(text: str, hello: Json, detail: str) -> None:
    driver = Scripted(hello=hello)
    assert verdict(text, driver) == ("n/a", detail)
    assert driver.config is None
    assert driver.closed


def test_common_scenarios_may_be_asked_of_any_profile() -> None:
    assert verdict("id: a\nrules: []\nprofile: common\nsteps: []") == ("pass", "")


def test_a_refusal_of_something_declared_is_a_breach() -> None:
    refusal = [[("Refused", {"stimulus": "provider", "feature": "provider.delta"})]]
    result, _ = played("steps: [start: hi, provider: {delta: a}]", Scripted({"provider": refusal}))
    assert result.verdict == "fail"
    assert [violation.rule for violation in result.violations] == ["CORE-CAP"]


def test_a_refusal_of_something_undeclared_is_not_applicable() -> None:
    refusal = [[("Refused", {"stimulus": "provider", "feature": "provider.delta=odd"})]]
    driver = Scripted({"provider": refusal}, hello={"capabilities": ["start", "provider.delta"]})
    kind, detail = verdict("steps: [start: hi, provider: {delta: a}]", driver)
    assert (kind, "not declared, and refused" in detail) == ("n/a", True)


# --- variants, failures, errors -----------------------------------------------------------------------------


def test_a_variant_is_named() -> None:
    text = "steps: [start: hi, provider: {text: fine}]\nexpect: {any_of: [{busy: true}, {busy: false, variant: V}]}"
    result, _ = played(text)
    assert (result.verdict, result.detail, result.passed) == ("variant", "variant: V", True)


def test_a_failed_expectation_says_all_that_failed() -> None:
    kind, detail = verdict("steps: [start: hi, cancel: {}]\nexpect: {busy: true, state: Failed}")
    assert kind == "fail"
    assert detail == (
        "expect.busy (line 5): expected true, got false; expect.state (line 5): expected Failed, got Idle"
    )


def test_a_standing_violation_fails_what_would_have_passed() -> None:
    twice = [*DONE, ("Cancelled", {})]
    result, _ = played("steps: [start: hi, provider: {text: fine}]", Scripted({"provider": [twice]}))
    assert (result.verdict, result.detail) == ("fail", "CORE-S1 at step 2: r1: Cancelled after Completed")


def test_a_deadlock_fails() -> None:
    result, _ = played("steps: [start: hi]", Scripted(waiting_on=[]))
    assert result.verdict == "fail"
    assert result.violations[0].rule == "CORE-LIVE"


def test_a_driver_that_raises_is_an_error() -> None:
    class Broken(Scripted):
        def perform(self, stimuli: list[Json]) -> Json:
            raise RuntimeError("no world")

    assert verdict("steps: [start: hi]", Broken()) == (
        "error",
        "driver: perform raised RuntimeError: no world",
    )


def test_a_malformed_answer_is_an_error() -> None:
    kind, detail = verdict("steps: [start: hi]", Scripted(facts={"busy": "no"}))
    assert (kind, detail) == ("error", "driver: facts.busy must be a bool, got 'no'")


def test_a_violation_that_was_recorded_stands_even_if_the_driver_breaks_later() -> None:
    class Breaking(Scripted):
        def perform(self, stimuli: list[Json]) -> Json:
            if "cancel" in stimuli[0]:
                raise RuntimeError("broken")
            return super().perform(stimuli)

    driver = Breaking({"provider": [[*DONE, ("Cancelled", {})]]})
    kind, detail = verdict("steps: [start: hi, provider: {text: fine}, cancel: {}]", driver)
    assert kind == "fail"
    assert detail.startswith("CORE-S1") and "perform raised RuntimeError" in detail


def test_a_target_without_its_package_is_a_usage_error() -> None:
    def factory() -> Scripted:
        raise ImportError("install the extra")

    with pytest.raises(UsageError, match="install the extra"):
        run_scenario(scenario(), factory)


def test_a_fault_of_the_harness_is_an_error_and_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from rho_conformance.scenario import play

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(play, "judge", broken)
    kind, detail = verdict("steps: []")
    assert kind == "error"
    assert detail.startswith("harness: ZeroDivisionError: oops")


# --- drivers whose settle is no proof -----------------------------------------------------------------------

LOOSE: Json = {"deterministic": False}


def late(name: str = "settle") -> Scripted:
    """What the provider's answer causes comes one settle too late."""
    return Scripted({"provider": [[]], name: [DONE]}, hello=LOOSE)


def test_until_that_comes_after_a_second_settle_is_an_error() -> None:
    kind, detail = verdict("steps: [start: hi, provider: {text: fine}, until: Completed]", late())
    assert (kind, "settled too early" in detail) == ("error", True)


def test_until_that_never_comes_is_a_failure_after_a_second_settle() -> None:
    driver = Scripted(hello=LOOSE)
    assert verdict("steps: [start: hi, until: Completed]", driver)[0] == "fail"
    assert driver.performed[-1] == []


def test_an_expectation_that_holds_after_a_second_settle_is_an_error() -> None:
    text = "steps: [start: hi, provider: {text: fine}, check: {busy: false}]"
    kind, detail = verdict(text, late())
    assert (kind, "settled too early; true only later" in detail) == ("error", True)


def test_an_exact_driver_gets_no_second_settle() -> None:
    driver = Scripted()
    assert verdict("steps: [start: hi, until: Completed]", driver)[0] == "fail"
    assert [] not in driver.performed


def test_real_time_counts_as_loose() -> None:
    driver = Scripted(hello={"time": "real"})
    verdict("steps: [start: hi, until: Completed]", driver)
    assert [] in driver.performed


def test_a_deadlock_that_goes_away_is_an_error() -> None:
    class Late(Scripted):
        def perform(self, stimuli: list[Json]) -> Json:
            self.changes = {"hello": LOOSE, **({"waiting_on": []} if stimuli else {})}
            return super().perform(stimuli)

    kind, detail = verdict("steps: [start: hi]", Late(hello=LOOSE))
    assert (kind, "it went on by itself afterwards" in detail) == ("error", True)


def test_a_loose_driver_is_run_again_and_any_failure_counts() -> None:
    drivers = [Scripted({"provider": [answer]}, hello=LOOSE) for answer in (DONE, [], DONE)]
    queue = list(drivers)
    text = "steps: [start: hi, provider: {text: fine}]\nexpect: {count: [{of: Completed, is: 1}]}"
    result = run_scenario(scenario(text), lambda: queue.pop(0), repeat=3)
    assert queue == []
    assert result.verdict == "fail"
    assert result.detail.startswith("1 of 3 runs: expect.count")


def test_an_exact_driver_is_run_once() -> None:
    made: list[Scripted] = []

    def factory() -> Scripted:
        made.append(Scripted({"provider": [DONE]}))
        return made[-1]

    results = run_scenarios([scenario(), scenario()], factory, repeat=5)
    assert [result.verdict for result in results] == ["pass", "pass"]
    assert len(made) == 2


# --- async drivers ------------------------------------------------------------------------------------------


def test_async_drivers_are_played_alike() -> None:
    class Later:
        def __init__(self) -> None:
            self.inner = Scripted({"provider": [DONE]})

        async def hello(self) -> Json:
            return self.inner.hello()

        async def open(self, config: Json) -> Json:
            return self.inner.open(config)

        async def perform(self, stimuli: list[Json]) -> Json:
            return self.inner.perform(stimuli)

        async def close(self) -> None:
            self.inner.close()

    assert run_scenario(scenario(), Later).verdict == "pass"
