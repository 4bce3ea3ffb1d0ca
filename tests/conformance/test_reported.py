"""Failures that people reported of other runtimes: the core does not have them, and the scenarios would see them."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from rho_conformance.drivers.core import CoreDriver
from rho_conformance.mutants.base import Patch, applied
from rho_conformance.scenario.model import Scenario, load_scenarios
from rho_conformance.scenario.runner import ScenarioResult, run_scenario
from rho_conformance.targets import resolve
from rho_spec.catalogue import load
from tests.conformance import reportedending, reportedrunning, reportedsession

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "spec" / "scenarios" / "reported"
PAGE = ROOT / "spec" / "pages" / "reported-failures.md"

REPORTED = [
    *("PB-01", "PB-02", "PB-03", "PB-05", "PB-07", "PB-08", "PB-10"),
    *("PB-11", "PB-13", "PB-14", "PB-17", "PB-18", "PB-19", "PB-20", "PB-22", "PB-24"),
    *("PB-25", "PB-27", "PB-28", "PB-29"),
    *("PB-32", "PB-33", "PB-34", "PB-35", "PB-37", "PB-38"),
    *("PB-41", "PB-42", "PB-44", "PB-46"),
    *("PB-47", "PB-48", "PB-50", "PB-52"),
    *("PB-53", "PB-54", "PB-56", "PB-57", "PB-59"),
    *("PB-60", "PB-61", "PB-62", "PB-63"),
    *("PB-65", "PB-66", "PB-68", "PB-70", "PB-71", "PB-73"),
    *("PB-79", "PB-80", "PB-82", "PB-84", "PB-85"),
]
"""Every report about a run, by its number; the others are about background work."""

BUGS: dict[str, tuple[Patch, ...]] = {**reportedending.BUGS, **reportedrunning.BUGS, **reportedsession.BUGS}

SEEN_BY: dict[str, str] = {
    "PB-01-cancel-in-tool": "interrupted calls get no result",
    "PB-02-behind-a-job": "a call that was never scheduled gets no result",
    "PB-02-never-scheduled": "a call that was never scheduled gets no result",
    "PB-03-cancel-at-a-question": "a call that waits for the host gets no result",
    "PB-03-cancel-at-an-approval": "a call that waits for the host gets no result",
    "PB-05-completed-sibling": "completed results are forgotten",
    "PB-07-call-streamed-not-run": "a streamed call enters the history",
    "PB-08-lost-in-the-batch": "a save holds half a run",
    "PB-08-same-ids": "a restored session has other result ids",
    "PB-10-only-reasoning": "reasoning is kept as text",
    "PB-11-stream-closes": "a cancelled run never closes its stream",
    "PB-13-at-once": "the back-off does not hear a cancel",
    "PB-14-no-further-request": "the back-off does not hear a cancel",
    "PB-17-tool-is-told": "nobody is told of a cancel",
    "PB-18-provider-completes-anyway": "a cooperative provider absorbs the cancel",
    "PB-18-tool-completes-anyway": "a running tool absorbs the cancel",
    "PB-19-silent-provider": "the stream does not hear a cancel",
    "PB-20-cancel-meets-the-batch": "a cancel that comes too late is told",
    "PB-20-cancel-meets-the-end": "a cancel that comes too late is told",
    "PB-22-half-a-response": "a cancelled turn is thrown away",
    "PB-22-turn-is-kept": "a cancelled turn is thrown away",
    "PB-24-fresh-request": "nobody is told of a cancel",
    "PB-25-one-end-anywhere": "a failure is told, and then a success",
    "PB-27-not-a-success-too": "a cancel is told, and a success",
    "PB-28-no-empty-success": "a cancel is told as a success",
    "PB-29-commit-refused": "a refused commit ends nothing",
    "PB-32-not-shown-twice": "a retry is silent",
    "PB-33-abandoned-call": "an abandoned attempt enters the history",
    "PB-34-delays-and-limit": "there is no last attempt",
    "PB-34-hint-is-capped": "a hint has no cap",
    "PB-35-one-budget": "malformed responses have a budget of their own",
    "PB-37-provider-classifies": "the runtime classifies errors itself",
    "PB-38-empty-is-not-done": "an empty response is an answer",
    "PB-41-one-failure-alone": "a failing tool cancels its siblings",
    "PB-42-told-is-kept": "completed results are forgotten",
    "PB-44-unknown-tool": "an unknown tool ends the run",
    "PB-46-turn-once": "a run begins with the one before it",
    "PB-47-steer-at-a-cancel": "a steer is told as applied and lost",
    "PB-48-next-boundary": "a steer is lost at the end of the turn",
    "PB-48-within-the-turn": "a delivery is not told",
    "PB-50-applied-once": "a compaction queues steers again",
    "PB-52-compaction-and-steer": "a steer replaces the summary",
    "PB-53-answers-find-their-call": "all questions share one id",
    "PB-53-one-id-twice": "a question id may be used again",
    "PB-54-one-decision": "an answered question stays open",
    "PB-56-nobody-answers": "an open question absorbs the cancel",
    "PB-57-decision-counts": "an answered question is asked again",
    "PB-59-second-approval": "results are sent again",
    "PB-60-nobody-reads": "waiting for the outcome reads nothing",
    "PB-61-bounded-progress": "the queue has no bound",
    "PB-61-bounded-queue": "the queue has no bound",
    "PB-62-dropped-unread": "a dropped run goes on",
    "PB-63-closing-the-reader": "a run without a reader goes on",
    "PB-63-leaving-stops-it": "a dropped run goes on",
    "PB-65-pairs-stay-together": "compaction triggers itself",
    "PB-66-compact-while-busy": "a busy session takes a second operation",
    "PB-66-one-at-a-time": "a busy session takes a second operation",
    "PB-66-shutdown-counts-it": "the runtime does not know of compactions",
    "PB-68-crash": "a save holds half a run",
    "PB-70-commit-before-completed": "Completed comes before the commit",
    "PB-71-own-inputs-only": "a run begins with the one before it",
    "PB-73-no-compaction-over-a-job": "compaction does not wait for jobs",
    "PB-79-second-start": "a busy session takes a second operation",
    "PB-79-start-at-the-end": "a busy session takes a second operation",
    "PB-80-every-request-counts": "only completed attempts are recorded",
    "PB-82-limit-keeps-the-work": "the step limit throws the work away",
    "PB-84-nobody-is-asked": "the host is asked whether to retry",
    "PB-85-cut-off": "a stream that breaks off is an answer",
}
"""A file -> what is wrong with the core that it must notice. Files of `common/` notice what their namesakes do."""

ALSO: dict[str, str] = {
    "PB-14-no-further-request": "only completed attempts are recorded",
    "PB-22-half-a-response": "only completed attempts are recorded",
    "PB-32-not-shown-twice": "an abandoned attempt enters the history",
    "PB-35-one-budget": "the first delay is halved",
    "PB-53-one-id-twice": "completed results are forgotten",
    "PB-70-commit-before-completed": "a run without a reader goes on",
    "PB-82-limit-keeps-the-work": "results are sent again",
}
"""A second thing that the report tells of."""

OTHERWISE: dict[str, str] = {
    "common/PB-02-never-scheduled": "interrupted calls get no result",
    "common/PB-24-fresh-request": "the stream does not hear a cancel",
    "common/PB-47-steer-at-a-cancel": "interrupted calls get no result",
}
"""Where a runtime of the common profile can do wrong in another way only."""


@cache
def files() -> dict[str, list[Scenario]]:
    """Every file by its name below the folder, without the suffix."""
    found: dict[str, list[Scenario]] = defaultdict(list)
    for scenario in load_scenarios([FOLDER], {rule.id for rule in load()}):
        found[Path(scenario.path).relative_to(FOLDER).with_suffix("").as_posix()].append(scenario)
    return dict(found)


def number(name: str) -> str:
    return "-".join(Path(name).name.split("-")[:2])


def bug_for(name: str) -> str:
    return OTHERWISE.get(name) or SEEN_BY[_namesake(name)]


def _namesake(name: str) -> str:
    plain = name.removeprefix("common/")
    return plain if plain in SEEN_BY else next(n for n in sorted(SEEN_BY) if number(n) == number(plain))


def run_on(scenario: Scenario, patches: tuple[Patch, ...]) -> ScenarioResult:
    return run_scenario(scenario, lambda: CoreDriver(lambda: applied(patches)))


def test_every_report_has_a_scenario() -> None:
    assert {number(name) for name in files()} == set(REPORTED)
    assert len(set(REPORTED)) == len(REPORTED)
    assert set(SEEN_BY) == {name for name in files() if not name.startswith("common/")}


@pytest.mark.parametrize("name", files())
def test_a_file_says_what_was_seen_and_where(name: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    assert re.match(r"# seen in [\w.-]+/[\w.-]+#\d+: \w", text)
    for scenario in files()[name]:
        assert scenario.id.startswith(f"reported/{number(name)}/")
        assert scenario.profile == ("common" if name.startswith("common/") else "rho")
        assert scenario.rules and not scenario.warnings


@pytest.mark.parametrize("name", files())
def test_the_core_does_it_right(name: str) -> None:
    results = [run_scenario(scenario, resolve("core")) for scenario in files()[name]]
    assert [(r.id, r.detail) for r in results if r.verdict != "pass"] == []


@pytest.mark.parametrize(("name", "bug"), [*((name, bug_for(name)) for name in files()), *ALSO.items()])
def test_the_reported_failure_is_noticed(name: str, bug: str) -> None:
    results = [run_on(scenario, BUGS[bug]) for scenario in files()[name]]
    verdicts = {result.verdict for result in results}
    assert "fail" in verdicts
    assert "error" not in verdicts, [result.detail for result in results if result.verdict == "error"]


def test_every_bug_is_used() -> None:
    assert {bug_for(name) for name in files()} | set(ALSO.values()) == set(BUGS)


def test_the_page_lists_every_file_with_its_rules() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (PB-\d+) \| .+ \| ([\w./#-]+) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert [row[0] for row in rows] == REPORTED
    for report, seen, rules, links in rows:
        mine = {name: found for name, found in files().items() if number(name) == report}
        assert set(re.findall(r"\(\.\./scenarios/reported/(.+?)\.yaml\)", links)) == set(mine)
        assert set(re.findall(r"\[([\w-]+)\]", rules)) == {r for found in mine.values() for x in found for r in x.rules}
        for name in mine:
            assert f"# seen in {seen}:" in (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    assert "(reported-failures.md)" in (PAGE.parent / "index.md").read_text(encoding="utf-8")


STILL_THERE = {
    "CORE-S2": {"PB-01", "PB-02", "PB-05", "PB-11", "PB-17", "PB-42", "PB-47"},
    "CORE-S3": {"PB-10"},
}
"""What pydantic-ai leaves in the history that it hands over at a cancel: calls without an answer, reasoning alone."""


def test_what_pydantic_ai_still_does() -> None:
    broken: dict[str, set[str]] = defaultdict(set)
    for name, scenarios in files().items():
        if not name.startswith("common/"):
            continue
        for result in (run_scenario(scenario, resolve("pydantic-ai")) for scenario in scenarios):
            assert result.verdict in ("pass", "variant", "fail"), (result.id, result.verdict, result.detail)
            if result.verdict == "fail":
                rules = {violation.rule for violation in result.violations}
                assert rules, (result.id, result.detail)
                for rule in rules:
                    broken[rule].add(number(name))
    assert broken == STILL_THERE
