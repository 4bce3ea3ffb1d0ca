"""The built-in tools of `--tools`: a calculator, a clock, and reading files of one folder, with approval."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from rho_adapters.tool import Tool, ToolFailure
from rho_adapters.tools.function import FunctionTool, tool

LARGEST_FILE = 64 * 1024
LARGEST_POWER = 1_000
LARGEST_NUMBER = 10**300
"""A calculator must not be made to compute for hours."""

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


@tool(accesses=())
def calculate(expression: Annotated[str, Field(description="such as (2 + 3) * 4", max_length=200)]) -> str:
    """Compute an arithmetic expression with + - * / // % ** and parentheses."""
    try:
        return str(_value(ast.parse(expression, mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, TypeError, MemoryError) as fault:
        raise ToolFailure(f"{expression!r} cannot be computed: {fault}") from None


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = _value(left), _value(right)
            if isinstance(op, ast.Pow) and abs(b) > LARGEST_POWER:
                raise ValueError("the exponent is too large")
            return _bounded(_BINARY[type(op)](a, b))
        case _:
            raise ValueError("only numbers and + - * / // % ** are known")


def _bounded(number: Any) -> int | float:
    if not isinstance(number, int | float) or abs(number) > LARGEST_NUMBER:
        raise ValueError("the number is too large, or no real number")
    return number


@tool(accesses=())
def clock(zone: Annotated[str, Field(description="an IANA name such as Europe/Paris")] = "UTC") -> str:
    """The date and time now, in a time zone."""
    try:
        return datetime.now(ZoneInfo(zone)).strftime("%A, %Y-%m-%d %H:%M:%S %Z")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolFailure(f"there is no time zone {zone!r}") from None


def read_file_tool(folder: Path) -> FunctionTool:
    """A tool that reads text files under `folder`, and nothing outside of it, symbolic links included.

    Its capability is `fs.read:` and the path with every link followed, so that a person sees what is read. Whoever
    may write into the folder could still change it between the approval and the reading; never outside of it.
    """
    root = folder.resolve()

    def inside(path: str) -> Path:
        found = (root / path).resolve()
        if not found.is_relative_to(root):
            raise ToolFailure(f"{path!r} is outside of the folder")
        return found

    def capability(arguments: Any) -> str | None:
        found = (root / str(arguments["path"])).resolve()
        # Outside there is nothing to approve: the call fails by itself.
        return f"fs.read:{found}" if found.is_relative_to(root) else None

    def read_file(path: Annotated[str, Field(description="relative to the folder", min_length=1)]) -> str:
        found = inside(path)
        if not found.is_file():
            raise ToolFailure(f"{path!r} is no file")
        try:
            with found.open("rb") as opened:
                data = opened.read(LARGEST_FILE + 1)
        except OSError as fault:
            raise ToolFailure(f"{path!r} cannot be read: {fault.strerror}") from None
        if len(data) > LARGEST_FILE:
            raise ToolFailure(f"{path!r} is larger than {LARGEST_FILE} bytes")
        return data.decode(errors="replace")

    return FunctionTool(
        read_file,
        description="Read a text file of the folder that the person shared.",
        accesses=(),
        capability=capability,
    )


def built_in(folder: Path) -> list[Tool]:
    """All of them."""
    return [calculate, clock, read_file_tool(folder)]
