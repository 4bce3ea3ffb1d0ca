"""Which name each command of a scenario takes, and that no two take the same (scenario format §1, "Names")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rho_conformance.scenario.grammar import COMMANDS, ORCA_STIMULI, START_LIKE

OPEN = "open"
"""The name under which the answer to `open` is filed among the replies."""
_LISTS = ("provider", "tool", "compactor")


def unfolded(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The stimuli of a step: those inside `together` and `maybe`, and the items of a list one by one."""
    if name == "together":
        for inner in value:
            yield from unfolded(*next(iter(inner.items())))
    elif name == "maybe":
        yield from unfolded(*next(iter(value.items())))
    elif name in _LISTS and isinstance(value, list):
        for item in value:
            yield name, item
    else:
        yield name, value


@dataclass(frozen=True, slots=True)
class _Named:
    """A command: the name the file gives it, the one it has without, and where it stands."""

    given: str | None
    own: str
    line: int
    run: bool


def clash(steps: Iterable[tuple[str, Any, int]]) -> tuple[int, str] | None:
    """The first command (line and what is wrong) whose `as` is already the name of something else.

    `steps` are name, value and line of each step. A reply could be looked up under such a name, but whose?
    """
    commands = list(_commands(steps))
    own = {command.own: command for command in commands if command.run or command.given is None}
    given: dict[str, _Named] = {}
    for command in commands:
        if command.given is None:
            continue
        if command.given == OPEN:
            return command.line, f"as: {OPEN} is the name of the answer to the configuration"
        other = given.setdefault(command.given, command)
        if other is not command:
            return command.line, f"as: {command.given} is also the name of the command of line {other.line}"
        other = own.get(command.given, command)
        if other is not command:
            what = "a run" if other.run else "a command"
            return command.line, f"as: {command.given} is the name of {what} of line {other.line}"
    return None


def _commands(steps: Iterable[tuple[str, Any, int]]) -> Iterator[_Named]:
    counts: Counter[str] = Counter()
    for step, content, line in steps:
        for name, value in unfolded(step, content):
            if name not in COMMANDS and name not in ORCA_STIMULI:
                continue
            run = name in START_LIKE
            kind = "r" if run else name
            counts[kind] += 1
            given = value.get("as") if isinstance(value, dict) else None
            yield _Named(given, f"{kind}{counts[kind]}", line, run)
