"""The explorer: clean on the core, and able to see: each control loses one thing, and the right rule says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from rho_conformance.explore import SCOPES, Configuration, Report, explore
from rho_conformance.explore.configurations import PAIR, RUNS, SLOW, TEXT
from rho_conformance.explore.model import Edge
from rho_conformance.explore.search import Search
from rho_core import budget, calls, capture, jobs, resources
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import session as rho_session
from rho_core.run import end, outbox, table
from rho_core.run import state as s
from rho_core.steering import Steers
from rho_core.table import Row
from rho_spec import catalogue

BY_NAME = {c.name: c for c in RUNS}


@pytest.fixture(scope="module")
def tiny() -> Report:
    return explore("tiny", workers=1)


# --- the core is clean -----------------------------------------------------------------------------------------


def test_tiny_is_complete_and_clean(tiny: Report) -> None:
    assert tiny.complete
    assert tiny.violations == ()
    assert tiny.deadlocks == ()
    assert tiny.coverage.undeclared == ()
    assert tiny.transitions > 4_000
    assert all(r.states > 50 for r in tiny.configurations)


def test_a_report_is_the_same_in_every_run(tiny: Report) -> None:
    again = explore("tiny", workers=2)
    assert replace(again, seconds=0.0) == replace(tiny, seconds=0.0)


def test_a_report_is_json(tiny: Report) -> None:
    read = json.loads(json.dumps(tiny.to_json()))
    assert read["transitions"] == tiny.transitions
    assert [c["name"] for c in read["configurations"]] == [c.name for c in SCOPES["tiny"]]


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    explore("tiny", ["host call"], on_progress=lambda *x: told.append(x), workers=1)
    assert told[-1][0] == "host call"
    assert told[-1][1] > 0


def test_an_unknown_scope_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="no scope 'huge'; there are: tiny, small"):
        explore("huge")
    with pytest.raises(ValueError, match="no configuration 'nothing'"):
        explore("tiny", ["nothing"])


def test_a_bound_that_was_hit_says_so() -> None:
    short = replace(BY_NAME["ends"], limit=100)
    report = explore("small", [short], workers=1)
    assert not report.complete
    assert not report.configurations[0].complete


def test_small_puts_each_extension_beside_async_cancel_and_capacity_1() -> None:
    def has(c: Configuration) -> bool:
        return c.policy.event_capacity == 1 and c.allowance.cancels > 0 and any(r.marks for r in c.menu)

    features: dict[str, Callable[[Configuration], bool]] = {
        "preparation and authorisation": lambda c: len(c.authorisations) > 1,
        "host input": lambda c: bool(c.asks) and c.allowance.responds > 0,
        "boundary input": lambda c: c.policy.boundary,
        "compaction": lambda c: c.policy.compaction is not None,
    }
    for feature, there in features.items():
        assert any(has(c) and there(c) for c in RUNS), feature


# --- negative controls: the core with one fault each ------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]


def flow(kind: type, change: Callable[[Any], Callable[..., Any]]) -> Patch:
    """Replace the handler of a flow row by `change(handler)`."""

    def apply(m: pytest.MonkeyPatch) -> None:
        row = table.FLOW[kind]
        m.setitem(table.FLOW, kind, Row(change(row.handler), row.exits, row.rules))

    return apply


def common(kind: type, change: Callable[[Any], Callable[..., Any]]) -> Patch:
    def apply(m: pytest.MonkeyPatch) -> None:
        row = table.COMMON[kind]
        m.setitem(table.COMMON, kind, Row(change(row.handler), row.exits, row.rules))

    return apply


def wait(phase: type, kind: type, change: Callable[[Any], Callable[..., Any]]) -> Patch:
    def apply(m: pytest.MonkeyPatch) -> None:
        row = table.WAIT[phase, kind]
        m.setitem(table.WAIT, (phase, kind), Row(change(row.handler), row.exits, row.rules))

    return apply


def attribute(module: object, name: str, value: Any) -> Patch:
    return lambda m: m.setattr(module, name, value)


def entry(entries: dict[Any, Any], key: Any, value: Any) -> Patch:
    return lambda m: m.setitem(entries, key, value)


def without(kind: type) -> Callable[[Any], Callable[..., Any]]:
    """The handler, its effects of that kind thrown away."""

    def change(handler: Any) -> Callable[..., Any]:
        def handle(run: s.Run, i: Any, fx: list[Any]) -> Any:
            mine: list[Any] = []
            after = handler(run, i, mine)
            fx.extend(e for e in mine if type(e) is not kind)
            return after

        return handle

    return change


def then_instead(kind: type, then: s.Continuation) -> Callable[[Any], Callable[..., Any]]:
    """The handler, which goes on with `then` where it would go on with a `kind`."""

    def change(handler: Any) -> Callable[..., Any]:
        def handle(run: s.Run, i: Any, fx: list[Any]) -> Any:
            after, following = handler(run, i, fx)
            return after, then if isinstance(following, kind) else following

        return handle

    return change


CANCELLED = s.Conclude(s.CancelRun())


def to_between(run: s.Run) -> s.Run:
    return outbox.to(run, s.Between())


def judged_first(handler: Any) -> Callable[..., Any]:
    """The response is judged at once, and nothing of it is recorded."""

    def responded(run: s.Run, k: s.Responded, fx: list[Any]) -> Any:
        after, _ = handler(run, k, fx)
        return after, s.Judge(k.content, k.issue)

    return responded


def without_reader(handler: Any) -> Callable[..., Any]:
    """The collector is asked although nobody reads."""
    return lambda run, k, fx: handler(outbox.change(run, reader="open"), k, fx)


def without_announcement(handler: Any) -> Callable[..., Any]:
    def stopped(run: s.Run, i: Any, fx: list[Any]) -> Any:
        after, _ = handler(run, i, [])
        return s.Run(s.Between(), run.free, None, after.core), CANCELLED

    return stopped


def no_tail(handler: Any) -> Callable[..., Any]:
    """The commit forgets what the reader is owed of the interrupted batch."""
    return lambda run, k, fx: handler(run, s.Commit(replace(k.plan, tail=())), fx)


def two_terminals(handler: Any) -> Callable[..., Any]:
    def commit(run: s.Run, k: s.Commit, fx: list[Any]) -> Any:
        more = ev.Cancelled(run.core.ledger.revision + 1)
        return handler(run, s.Commit(replace(k.plan, tail=(*k.plan.tail, more))), fx)

    return commit


def deaf_end_turn(handler: Any) -> Callable[..., Any]:
    """An end turn that does not look for steers."""
    return lambda run, k, fx: (run, s.Conclude(s.Complete("EndTurn"))) if not run.core.jobs else handler(run, k, fx)


def marked_too_early(handler: Any) -> Callable[..., Any]:
    """ToolFinished counts as announced when it is sent, not when it is delivered."""

    def schedule(run: s.Run, k: s.Schedule, fx: list[Any]) -> Any:
        after, then = handler(run, k, fx)
        if after.blocked is not None and isinstance(after.blocked.then, s.CallFinished):
            slots = after.phase.slots
            index = after.blocked.then.index
            done = calls.put(slots, index, slots[index].at("done"))
            after = s.Run(s.Batch(done, after.phase.asks), after.free, after.blocked, after.core)
        return after, then

    return schedule


def applied_at_once(handler: Any) -> Callable[..., Any]:
    """Steers enter the history before SteeringApplied is delivered."""

    def consider(run: s.Run, k: s.ConsiderSteering, fx: list[Any]) -> Any:
        ids = run.core.steers.next_group()
        steers, messages = run.core.steers.apply(ids)
        now = outbox.change(run, steers=steers, suffix=run.core.suffix + messages)
        if not ids:
            return handler(run, k, fx)
        return outbox.emit(now, fx, (ev.SteeringApplied(ids),), s.ConsiderSteering())

    return consider


def answered_twice(handler: Any) -> Callable[..., Any]:
    def retract(run: s.Run, i: inp.Retract, fx: list[Any]) -> Any:
        fx.append(out.Reply(i.command_id, "NotFound"))
        return handler(run, i, fx)

    return retract


def one_more_request(b: budget.Budget, policy: Any, retryable: bool, hint: int | None) -> Any:
    after = budget.Budget(b.requests, b.malformed, b.failed + 1)
    if not retryable or after.requests > policy.request_budget:
        return after, None
    return after, budget.delay_ms(after.failed, hint, policy.base_delay_ms, policy.retry_after_cap_ms)


def one_request_less(b: budget.Budget, policy: Any) -> Any:
    return budget.Budget(b.requests, b.malformed + 1, b.failed), False


def cancellable_compaction(handler: Any) -> Callable[..., Any]:
    """CompactionCompleted is an ordinary send: a cancel drops it."""

    def returned(run: s.Run, i: Any, fx: list[Any]) -> Any:
        after, then = handler(run, i, fx)
        if after.blocked is not None:
            blocked = s.Blocked(after.blocked.sends, True, after.blocked.then)
            after = s.Run(after.phase, after.free, blocked, after.core)
        return after, then

    return returned


def flow_while_blocked(handler: Any) -> Callable[..., Any]:
    """A returning tool overwrites the send that waits."""

    def returned(run: s.Run, i: Any, fx: list[Any]) -> Any:
        after, then = handler(run, i, fx)
        return s.Run(after.phase, after.free, None, after.core), then

    return returned


ENOUGH = 6_000
"""States: breadth first, a fault shows long before the end."""
SHORT = replace(BY_NAME["async and sync"], name="short", allowance=BY_NAME["ends"].allowance, menu=(TEXT, PAIR))
TIMED = replace(SHORT, name="timed", plans=(("A", (SLOW,)),))

CONTROLS: dict[str, tuple[Patch, str | Configuration, set[str]]] = {
    "lost ToolFinished at a cancel": (flow(s.Commit, no_tail), "batch", {"RHO-ORD-5"}),
    "ToolFinished announced too early": (flow(s.Schedule, marked_too_early), "batch", {"RHO-ORD-5"}),
    "lost ToolFinished of a job": (attribute(end, "_owed", lambda pool: ()), SHORT, {"RHO-ORD-7b"}),
    "two terminal events": (flow(s.Commit, two_terminals), "ends", {"RHO-ORD-12"}),
    "no terminal event": (
        attribute(end, "send_tail", lambda run, fx, events, then: (run, then)),
        "ends",
        {"RHO-ORD-12"},
    ),
    "delivered steers are not staged again": (
        attribute(Steers, "restage", lambda self: self),
        "delivered steering",
        {"RHO-STEER-11", "RHO-STEER-7"},
    ),
    "a fifth request": (attribute(budget, "after_failure", one_more_request), "retries", {"RHO-RET-4"}),
    "no second chance for a malformed response": (
        attribute(budget, "after_malformed", one_request_less),
        "ends",
        {"RHO-RET-1"},
    ),
    "a hint shortens the delay": (
        attribute(budget, "delay_ms", lambda failed, hint, base, cap: min(hint, cap) if hint else base << (failed - 1)),
        "retries",
        {"RHO-RET-3"},
    ),
    "a lost steer at an end turn": (flow(s.EndTurn, deaf_end_turn), "steering", {"RHO-STEER-2"}),
    "an early steer": (flow(s.ConsiderSteering, applied_at_once), "steering", {"RHO-STEER-3", "RHO-STEER-5"}),
    "the model is not aborted": (common(inp.Cancel, without(out.AbortModel)), "ends", {"RHO-CAN-7"}),
    "the token is not cancelled": (common(inp.Cancel, without(out.SignalCancel)), "ends", {"RHO-CAN-2"}),
    "a command answered twice": (common(inp.Retract, answered_twice), "steering", {"RHO-STEER-6", "RHO-STEER-5"}),
    "a command not answered": (common(inp.Steer, without(out.Reply)), "steering", {"RHO-STEER-1"}),
    "a cancelled CompactionCompleted": (
        wait(s.Compacting, inp.CompactorReturned, cancellable_compaction),
        "compaction",
        {"RHO-ORD-11c"},
    ),
    "compaction beside a detached call": (
        flow(s.Top, then_instead(s.ConsiderSteering, s.ConsiderCompaction())),
        "compaction",
        {"RHO-ORD-11f"},
    ),
    "no boundary input at the end": (
        flow(s.EndTurn, then_instead(s.AskCollector, s.Conclude(s.Complete("EndTurn")))),
        "boundary input",
        {"RHO-BND-3"},
    ),
    "an input is not acknowledged": (
        wait(s.Collecting, inp.BoundaryReplied, without(out.AckBoundary)),
        "boundary input",
        {"RHO-CAN-7"},
    ),
    "a result is lost": (attribute(end, "_job_results", lambda pool: ()), SHORT, {"RHO-CAN-12"}),
    "a stop timer is left": (
        wait(s.Stopping, inp.ToolReturned, without(out.CancelTimer)),
        TIMED,
        {"RHO-CAN-7"},
    ),
    "a returning tool drops the blocked send": (
        wait(s.Batch, inp.ToolReturned, flow_while_blocked),
        "two questions",
        {"RHO-BUF-4", "RHO-COORD-2"},
    ),
    "a batch that does not wait for the jobs": (
        attribute(jobs, "any_live", lambda pool: False),
        "async and sync",
        {"RHO-CAN-7", "RHO-CAN-12"},
    ),
    "a call that jumps its barrier": (
        attribute(resources, "blockers", lambda plans, index: ()),
        "barriers",
        {"RHO-ORD-8"},
    ),
    "a reset without a request": (
        flow(s.Judge, then_instead(s.Conclude, s.Reset(s.Turn(()), ev.InvalidResponse(), "x", 0))),
        "ends",
        {"RHO-RET-4"},
    ),
    "text after a cancel": (
        attribute(end, "cap", type("Cap", (), {"aborted": staticmethod(lambda capture: None)})),
        "ends",
        {"RHO-CAN-9"},
    ),
    "no record of a request": (
        flow(s.Record, without(out.RecordUsage)),
        "stream",
        {"RHO-RET-11"},
    ),
    "a record is not awaited": (
        flow(s.WatchRecorder, lambda watch: lambda run, k, fx: (run, s.Record())),
        "recorder",
        {"RHO-RET-11"},
    ),
    "judged before it is recorded": (
        flow(s.Responded, judged_first),
        "recorder",
        {"RHO-RET-11"},
    ),
    "a cancel that loses the records": (
        attribute(end, "write_off", lambda run, fx, outcome, kind=None: None),
        "recorder",
        {"RHO-RET-11"},
    ),
    "a cancel that waits for the recorder": (
        entry(end.CANCEL, s.Recording, lambda run, fx: (run, None)),
        "recorder",
        {"RHO-STATE-1"},
    ),
    "a recorded response is forgotten by a cancel": (
        attribute(end, "enter", lambda run, content: to_between(run)),
        "recorder",
        {"RHO-CAN-8"},
    ),
    "a boundary wait without a reader": (
        flow(s.AskCollector, without_reader),
        "recorder, then a boundary",
        {"RHO-PERS-1"},
    ),
    "a late compaction that is not announced": (
        wait(s.Ebbing, inp.CompactorReturned, without_announcement),
        "cooperative compactor",
        {"RHO-ORD-11c"},
    ),
    "a late compaction that is lost": (
        wait(s.Ebbing, inp.CompactorReturned, lambda stopped: lambda run, i, fx: (to_between(run), CANCELLED)),
        "cooperative compactor",
        {"RHO-CAN-11"},
    ),
    "usage of failed attempts counts": (
        attribute(capture, "physical_retry", lambda capture: capture),
        "stream",
        {"RHO-RET-12", "RHO-METR-1"},
    ),
}


def found(report: Report) -> dict[str, int]:
    """Rules that were broken, with the length of the shortest trace."""
    traces: dict[str, int] = {}
    for v in report.violations:
        traces[v.rule] = min(traces.get(v.rule, 99), len(v.trace))
    return traces


@pytest.mark.parametrize("name", CONTROLS)
def test_a_faulty_core_breaks_the_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, configuration, rules = CONTROLS[name]
    patch(monkeypatch)
    config = BY_NAME[configuration] if isinstance(configuration, str) else configuration
    traces = found(explore("small", [replace(config, limit=ENOUGH)], workers=1))
    hit = rules & set(traces)
    assert hit, traces
    assert min(traces[r] for r in hit) <= 20, traces


def test_a_run_that_waits_for_nobody_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator forgets to enter the executors."""
    flow(s.Schedule, without(out.Execute))(monkeypatch)
    report = explore("small", ["batch"], workers=1)
    assert report.deadlocks
    assert {d.rule for d in report.deadlocks} == {"CORE-LIVE"}
    assert 5 < len(report.deadlocks[0].trace) < 20


