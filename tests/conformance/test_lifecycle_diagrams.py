"""`rho-core diagram` with the lifecycles of the specification."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rho_conformance.cli import main
from rho_spec import machines
from rho_spec.lifecycles import load


@pytest.mark.parametrize("name", sorted(load()))
def test_a_lifecycle_is_printed_as_mermaid(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagram", f"lifecycle:{name}"]) == 0
    assert capsys.readouterr().out == machines.mermaid(load()[name])


def test_a_lifecycle_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagram", "lifecycle:run", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"machine": "lifecycle:run", "mermaid": machines.mermaid(load()["run"])}


@pytest.mark.parametrize("name", ["lifecycle:", "lifecycle:job", "lifecycles:run", "tool_call"])
def test_an_unknown_machine_is_refused_with_the_known_ones(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagram", name]) == 4
    assert "lifecycle:tool_call" in capsys.readouterr().err


def test_pictures_are_written_and_are_well_formed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagram", "--svg", str(tmp_path / "new"), "--format", "json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert written == [f"{name}.svg" for name in sorted(load())]
    for name, lifecycle in load().items():
        root = ElementTree.parse(tmp_path / "new" / f"{name}.svg").getroot()
        told = {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}
        assert set(lifecycle.states) <= told
        triggers = {trigger for label in told for trigger in label.replace(" from ", ", ").split(", ")}
        assert {move.trigger for move in lifecycle.moves} <= triggers
