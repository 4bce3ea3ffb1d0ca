"""The TLA+ model: TLC finds its rules to hold, it is the reducer edge by edge, and neither can move without the other.

TLC needs Java. Without it these tests are skipped, and the end of `make test` says what was not run.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
import typer

from rho_conformance import tla
from rho_conformance.cli import tla as tla_command
from rho_conformance.cli.common import BROKEN, INCOMPLETE, OK
from rho_conformance.errors import UsageError
from rho_conformance.mutants import mutants
from rho_conformance.mutants.base import applied
from rho_conformance.tla import tlc
from rho_conformance.tla.bisim import Bisimulation
from rho_conformance.tla.graph import load
from rho_conformance.tla.setting import folder, read, settings
from rho_conformance.tla.values import parse, record, show
from rho_spec import catalogue

SETTINGS = tuple(s.name for s in settings())
MUTANTS = {m.name: m for m in mutants()}


@pytest.fixture(autouse=True, scope="module")
def _tools() -> None:
    """A missing TLC is said loudly."""
    try:
        tlc.java()
        tlc.jar()
    except tla.Unavailable as missing:
        pytest.skip(f"NOT RUN: the TLA+ model was not checked: {missing}")


@cache
def prepared(name: str) -> tuple[tlc.Tlc, Bisimulation]:
    """What TLC says of a setting, and its graph beside the reducer; made once."""
    ran, both = tla.prepare(read(folder() / f"{name}.cfg"))
    assert both is not None, ran.violation
    return ran, both


# --- the model holds, and it is the reducer ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_the_rules_hold_and_the_two_graphs_are_one(name: str) -> None:
    ran, both = prepared(name)
    assert ran.violation is None
    assert len(both.graph.states) == ran.states
    compared = both.compare()
    assert compared.mismatches == ()
    assert compared.missed == 0
    assert compared.pairs >= both.cores
    assert compared.steps > both.cores


def test_it_is_more_than_a_toy() -> None:
    graphs = [prepared(name)[1] for name in SETTINGS]
    assert sum(len(g.graph.states) for g in graphs) >= 20_000
    assert sum(g.cores for g in graphs) >= 7_000
    assert sum(g.graph.transitions for g in graphs) >= 100_000


def test_every_action_is_taken_somewhere() -> None:
    text = (folder() / "RhoRun.tla").read_text(encoding="utf-8")
    actions = {word for word in text.partition("\nNext ==")[2].split() if word.isalpha()}
    taken = {label for name in SETTINGS for edges in prepared(name)[1].graph.edges for label, _ in edges}
    assert taken == actions


def test_every_run_settles_when_everyone_owed_acts() -> None:
    ran = tla.live()
    assert ran.violation is None
    assert ran.states > 1_000


def test_every_setting_checks_every_rule() -> None:
    text = (folder() / "RhoRules.tla").read_text(encoding="utf-8")
    rules = {w for line in text.splitlines() for w in line.split()[:1] if w.startswith(("RHO_", "CORE_"))}
    assert len(rules) >= 30
    for name in SETTINGS:
        checked = (folder() / f"{name}.cfg").read_text(encoding="utf-8").partition("INVARIANTS")[2].split()
        assert set(checked) - {"PROPERTIES"} == rules


def test_every_id_is_a_rule_or_a_decision() -> None:
    text = "".join(f.read_text(encoding="utf-8") for f in folder().glob("*.tla"))
    ids = set(re.findall(r"\bRHO-[A-Z]+-\d+[a-z]?\b|\bCORE-LIVE\b", text))
    ids |= {name.replace("_", "-") for name in re.findall(r"^((?:RHO|CORE)_\w+) ==", text, re.MULTILINE)}
    assert len(ids) > 50
    assert ids <= {r.id for r in catalogue.load()}
    assert {int(n) for n in re.findall(r"\bD(\d+)\b", text)} <= set(range(1, 32))


# --- a fault of the reducer is a mismatch -----------------------------------------------------------------------------

FOUND: dict[str, tuple[str, ...]] = {
    "batch": (
        "abandoned-told-twice",
        "batch-deaf-to-steers",
        "blocked-send-not-raced",
        "cancel-unheard-in-batch",
        "cancelled-is-interrupted",
        "cancelled-shows-failed",
        "cancelled-with-old-revision",
        "candidate-dropped",
        "clones-not-told",
        "collector-missed",
        "completed-before-its-commit",
        "delivered-without-a-port",
        "drop-forgets-the-handle",
        "dropped-candidate-kept",
        "dropped-run-completes",
        "external-provider-awaited",
        "failed-call-wakes-nobody",
        "failed-preparation-not-started",
        "failed-preparation-wakes-nobody",
        "failed-tool-ends-run",
        "finished-again-on-cancel",
        "finished-results-interrupted",
        "full-queue-loses-events",
        "interrupted-candidate-kept",
        "lost-complete-result",
        "lost-event-lost-run",
        "lost-interrupted-result",
        "lost-reader-not-noticed",
        "never-stalls",
        "no-outcome-without-commit",
        "open-calls-left",
        "progress-under-the-first-call",
        "proposals-from-a-stack",
        "proposed-after-preparation",
        "queued-calls-begin",
        "raced-cancel-commits-twice",
        "reader-loss-commits",
        "request-before-step-started",
        "results-in-order-of-completion",
        "results-last-call-first",
        "running-tools-not-told",
        "second-cancel-commits-again",
        "staged-steer-committed-at-the-end",
        "started-left-out",
        "started-names-the-session",
        "started-with-the-first-step",
        "started-with-the-next-revision",
        "steer-announced-as-boundary-input",
        "steer-applied-under-another-id",
        "steer-between-results",
        "steer-lost-at-end-turn",
        "steer-lost-while-settling",
        "steer-written-into-the-history",
        "steering-between-results",
        "terminal-event-doubled",
        "terminal-event-first",
        "token-cancel-unheard",
        "tool-failure-is-fatal",
        "tool-finished-twice",
        "unavailable-tool-started",
        "unbounded-channel",
        "unknown-tool-is-fatal",
        "usage-after-the-end",
        "work-outlives-its-consumer",
    ),
    "ends": (
        "applied-steer-retracted",
        "back-off-outlives-a-cancel",
        "content-from-deltas",
        "delay-counts-attempts",
        "delay-not-raced",
        "deltas-dropped-when-full",
        "diagnostic-in-message",
        "failed-and-cancelled",
        "failed-run-not-counted",
        "failure-drops-candidate",
        "failure-uncommitted",
        "flushed-after-the-reset",
        "inner-phases-shown",
        "no-reset",
        "panic-taken-for-an-answer",
        "permanent-failure-retried",
        "reset-after-the-last-failure",
        "reset-reports-the-delay",
        "retry-after-shortens",
        "retry-after-uncapped",
        "retry-with-steering",
        "silent-failure",
        "silent-restart",
        "third-malformed-allowed",
        "unknown-steer-retracted",
    ),
    "grace": (
        "failed-always-permanent",
        "fifth-request",
        "retry-reruns-tools",
    ),
    "jobs": (
        "async-without-marker",
        "dropped-jobs-work-on",
        "interrupted-job-not-finished",
        "job-results-in-order-of-call",
        "pending-job-unannounced",
        "pending-job-unanswered",
        "unscheduled-call-unanswered",
    ),
    "steering": (
        "batch-retracts-nothing",
        "one-step-beyond-the-limit",
        "one-step-too-many",
        "steers-applied-newest-first",
    ),
}
"""Each fault that touches a variable of the model, under the setting that shows it."""

OUTSIDE: dict[str, tuple[str, ...]] = {
    "a second run": ("interrupted-results-not-shown",),
    "a stream beside its text": (
        "aborted-text-cut",
        "fragments-held-until-complete",
        "hosted-detail-lost",
        "physical-retry-unseen",
        "raw-reasoning-committed",
        "reasoning-kept-as-summary",
        "web-search-unseen",
    ),
    "boundary input": (
        "asked-again-for-a-retry",
        "asked-in-the-last-step",
        "asked-while-a-job-runs",
        "compactor-and-collector-not-raced",
        "completion-unasked",
        "first-step-unasked",
        "input-announced-as-steering",
        "input-ends-the-run",
        "input-takes-text-back",
        "lost-collector-fails-the-run",
    ),
    "compaction": (
        "compaction-announced-before-commit",
        "compaction-event-cancelled",
        "compactor-called-at-once",
        "compacts-over-pending-jobs",
        "compacts-until-small",
        "interruption-rolls-back",
        "late-compaction-unannounced",
    ),
    "host input": (
        "answer-delivered-twice",
        "answer-for-nobody",
        "answer-not-validated",
        "answer-to-the-oldest-question",
        "answered-id-forgotten",
        "batch-deaf-to-answers",
        "finished-run-takes-an-answer",
        "legacy-event-sent",
        "one-question-at-a-time",
        "question-of-another-call",
        "running-after-the-first-answer",
        "running-while-asking",
        "waiting-after-the-last-answer",
    ),
    "panics of tools": ("two-events-after-a-panic",),
    "steerable providers": (
        "claim-holds-nothing",
        "delivered-steer-applied-silently",
        "delivery-announced-twice",
        "delivery-unannounced",
        "every-claim-granted",
    ),
    "the driver": (
        "dropped-clone-cancels",
        "outcome-does-not-drain",
        "progress-overtakes",
    ),
    "the header's text": ("retry-after-dates-unread",),
    "usage and its recorder": (
        "abandoned-attempt-unrecorded",
        "abandoned-usage-counted",
        "cancelled-attempt-unrecorded",
        "generation-as-context",
        "generation-falls-back",
        "hidden-reasoning-lost",
        "output-tokens-last-report",
        "physical-request-recorded-last",
        "physical-usage-stays",
    ),
    "what lies above a run": (
        "append-declared-and-refused",
        "busy-after-a-failure",
        "cancel-declared-and-refused",
        "compaction-by-hand-untold",
        "compactions-admitted-when-shut",
        "dropped-run-stays-registered",
        "dropped-session-never-free",
        "host-change-not-counted",
        "late-cancel-rewrites-the-outcome",
        "next-run-resumes-the-last",
        "runs-admitted-when-shut",
        "runtime-handle-shuts-down",
        "saves-after-every-run",
        "second-start-swallowed",
        "session-handle-cancels",
        "sessions-opened-when-shut",
        "shutdown-answers-late",
        "shutdown-cancels-one",
        "shutdown-counts-again",
        "shutdown-counts-the-rest",
        "shutdown-joins",
        "shutdown-wears-off",
        "stale-cancel-hits-the-next-run",
        "steer-accepted-by-a-finished-run",
        "terminal-state-fades",
        "terminal-state-sticks",
        "zero-capacity-accepted",
    ),
}
"""What the other faults touch; the model says nothing of it (spec/tla/README.md)."""


def test_every_deliberate_fault_is_accounted_for() -> None:
    named = [name for group in (*FOUND.values(), *OUTSIDE.values()) for name in group]
    assert sorted(named) == sorted(MUTANTS)


@pytest.mark.parametrize(("setting", "name"), [(setting, name) for setting, group in FOUND.items() for name in group])
def test_a_fault_of_the_core_is_a_mismatch(setting: str, name: str) -> None:
    _, both = prepared(setting)
    with applied(MUTANTS[name].patches):
        compared = both.compare(limit=1)
    assert len(compared.mismatches) == 1, f"{name} is not seen in {setting}"


@pytest.mark.parametrize(
    ("setting", "name", "action", "variables"),
    [
        ("jobs", "lost-interrupted-result", "Cancel", ("history",)),
        ("grace", "pending-job-unannounced", "TimerFires", ("pend",)),
        ("retries", "delay-counts-attempts", "ModelFails", ("wait",)),
        ("steering", "applied-steer-retracted", "Retract", ("fx",)),
        ("jobs", "job-results-in-order-of-call", "Take", ("candidate",)),
        ("batch", "proposals-from-a-stack", "Respond", ("pend",)),
        ("steering", "steers-applied-newest-first", "Steer", ("steers",)),
        ("ends", "inner-phases-shown", "ModelFails", ("label",)),
        ("ends", "clones-not-told", "Cancel", ("fx",)),
        ("detached", "async-without-marker", "Respond", ("detach", "todo")),
    ],
)
def test_a_mismatch_names_action_and_variables(
    setting: str, name: str, action: str, variables: tuple[str, ...]
) -> None:
    _, both = prepared(setting)
    with applied(MUTANTS[name].patches):
        found = both.compare(limit=1).mismatches[0]
    assert (found.action, found.variables) == (action, variables)
    assert found.only_model != found.only_reducer
    assert str(found).startswith(f"{action} ")


def test_an_input_that_may_not_come_must_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reducer that takes answers of an attempt that is over is wrong, though the model has no word for them."""
    _, both = prepared("grace")
    monkeypatch.setattr("rho_core.run.turn.is_current", lambda run, i: True)
    found = both.compare(limit=1).mismatches
    assert [m.action for m in found] == ["Respond"]
    assert found[0].only_model == ()


