"""Contracts of `rho_core.retry_after`: total, positive or nothing, bounded, rounded up (design D13)."""

from __future__ import annotations

from rho_conformance.contracts.base import contract
from rho_core import retry_after

SHORT = "text of at most {} characters, any of Unicode; any clock"


@contract(retry_after.parse, bounds=SHORT.format(1), limit=30)
def one_character_gives_a_positive_wait_or_none(text: str, now: int) -> int | None:
    """
    pre: len(text) <= 1
    post: __return__ is None or 0 < __return__ <= 9_000
    """
    return retry_after.parse(text, now)


@contract(retry_after.parse, bounds=SHORT.format(3), limit=30)
def short_text_gives_a_bounded_wait_or_none(text: str, now: int) -> int | None:
    """
    pre: len(text) <= 3
    post: __return__ is None or 0 < __return__ <= retry_after.LARGEST_MS
    """
    return retry_after.parse(text, now)


@contract(retry_after.parse, bounds="whole seconds from -5 to 99, written in decimal; any clock")
def whole_seconds_are_milliseconds(seconds: int, now: int) -> int | None:
    """
    pre: -5 <= seconds <= 99
    post: __return__ == (seconds * 1000 if seconds > 0 else None)
    """
    return retry_after.parse(str(seconds), now)


@contract(retry_after._milliseconds, bounds="a whole part of one decimal digit and a fraction of at most 2")
def fractions_never_round_down(whole: int, tenth: int, hundredth: int) -> int:
    """
    pre: 0 <= whole <= 9 and 0 <= tenth <= 9 and 0 <= hundredth <= 9
    post: __return__ == whole * 1000 + tenth * 100 + hundredth * 10
    """
    return retry_after._milliseconds(str(whole), str(tenth) + str(hundredth))


@contract(retry_after._milliseconds, bounds="a fourth decimal of the fraction")
def a_lost_fraction_rounds_up(fourth: int) -> int:
    """
    pre: 0 <= fourth <= 9
    post: __return__ == (1 if fourth else 0)
    """
    return retry_after._milliseconds("0", "000" + str(fourth))


@contract(retry_after._full_year, bounds="a clock within 1970 to 2099, by the day")
def two_digit_years_are_at_most_fifty_ahead(two_digits: int, day: int) -> int:
    """
    pre: 0 <= two_digits <= 99 and 0 <= day <= 47_000
    post: __return__ % 100 == two_digits and 1920 <= __return__ <= 2149
    """
    return retry_after._full_year(two_digits, day * 86_400_000)
