"""`Retry-After` header text as a wait in milliseconds (design D13; RHO-RET-3, RHO-RET-9).

Pure and total: the caller says what time it is, and any text gives an answer. Arithmetic is on integers,
since rounding must go up from any fraction, and a float makes a long run of digits infinite.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

LARGEST_MS = 2**63 - 1
"""Longer hints mean just "very long": text of any length must not become a number of any length."""

_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SHORT = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_CLOCK = "(?P<hour>[0-1][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9]|60)"

# `[0-9]`, never `\d` or `isdigit`: those take digits of other scripts, on which a wait must not depend.
_SECONDS = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?")
_DATES = (
    re.compile(f"{_SHORT}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_CLOCK} GMT"),  # IMF-fixdate
    re.compile(f"{_LONG}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_CLOCK} GMT"),  # RFC 850
    re.compile(f"{_SHORT} {_MONTH} (?P<day>[0-9]{{2}}| [0-9]) {_CLOCK} (?P<year>[0-9]{{4}})"),  # asctime
)


def parse(text: str, now_unix_ms: int) -> int | None:
    """The wait that `text` asks for at `now_unix_ms` (milliseconds since 1970-01-01T00:00:00Z), rounded up.

    Takes seconds, with or without a fraction, and the three date forms of RFC 9110 §5.6.7. None when the
    text is neither, or when the wait is not positive. The name of the weekday is not compared with the date.
    """
    text = text.strip(" \t")
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        wait = _milliseconds(seconds["whole"], seconds["part"] or "")
    else:
        moment = _moment(text, now_unix_ms)
        wait = 0 if moment is None else moment - now_unix_ms
    return min(wait, LARGEST_MS) if wait > 0 else None


def _milliseconds(whole: str, part: str) -> int:
    whole = whole.lstrip("0")
    if len(whole) > 16:  # int() itself refuses text of more than 4,300 digits
        return LARGEST_MS
    thousandths = int(part[:3].ljust(3, "0"))
    return int(whole or "0") * 1_000 + thousandths + bool(part[3:].strip("0"))


def _moment(text: str, now_unix_ms: int) -> int | None:
    match = next((m for m in (form.fullmatch(text) for form in _DATES) if m is not None), None)
    if match is None:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        year = _full_year(year, now_unix_ms)
    try:
        day = date(year, _MONTHS.index(match["month"]) + 1, int(match["day"]))
    except ValueError:  # 30 February, year 0
        return None
    clock = int(match["hour"]) * 3_600 + int(match["minute"]) * 60 + int(match["second"])
    return (day - _EPOCH).days * _DAY_MS + clock * 1_000


def _full_year(two_digits: int, now_unix_ms: int) -> int:
    """The newest year of that ending that is at most 50 years ahead (RFC 9110 §5.6.7)."""
    try:
        latest = (_EPOCH + timedelta(days=now_unix_ms // _DAY_MS)).year + 50
    except OverflowError:  # a clock beyond the calendar: no date is ahead of it or behind it
        return 0
    return latest - (latest - two_digits) % 100
