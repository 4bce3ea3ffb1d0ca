"""Read YAML into plain values that remember their lines (scenario format §1).

The YAML 1.2 core schema is used: `yes`, `no`, `on` and `off` are texts, and so are `1:30` and `2000-01-01`;
PyYAML's own loaders would turn them into booleans, numbers and dates.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from rho_conformance.scenario.tree import Map, ScenarioFileError, Seq, shorten

DEEPEST = 64
"""How many maps and lists may stand in each other; everything that walks a scenario does so recursively."""
MOST_BY_ALIAS = 10_000
"""How many values aliases may add to those that are written down: a few lines of them can mean billions."""


_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _TooDeep(Exception):
    """Maps and lists stand in each other beyond `DEEPEST`, first on this line."""

    def __init__(self, line: int) -> None:
        self.line = line


class _Loader(yaml.SafeLoader):
    """The safe loader with the resolvers of the YAML 1.2 core schema alone, bounded in depth."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _TooDeep(self.line + 1)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


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
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as fault:
        line = fault.object.count(b"\n", 0, fault.start) + 1
        raise ScenarioFileError(str(path), line, f"cannot be read: {fault}") from fault
    except OSError as fault:
        raise ScenarioFileError(str(path), 1, f"cannot be read: {fault}") from fault
    return parse_tree(text, str(path))


def parse_tree(text: str, path: str) -> Map:
    """The one document in a text; `path` names it in errors."""
    node = _document(text, path)
    value = _Values(path, _written(node)).of(node) if node is not None else None
    if not isinstance(value, Map):
        raise ScenarioFileError(path, 1, "a scenario file holds one map")
    return value


def _document(text: str, path: str) -> yaml.Node | None:
    try:
        loader = _Loader(text)
        try:
            document: yaml.Node | None = loader.get_single_node()
            return document
        finally:
            loader.dispose()
    except _TooDeep as fault:
        message = f"more than {DEEPEST} maps and lists stand in each other"
        raise ScenarioFileError(path, fault.line, message) from fault
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        message = f"not YAML: the character #x{ord(text[fault.position]):04x} is not allowed"
        raise ScenarioFileError(path, line, message) from fault
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        raise ScenarioFileError(path, mark.line + 1 if mark else 1, f"not YAML: {fault.problem}") from fault
    except (yaml.YAMLError, ValueError, OverflowError) as fault:
        # PyYAML lets the faults of chr() through, for an escape that means no character ("\UFFFFFFFF").
        raise ScenarioFileError(path, 1, f"not YAML: {fault}") from fault


def _written(node: yaml.Node | None) -> int:
    """How many values a document writes down; what an alias names is counted once."""
    seen: set[int] = set()
    rest = [node] if node is not None else []
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, yaml.MappingNode):
            rest += [part for pair in one.value for part in pair]
        elif isinstance(one, yaml.SequenceNode):
            rest += one.value
    return len(seen)


class _Values:
    """Nodes become values; a node that aliases name becomes one value for each of them."""

    def __init__(self, path: str, written: int) -> None:
        self.path = path
        self.left = written + MOST_BY_ALIAS
        self.above: list[yaml.Node] = []

    def of(self, node: yaml.Node) -> Any:
        line = node.start_mark.line + 1
        if any(node is one for one in self.above):
            raise ScenarioFileError(self.path, line, "an alias holds itself")
        self.left -= 1
        if self.left < 0:
            raise ScenarioFileError(self.path, line, f"the aliases come to more than {MOST_BY_ALIAS} values")
        if len(self.above) > DEEPEST:
            message = f"the aliases make more than {DEEPEST} maps and lists stand in each other"
            raise ScenarioFileError(self.path, line, message)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, self.path, line)
        if node.tag not in _COLLECTIONS:
            raise ScenarioFileError(self.path, line, f"the tag {node.tag!r} has no meaning here")
        self.above.append(node)
        value = self.map(node) if isinstance(node, yaml.MappingNode) else self.list(node)
        self.above.pop()
        return value

    def list(self, node: yaml.Node) -> Seq:
        result = Seq()
        result.line = node.start_mark.line + 1
        for item in node.value:
            result.put(self.of(item), item.start_mark.line + 1)
        return result

    def map(self, node: yaml.MappingNode) -> Map:
        result = Map()
        result.line = node.start_mark.line + 1
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise ScenarioFileError(self.path, line, "a key must be a text")
            if key_node.value in result:
                raise ScenarioFileError(self.path, line, f"the key {key_node.value!r} stands twice")
            result.put(key_node.value, self.of(value_node), line)
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
            return _finite(float(text))
    except ValueError as fault:
        raise ScenarioFileError(path, line, f"{shorten(repr(text))} is no {kind}") from fault
    raise ScenarioFileError(path, line, f"the tag {node.tag!r} has no meaning here")


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("JSON has no such number")
    return number
