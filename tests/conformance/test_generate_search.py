"""Random search and directed walks: the same seed gives the same traces, and they reach what there is."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from rho_conformance.drivers.core import CoreDriver, factory
from rho_conformance.errors import DriverError
from rho_conformance.generate.search import BATCH, draw_scripts, generate
from rho_conformance.generate.walks import walks
from rho_conformance.trace import Trace, dumps_trace
from rho_core.run import table
from rho_core.table import Row


def traces(seed: int, examples: int) -> list[str]:
    found: list[Trace] = []
    done = generate(factory, "rho", examples, 30, seed, found.append, directed=False)
    assert (done.walks, done.examples, done.complete) == (0, examples, True)
    return [dumps_trace(trace) for trace in found]


def test_the_same_seed_gives_the_same_traces() -> None:
    assert traces(3, 25) == traces(3, 25)


def test_walks_come_first_and_traces_say_where_they_come_from() -> None:
    found: list[str | None] = []
    done = generate(factory, "rho", 2, 5, 9, lambda trace: found.append(trace.source))
    names = [f"walk: {walk.name}" for walk in walks()]
    assert found == [*names, "generated: seed 9, example 0", "generated: seed 9, example 1"]
    assert (done.walks, done.examples) == (len(names), 2)


def test_another_seed_gives_other_scripts() -> None:
    one, other = ({repr(d) for d in draw_scripts(25, 30, seed)} for seed in (3, 4))
    assert not one & other


DIGEST = """
import hashlib
from rho_conformance.generate.search import draw_scripts
print(hashlib.sha256(repr(list(draw_scripts(20, 20, 7))).encode()).hexdigest())
"""


def test_scripts_depend_on_the_seed_alone_and_not_on_what_is_loaded() -> None:
    here = hashlib.sha256(repr(list(draw_scripts(20, 20, 7))).encode()).hexdigest()
    there = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


def test_more_examples_begin_with_the_same_ones() -> None:
    few, many = list(draw_scripts(BATCH, 8, 1)), list(draw_scripts(BATCH + 10, 8, 1))
    assert (len(few), len(many)) == (BATCH, BATCH + 10)
    assert many[:BATCH] == few


def test_scripts_differ_in_weights_and_worlds() -> None:
    drawn = list(draw_scripts(60, 30, 11))
    assert len({repr(d.config) for d in drawn}) > 40
    assert {d.config.get("event_capacity") for d in drawn} == {None, 1, 2}
    assert {d.wind_down for d in drawn} == {True, False}
    assert any("cancel" not in {i.name for i in d.intents} for d in drawn)


def test_the_time_budget_ends_the_search() -> None:
    found: list[Trace] = []
    done = generate(factory, "rho", 1_000, 30, 1, found.append, seconds=-1)
    assert (done.complete, found) == (False, [])


class Broken(CoreDriver):
    def perform(self, stimuli: Any) -> Any:
        raise RuntimeError("out of order")


def test_a_fault_of_the_driver_is_not_swallowed() -> None:
    with pytest.raises(DriverError, match="out of order"):
        generate(Broken, "rho", 1, 5, 1, lambda trace: None)


def test_the_walks_take_every_row_of_the_run_machine() -> None:
    taken: set[Any] = set()

    def noted(key: Any, row: Row) -> Row:
        def handler(*args: Any) -> Any:
            taken.add(key)
            return row.handler(*args)

        return replace(row, handler=handler)

    tables: tuple[dict[Any, Row], ...] = (table.WAIT, table.COMMON, table.FLOW)
    rows = {key for rows in tables for key in rows}
    with mock.patch.dict(table.WAIT), mock.patch.dict(table.COMMON), mock.patch.dict(table.FLOW):
        for one in tables:
            one.update({key: noted(key, row) for key, row in one.items()})
        for walk in walks():
            walk.play(factory)
    assert rows - taken == set()
