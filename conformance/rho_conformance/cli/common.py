"""What every command shares: exit statuses, formats, output on stdout, progress on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

OK, BROKEN, INCOMPLETE, FAULT, USAGE = 0, 1, 2, 3, 4
"""Exit statuses. A proven failure (1) wins over a fault of the harness (3), which wins over an incomplete run (2)."""


class Format(StrEnum):
    """How to answer: for people, or JSON alone on stdout."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="text for people, json for programs")]

out = Console(soft_wrap=False)
err = Console(stderr=True)


_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: JSON can escape it, but no encoding can write it."""


def print_json(value: Any) -> None:
    """One JSON document, and nothing else, on stdout."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    text = json.dumps(value, ensure_ascii=plain, indent=1)
    typer.echo(_HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text))


def printable() -> None:
    """Let every text be printed: what the terminal's encoding cannot write is escaped, not a fault."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class Bar:
    """One bar that is told the stage, how far it is and how far it goes (0: not known)."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total or None)
        self._progress.update(self._tasks[stage], completed=done, total=total or None)


@contextmanager
def progress_bar() -> Iterator[Bar]:
    """Progress on stderr, and only where a person is looking."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        yield Bar(progress)
