"""Values and sequences: the operators one by one, and sequences against a naive matcher that backtracks."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rho_conformance.scenario.match import MISSING, Mismatch, is_permutation, match_sequence, matches


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a", "a", "b"),
        (1, 1, 2),
        (1, 1, True),
        (True, True, 1),
        (3, "3", "03"),
        ({"a": 1}, {"a": 1, "b": 2}, {"b": 2}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, {"a": 1}),
        ([1, {"a": 1}], [1, {"a": 1, "b": 2}], [1]),
        ([1, 2], [1, 2], [2, 1]),
        ({}, {"a": 1}, "text"),
        ({"a": {"$any": True}}, {"a": None}, {}),
        ({"a": {"$absent": True}}, {"b": 1}, {"a": 1}),
        ({"a": {"$absent": True}}, {"a": None}, {"a": 0}),
        ({"$one_of": ["x", {"a": 1}]}, {"a": 1, "b": 1}, "y"),
        ({"$min": 2}, 2, 1),
        ({"$min": 2}, 2.5, "3"),
        ({"$max": 2}, 2, True),
        ({"$max": 2}, 2, 3),
        ({"$prefix": "ab"}, "abc", "a"),
        ({"$prefix_of": "abc"}, "ab", "b"),
        ({"$prefix_of": "abc"}, "", "abcd"),
        ({"$contains": '"k":1'}, {"k": 1}, {"k": 2}),
        ({"$contains": '"k": 1'}, {"k": 1}, {"k": 2}),
        ({"$contains": 'say "é"'}, 'I say "é"', "I say é"),
        ({"$lacks": "secret"}, {"k": "open"}, {"k": "a secret"}),
        ({"a": {"$lacks": "secret"}}, {"a": ""}, {}),
        ({"revision": "max"}, {"revision": 2**64 - 1}, {"revision": "max"}),
        ({"revision": {"$one_of": ["max", 0]}}, {"revision": 2**64 - 1}, {"revision": 1}),
    ],
)
def test_values(pattern: Any, yes: Any, no: Any) -> None:
    assert matches(pattern, yes)
    assert not matches(pattern, no)


def test_a_missing_value_matches_only_absent() -> None:
    assert matches({"$absent": True}, MISSING)
    assert not matches({"$any": True}, MISSING)
    assert not matches({}, MISSING)
    assert not matches({"$lacks": "x"}, MISSING)


# --- sequences ----------------------------------------------------------------------------------------------

GAP = "..."


def naive(elements: list[Any], items: list[Any]) -> bool:
    """The definition, tried out: every way to assign items to elements."""
    if not elements:
        return not items
    first, rest = elements[0], elements[1:]
    if first == GAP:
        return any(naive(rest, items[k:]) for k in range(len(items) + 1))
    if isinstance(first, dict) and "opt" in first:
        return naive(rest, items) or naive([first["opt"], *rest], items)
    if isinstance(first, dict) and "set" in first:
        size = len(first["set"])
        return any(naive([*order, *rest], items) for order in permutations(first["set"])) and len(items) >= size
    return bool(items) and accepts(first, items[0]) and naive(rest, items[1:])


def accepts(pattern: Any, item: Any) -> bool:
    return bool(pattern == "?" or pattern == item)


PATTERNS = st.sampled_from(["a", "b", "?"])
ELEMENTS = st.one_of(
    PATTERNS,
    st.just(GAP),
    PATTERNS.map(lambda pattern: {"opt": pattern}),
    st.lists(PATTERNS, min_size=0, max_size=3).map(lambda patterns: {"set": patterns}),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(ELEMENTS, max_size=5), st.lists(st.sampled_from(["a", "b", "c"]), max_size=6))
def test_sequences_match_as_the_naive_matcher_says(elements: list[Any], items: list[str]) -> None:
    assert (match_sequence(elements, items, accepts) is None) == naive(elements, items)


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6), st.randoms(use_true_random=False))
def test_a_set_matches_any_order(items: list[str], random: Any) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    assert match_sequence([{"set": shuffled}], items, accepts) is None


def test_a_set_pairs_its_patterns_whatever_their_order() -> None:
    # The wide pattern must not take the item that only the narrow one has.
    assert is_permutation(["?", "a"], ["a", "b"], accepts)
    assert not is_permutation(["?", "a"], ["b", "b"], accepts)


@pytest.mark.parametrize(
    ("elements", "items", "mismatch"),
    [
        (["a", "b"], ["a", "c"], Mismatch(1, 1)),
        (["a"], ["a", "b"], Mismatch(None, 1)),
        (["a", GAP, "c"], ["a", "b"], Mismatch(2, 2)),
        ([{"set": ["a", "b"]}], ["a"], Mismatch(0, 0)),
    ],
)
def test_a_mismatch_says_how_far_it_got(elements: list[Any], items: list[str], mismatch: Mismatch) -> None:
    assert match_sequence(elements, items, accepts) == mismatch


def test_many_gaps_on_a_long_list_stay_fast() -> None:
    items = ["a"] * 2000
    assert match_sequence([GAP, "a"] * 15 + ["b"], items, accepts) == Mismatch(30, 2000)
