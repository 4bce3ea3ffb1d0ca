"""The ledger agrees with the catalogue, and a page that differs from the ledger is found out."""

from pathlib import Path

import pytest

from rho_spec import sources
from rho_spec.catalogue import Rule, Source, load
from rho_spec.sentences import Sentence, split
from rho_spec.sources import (
    Entry,
    LedgerError,
    compare,
    load_ledger,
    mapping_problems,
    parse_ledger,
    verify_page,
)

PAGE = "Heading\n\nFirst sentence here. Second sentence here.\n\nThird sentence here."


def entries_of(page: str) -> tuple[Entry, ...]:
    return tuple(Entry(s.number, s.sha256, s.locator, rules=("RHO-X-1",)) for s in split(page))


def ledger_text(sentences: tuple[Sentence, ...], mapping: str = 'no-promise = "because"') -> str:
    rows = (
        f'[[sentence]]\nn = {s.number}\nsha256 = "{s.sha256}"\nlocator = "{s.locator}"\n{mapping}' for s in sentences
    )
    return "\n".join(rows)


def test_every_sentence_is_mapped_and_every_rule_is_reached() -> None:
    assert mapping_problems(load_ledger("rho"), load("rho")) == []


def test_the_ledger_covers_the_whole_page() -> None:
    entries = load_ledger("rho")
    assert len(entries) == 181
    headings = [entry for entry in entries if entry.no_promise == "heading"]
    assert len(headings) == 14
    assert len([entry for entry in entries if entry.rules]) == 164


def test_mapping_problems_are_found() -> None:
    def rule(rule_id: str, sentences: tuple[int, ...], origin: str = "page") -> Rule:
        source = Source("rho", "", sentences)
        return Rule(rule_id, "t", "s", "a", ("rho",), source, origin=origin)  # type: ignore[arg-type]

    entries = (Entry(1, "0" * 64, "a", rules=("R-1", "R-9")), Entry(2, "0" * 64, "b", rules=("R-2",)))
    rules = [rule("R-1", (1,)), rule("R-2", (1, 2)), rule("R-3", ()), rule("R-4", (), origin="release")]
    assert mapping_problems(entries, rules) == [
        "R-9: in the ledger, not in the catalogue",
        "R-2: cites [1, 2], the ledger says [2]",
        "R-3: no sentence of the page leads to it, and its origin is not the release",
    ]


def test_an_unchanged_page_has_no_problem() -> None:
    assert compare(split(PAGE), entries_of(PAGE)) == []


@pytest.mark.parametrize(
    ("edited", "found"),
    [
        (PAGE.replace("Second", "Zweiter"), [("changed", 3)]),
        (PAGE.replace("Second sentence here.", ""), [("missing", 3)]),
        (PAGE.replace("Third", "A new one. Third"), [("new", 4)]),
        (PAGE + "\n\nOne more.", [("new", 5)]),
        (PAGE.replace("Heading", "Other heading"), [("changed", 1)]),
        ("", [("missing", n) for n in (1, 2, 3, 4)]),
    ],
)
def test_every_difference_is_named(edited: str, found: list[tuple[str, int]]) -> None:
    problems = compare(split(edited), entries_of(PAGE))
    assert [(problem.kind, problem.number) for problem in problems] == found


def test_a_changed_sentence_names_the_rules_it_carries() -> None:
    (problem,) = compare(split(PAGE.replace("Second", "Zweiter")), entries_of(PAGE))
    assert problem.rules == ("RHO-X-1",)
    assert "RHO-X-1" in str(problem)


def test_verify_page_reads_a_file(tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text("Nothing of the page is here.", encoding="utf-8")
    problems = verify_page(page)
    assert len(problems) == len(load_ledger("rho"))
    assert {problem.kind for problem in problems} == {"changed", "missing"}
    with pytest.raises(FileNotFoundError):
        verify_page(tmp_path / "absent.txt")


def test_the_command_reports_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.txt"
    page.write_text("Nothing of the page is here.", encoding="utf-8")
    assert sources.main([str(page)]) == 1
    assert "changed: sentence 1" in capsys.readouterr().out
    assert sources.main([]) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[sentence]", "not TOML"),
        (ledger_text(split(PAGE)).replace("n = 2", "n = 7"), "without gap"),
        (ledger_text(split(PAGE), ""), "needs either rules or a reason"),
        (ledger_text(split(PAGE), 'rules = ["A"]\nno-promise = "x"'), "and not both"),
        (ledger_text(split(PAGE), 'no-promise = "x"\nwhy = "y"'), "unknown key why"),
        (ledger_text(split(PAGE)).replace('locator = "First"', 'locator = "a b c d e f g h i"'), "locator"),
        (ledger_text(split(PAGE)).replace(split(PAGE)[1].sha256, "12"), "64 hexadecimal"),
    ],
)
def test_a_bad_ledger_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(LedgerError, match=message):
        parse_ledger(text, "page.toml")


def test_a_page_without_ledger_is_an_error() -> None:
    with pytest.raises(LedgerError, match="no ledger for page 'other'"):
        load_ledger("other")
