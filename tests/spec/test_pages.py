"""The pages are what the catalogue generates, every rule has one anchor, and no link is dead."""

import pytest

from rho_spec import pages
from rho_spec.catalogue import by_id, load
from rho_spec.paths import data_root


def test_pages_are_up_to_date() -> None:
    assert pages.check_pages() == []


def test_a_stale_part_is_rewritten() -> None:
    path = data_root() / "pages" / "state.md"
    text = path.read_text(encoding="utf-8")
    stale = text.replace(by_id("RHO-STATE-1").title, "Seven states")
    assert stale != text
    assert pages.fill(stale, "state.md") == text


def test_what_stands_around_a_generated_part_is_kept() -> None:
    text = "before\n<!-- generated: rules state -->\nold\n<!-- end -->\nafter\n"
    filled = pages.fill(text, "x.md")
    assert filled.startswith("before\n<!-- generated: rules state -->\n| Rule |")
    assert filled.endswith("<!-- end -->\nafter\n")
    assert '<a id="RHO-STATE-5"></a>' in filled
    assert "old" not in filled.split("|")[0]


@pytest.mark.parametrize(
    ("marker", "message"),
    [("poems", "nothing generates 'poems'"), ("rules cooking", "rules 'cooking' is empty")],
)
def test_a_marker_that_names_nothing_is_an_error(marker: str, message: str) -> None:
    with pytest.raises(pages.PageError, match=message):
        pages.fill(f"<!-- generated: {marker} -->\n<!-- end -->", "x.md")


def test_a_bar_in_a_statement_does_not_end_the_cell() -> None:
    assert pages._cell("a | b\n c") == "a \\| b c"


def test_the_index_counts_the_rules() -> None:
    text = (data_root() / "pages" / "index.md").read_text(encoding="utf-8")
    assert f"| **together** | {len(load())} |" in text


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("[x](nowhere.md)", "link to nowhere.md, which does not exist"),
        ("[x](state.md#RHO-STATE-9)", "where nothing has that anchor"),
    ],
)
def test_dead_links_are_found(link: str, problem: str) -> None:
    (found,) = pages._dead_links("x.md", link)
    assert problem in found
    assert list(pages._dead_links("x.md", "[x](state.md#RHO-STATE-5) [y](state.md#rules)")) == []
