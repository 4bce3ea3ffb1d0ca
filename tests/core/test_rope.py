"""Ropes: the text is right, and nothing recurses or grows with it."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rho_core.digest import digest
from rho_core.rope import Items, Rope

DELTAS = 100_000


def grown(count: int) -> Rope:
    rope = Rope()
    for n in range(count):
        rope = rope.append(f"{n % 10}" * 10)
    return rope


@given(st.lists(st.text(max_size=300), max_size=40))
def test_a_rope_is_its_parts_joined(parts: list[str]) -> None:
    rope = Rope()
    for part in parts:
        rope = rope.append(part)
    assert rope.text() == "".join(parts)
    assert bool(rope) == bool("".join(parts))


@given(st.lists(st.integers(), max_size=300))
def test_items_keep_their_order(values: list[int]) -> None:
    items: Items[int] = Items()
    for value in values:
        items = items.append(value)
    assert items.items() == tuple(values)


def depth(rope: Rope) -> int:
    spine, levels = rope.spine, 0
    while spine is not None:
        levels += 1
        spine = spine[2]
    return levels


def test_a_long_rope_stays_shallow_and_safe_to_compare_hash_print_pickle_and_digest() -> None:
    one, two = grown(DELTAS), grown(DELTAS)
    assert depth(one) <= 20
    assert one == two and hash(one) == hash(two)
    assert len(repr(one)) > DELTAS
    assert pickle.loads(pickle.dumps(one)) == one
    assert digest(one) == digest(two)


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_appending_copies_no_more_than_the_logarithm_says(count: int) -> None:
    """Counted, not timed: each character is copied into a larger chunk at most once a rank."""
    rope = grown(count)
    chunks: list[int] = []
    spine = rope.spine
    while spine is not None:
        chunks.append(spine[0])
        spine = spine[2]
    assert chunks == sorted(set(chunks)), "ranks grow towards the oldest chunk, each once"