def test_a_reducer_that_raises_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    _, both = prepared("grace")

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rho_core.run.end.stop_work", broken)
    assert "ZeroDivisionError" in both.compare(limit=1).mismatches[0].only_reducer[0]


# --- and so is a changed line of the model ---------------------------------------------------------------------------


def changed(where: Path, module: str, old: str, new: str) -> Path:
    """A copy of the model with one change."""
    copy = Path(shutil.copytree(folder(), where / "tla"))
    text = (copy / f"{module}.tla").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (copy / f"{module}.tla").write_text(text.replace(old, new), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    ("setting", "old", "new", "variables"),
    [
        ("retries", "1000 * 2 ^ (b.failed - 1)", "1000 * b.failed", {"wait"}),
        ("grace", '!.res = IF @ = "none" THEN "interrupted" ELSE @]', '!.res = "interrupted"]', {"history"}),
    ],
)
def test_a_changed_line_of_the_model_is_a_mismatch(
    tmp_path: Path, setting: str, old: str, new: str, variables: set[str]
) -> None:
    copy = changed(tmp_path, "RhoRun", old, new)
    ran, both = tla.prepare(read(copy / f"{setting}.cfg"), copy)
    assert ran.violation is None and both is not None
    found = both.compare(limit=1).mismatches
    assert variables <= set(found[0].variables)


