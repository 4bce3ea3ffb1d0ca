"""Fills the generated parts of `pages/*.md` from the catalogue. `python -m rho_spec.pages` rewrites them.

A generated part stands between `<!-- generated: NAME ARGUMENT -->` and `<!-- end -->`. Every rule gets its
anchor in the table of its area, so `ordering.md#RHO-ORD-4` is a stable address.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from rho_spec.catalogue import Rule, load
from rho_spec.paths import data_root

_BLOCK: Final = re.compile(r"(<!-- generated: (\w+) ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)
_ANCHOR: Final = re.compile(r'<a id="([^"]+)"></a>')
_LINK: Final = re.compile(r"\]\(([^)\s:]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


class PageError(ValueError):
    """A page with a marker that names nothing; the text names page and marker."""


def pages() -> tuple[Path, ...]:
    """The pages, by name."""
    return tuple(sorted((data_root() / "pages").glob("*.md")))


def fill(text: str, name: str) -> str:
    """The page text with every generated part as the catalogue has it now. Raises `PageError`."""

    def part(match: re.Match[str]) -> str:
        maker, argument = _MAKERS.get(match[2]), match[3]
        if maker is None:
            raise PageError(f"{name}: nothing generates {match[2]!r}; known: {', '.join(_MAKERS)}")
        lines = list(maker(argument))
        if not lines:
            raise PageError(f"{name}: {match[2]} {argument!r} is empty; is the area misspelt?")
        return match[1] + "\n".join(lines) + "\n" + match[4]

    return _BLOCK.sub(part, text)


def check_pages() -> list[str]:
    """What is wrong with the pages: stale parts, rules without a single anchor, links that lead nowhere."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages()}
    problems = [f"{name}: stale, run python -m rho_spec.pages" for name, t in texts.items() if fill(t, name) != t]
    anchors = Counter(anchor for text in texts.values() for anchor in _ANCHOR.findall(text))
    problems += [f"{rule.id}: {anchors[rule.id]} anchors" for rule in load() if anchors[rule.id] != 1]
    cited = {decision for rule in load() for decision in rule.decisions}
    problems += [f"decision {decision}: {anchors[decision]} anchors" for decision in sorted(cited - set(anchors))]
    return problems + [problem for name, text in texts.items() for problem in _dead_links(name, text)]


def _dead_links(name: str, text: str) -> Iterable[str]:
    folder = data_root() / "pages"
    for target in _LINK.findall(text):
        file, _, anchor = target.partition("#")
        path = folder / (file or name)
        if not path.is_file():
            yield f"{name}: link to {file}, which does not exist"
        elif anchor and anchor not in _addresses(path):
            yield f"{name}: link to {target}, where nothing has that anchor"


def _addresses(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    headings = (re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in _HEADING.findall(text))
    return {*_ANCHOR.findall(text), *headings}


def _rules_table(area: str) -> Iterable[str]:
    rules = [rule for rule in load() if rule.area == area]
    if not rules:
        return
    yield "| Rule | What it says |"
    yield "|---|---|"
    for rule in rules:
        head = f'<a id="{rule.id}"></a>**{rule.id}**<br>{rule.title}'
        yield f"| {head} | {_cell(rule.statement)}<br><sub>{_small_print(rule)}</sub> |"


def _small_print(rule: Rule) -> str:
    parts = [rule.kind if rule.level == "must" else f"{rule.kind}, {rule.level}"]
    if rule.source.sentences:
        plural = "s" if len(rule.source.sentences) > 1 else ""
        parts.append(f"sentence{plural} {', '.join(map(str, rule.source.sentences))} of the page")
    if rule.release:
        parts.append(f"from the release: {_cell(rule.release)}")
    if rule.testable == "no":
        parts.append(f"not tested: {_cell(rule.why)}")
    else:
        named = [
            rule.pattern and f"pattern {rule.pattern}",
            rule.predicate and f"predicate `{rule.predicate}`",
        ]
        parts.append("tested by " + " and ".join(name for name in named if name))
    parts += [f"[{decision}](decisions.md#{decision})" for decision in rule.decisions]
    return " · ".join(parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _areas_table(_: str) -> Iterable[str]:
    yield "| Area | Rules | tested | permission, limitation | Page |"
    yield "|---|---|---|---|---|"
    areas = list(dict.fromkeys(rule.area for rule in load()))
    homes = _homes()
    for area in areas:
        rules = [rule for rule in load() if rule.area == area]
        tested = sum(rule.testable != "no" for rule in rules)
        loose = sum(rule.kind in ("permission", "limitation") for rule in rules)
        page = homes.get(area, "")
        label = area.replace("_", " ")
        yield f"| {label} | {len(rules)} | {tested} | {loose} | [{page}]({page}) |"
    total = load()
    tested = sum(rule.testable != "no" for rule in total)
    loose = sum(rule.kind in ("permission", "limitation") for rule in total)
    yield f"| **together** | {len(total)} | {tested} | {loose} | |"


def _homes() -> dict[str, str]:
    found = ((path.name, path.read_text(encoding="utf-8")) for path in pages())
    return {m[3]: name for name, text in found for m in _BLOCK.finditer(text) if m[2] == "rules"}


def _decisions_table(_: str) -> Iterable[str]:
    yield "| Decision | Rules it touches |"
    yield "|---|---|"
    homes = _homes()
    used: dict[str, list[Rule]] = {}
    for rule in load():
        for decision in rule.decisions:
            used.setdefault(decision, []).append(rule)
    for decision in sorted(used, key=lambda d: int(d[1:])):
        links = ", ".join(f"[{r.id}]({homes.get(r.area, '')}#{r.id})" for r in used[decision])
        yield f"| [{decision}](#{decision}) | {links} |"


_MAKERS: Final[dict[str, Callable[[str], Iterable[str]]]] = {
    "rules": _rules_table,
    "areas": _areas_table,
    "decisions": _decisions_table,
}


def main() -> int:
    """Rewrite the generated parts; 0, or 1 when something is left that writing cannot mend."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        path.write_text(fill(text, path.name), encoding="utf-8", newline="\n")
    problems = check_pages()
    print("\n".join(problems) if problems else f"{len(pages())} pages are up to date")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
