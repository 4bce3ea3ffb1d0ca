"""Plain values that remember their lines, and the `${name}` in them (scenario format §1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rho_conformance.errors import UsageError

_NAME = re.compile(r"\$\{([^{}]*)\}")


class ScenarioFileError(UsageError):
    """A scenario file is not in the format: says file, line and what is wrong there."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = path, line, message


class ScenarioFilesError(UsageError):
    """Several scenario files are not in the format: `faults` holds the first fault of each."""

    def __init__(self, faults: Sequence[ScenarioFileError]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


class Map(dict[str, Any]):
    """A YAML map; `lines` says where each key stands."""

    line: int = 0
    emptied: bool = False  # it had keys, and a case made all of them null

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}
        self.nulls: dict[str, int] = {}  # keys that the file itself left without a value, and where

    def put(self, key: str, value: Any, line: int) -> None:
        self[key] = value
        self.lines[key] = line


class Seq(list[Any]):
    """A YAML list; `lines` says where each element stands."""

    line: int = 0

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []

    def put(self, value: Any, line: int) -> None:
        self.append(value)
        self.lines.append(line)


def prepare(tree: Any, names: Mapping[str, Any] | None, path: str) -> Any:
    """Put the values of `names` in place of `${name}` and leave out keys whose value is null.

    `names` is None for a file without `cases`. Raises `ScenarioFileError` for a name that has no value.
    """
    return _Preparation(names, path).value(tree, 1)


def names_in(tree: Any) -> Iterator[str]:
    """All names that stand as `${name}` in keys and values."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from names_in(key)
            yield from names_in(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from names_in(item)
    elif isinstance(tree, str):
        yield from _NAME.findall(tree)


class _Preparation:
    """Makes one scenario's tree of a file's. `inside` a value of a case nothing is substituted again."""

    def __init__(self, names: Mapping[str, Any] | None, path: str, *, inside: bool = False) -> None:
        self.names, self.path, self.inside = names, path, inside

    def value(self, tree: Any, line: int) -> Any:
        if isinstance(tree, Map):
            return self.map(tree)
        if isinstance(tree, Seq):
            sequence = Seq()
            sequence.line = tree.line
            for item, at in zip(tree, tree.lines, strict=True):
                sequence.put(self.value(item, at), at)
            return sequence
        return self.text(tree, line) if isinstance(tree, str) and not self.inside else tree

    def map(self, tree: Map) -> Map:
        result = Map()
        result.line = tree.line
        for key, value in tree.items():
            line = tree.lines[key]
            prepared = self.value(value, line)
            name = key if self.inside else plain_text(self.text(key, line))
            if prepared is None:
                if value is None and not self.inside:
                    result.nulls[name] = line
                continue
            if name in result:
                raise ScenarioFileError(self.path, line, f"the key {name!r} stands twice")
            result.put(name, prepared, line)
        result.emptied = bool(tree) and not result and not result.nulls
        return result

    def text(self, text: str, line: int) -> Any:
        whole = _NAME.fullmatch(text)
        if whole:
            if self.names is None:
                raise ScenarioFileError(self.path, line, f"no value for {text}: the file has no cases")
            return _Preparation(None, self.path, inside=True).value(self.of(whole[1], line), line)
        if self.names is None:
            return text  # a text may speak of ${HOME}
        return _NAME.sub(lambda found: self.part(found[1], line), text)

    def part(self, name: str, line: int) -> str:
        value = self.of(name, line)
        if isinstance(value, dict | list):
            message = f"${{{name}}} is a map or a list in this case, and cannot stand inside a text"
            raise ScenarioFileError(self.path, line, message)
        return plain_text(value)

    def of(self, name: str, line: int) -> Any:
        if self.names is None or name not in self.names:
            raise ScenarioFileError(self.path, line, f"no value for ${{{name}}} in this case")
        return self.names[name]


def shorten(text: str, longest: int = 80) -> str:
    """A text in one line of an error, cut when it is long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def plain_text(value: Any) -> str:
    """A scalar as YAML would write it, for use inside a longer text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """The value as plain dicts and lists, fit for a driver."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
