"""What the core is made of: the standard library, frozen values, and no way to the outside (design §3.1)."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import pytest

import rho_core
from rho_core import inputs

ROOT = Path(__file__).parents[2]
NAMES = sorted(m.name for m in pkgutil.walk_packages(rho_core.__path__, "rho_core."))
PURE = [name for name in NAMES if name != "rho_core.wire"]


def source(name: str) -> Path:
    file = import_module(name).__file__
    assert file is not None
    return Path(file)


# --- what it brings in --------------------------------------------------------------------------------------


def third_party(*names: str) -> set[str]:
    """Top-level modules outside the standard library that importing `names` loads in a clean interpreter."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1].split('|')\n"
        "from importlib import import_module\n"
        "for name in sys.argv[2:]: import_module(name)\n"
        "print(*{m.partition('.')[0] for m in sys.modules} - set(sys.stdlib_module_names))"
    )
    site = str(Path(import_module("pydantic").__path__[0]).parent)  # there to be found, were it asked for
    command = [sys.executable, "-I", "-S", "-c", code, f"{ROOT}|{site}", *names]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(out.stdout.split()) - {"rho_core", "__main__"}


def test_the_core_is_the_standard_library() -> None:
    assert third_party(*PURE) == set()


def test_the_wire_brings_pydantic() -> None:
    assert "pydantic" in third_party("rho_core.wire")


# --- what its code may touch --------------------------------------------------------------------------------

OUTSIDE = frozenset(
    [
        "asyncio",
        "concurrent",
        "ctypes",
        "datetime.datetime",
        "getpass",
        "glob",
        "http",
        "io",
        "locale",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "platform",
        "queue",
        "random",
        "sched",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
        "warnings",
    ]
)
CALLS = frozenset({"open", "print", "input", "hash", "id", "eval", "exec", "today", "now", "utcnow"})
ALLOWED = {
    "rho_core._entry": {"print"},  # the console script
    "rho_core.wire": {"pathlib"},  # publishes schemas
    "rho_core.record": {"exec"},  # writes constructors, as dataclasses do
}


def touched(tree: ast.AST) -> set[str]:
    """Modules imported and suspicious functions called."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {n.name.partition(".")[0] for n in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            found |= {module.partition(".")[0], *(f"{module}.{n.name}" for n in node.names)}
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            found |= {str(name)} & CALLS
    return found & (OUTSIDE | CALLS)


@pytest.mark.parametrize("name", NAMES)
def test_no_way_out(name: str) -> None:
    tree = ast.parse(source(name).read_text(encoding="utf-8"))
    assert touched(tree) <= ALLOWED.get(name, set())


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "from os import path",
        "import os.path as p",
        "from datetime import datetime",
        "d = date.today()",
    ],
)
def test_the_check_sees_a_way_out(line: str) -> None:
    assert touched(ast.parse(line))


# --- what its values are ------------------------------------------------------------------------------------


def own_dataclasses(name: str) -> list[type]:
    return [
        value
        for value in vars(import_module(name)).values()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == name
    ]


RECORDS = [cls for name in PURE for cls in own_dataclasses(name)]
FUNCTIONS = {("Row", "handler"), ("Row", "exits")}
"""A row of a table holds functions and classes; it is no state."""
UNTYPED = {("NotReady", "input")}
"""Any input, which knows effects in turn; the test of their kinds covers it."""
LEAVES = (str, int, bool, NoneType)


def strange(hint: Any) -> list[Any]:
    """Parts of an annotation that are no text, number, None, literal, enum, record, or tuple of these."""
    origin = get_origin(hint) or hint
    if origin is Literal or isinstance(hint, (TypeVar, ForwardRef, str)) or hint is ...:
        return []
    if origin in (Union, UnionType, tuple):
        return [s for arg in get_args(hint) for s in strange(arg)] or ([hint] if hint is tuple else [])
    if origin in LEAVES or (isinstance(origin, type) and issubclass(origin, Enum)):
        return []
    return [] if is_dataclass(origin) else [hint]


@pytest.mark.parametrize("cls", RECORDS, ids=lambda c: f"{c.__module__.removeprefix('rho_core.')}.{c.__name__}")
def test_a_record_is_frozen_and_hashable_all_the_way_down(cls: Any) -> None:
    assert cls.__dataclass_params__.frozen
    assert "__slots__" in vars(cls) and "__dict__" not in dir(cls)
    assert cls.__hash__ is not None
    hints = get_type_hints(cls)
    for field in fields(cls):
        if (cls.__name__, field.name) not in FUNCTIONS | UNTYPED:
            assert strange(hints[field.name]) == [], field.name


@pytest.mark.parametrize(
    "hint",
    [dict[str, int], tuple[list[int], ...], set[str] | None, Any, float, frozenset[str], tuple, object],
)
def test_the_check_sees_what_is_not_a_value(hint: Any) -> None:
    assert strange(hint)


def test_the_exceptions_are_there() -> None:
    known = {(cls.__name__, f.name) for cls in RECORDS for f in fields(cls)}
    assert known >= FUNCTIONS | UNTYPED


def test_a_record_that_crosses_the_wire_is_told_by_its_kind() -> None:
    for cls in (*get_args(inputs.SessionInput), *get_args(inputs.RuntimeInput)):
        kind = next(f for f in fields(cls) if f.name == "kind")
        assert kind.kw_only and kind.default == get_args(get_type_hints(cls)["kind"])[0]
        assert cls in RECORDS


# --- the class of each input --------------------------------------------------------------------------------


def test_every_input_of_a_run_has_one_class() -> None:
    assert set(inputs.INPUT_CLASS) == set(get_args(inputs.RunInput))
    parts = (inputs.CONTROL, inputs.RECORD, inputs.GATED)
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(inputs.INPUT_CLASS)
    for name, part in zip(("control", "record", "gated"), parts, strict=True):
        assert {inputs.INPUT_CLASS[cls] for cls in part} == {name}
