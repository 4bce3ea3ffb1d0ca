"""The lifecycles against the core's tables and state graphs: two models that must agree; a change must show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from rho_conformance.explore.configuration import Configuration
from rho_conformance.explore.configurations import SCOPES
from rho_conformance.explore.model import Edge, Node, RunModel
from rho_conformance.explore.search import Search
from rho_conformance.explore.work import Issue
from rho_conformance.lifecycles.accept import Acceptor, acceptors
from rho_conformance.lifecycles.edges import Runs, check, walk_graph
from rho_conformance.lifecycles.projection import CONTINUATIONS, JOBS, PHASES, SLOTS, STEERS
from rho_conformance.lifecycles.relate import Relation
from rho_conformance.lifecycles.rows import exits, row_mismatches
from rho_conformance.lifecycles.unwitnessed import REASONS, unwitnessed
from rho_conformance.mutants.base import Swap, applied, entry, row
from rho_core import calls, jobs, session, steering
from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.messages import ToolCall
from rho_core.run import state as s
from rho_core.run import table
from rho_core.step import Step
from rho_core.table import Row
from rho_spec.lifecycles import load


@pytest.fixture(scope="module")
def relation() -> Relation:
    return check("small")


def test_every_edge_of_the_core_is_a_way_in_the_machines(relation: Relation) -> None:
    assert [str(m) for m in relation.mismatches.values()] == []
    assert relation.edges > 400_000
    assert 0 < relation.stutters < relation.pairs < relation.edges


@pytest.mark.parametrize("name", ["host input", "batch", "cooperative compactor", "ends"])
def test_the_edges_are_those_that_the_explorer_follows(name: str) -> None:
    config = next(c for c in SCOPES["small"] if c.name == name)
    assert isinstance(config, Configuration)
    followed: set[tuple[s.Run, Any]] = set()

    class Noted(RunModel):
        def follow(self, node: Node, edge: Edge) -> tuple[Node, list[Issue]]:
            followed.add((node.run, edge.input))
            return super().follow(node, edge)

    Search(name, Noted(config), config.limit).run()
    graph = Runs(config)
    walk_graph(graph, Relation())
    assert graph.pairs() == followed


def test_every_move_of_the_machines_is_taken_or_said_not_to_be(relation: Relation) -> None:
    assert {(machine, trigger, source) for machine, trigger, source, _ in unwitnessed(relation)} == set(REASONS)


def test_every_row_of_the_tables_is_a_way_in_the_machine_of_a_run() -> None:
    assert row_mismatches() == []
    assert len(list(exits())) > 250


def test_the_map_knows_every_phase_continuation_and_stage() -> None:
    assert set(PHASES) == set(table.PHASES)
    assert set(CONTINUATIONS) == set(table.CONTINUATIONS)
    assert set(SLOTS) == set(get_args(calls.Stage))
    assert set(JOBS) == set(get_args(jobs.Stage))
    assert set(STEERS) == set(get_args(steering.Stage))
    machines = load()
    assert {state for states in (*PHASES.values(), *CONTINUATIONS.values()) for state in states} == set(
        machines["run"].states
    )
    assert set(SLOTS.values()) <= set(machines["tool_call"].states)
    assert set(JOBS.values()) <= set(machines["detached_job"].states)
    assert set(STEERS.values()) <= set(machines["steering"].states)


# --- a change of the core ---------------------------------------------------------------------------------------------


def also(*effects: Any) -> Any:
    """The handler, and these effects after its own."""

    def wrap(original: Any) -> Any:
        def handler(run: s.Run, i: Any, fx: list[Any]) -> Any:
            found = original(run, i, fx)
            fx.extend(effects)
            return found

        return handler

    return wrap


def again(kind: type) -> Any:
    """The handler, and once more what it sends of that kind; from the continuation that says what it was."""

    def wrap(original: Any) -> Any:
        def handler(run: s.Run, i: Any, fx: list[Any]) -> Any:
            found = original(run, i, fx)
            for e in [e for e in fx if isinstance(e, kind)][:1]:
                fx.append(e)
            return found

        return handler

    return wrap


def finished_again(original: Any) -> Any:
    def handler(run: s.Run, k: Any, fx: list[Any]) -> Any:
        slot = run.phase.slots[k.index]  # type: ignore[union-attr]
        fx.append(out.Deliver(ev.ToolFinished(slot.call.id, slot.completion)))
        return original(run, k, fx)

    return handler


def detached_again(original: Any) -> Any:
    def handler(run: s.Run, k: s.JobDetached, fx: list[Any]) -> Any:
        fx.append(out.Deliver(ev.ToolDetached(k.call_id)))
        return original(run, k, fx)

    return handler


def asked_again(original: Any) -> Any:
    def handler(run: s.Run, k: s.Asked, fx: list[Any]) -> Any:
        fx.append(out.Deliver(ev.ToolHostInputRequested(k.call_id, k.request)))
        return original(run, k, fx)

    return handler


def applied_again(original: Any) -> Any:
    def handler(run: s.Run, k: s.SteeringIn, fx: list[Any]) -> Any:
        fx.append(out.Deliver(ev.SteeringApplied(k.ids)))
        return original(run, k, fx)

    return handler


def always_retracted(original: Any) -> Any:
    def handler(run: s.Run, i: inp.Retract, fx: list[Any]) -> Any:
        found = original(run, i, fx)
        fx[:] = [out.Reply(i.command_id, "Retracted") if isinstance(e, out.Reply) else e for e in fx]
        return found

    return handler


def runs_unannounced(original: Any) -> Any:
    def handler(run: s.Run, i: inp.Prepared, fx: list[Any]) -> Any:
        after, then = original(run, i, fx)
        slots = tuple(slot.at("running") if slot.call.id == i.call_id else slot for slot in after.phase.slots)
        return s.Run(s.Batch(slots, after.phase.asks), after.free, after.blocked, after.core), then

    return handler


def executes_unproposed(original: Any) -> Any:
    def handler(run: s.Run, k: Any, fx: list[Any]) -> Any:
        fx.append(out.Prepare(ToolCall("Z", "tool", "{}"), False))
        return original(run, k, fx)

    return handler


def freed_as_completed(original: Any) -> Any:
    def handler(state: session.Session, i: Any) -> Step[session.Session]:
        step: Step[session.Session] = original(state, i)
        if isinstance(step.state.phase, session.Resting):
            resting = session.Resting(step.state.phase.ledger, "Completed")
            return Step(session.Session(state.identity, resting), step.effects)
        return step

    return handler


def _completed() -> Any:
    outcome = ev.CompactionOutcome(2, 1, 2, 1, 1, None, ())
    return out.Deliver(ev.CompactionCompleted("automatic", outcome))


F, W, C = table.FLOW, table.WAIT, table.COMMON
CORE: dict[str, tuple[Swap, str, str]] = {
    # what is changed -> the swap, the configuration that shows it, what is said of it
    "a request before StepStarted": (
        row(F, s.BeginStep, also(out.CallModel(1, 4, ()))),
        "ends",
        "run: run: in opened there is no move for ModelCall (Begin)",
    ),
    "two requests in one attempt": (
        row(F, s.Ask, again(out.CallModel)),
        "ends",
        "attempt: attempt 1 1: in streaming there is no move for ModelCall (",
    ),
    "started twice": (
        row(W, (s.Fresh, inp.Begin), again(out.Deliver)),
        "ends",
        "run: run: in opened there is no move for Started (Begin)",
    ),
    "an event after the terminal one": (
        row(F, s.Exit, also(out.Deliver(ev.WebSearch("late")))),
        "ends",
        "channel: channel: in closed there is no move for event (",
    ),
    "compaction told before it began": (
        row(F, s.ConsiderCompaction, lambda original: also(_completed())(original)),
        "compaction",
        "there is no move for CompactionCompleted (",
    ),
    "a tool prepared that nobody proposed": (
        row(F, s.Dispatch, executes_unproposed),
        "batch",
        "call Z: in new there is no move for ToolPrepare (",
    ),
    "a tool running that was not started": (
        row(W, (s.Batch, inp.Prepared), runs_unannounced),
        "batch",
        "there is no move to running (Prepared)",
    ),
    "finished twice": (
        row(F, s.CallFinished, finished_again),
        "batch",
        "there is no move for ToolFinished (result ok) (",
    ),
    "detached twice": (
        row(F, s.JobDetached, detached_again),
        "async and sync",
        "detached_job: call A: in running there is no move for ToolDetached (",
    ),
    "asked twice": (
        row(F, s.Asked, asked_again),
        "host input",
        "host_input: host_input 1 q1: in open there is no move for ToolHostInputRequested (",
    ),
    "steering applied twice": (
        row(F, s.SteeringIn, applied_again),
        "steering",
        "steering: steering s1: in applied there is no move for SteeringApplied (",
    ),
    "an applied steer retracted": (
        row(C, inp.Retract, always_retracted),
        "steering",
        "steering: steering s1: in applied there is no move for retract (reply Retracted) (Retract)",
    ),
    "a dropped run that shows Completed": (
        entry(session.LINK, inp.TasksGone, freed_as_completed),
        "sessions",
        "session: session: in Idle there is no move to Completed (TasksGone)",
    ),
}


@pytest.mark.parametrize("change", CORE)
def test_a_change_of_the_core_shows_and_is_named(change: str) -> None:
    swap, configuration, text = CORE[change]
    with applied((swap,)):
        found = [str(m) for m in check(names=[configuration]).mismatches.values()]
    assert any(text in line for line in found), found


def test_an_exit_that_a_row_may_not_have_shows_in_the_tables() -> None:
    original = table.FLOW[s.BeginStep]
    swap = Swap(table.FLOW, s.BeginStep, Row(original.handler, (*original.exits, s.Schedule), original.rules))
    with applied((swap,)):
        found = [str(m) for m in row_mismatches()]
    assert found == ["run: run: in boundary there is no move to calling (row -> BeginStep, exit Schedule)"]


# --- a change of the lifecycles ---------------------------------------------------------------------------------------


def machines(name: str, trigger: str, dest: str = "") -> dict[str, Acceptor]:
    """The machines, one of them with a move less, or with a move that leads elsewhere."""
    lifecycle = load()[name]
    kept = [
        replace(move, dest=dest) if move.trigger == trigger else move
        for move in lifecycle.moves
        if dest or move.trigger != trigger
    ]
    return {**acceptors(), name: Acceptor(replace(lifecycle, moves=tuple(kept)))}


PROSE: dict[tuple[str, str, str], tuple[str, str]] = {
    # machine, trigger, other destination (none: the move is gone) -> the configuration, what is said of it
    ("run", "propose_at_once", ""): ("host call", "run: run: in "),
    ("run", "propose", "boundary"): ("batch", "run: run: in "),
    ("run", "take_in", "ending"): ("boundary input", "run: run: in "),
    ("run", "find_nothing", ""): ("boundary input", "run: run: in "),
    ("attempt", "reset", "accepted"): ("ends", "attempt: attempt "),
    ("attempt", "drain", ""): ("a provider that is awaited", "attempt: attempt "),
    ("attempt", "fail", "returned"): ("ends", "attempt: attempt "),
    ("tool_call", "execute", "returned"): ("batch", "tool_call: call "),
    ("tool_call", "deny", ""): ("authorised batch", "tool_call: call "),
    ("tool_call", "interrupt", ""): ("batch", "tool_call: call "),
    ("detached_job", "give_time", ""): ("async with time", "detached_job: call A: in "),
    ("detached_job", "detach", "executing"): ("async and sync", "detached_job: call A: in "),
    ("host_input", "announce", "closed"): ("host input", "host_input: host_input 1 q1: in "),
    ("steering", "stage_again", ""): ("recorder and delivered steering", "steering: steering s1: in "),
    ("steering", "apply", "retracted"): ("steering", "steering: steering s1: in "),
    ("channel", "wait", ""): ("ends", "channel: channel: in "),
    ("channel", "read", "full"): ("ends", "channel: channel: in "),
    ("session", "release", ""): ("ends", "session: session: in "),
}


@pytest.mark.parametrize("change", PROSE, ids=" ".join)
def test_a_change_of_a_lifecycle_shows_and_is_named(change: tuple[str, str, str]) -> None:
    configuration, text = PROSE[change]
    found = [str(m) for m in check(names=[configuration], relation=Relation(machines(*change))).mismatches.values()]
    assert any(line.startswith(text) and "there is no move" in line for line in found), found


def test_a_move_that_is_gone_shows_in_the_tables() -> None:
    found = [str(m) for m in row_mismatches(machines("run", "begin_step"))]
    assert "run: run: in boundary there is no move to step (row -> BeginStep, exit StepBegun)" in found
