"""The sentence splitter: what it cuts, what it keeps together, and that spelling variants hash alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rho_spec.sentences import digest, normalise, split

PAGE = """A title, with a comma

One sentence. Another one! Is this a third?

Rules

1. Item one is first. It has two sentences.
2. Item two ends in a quote, "like this." Then goes on.

• a bullet without capital
• a bullet; still one sentence
This is a list intro:
"""


def test_page_is_cut_into_numbered_units() -> None:
    units = split(PAGE)
    assert [unit.number for unit in units] == list(range(1, 12 + 1))
    assert [unit.text for unit in units if unit.kind == "heading"] == ["A title, with a comma", "Rules"]
    assert [unit.text for unit in units if unit.kind == "item"] == [
        "Item one is first.",
        "It has two sentences.",
        'Item two ends in a quote, "like this."',
        "Then goes on.",
        "a bullet without capital",
        "a bullet; still one sentence",
    ]
    assert units[-1].text == "This is a list intro:"


def test_units_know_their_heading() -> None:
    assert {unit.section for unit in split(PAGE)[:4]} == {"A title, with a comma"}
    assert {unit.section for unit in split(PAGE)[4:]} == {"Rules"}


@pytest.mark.parametrize(
    "whole",
    [
        "Run::steer sends input to the run.",
        "StepStarted.estimated_context_tokens is an estimate.",
        "Delays are 1.5 and 2.5 seconds.",
        "Other tools (for example xAI x_search) emit it.",
    ],
)
def test_dots_inside_a_sentence_do_not_cut(whole: str) -> None:
    assert [unit.text for unit in split(whole)] == [whole]


def test_markdown_headings_are_headings() -> None:
    (heading, sentence) = split("## Part one.\nText here.")
    assert (heading.kind, heading.text, sentence.section) == ("heading", "Part one.", "Part one.")


def test_typesetting_does_not_change_the_hash() -> None:
    assert digest("The  step\u2019s\u00a0end.") == digest("The step's end.")
    assert digest("Café ends.") == digest("Cafe\u0301 ends.")


def test_case_and_words_change_the_hash() -> None:
    assert len({digest(t) for t in ("It may stop.", "it may stop.", "It may stop!", "It must stop.")}) == 4


def test_locator_never_holds_the_whole_sentence() -> None:
    for unit in split(PAGE):
        words = unit.text.split()
        assert len(unit.locator.split()) <= min(8, max(1, len(words) // 2))
        assert normalise(unit.text).startswith(unit.locator)


@given(st.text())
def test_no_text_breaks_it_and_nothing_is_lost(text: str) -> None:
    units = split(text)
    assert [unit.number for unit in units] == list(range(1, len(units) + 1))
    assert units == split(text)
    assert all(unit.text == normalise(unit.text) for unit in units)
