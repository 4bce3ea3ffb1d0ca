"""The lifecycle files: read strictly, built into `transitions` machines, drawn."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transitions import MachineError

from rho_spec import lifecycles, machines
from rho_spec.lifecycles import Letter, LifecycleError, load, parse, read, read_folder
from rho_spec.paths import data_root

NAMES = ("attempt", "channel", "detached_job", "host_input", "run", "session", "steering", "tool_call")
ROOT = Path(__file__).parents[2]


def raw(name: str = "host_input") -> dict[str, Any]:
    return tomllib.loads((data_root() / "lifecycles" / f"{name}.toml").read_text(encoding="utf-8"))


def test_the_eight_lifecycles_are_there() -> None:
    assert tuple(load()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_has_the_moves_of_its_file_and_no_other(name: str) -> None:
    lifecycle = load()[name]
    declared = {(move.trigger, *pair) for move in lifecycle.moves for pair in move.edges()}
    assert {(edge.move.trigger, edge.source, edge.dest) for edge in machines.edges(lifecycle)} == declared
    assert set(machines.machine(lifecycle).events) == {move.trigger for move in lifecycle.moves}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_leaves_a_final_state_but_an_id_that_is_used_again(name: str) -> None:
    lifecycle = load()[name]
    leaving = {
        (move.trigger, source)
        for move in lifecycle.moves
        for source, dest in move.edges()
        if source in lifecycle.final and dest != source
    }
    allowed = {("propose", "finished"), ("propose", "dropped"), ("close", "applied"), ("close", "lost")}
    assert leaving <= allowed


def test_a_machine_takes_a_declared_way_and_refuses_any_other() -> None:
    machine: Any = machines.machine(load()["tool_call"])
    for trigger in ("propose", "prepare", "start", "execute", "return", "finish"):
        machine.trigger(trigger)
    assert machine.state == "finished"
    with pytest.raises(MachineError):
        machine.trigger("finish")
    assert not hasattr(machine, "to_running")


def test_the_files_know_nothing_of_the_core() -> None:
    assert "rho_core" not in Path(lifecycles.__file__).read_text(encoding="utf-8")
    for path in (data_root() / "lifecycles").glob("*.toml"):
        assert "rho_core" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("letter", "shown"),
    [
        (Letter("ToolFinished", (("result", "unavailable"),)), True),
        (Letter("ToolFinished", (("kind", "Execution"), ("result", "ok"))), False),
        (Letter("ToolFinished"), False),
        (Letter("ToolStarted", (("result", "unavailable"),)), False),
    ],
)
def test_a_move_is_shown_by_its_letter_and_by_no_other(letter: Letter, shown: bool) -> None:
    move = next(m for m in load()["tool_call"].moves if m.trigger == "finish_unavailable")
    assert move.shown_by(letter) is shown


# --- errors -----------------------------------------------------------------------------------------------------------

Break = Callable[[dict[str, Any]], None]


def _set(table: int | None, key: str, value: Any) -> Break:
    def change(data: dict[str, Any]) -> None:
        place = data if table is None else data["move"][table]
        place[key] = value

    return change


def _pop(table: int | None, key: str) -> Break:
    def change(data: dict[str, Any]) -> None:
        (data if table is None else data["move"][table]).pop(key)

    return change


ERRORS: dict[str, tuple[Break, str]] = {
    "missing": (_pop(None, "initial"), "host_input.toml: lacks initial"),
    "unknown": (_set(None, "stats", {}), "host_input.toml: unknown key stats"),
    "title": (_set(None, "title", 7), "host_input.toml: title: must be a text, got 7"),
    "initial": (_set(None, "initial", "gone"), "host_input.toml: initial: there is no state 'gone'"),
    "final": (_set(None, "final", ["gone"]), "host_input.toml: final: there is no state 'gone'"),
    "states": (_set(None, "states", {}), "host_input.toml: states: is empty"),
    "state text": (_set(None, "states", {"new": ""}), "host_input.toml: states: new: must be a text, got ''"),
    "no moves": (_set(None, "move", []), "host_input.toml: move: must be a list of tables, and not empty"),
    "a move": (_set(None, "move", ["x"]), "host_input.toml: move 1: must be a table"),
    "move key": (_set(1, "form", "open"), "host_input.toml: move 2 (answer): unknown key form"),
    "move lacks": (_pop(1, "rules"), "host_input.toml: move 2 (answer): lacks rules"),
    "source": (_set(1, "source", ["opened"]), "move 2 (answer): source: there is no state 'opened'"),
    "empty": (_set(1, "source", []), "move 2 (answer): source: is empty"),
    "twice named": (_set(1, "source", ["open", "open"]), "move 2 (answer): source: names something twice"),
    "dest": (_set(1, "dest", "done"), "move 2 (answer): dest: there is no state 'done'"),
    "on": (_set(1, "on", ["HostAnswr"]), "move 2 (answer): on: there is no observation or command 'HostAnswr'"),
    "rule": (_set(1, "rules", ["RHO-HOST-9"]), "move 2 (answer): rules: there is no rule 'RHO-HOST-9'"),
    "both": (_set(1, "hidden", "why"), "move 2 (answer): needs either on or hidden"),
    "neither": (_pop(1, "on"), "move 2 (answer): needs either on or hidden"),
    "where": (_set(1, "where", {"ok": 1}), "move 2 (answer): where.ok: must be a text or a list of texts, got 1"),
    "hidden where": (_set(2, "where", {"a": "b"}), "move 3 (close): where: says nothing without on"),
    "doubled": (_set(2, "trigger", "answer"), "move 3 (answer): source: answer leaves open twice"),
    "unreachable": (_set(1, "dest", "closed"), "host_input.toml: states: answered: no move leads there"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_names_file_table_and_key(name: str) -> None:
    change, text = ERRORS[name]
    data = copy.deepcopy(raw())
    change(data)
    with pytest.raises(LifecycleError) as caught:
        parse(data, "host_input")
    assert text in str(caught.value)


def test_a_file_that_is_no_toml_and_a_folder_without_files(tmp_path: Path) -> None:
    with pytest.raises(LifecycleError, match="no lifecycle files"):
        read_folder(tmp_path)
    (tmp_path / "run.toml").write_text("title = ", encoding="utf-8")
    with pytest.raises(LifecycleError, match=r"run\.toml: cannot be read"):
        read(tmp_path / "run.toml")


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_diagram_shows_every_edge(name: str) -> None:
    text = machines.mermaid(load()[name])
    assert "stateDiagram-v2" in text
    for edge in machines.edges(load()[name]):
        assert any(
            line.strip().startswith(f"{edge.source} --> {edge.dest}: ") and edge.move.label in line
            for line in text.splitlines()
        ), edge


def test_the_committed_pictures_are_those_of_the_machines(tmp_path: Path) -> None:
    from rho_conformance.cli.small import draw

    written = draw(tmp_path)
    committed = ROOT / "docs" / "diagrams"
    assert sorted(path.name for path in committed.glob("*.svg")) == written == [f"{name}.svg" for name in NAMES]
    for name in written:
        assert (tmp_path / name).read_bytes() == (committed / name).read_bytes(), f"rho-core diagram --svg {committed}"
