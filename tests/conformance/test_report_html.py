"""The HTML page, in a real browser: opened, clicked through, asked for what it loads and what it complains of."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rho_conformance.report.gathered import gather
from rho_conformance.report.page import page
from tests.conformance.headless import Chromium, Page, chromium, required_chromium
from tests.conformance.reportsample import (
    BROKEN,
    EVERY,
    MUTANTS,
    big,
    broken_trace,
    cell,
    coverage,
    message,
    of_every_sort,
    write_mutants,
    write_report,
)

LARGEST = 2_000_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    required_chromium()
    with chromium(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two targets, one of them broken, with the mutants and the core's coverage."""
    folder = tmp_path_factory.mktemp("made")
    good = {rule: c | {"verdict": "pass"} for rule, c in of_every_sort().items()}
    verdicts = of_every_sort()
    verdicts[BROKEN]["detail"] = message(broken_trace())
    reports = [
        write_report(folder / "core", "core", good, coverage=coverage()),
        write_report(folder / "hand", "hand", verdicts, {BROKEN: broken_trace()}),
    ]
    path = folder / "page.html"
    page(gather(reports, write_mutants(folder))).write(path)
    return path


def opened(browser: Chromium, path: Path, **options: bool) -> Page:
    shown = browser.page(**options)
    shown.open(path)
    return shown


def visible(selector: str) -> str:
    """Whether an element is there and can be seen, as an expression of the page."""
    return f"document.querySelector('{selector}')?.checkVisibility()"


def shown_rules(shown: Page) -> list[str]:
    rows: list[str] = shown.value(
        "[...document.querySelectorAll('#matrix tbody tr')].filter(r => r.checkVisibility())"
        ".map(r => r.cells[0].textContent)"
    )
    return rows


# --- without a browser there is no proof ----------------------------------------------------------------------------


def test_without_a_browser_it_is_said_that_nothing_was_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="NOT RUN: no Chromium"):
        required_chromium()


