"""Read YAML into plain values that remember their lines, and substitute `${name}` (scenario format §1).

The YAML 1.2 core schema is used: `yes`, `no`, `on` and `off` are texts, and so are `1:30` and `2000-01-01`;
PyYAML's own loaders would turn them into booleans, numbers and dates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rho_conformance.errors import UsageError

_NAME = re.compile(r"\$\{([^{}]*)\}")


class ScenarioFileError(UsageError):
    """A scenario file is not in the format: says file, line and what is wrong there."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = path, line, message


class Map(dict[str, Any]):
    """A YAML map; `lines` says where each key stands."""

    line: int = 0
    emptied: bool = False  # it had keys, and all of them were null

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}

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


class _Loader(yaml.SafeLoader):
    """The safe loader with the resolvers of the YAML 1.2 core schema alone."""


_Loader.yaml_implicit_resolvers = {}


_CORE_SCHEMA = [
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
]
for _tag, _pattern, _first in _CORE_SCHEMA:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def load_tree(path: Path) -> Map:
    """The one document of a file, a map; raises `ScenarioFileError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ScenarioFileError(str(path), 1, f"cannot be read: {fault}") from fault
    return parse_tree(text, str(path))


def parse_tree(text: str, path: str) -> Map:
    """The one document in a text; `path` names it in errors."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        raise ScenarioFileError(path, mark.line + 1 if mark else 1, f"not YAML: {fault.problem}") from fault
    except yaml.YAMLError as fault:
        raise ScenarioFileError(path, 1, f"not YAML: {fault}") from fault
    finally:
        loader.dispose()
    value = _value(node, path, ()) if node is not None else None
    if not isinstance(value, Map):
        raise ScenarioFileError(path, 1, "a scenario file holds one map")
    return value


def _value(node: yaml.Node, path: str, above: tuple[yaml.Node, ...]) -> Any:
    line = node.start_mark.line + 1
    if node in above:
        raise ScenarioFileError(path, line, "an alias holds itself")
    if isinstance(node, yaml.MappingNode):
        return _map(node, path, (*above, node))
    if isinstance(node, yaml.SequenceNode):
        result = Seq()
        result.line = line
        for item in node.value:
            result.put(_value(item, path, (*above, node)), item.start_mark.line + 1)
        return result
    assert isinstance(node, yaml.ScalarNode)
    return _scalar(node, path, line)


def _map(node: yaml.MappingNode, path: str, above: tuple[yaml.Node, ...]) -> Map:
    result = Map()
    result.line = node.start_mark.line + 1
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ScenarioFileError(path, line, "a key must be a text")
        if key_node.value in result:
            raise ScenarioFileError(path, line, f"the key {key_node.value!r} stands twice")
        result.put(key_node.value, _value(value_node, path, above), line)
    return result


def _scalar(node: yaml.ScalarNode, path: str, line: int) -> Any:
    text: str = node.value
    kind = node.tag.rpartition(":")[2]
    try:
        if kind == "str":
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int":
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if kind == "float":
            return float(text)
    except ValueError as fault:
        raise ScenarioFileError(path, line, f"{text!r} is no {kind}") from fault
    raise ScenarioFileError(path, line, f"the tag {node.tag!r} has no meaning here")


def prepare(tree: Any, names: Mapping[str, Any] | None, path: str, line: int = 1) -> Any:
    """Put the values of `names` in place of `${name}` and leave out keys whose value is null.

    Without `names` (a file without `cases`) nothing is substituted. Raises `ScenarioFileError` for a name
    that the case does not have.
    """
    if isinstance(tree, Map):
        return _prepare_map(tree, names, path)
    if isinstance(tree, Seq):
        sequence = Seq()
        sequence.line = tree.line
        for item, at in zip(tree, tree.lines, strict=True):
            sequence.put(prepare(item, names, path, at), at)
        return sequence
    if isinstance(tree, str) and names is not None:
        return _substitute(tree, names, path, line)
    return tree


def _prepare_map(tree: Map, names: Mapping[str, Any] | None, path: str) -> Map:
    result = Map()
    result.line = tree.line
    for key, value in tree.items():
        line = tree.lines[key]
        prepared = prepare(value, names, path, line)
        if prepared is None:
            continue
        name = key if names is None else _substitute(key, names, path, line)
        if not isinstance(name, str):
            name = plain_text(name)
        if name in result:
            raise ScenarioFileError(path, line, f"the key {name!r} stands twice")
        result.put(name, prepared, line)
    result.emptied = bool(tree) and not result
    return result


def _substitute(text: str, names: Mapping[str, Any], path: str, line: int) -> Any:
    def value(name: str) -> Any:
        if name not in names:
            raise ScenarioFileError(path, line, f"no value for ${{{name}}} in this case")
        return names[name]

    whole = _NAME.fullmatch(text)
    if whole:
        # Values of a case are not substituted again, but their nulls count as absent like all others.
        return prepare(value(whole[1]), None, path, line)
    return _NAME.sub(lambda found: plain_text(value(found[1])), text)


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