@pytest.mark.parametrize(
    ("setting", "old", "new", "rule"),
    [
        ("jobs", "Each(r.todo, Interrupted)", "<<>>", "Invariant RHO_CAN_12"),
        ("grace", "IF Ready THEN Go(r) ELSE r)", "r)", "Invariant CORE_LIVE"),
        (
            "grace",
            'IF pc = "stopping" /\\ ending # "cancel" THEN',
            'IF pc = "stopping" THEN',
            "Action property RHO_CAN_2",
        ),
        ("limit", "Count(r.jobs, Executing) < MaxParallel", "TRUE", "Invariant RHO_ORD_8"),
    ],
)
def test_tlc_sees_a_model_that_breaks_a_rule(tmp_path: Path, setting: str, old: str, new: str, rule: str) -> None:
    copy = changed(tmp_path, "RhoRun", old, new)
    ran, both = tla.prepare(read(copy / f"{setting}.cfg"), copy)
    assert both is None
    assert ran.violation is not None and f"{rule} is violated" in ran.violation


def test_without_a_fair_reader_a_run_may_never_settle(tmp_path: Path) -> None:
    copy = changed(tmp_path, "RhoLive", '/\\ Fair("reader") ', "")
    ran = tla.live(copy)
    assert ran.violation is not None and "Temporal properties were violated" in ran.violation


