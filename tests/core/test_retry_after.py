"""Retry-After by D13: what is a wait, what is none, and that no text raises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rho_core.retry_after import LARGEST_MS, parse

NOW = 946_684_800_000  # 2000-01-01T00:00:00Z, virtual time 0


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("3", 3_000),
        (" 3\t", 3_000),
        ("007", 7_000),
        ("0.5", 500),
        (".5", 500),
        ("1.", 1_000),
        ("1.0001", 1_001),
        ("0.0004", 1),
        ("0.001", 1),
        ("0.0010", 1),
        ("0.0010000000000000000000000000000000001", 2),
        ("7200", 7_200_000),
        ("9" * 5_000, LARGEST_MS),
        ("0" * 5_000 + "2", 2_000),
        ("0." + "0" * 5_000 + "1", 1),
        ("Sat, 01 Jan 2000 00:00:07 GMT", 7_000),
        ("Saturday, 01-Jan-00 00:00:07 GMT", 7_000),
        ("Sat Jan  1 00:00:07 2000", 7_000),
        ("Sun Jan 16 00:00:00 2000", 15 * 86_400_000),
        ("Tue, 29 Feb 2000 00:00:00 GMT", 59 * 86_400_000),
        ("Fri, 31 Dec 1999 23:59:60 GMT", None),
        ("Sat, 01 Jan 2000 23:59:60 GMT", 86_400_000),
        ("Sunday, 01-Jan-50 00:00:00 GMT", 18_263 * 86_400_000),
    ],
)
def test_a_wait(text: str, wait: int | None) -> None:
    assert parse(text, NOW) == wait


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "0",
        "0.0",
        "-3",
        "+3",
        "1e3",
        "1,5",
        "3s",
        "3\n",
        "0x10",
        "1_000",
        "NaN",
        "inf",
        "٣",  # Arabic-Indic digits: isdigit() is true of them
        "３",
        "²",
        "Sat, 01 Jan 2000 00:00:00 GMT",  # now is no wait
        "Fri, 31 Dec 1999 23:59:59 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Saturday, 01-Jan-51 00:00:00 GMT",  # more than fifty years ahead: it is 1951
        "Wed, 30 Feb 2000 00:00:07 GMT",
        "Sat, 01 Jan 0000 00:00:07 GMT",
        "Sat, 01 Jan 2000 24:00:00 GMT",
        "Sat, 01 Jan 2000 00:60:00 GMT",
        "Sat, 01 Jan 2000 00:00:61 GMT",
        "Sat, 1 Jan 2000 00:00:07 GMT",
        "sat, 01 jan 2000 00:00:07 gmt",
        "Sat, 01 Jan 2000 00:00:07 UTC",
        "Sat, 01 Jan 2000 00:00:07",
        "Sat, ٠١ Jan 2000 00:00:07 GMT",
        "Sat Jan 1 00:00:07 2000",
        "2000-01-01T00:00:07Z",
    ],
)
def test_no_wait(text: str) -> None:
    assert parse(text, NOW) is None


@given(st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=300_000)))
@settings(derandomize=True, max_examples=60)
def test_the_form_that_servers_write(ahead: timedelta) -> None:
    ahead -= timedelta(microseconds=ahead.microseconds)
    text = format_datetime(datetime(2000, 1, 1, tzinfo=UTC) + ahead, usegmt=True)
    assert parse(text, NOW) == ahead // timedelta(milliseconds=1)


@given(st.integers(0, 10**9), st.integers(0, 10**6 - 1))
@settings(derandomize=True, max_examples=60)
def test_rounds_up(seconds: int, millionths: int) -> None:
    exact = seconds * 1_000_000 + millionths
    assert parse(f"{seconds}.{millionths:06}", NOW) == (-(-exact // 1_000) or None)


DATE_LIKE = st.from_regex(r"[A-Z][a-z]{2,8},? [0-9]{2}[- ](Jan|Feb|Dec)[- ][0-9]{2,4} [0-9:]{8} GMT", fullmatch=True)


@given(st.text() | st.from_regex(r"[-+0-9.eE]{1,12}", fullmatch=True) | DATE_LIKE, st.integers())
@example("Sunday, 06-Nov-94 08:49:37 GMT", 10**30)
@example("Sunday, 06-Nov-94 08:49:37 GMT", -(10**30))
@example("\ud800", 0)
@settings(derandomize=True, max_examples=200)
def test_total_over_any_text_and_clock(text: str, now: int) -> None:
    wait = parse(text, now)
    assert wait is None or 0 < wait <= LARGEST_MS