class Circle:
    """Three numbers: 0 may go to 1 or, by a command, to the end 3; 1 and 2 go round for ever."""

    def first(self) -> int:
        return 0

    def settled(self, node: int) -> bool:
        return node == 3

    def edges(self, node: int) -> Iterator[Edge]:
        moves = {0: [(1, True), (3, False)], 1: [(2, True)], 2: [(1, True)], 3: []}
        yield from (Edge(target, fair, None) for target, fair in moves[node])  # type: ignore[arg-type]

    def follow(self, node: int, edge: Edge) -> tuple[int, list[tuple[str, str]]]:
        return edge.input, []

    def examine(self, node: int) -> Iterator[tuple[str, str]]:
        return iter(())


def test_states_that_cannot_end_are_found() -> None:
    """An input is owed in each of them, and yet no end is ever reached: what only a command could do does not count."""
    result = Search("circle", Circle(), 99).run()
    assert (result.states, result.transitions) == (4, 4)
    assert [d.message for d in result.deadlocks] == ["3 states from which the run cannot end"]


def test_an_exit_that_is_not_declared_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    row = table.FLOW[s.Judge]
    monkeypatch.setitem(table.FLOW, s.Judge, Row(row.handler, (s.Reset, s.Conclude, s.EndTurn), row.rules))
    report = explore("small", ["batch"], workers=1)
    assert ("->", "Judge", "Propose") in report.coverage.undeclared


def test_a_session_that_forgets_to_release_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(session: Any, i: Any) -> Any:
        after = rho_session._tasks_gone(session, i)
        return replace(after, effects=())

    monkeypatch.setitem(rho_session.LINK, inp.TasksGone, forget)
    report = explore("small", ["sessions"], workers=1)
    assert "RHO-DROP-2" in found(report)


def test_an_exception_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handler: Any) -> Callable[..., Any]:
        def handle(run: s.Run, i: Any, fx: list[Any]) -> Any:
            raise ZeroDivisionError("no")

        return handle

    common(inp.Cancel, fail)(monkeypatch)
    report = explore("small", ["ends"], workers=1)
    assert any("ZeroDivisionError" in v.message for v in report.violations)


def test_every_rule_of_a_control_is_in_the_catalogue() -> None:
    known = {r.id for r in catalogue.load()}
    assert set().union(*(rules for _, _, rules in CONTROLS.values())) <= known