# --- reading TLC, and the command -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['<<"a", 1, TRUE, <<>>>>', '{"a", "b"}', "-3", "<<{}, <<<<1>>>>>>"])
def test_values_are_read_and_shown(text: str) -> None:
    assert show(parse(text)) == text


def test_records_do_not_depend_on_the_order_of_fields() -> None:
    read_back = parse('[b |-> 1, a |-> {"x"}]')
    assert read_back == record(a=frozenset({"x"}), b=1)
    assert show(read_back) == '[a |-> {"x"}, b |-> 1]'


@pytest.mark.parametrize("text", ["<<1", "1 2", "[a 1]", "<<1 2>>", "@"])
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        parse(text)


def test_half_a_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="not a whole state graph"):
        load(['1 -> 2 [label="Take",color="black",fontcolor="black"];'])


def run(*arguments: str) -> int:
    """The command, as the program would run it."""
    app = typer.Typer()
    app.callback()(lambda: None)
    tla_command.register(app)
    status = app(args=["tla", *arguments], standalone_mode=False)
    assert isinstance(status, int)
    return status


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--setting", "grace", "--format", "json") == OK
    answer = json.loads(capsys.readouterr().out)
    assert answer["mismatches"] == answer["violations"] == 0
    assert answer["states"] == answer["settings"][0]["states"] > 1_000
    assert answer["steps"] > answer["states"]


def test_the_command_knows_its_settings() -> None:
    with pytest.raises(UsageError, match="no setting 'nowhere'; known: batch, "):
        run("--setting", "nowhere")


def test_the_command_fails_with_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with applied(MUTANTS["lost-complete-result"].patches):
        assert run("--setting", "grace") == BROKEN
    said = capsys.readouterr().out
    assert "Cancel" in said and "only the reducer: history = " in said


def test_without_java_the_command_says_that_nothing_was_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rho_conformance.tla.tlc.shutil.which", lambda _: None)
    assert run("--format", "json") == INCOMPLETE
    said = capsys.readouterr()
    assert "needs Java" in json.loads(said.out)["unavailable"]
    assert "NOT CHECKED" in said.err
