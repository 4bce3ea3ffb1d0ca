"""The sentence ledger: `sources/PAGE.toml` maps every sentence of a source page to the rules it promises.

The sentences are not ours to ship; the ledger holds their number, their SHA-256 and a few first words. With
the page at hand, `verify_page` finds what was changed, removed or added since the ledger was written.
`python -m rho_spec.sources FILE` prints that.
"""

import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from rho_spec.catalogue import Rule, load
from rho_spec.paths import data_root
from rho_spec.sentences import Sentence, split

_ENTRY_KEYS: Final = frozenset({"n", "sha256", "locator", "rules", "no-promise"})
_MAX_LOCATOR: Final = 8
ProblemKind = Literal["changed", "missing", "new"]


class LedgerError(ValueError):
    """A ledger file that does not hold what it must; the text names file, number and key."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One sentence of a page: either it promises `rules`, or `no_promise` says why it promises nothing."""

    number: int
    sha256: str
    locator: str
    rules: tuple[str, ...] = ()
    no_promise: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A difference between a page and its ledger. `number` is the ledger's, or the page's if new."""

    kind: ProblemKind
    number: int
    locator: str
    rules: tuple[str, ...] = ()

    def __str__(self) -> str:
        affected = f" (rules: {', '.join(self.rules)})" if self.rules else ""
        return f"{self.kind}: sentence {self.number}, “{self.locator} …”{affected}"


@cache
def load_ledger(page: str = "rho") -> tuple[Entry, ...]:
    """The ledger of a page, in order of its numbers. Raises `LedgerError`, also for a page that has none."""
    path = data_root() / "sources" / f"{page}.toml"
    if not path.is_file():
        raise LedgerError(f"no ledger for page {page!r}: {path.name} does not exist")
    return parse_ledger(path.read_text(encoding="utf-8"), path.name)


def parse_ledger(text: str, name: str) -> tuple[Entry, ...]:
    """Read the TOML text of a ledger. Raises `LedgerError`."""
    try:
        tables = tomllib.loads(text).get("sentence", [])
    except tomllib.TOMLDecodeError as error:
        raise LedgerError(f"{name}: not TOML: {error}") from error
    entries = tuple(_entry(name, table) for table in tables)
    if [entry.number for entry in entries] != list(range(1, len(entries) + 1)):
        raise LedgerError(f"{name}: the numbers must be 1, 2, 3 … without gap")
    return entries


def _entry(name: str, table: dict[str, Any]) -> Entry:
    where = f"{name}: sentence {table.get('n', '?')}"
    unknown = sorted(set(table) - _ENTRY_KEYS)
    if unknown:
        raise LedgerError(f"{where}: unknown key {', '.join(unknown)}")
    entry = Entry(
        number=table.get("n", 0),
        sha256=table.get("sha256", ""),
        locator=table.get("locator", ""),
        rules=tuple(table.get("rules", ())),
        no_promise=table.get("no-promise", ""),
    )
    if len(entry.sha256) != 64:
        raise LedgerError(f"{where}: sha256 must be 64 hexadecimal digits")
    if not 1 <= len(entry.locator.split()) <= _MAX_LOCATOR:
        raise LedgerError(f"{where}: the locator must have one to {_MAX_LOCATOR} words")
    if bool(entry.rules) == bool(entry.no_promise):
        raise LedgerError(f"{where}: needs either rules or a reason under 'no-promise', and not both")
    return entry


def mapping_problems(entries: Sequence[Entry], rules: Sequence[Rule], page: str = "rho") -> list[str]:
    """Where ledger and catalogue disagree: unknown rules, unreached rules, one-sided citations."""
    known = {rule.id: rule for rule in rules if rule.source.page == page}
    cited: dict[str, list[int]] = {}
    for entry in entries:
        for rule_id in entry.rules:
            cited.setdefault(rule_id, []).append(entry.number)
    problems = [f"{rule_id}: in the ledger, not in the catalogue" for rule_id in cited if rule_id not in known]
    for rule in known.values():
        numbers = cited.get(rule.id, [])
        if not numbers and rule.origin != "release":
            problems.append(f"{rule.id}: no sentence of the page leads to it, and its origin is not the release")
        if numbers != sorted(rule.source.sentences):
            problems.append(f"{rule.id}: cites {sorted(rule.source.sentences)}, the ledger says {numbers}")
    return problems


def verify_page(path: Path | str, page: str = "rho") -> list[Problem]:
    """Compare a copy of the page with the ledger. Raises `OSError` if unreadable, and `LedgerError`."""
    return compare(split(Path(path).read_text(encoding="utf-8")), load_ledger(page))


def compare(sentences: Sequence[Sentence], entries: Sequence[Entry]) -> list[Problem]:
    """Align page and ledger by their hashes; what does not align was changed, removed or added."""
    old, new = [entry.sha256 for entry in entries], [sentence.sha256 for sentence in sentences]
    problems: list[Problem] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        paired = min(i2 - i1, j2 - j1)
        for offset, entry in enumerate(entries[i1:i2]):
            kind: ProblemKind = "changed" if offset < paired else "missing"
            problems.append(Problem(kind, entry.number, entry.locator, entry.rules))
        problems += [Problem("new", s.number, s.locator) for s in sentences[j1 + paired : j2]]
    return problems


def main(argv: Sequence[str]) -> int:
    """Verify the page named on the command line: 0 as in the ledger, 1 different, 4 usage."""
    if len(argv) != 1:
        print("usage: python -m rho_spec.sources FILE", file=sys.stderr)
        return 4
    found = [str(problem) for problem in verify_page(argv[0])]
    found += mapping_problems(load_ledger(), load())
    print("\n".join(found) if found else "the page is the one of the ledger")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
