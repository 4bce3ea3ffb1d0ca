"""Contracts of `rho_core.rope`: an append adds at the end and loses nothing, whatever was carried."""

from __future__ import annotations

from rho_conformance.contracts.base import contract
from rho_core import rope
from rho_core.rope import Items, Rope, Spine


def _spine(chunks: int, one: str, two: str) -> Spine | None:
    """No chunk, one of rank 0, or one of rank 0 on one of rank 1."""
    if chunks == 0:
        return None
    return (0, one, (1, two, None) if chunks == 2 else None)


@contract(rope.carry, rope.join, bounds="a spine of at most 2 chunks; texts of at most 2 characters")
def carrying_keeps_the_text(chunks: int, one: str, two: str, new: str) -> bool:
    """
    pre: 0 <= chunks <= 2 and len(one) <= 2 and len(two) <= 2 and len(new) <= 2
    post: __return__
    """
    spine = _spine(chunks, one, two)
    return rope.join("", rope.carry(spine, new)) == rope.join(new, spine)


@contract(Rope.append, Rope.text, bounds="a spine of at most 2 chunks; texts of at most 2 characters")
def appending_text_adds_it_at_the_end(chunks: int, one: str, tail: str, new: str) -> bool:
    """
    pre: 0 <= chunks <= 2 and len(one) <= 2 and len(tail) <= 2 and len(new) <= 2
    post: __return__
    """
    before = Rope(tail, _spine(chunks, one, "x"))
    return before.append(new).text() == before.text() + new


@contract(Rope.append, Rope.text, bounds="a tail that is one short of full; a spine of at most 2 chunks")
def a_full_tail_is_carried_without_loss(chunks: int, new: str) -> bool:
    """
    pre: 0 <= chunks <= 2 and 1 <= len(new) <= 2
    post: __return__
    """
    before = Rope("t" * (rope.TAIL_TEXT - 1), _spine(chunks, "one", "two"))
    after = before.append(new)
    return after.tail == "" and after.text() == before.text() + new


@contract(Items.append, Items.items, bounds="a tail of 0, 30 or 31 items; a spine of at most one chunk")
def appending_an_item_adds_it_at_the_end(size: int, chunk: bool, item: int) -> bool:
    """
    pre: size in (0, 30, 31)
    post: __return__
    """
    before: Items[int] = Items(tuple(range(size)), (0, (7, 8), None) if chunk else None)
    return before.append(item).items() == (*before.items(), item)
