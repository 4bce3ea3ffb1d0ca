"""The wider scopes: what they have that `small` has not; bounds and progress are told; the key leaves nothing out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rho_conformance.cli.app import main
from rho_conformance.explore import SCOPES, Configuration, Result, explore, search
from rho_conformance.explore.environment import moves
from rho_conformance.explore.model import Node, RunModel
from rho_conformance.explore.play import Play
from rho_conformance.explore.search import Search
from rho_core import inputs as inp
from rho_core.effects import Reply
from rho_core.messages import ToolCall
from rho_core.run import step as run_step
from rho_core.run import table
from rho_core.table import Row


def runs(scope: str) -> list[Configuration]:
    return [c for c in SCOPES[scope] if isinstance(c, Configuration)]


def calls(c: Configuration) -> int:
    return max(sum(isinstance(b, ToolCall) for b in r.content) for r in c.menu)


def jobs(c: Configuration) -> int:
    return max(len(r.marks) for r in c.menu)


@pytest.mark.parametrize("scope", ["medium", "large"])
def test_a_wider_scope_has_more_of_everything_that_counts(scope: str) -> None:
    found, small = runs(scope), runs("small")
    assert max(c.policy.event_capacity for c in found) >= 3 > max(c.policy.event_capacity for c in small)
    assert max(calls(c) for c in found) >= 3
    assert any(jobs(c) == 2 and calls(c) == 3 for c in found)
    assert max(c.allowance.steers for c in found) > max(c.allowance.steers for c in small)
    assert any(c.policy.compaction and c.policy.boundary and c.policy.recorder and c.policy.steerable for c in found)


def test_names_are_unique_over_the_scopes() -> None:
    names = [c.name for scope in ("small", "medium", "large") for c in SCOPES[scope]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("scope", ["medium", "large"])
def test_every_wider_configuration_begins_clean(scope: str) -> None:
    """The first states of each: a bound is hit, which is said, and nothing is found up to there."""
    for config in SCOPES[scope]:
        result = search(replace(config, limit=150))
        assert not result.complete, config.name
        assert result.violations == () == result.deadlocks, config.name


def test_a_bound_is_exit_2_and_each_configuration_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tuple(replace(c, limit=100) for c in runs("medium")[:2])
    monkeypatch.setitem(SCOPES, "medium", short)
    assert main(["explore", "--scope", "medium", "--workers", "1"]) == 2
    told = capsys.readouterr()
    assert "NOT complete: a bound was hit" in told.out.replace("\n", " ")
    assert f"1/2 {short[0].name}: 1" in told.err
    assert f"2/2 {short[1].name}: 1" in told.err


def test_results_are_told_one_by_one() -> None:
    told: list[tuple[str, int, int]] = []

    def on_result(result: Result, done: int, of: int) -> None:
        told.append((result.name, done, of))

    explore("tiny", ["host call", "host input"], workers=2, on_result=on_result)
    assert told == [("host call", 1, 2), ("host input", 2, 2)]


# --- the search key and the blocked run -----------------------------------------------------------------------------


def nodes(name: str) -> list[Node]:
    config = next(c for c in runs("small") if c.name == name)
    found: Search[Node] = Search(name, RunModel(config), 600)
    found.run()
    return list(found)


@pytest.mark.parametrize("name", ["async and sync", "recorder beside jobs", "delivered steering", "host input"])
def test_what_a_blocked_run_may_still_take_is_an_edge(name: str) -> None:
    """The search judges an input that is never held where it is an edge; so each must be one."""
    config = next(c for c in runs("small") if c.name == name)
    blocked = [n for n in nodes(name) if not run_step.accepts(n.run)]
    assert blocked
    for node in blocked:
        edges = {m[0] for m in moves(config, node.world, False)}
        free = {m[0] for m in moves(config, node.world, True) if inp.INPUT_CLASS[type(m[0])] != "gated"}
        assert free <= edges


def test_the_key_is_the_whole_node() -> None:
    """No view: two numbers are two different nodes, and a node is found again by an equal one, not by its hash."""
    config = next(c for c in runs("small") if c.name == "host input")
    found: Search[Node] = Search("host input", RunModel(config), 600)
    found.run()
    assert len(set(found.nodes)) == len(found.nodes)


class Alike(int):
    """A node whose hash says nothing."""

    def __hash__(self) -> int:
        return 7


class Forward:
    fair = True

    def __init__(self, to: Alike) -> None:
        self.input = to


class Line:
    """Ten nodes in a row, all of one hash."""

    def first(self) -> Alike:
        return Alike(0)

    def edges(self, node: Alike) -> list[Forward]:
        return [Forward(Alike(node + 1))] if node < 9 else []

    def settled(self, node: Alike) -> bool:
        return node == 9

    def follow(self, node: Alike, edge: Forward) -> tuple[Alike, list[tuple[str, str]]]:
        return edge.input, []

    def examine(self, node: Alike) -> list[tuple[str, str]]:
        return []


def test_nodes_of_one_hash_are_told_apart() -> None:
    result = Search("line", Line(), 100).run()  # type: ignore[arg-type]
    assert (result.states, result.transitions, result.complete) == (10, 9, True)


# --- what the wider scopes have taught the monitors -------------------------------------------------------------------

GIVEN_BACK = (
    *("Taken", "BoundaryReplied()", "Taken", "ContextBlock(1, 1)", "Taken", "ModelReturned(1, 1, A)", "Taken"),
    *("UsageRecorded", "Taken", "Prepared('A')", "Taken", "Taken", "Taken", "Steer", "SteerClaimed(2, 1, 's1')"),
    *("ModelReturned(2, 1, text)", "ToolReturned", "UsageRecorded", "SteerReleased", "Retract"),
)


def test_a_steer_given_back_before_its_attempt_is_judged_may_be_retracted() -> None:
    """The recorder has answered behind a blocked send: the attempt is recorded and not yet judged (RHO-STEER-11)."""
    play = Play(next(c for c in runs("medium") if c.name == "every extension at once"))
    for text in GIVEN_BACK:
        assert play.take(play.find(text)[0]).issues == [], text
    assert Reply("retract", "Retracted") in play.steps[-1].effects


def test_a_steer_that_is_not_given_back_may_not_be_retracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: the same walk without the release, on a core that gives claimed steers away."""
    row = table.COMMON[inp.Retract]

    def giving(run: Any, i: Any, fx: list[Any]) -> Any:
        after, then = row.handler(run, i, fx)
        fx[:] = [Reply("retract", "Retracted")]
        return after, then

    monkeypatch.setitem(table.COMMON, inp.Retract, Row(giving, row.exits, row.rules))
    play = Play(next(c for c in runs("medium") if c.name == "every extension at once"))
    for text in GIVEN_BACK[:-2]:
        play.take(play.find(text)[0])
    assert "RHO-STEER-11" in {rule for rule, _ in play.take(play.find("Retract")[0]).issues}
