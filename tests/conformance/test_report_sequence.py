"""Sequence charts: every row has its arrow, and the broken edge stands where the rule speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest

from rho_conformance.drivers.core import factory as core_factory
from rho_conformance.generate.script import Script, play
from rho_conformance.report.drawing import draw
from rho_conformance.report.expected import compare
from rho_conformance.report.gathered import gather
from rho_conformance.report.page import page
from rho_conformance.report.sequence import HOST, MODEL, READER, RUNTIME, TOOLS, chart, lean
from rho_conformance.trace import Trace
from tests.conformance.reportsample import BROKEN, broken_trace, message, of_every_sort, write_mutants, write_report
from tests.conformance.tracebuilder import Sim


def stuck() -> Trace:
    """A run that is unfinished and waits for nothing."""
    sim = Sim()
    sim.start()
    sim.waiting(0)
    return sim.done()


def test_arrows_go_from_lane_to_lane() -> None:
    arrows = {row.text.split(" ")[0]: (row.source, row.target) for row in chart(broken_trace(), BROKEN, "").rows}
    assert arrows["start"] == (HOST, RUNTIME) and arrows["Reply"] == (RUNTIME, HOST)
    assert arrows["provider"] == (MODEL, RUNTIME) and arrows["ModelCall"] == (RUNTIME, MODEL)
    assert arrows["tool"] == (TOOLS, RUNTIME) and arrows["ToolExecute"] == (RUNTIME, TOOLS)
    assert arrows["ToolStarted"] == arrows["Completed"] == (RUNTIME, READER)


def test_the_edge_leaves_what_speaks_of_the_same_call() -> None:
    shown = chart(broken_trace(), BROKEN, "")
    at, after = shown.broken.at, shown.broken.after
    assert not shown.broken.missing and after is not None and after < at
    assert shown.rows[at].text.startswith("ToolFinished call_id=A") and "A" in shown.rows[after].keys


def test_what_is_missing_is_marked_at_the_end_of_its_step() -> None:
    shown = chart(stuck(), "CORE-LIVE", "")
    assert shown.broken.missing and shown.step == 1 and shown.rows[-1].step >= 1
    assert shown.rows[shown.broken.after or 0].text == "start hi"
    [part] = draw(shown, "CORE-LIVE")
    assert part.mark is not None and part.mark.lines[0][1].startswith("CORE-LIVE, by here: ") and part.mark.path


def test_an_expectation_of_a_scenario_is_marked_at_the_end() -> None:
    shown = chart(stuck(), "RHO-ORD-1", "ORD/one: outcome: expected another one")
    assert shown.broken.at == len(shown.rows) - 1 and "expected another one" in shown.broken.message


def test_a_refused_configuration_is_a_chart_too() -> None:
    trace = Trace({"name": "x"}, {}, "rho", open_error="Bad")
    shown = chart(trace, "RHO-BUF-2", "it was refused")
    assert [row.text for row in shown.rows] == ["open: Bad"] and draw(shown, "RHO-BUF-2")
    assert compare(trace, shown) is None


@pytest.mark.parametrize("runs", [0, 3, 20])
def test_no_row_is_lost_or_shown_twice(runs: int) -> None:
    shown = chart(broken_trace(runs), BROKEN, "")
    for one in (shown, lean(shown)):
        assert [n for p in one.parts for n in range(p.first, p.last + 1)] == list(range(len(shown.rows)))
        [home] = [p for p in one.parts if p.first <= one.broken.at <= p.last]
        assert not home.folded
    drawn = draw(lean(shown), BROKEN, folds=False)
    assert sum(part.count for part in drawn) == len(shown.rows)
    assert [part.head for part in drawn if not part.left_out] == [True], "the lanes are named once"


def test_the_core_is_asked_the_same() -> None:
    trace = broken_trace()
    beside = compare(trace, chart(trace, BROKEN, ""))
    assert beside is not None and not beside.same
    lines = {(line.where, line.text.split(" ")[0]) for line in beside.lines}
    assert ("core", "ModelCall") not in lines and ("both", "ModelCall") in lines
    script = Script({}, (({"start": "hello"},),), "rho")
    own = play(core_factory, script)
    same = compare(own, chart(own, "RHO-ORD-1", "step 1: no fault at all"))
    assert same is not None and same.same and same.step == 1


def test_a_very_long_script_is_not_played_again() -> None:
    trace = broken_trace(40)
    assert compare(trace, chart(trace, BROKEN, "")) is None


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    verdicts = of_every_sort()
    verdicts[BROKEN]["detail"] = message(broken_trace())
    report = write_report(tmp_path, "hand", verdicts, {BROKEN: broken_trace()})
    first, second = (page(gather([report], write_mutants(tmp_path))).html for _ in range(2))
    assert first == second
