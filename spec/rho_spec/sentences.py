"""Cuts a source page into numbered sentences, the same way every time.

The catalogue cites sentences of pages that are not ours to ship. So the cutting must depend on nothing but
the text: one line is a heading, a list item or a paragraph; items and paragraphs are cut at sentence ends.
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["heading", "item", "sentence"]

_BULLET: Final = re.compile(r"^(?:[•*\-–]|\d+[.)])\s+")
# A sentence ends at . ! or ?, perhaps before a closing quote or bracket, when what follows opens like one.
_SENTENCE_END: Final = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[\"'(]?[A-Z0-9])")
_QUOTES: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
_CLOSERS: Final = "\"')]"
_LOCATOR_WORDS: Final = 8


@dataclass(frozen=True, slots=True)
class Sentence:
    """One numbered unit of a page: its number from 1, the heading it stands under, what it is, its text."""

    number: int
    section: str
    kind: Kind
    text: str

    @property
    def sha256(self) -> str:
        return digest(self.text)

    @property
    def locator(self) -> str:
        """The first words, to find the sentence in the page: at most eight, and never the whole of it."""
        words = normalise(self.text).split(" ")
        return " ".join(words[: max(1, min(_LOCATOR_WORDS, len(words) // 2))])


def normalise(text: str) -> str:
    """One spelling for what typesetting varies: Unicode form, quotes, runs of blanks. Case and marks stay."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_QUOTES).split())


def digest(text: str) -> str:
    """SHA-256 (hex) of the normalised text."""
    return hashlib.sha256(normalise(text).encode()).hexdigest()


def split(text: str) -> tuple[Sentence, ...]:
    """Cut a page into sentences, numbered from 1. Headings count: they decide what sentences mean."""
    found: list[Sentence] = []
    section = ""
    for line in text.splitlines():
        stripped = normalise(line)
        if not stripped:
            continue
        if _is_heading(stripped):
            section = stripped.lstrip("# ")
            found.append(Sentence(len(found) + 1, section, "heading", section))
            continue
        kind: Kind = "item" if _BULLET.match(stripped) else "sentence"
        for part in _SENTENCE_END.split(_BULLET.sub("", stripped)):
            found.append(Sentence(len(found) + 1, section, kind, part))
    return tuple(found)


def _is_heading(line: str) -> bool:
    """A line of Markdown heading form, or one that is no list item and ends without a closing mark."""
    if line.startswith("#"):
        return True
    return not _BULLET.match(line) and line.rstrip(_CLOSERS)[-1:] not in {".", ":", "!", "?", ";", ","}