def test_the_watch_sees_a_page_that_is_not_self_contained(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text('<img src="http://127.0.0.1:9/a.png"><script>console.error("no")</script>')
    shown = opened(browser, path)
    assert shown.requests() == ["http://127.0.0.1:9/a.png"] and shown.complaints()


# --- size -----------------------------------------------------------------------------------------------------------


def test_eighty_rules_by_ten_targets(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "big.html"
    made = page(gather(big(tmp_path), write_mutants(tmp_path)))
    assert made.write(path) < LARGEST
    assert made.left_out == 0, "the charts are made smaller before any is left out"
    shown = browser.page()
    assert shown.open(path) < 10
    assert shown.value("document.querySelectorAll('#matrix tbody tr').length") == 80
    assert shown.value("document.querySelectorAll('#matrix thead th').length") == 12
    assert shown.value("document.querySelectorAll('figure svg.seq').length") > 150
    assert shown.requests() == [] and shown.complaints() == []


def test_what_finds_no_room_is_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rho_conformance.report.page.LARGEST", 1)
    monkeypatch.setattr("rho_conformance.report.page.LEAST", 6_000)
    monkeypatch.setattr("rho_conformance.report.page.LEAN_SIZE", 1)
    trace = broken_trace()
    reports = [write_report(tmp_path / n, n, {BROKEN: cell("fail")}, {BROKEN: trace}) for n in "ab"]
    made = page(gather(reports))
    assert made.left_out == 1 and "1 witness found no room" in made.html and "Left out to keep" in made.html


# --- from a verdict to its evidence ---------------------------------------------------------------------------------


def test_a_broken_rule_leads_to_its_history(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made)
    assert not shown.value(visible("figure.witness svg.seq"))
    shown.click("#matrix td.fail a")
    chart = "figure.witness:target"
    shown.until(visible(f"{chart} svg.seq"))
    shown.until(f"document.activeElement === document.querySelector('{chart}')")
    lanes = shown.value(f"[...document.querySelectorAll('{chart} .who')].map(t => t.textContent)")
    assert lanes == ["host", "runtime", "model", "tools", "reader"]
    fault = shown.value(f"document.querySelector('{chart} g.broken text').textContent")
    assert fault.startswith("ToolFinished call_id=A")
    words = shown.value(f"document.querySelector('{chart} g.edge').textContent")
    assert BROKEN in words and message(broken_trace()).partition(": ")[2][:40] in words
    red = shown.value(f"getComputedStyle(document.querySelector('{chart} g.broken path')).stroke")
    assert red == "rgb(179, 18, 31)"
    assert shown.value(f"document.querySelectorAll('{chart} g.edge path.curve').length") == 1
    shown.click(f"{chart} details.beside summary")
    shown.until(visible("figure.witness:target details.beside li.target"))
    shown.press("Escape")
    shown.until("document.activeElement.closest('td')?.className === 'fail'")
    assert shown.requests() == [] and shown.complaints() == []


def test_every_row_of_the_history_is_in_order(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made)
    drawn = shown.value(
        "[...document.querySelectorAll('figure svg.seq > g:not(.edge) > text')].map(t => t.firstChild.data)"
    )
    names = [text.split(" ")[0] for text in drawn]
    told = [name for record in broken_trace().steps for name in _names(record)]
    assert names == told


def _names(record: Any) -> list[str]:
    stimuli = [next(iter(stimulus)) for stimulus in record.perform]
    return stimuli + [seen.name for seen in record.seen()]


def test_a_long_history_is_folded_around_the_break(browser: Chromium, tmp_path: Path) -> None:
    trace = broken_trace(30)
    report = write_report(tmp_path, "hand", {BROKEN: cell("fail", detail=message(trace))}, {BROKEN: trace})
    path = tmp_path / "page.html"
    page(gather([report])).write(path)
    shown = opened(browser, path)
    shown.click("#matrix td.fail a")
    shown.until(visible("figure g.edge"))
    rows = "[...document.querySelectorAll('figure svg.seq > g:not(.edge)')].filter(g => g.checkVisibility()).length"
    assert shown.value(rows) < 50
    shown.click("figure details.fold > summary")
    shown.until(f"{rows} > 150")
    assert shown.complaints() == []


@pytest.mark.parametrize("verdict", [v for v in EVERY if v != "fail"])
def test_every_other_verdict_leads_to_its_reason(browser: Chromium, made: Path, verdict: str) -> None:
    shown = opened(browser, made)
    name = verdict.replace("/", "")
    place = shown.value(f"document.querySelector('#matrix td.{name}:last-child a').hash")
    shown.click(f"#matrix td.{name}:last-child a")
    shown.until(visible(place))
    told = shown.value(f"document.querySelector('{place}').textContent")
    assert verdict in told and (
        verdict == "pass" or {"variant": "D1:fail"}.get(verdict, f"why it is {verdict}") in told
    )


# --- filter, keys, colours ------------------------------------------------------------------------------------------


def test_the_filters_narrow_and_are_taken_back(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made)
    everything = shown_rules(shown)
    assert len(everything) == len(EVERY)
    shown.press("/")
    shown.type("ord-5")
    assert shown_rules(shown) == [BROKEN] and shown.value("count.textContent") == f"1 of {len(EVERY)} rules"
    shown.click("#filter button[type=reset]")
    shown.until(f"document.querySelectorAll('#matrix tbody tr:not([hidden])').length === {len(EVERY)}")
    shown.click("#differ")
    assert len(shown_rules(shown)) == len(EVERY) - 1, "where both targets pass, nothing differs"
    shown.click("#differ")
    shown.click("[name=verdict][value=pass]")
    assert len(shown_rules(shown)) == len(EVERY) - 1, "one rule has nothing but passes"
    shown.click("#filter button[type=reset]")
    shown.value("area.value = 'ordering', area.dispatchEvent(new Event('input', {bubbles: true})), 0")
    assert shown_rules(shown) == [BROKEN]


def test_one_verdict_alone(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made)
    for name in ("pass", "variant", "vacuous", "inconclusive", "error", "na", "untestable"):
        shown.click(f"[name=verdict][value={name}]")
    assert shown_rules(shown) == [BROKEN]


def test_the_matrix_is_walked_with_the_arrow_keys(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made)
    shown.value("document.querySelector('#m1 th a').focus()")
    for key in ("ArrowDown", "ArrowRight"):
        shown.press(key)
    where = "[document.activeElement.closest('tr').id, document.activeElement.closest('td').cellIndex]"
    assert shown.value(where) == ["m2", 2], "the words between rule and verdicts are no stop"
    shown.press("ArrowLeft")
    shown.press("ArrowUp")
    shown.press("ArrowUp")
    assert shown.value("document.activeElement.closest('tr').id") == "m1"
    shown.press("Enter")
    shown.until("document.querySelector('details#r1').open")


def test_dark_and_light(browser: Chromium, made: Path) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    light, dark = (opened(browser, made, dark=wanted) for wanted in (False, True))
    assert (light.value(back), dark.value(back)) == ("rgb(255, 255, 255)", "rgb(20, 23, 27)")
    dark.click("#theme")
    assert dark.value(back) == "rgb(255, 255, 255)"


def test_without_scripts_the_page_still_leads_to_the_evidence(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made, scripts=False)
    assert len(shown_rules(shown)) == len(EVERY) and not shown.value(visible("#filter"))
    shown.click("#matrix td.fail a")
    shown.until(visible("figure.witness:target g.edge"))
    assert shown.value(visible("#u-vacuous td"))
    assert shown.requests() == [] and shown.complaints() == []


# --- kill matrix, coverage, what is not proved ----------------------------------------------------------------------


def test_the_kill_matrix(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made)
    text = shown.value("document.querySelector('#kills').textContent")
    assert "1 of 2 deliberate faults" in text and "score 0.500" in text, "the score is counted, not believed"
    marks = {
        sort: shown.value(f"document.querySelector('#grid path.{sort}').getAttribute('d')")
        for sort in ("own", "others", "survived")
    }
    assert [marks[sort].count("M") for sort in ("own", "others", "survived")] == [1, 2, 1]
    shown.point("#grid path.own")
    shown.until(f"hover.textContent === 'progress-lost × {BROKEN}'")
    shown.click("#killtable > summary")
    shown.click("#findkill")
    shown.type("unheard")
    rows = "[...document.querySelectorAll('#killtable tbody tr:not([hidden]) th')].map(t => t.textContent)"
    assert shown.value(rows) == ["cancel-unheard"]
    shown.click("#benign > summary")
    assert "CAN/two: it says so" in shown.value("document.querySelector('#benign').innerText")


def test_the_machine_is_coloured_by_what_was_taken(browser: Chromium, made: Path) -> None:
    shown = opened(browser, made)
    drawn = shown.value(
        "[...document.querySelectorAll('#arcs path')].map(p => [p.dataset.a, p.dataset.b, p.getAttribute('class')])"
    )
    colour = {(a, b): name for a, b, name in drawn}
    assert colour["Fresh", "Top"] == "tall" and colour["Fresh", "Propose"] == "tnone"
    told = {(a, b) for a, b, _ in drawn}
    rows = coverage()["transitions"]
    edges = {(_state(key), exit) for key, row in rows.items() for exit in row["exits"]}
    assert told == edges
    assert len({tuple(row) for row in drawn}) == len(edges)
    assert shown.value("document.querySelectorAll('#rowtable tbody tr').length") == len(rows) == coverage()["rows"]
    shown.point("#arcs text[data-s=Fresh]")
    shown.until("document.querySelectorAll('#arcs.picked path.near').length === 2")


def _state(key: str) -> str:
    source, trigger = key.split(" ")
    return {"*": "any phase", "->": trigger}.get(source, source)


def test_what_is_not_proved_is_all_there(made: Path, browser: Chromium) -> None:
    shown = opened(browser, made)
    parts = shown.value("[...document.querySelectorAll('#unproved details')].map(d => [d.id.slice(2), d.textContent])")
    told: dict[str, str] = dict(parts)
    for name in ("error", "inconclusive", "vacuous", "n/a", "untestable"):
        assert f"why it is {name}" in told[name.replace("/", "")]
    assert "D1:fail" in told["variant"]
    assert "cancel-unheard" in told["mutants"] and "RHO-CAN-1," in told["mutants"]
    assert "permitted variant, D2-none" in told["mutants"]
    assert "Fresh × Begin → Propose" in told["rows"] and "* Cancel" in told["rows"]
    assert "200 generated scripts of at most 30 intents, seed 1" in told["bounds"]
    assert "RHO-BND-1" in told["unjudged"] and "scope" in told


def test_a_doubtful_target_is_named(tmp_path: Path) -> None:
    about = {"name": "x", "version": "1", "time": "real", "deterministic": False}
    thin = cell("pass", triggered=1, detail="what this target can play shows 1 live contexts on the core")
    verdicts = {BROKEN: cell("fail"), "RHO-CAN-1": thin, "RHO-NEW-1": cell("pass")}
    report = write_report(tmp_path, "x", verdicts, implementation=about, notes=["a note"])
    gaps = {s.name: [gap.why for gap in s.gaps] for s in page(gather([report])).sections}
    assert any("not deterministic" in why for why in gaps["targets"]) and "a note" in gaps["targets"]
    assert any("time is real" in why for why in gaps["targets"])
    assert gaps["thin"] == [f"held in 1 live contexts, the rule wants 3. {thin['detail']}"]
    assert gaps["history"] == ["no witness was recorded"] and "unknown" in gaps
    assert any("rho-core mutants" in why for why in gaps["mutants"]) and any("core" in why for why in gaps["rows"])


# --- foreign words --------------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=1">',
    "\"'><svg onload=window.pwned=1>",
    '</style></title></textarea><a href="javascript:window.pwned=1">x</a>',
    "{{ 7*7 }}{% raw %}",
    "]]>&lt;b&gt;&#0;",
    "\x1b[31m\x00\u202edrowssap\u2028\ufffe\ud800",
)


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_words(browser: Chromium, tmp_path: Path, words: str) -> None:
    about = {"name": words, "version": words, "time": words, "deterministic": True}
    verdicts = {rule: c | {"detail": words, "variant": words} for rule, c in of_every_sort().items()}
    verdicts[words] = cell("pass", detail=words)
    verdicts["RHO-RET-1"] = cell("variant", baseline={"reason": words, "link": words}, detail=words)
    taken = copy.deepcopy(coverage())
    taken["transitions"][f"{words} {words}"] = {"taken": False, "exits": {words: False}}
    taken["missing"].append(words)
    report = write_report(
        tmp_path,
        words,
        verdicts,
        {BROKEN: broken_trace(said=words)},
        implementation=about,
        notes=[words],
        played={words: 1},
        coverage=taken,
        profile=words,
    )
    mutants = {
        "matrix": {words: {"kills_by": [words], "intended": words, "killed": True, "where": words}},
        "benign": {words: {"fails": [words], "why": {words: words}}},
        "score": 1.0,
    }
    path = tmp_path / "page.html"
    page(gather([report], write_mutants(tmp_path, MUTANTS | mutants))).write(path)
    shown = opened(browser, path)
    shown.click("#matrix td.fail a")
    shown.until(visible("figure.witness:target g.edge"))
    shown.point("#grid path.own")
    assert shown.value("window.pwned === undefined")
    counts = "['script', 'style', 'img', 'title:not(svg title)', 'a[href^=javascript]', '[onerror], [onload]']"
    found = shown.value(f"{counts}.map(s => document.querySelectorAll(s).length)")
    assert found == [1, 1, 0, 1, 0, 0]
    plain = re.sub("[\x00\x1b\u202e\u2028\ufffe\ud800]", lambda c: f"\\u{ord(c[0]):04x}", words)
    places = {
        "#matrix thead bdi": 0,
        "header td bdi": 0,
        "#unproved": 4,
        "figure svg.seq": 0,
        "#killtable tbody th": 0,
        "#benign tbody": 1,
        "#rowtable tbody": 1,
        "#rules": 2,
    }
    for place, least in places.items():
        text = shown.value(f"document.querySelector('{place}').textContent")
        told = text.count(plain.replace('"', '\\"')) if place.startswith("figure") else text.count(plain)
        assert told > least or (place.startswith("figure") and plain[:8] in text), place
    assert shown.requests() == [] and shown.complaints() == []


def test_even_a_smuggled_script_is_not_obeyed(browser: Chromium, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "smuggled.html"
    inside = "<script>window.pwned=1</script><style>body{display:none}</style><img src='http://127.0.0.1:9/x'>"
    path.write_text(made.read_text(encoding="utf-8").replace("<main>", f"<main>{inside}"), encoding="utf-8")
    shown = opened(browser, path)
    assert shown.value("window.pwned === undefined") and shown.value(visible("#matrix"))
    assert shown.complaints(), "the policy says what it refused"


def test_nothing_in_the_page_names_another_place(made: Path) -> None:
    text = made.read_text(encoding="utf-8")
    assert re.findall(r'\b(?:src|srcset|poster|action)=|\bhref="(?!#|data:,")', text) == []
    assert "@import" not in text and not re.search(r"url\((?!#)", text) and "fetch(" not in text
