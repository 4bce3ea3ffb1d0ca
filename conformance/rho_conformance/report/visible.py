"""Texts of foreign runtimes, made fit to be shown.

What an implementation says ends up in HTML, XML, Markdown and on terminals. Escaping the syntax of each is the
writer's task; here goes what no syntax escapes: characters that act on a terminal, turn a line around, cannot be
encoded, or may not stand in XML at all.
"""

from __future__ import annotations

import re

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, but for the tab and the end of a line
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # what is not seen, and what turns the direction of a text
    "\ud800-\udfff\ufffe\uffff]"  # halves of surrogate pairs, and no characters
)


def visible(text: str) -> str:
    """The text with each such character as its `\\uXXXX`; a tab and a line feed stay."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cut(text: str, longest: int) -> str:
    """At most so many characters, the last one an ellipsis where something was lost."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
