"""The lifecycles: `lifecycles/*.toml`, one machine for each kind of entity, read and checked.

They are a second model beside the reducer, written from the prose: states, and moves with the observation that shows
each. Whatever is misspelt in a file is an error that names file, table and key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from rho_spec.catalogue import load as load_rules
from rho_spec.observations import CLOSED, EVENTS, UPCALLS
from rho_spec.paths import data_root

SAME: Final = "="
"""A destination: the state is left as it is."""
COMMANDS: Final = frozenset({"start", "steer", "retract", "close_reader", "renew"})
"""Letters that are no observation by themselves: a command of the host and the answer it got (`where.reply`)."""
CHANNEL: Final = frozenset({"event", "terminal", "read"})
"""Letters of the channel: any event that is sent, a terminal one, one that the reader takes."""
_WORDS: Final = frozenset(EVENTS) | frozenset(UPCALLS) | COMMANDS | CHANNEL | {CLOSED}
_FILE: Final = frozenset({"title", "entity", "says", "initial", "final", "states", "move"})
_MOVE: Final = frozenset({"trigger", "source", "dest", "on", "where", "hidden", "rules", "says"})


class LifecycleError(ValueError):
    """A lifecycle file that does not hold what it must; the text names file, table and key."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One occurrence as the machines see it: the name of an observation or command, and what tells variants apart."""

    name: str
    fields: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        told = ", ".join(f"{key} {value}" for key, value in self.fields)
        return f"{self.name} ({told})" if told else self.name


@dataclass(frozen=True, slots=True)
class Move:
    """One row. `on` names what shows it; a hidden move has none, and `hidden` says why nothing shows it."""

    trigger: str
    source: tuple[str, ...]
    dest: str
    on: tuple[str, ...]
    where: tuple[tuple[str, tuple[str, ...]], ...]
    hidden: str
    rules: tuple[str, ...]
    says: str

    def shown_by(self, letter: Letter) -> bool:
        """Is the letter this move? Every field of `where` must have one of its values."""
        if letter.name not in self.on:
            return False
        fields = dict(letter.fields)
        return all(fields.get(key) in values for key, values in self.where)

    def edges(self) -> Iterator[tuple[str, str]]:
        """Its pairs of states."""
        for source in self.source:
            yield source, source if self.dest == SAME else self.dest

    @property
    def label(self) -> str:
        """For diagrams: the trigger, and what shows it."""
        if self.hidden:
            return f"{self.trigger} (hidden)"
        told = ", ".join(f"{key}={'|'.join(values)}" for key, values in self.where)
        shown = "|".join(self.on) if len(self.on) < 4 else f"{self.on[0]}|…{len(self.on) - 1} more"
        return f"{self.trigger} [{shown}{' ' + told if told else ''}]"


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """One machine as data. `final`: the states in which an entity may be forgotten."""

    name: str
    title: str
    entity: str
    says: str
    initial: str
    final: tuple[str, ...]
    states: Mapping[str, str]
    moves: tuple[Move, ...]


@cache
def load() -> Mapping[str, Lifecycle]:
    """The lifecycles of this installation, by name."""
    return read_folder(data_root() / "lifecycles")


def read_folder(folder: Path) -> dict[str, Lifecycle]:
    """Every `*.toml` of a folder. Raises `LifecycleError` when there is none, or one of them is wrong."""
    found = {path.stem: read(path) for path in sorted(folder.glob("*.toml"))}
    if not found:
        raise LifecycleError(f"{folder}: no lifecycle files")
    return found


def read(path: Path) -> Lifecycle:
    """One file. Raises `LifecycleError`."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise LifecycleError(f"{path.name}: cannot be read: {fault}") from fault
    return parse(raw, path.stem)


def parse(raw: Mapping[str, Any], name: str) -> Lifecycle:
    """A lifecycle from the tables of a file; `name` is the machine's, and stands in errors as the file's."""
    file = f"{name}.toml"
    _keys(raw, _FILE, _FILE, file)
    states = _table(raw["states"], f"{file}: states")
    if not states:
        raise LifecycleError(f"{file}: states: is empty")
    moves = raw["move"]
    if not isinstance(moves, list) or not moves:
        raise LifecycleError(f"{file}: move: must be a list of tables, and not empty")
    lifecycle = Lifecycle(
        name,
        _text(raw, "title", file),
        _text(raw, "entity", file),
        _text(raw, "says", file),
        _text(raw, "initial", file),
        _texts(raw, "final", file),
        states,
        tuple(_move(table, f"{file}: move {number}") for number, table in enumerate(moves, 1)),
    )
    _check(lifecycle, file)
    return lifecycle


def _move(raw: Any, where: str) -> Move:
    if not isinstance(raw, Mapping):
        raise LifecycleError(f"{where}: must be a table")
    if isinstance(raw.get("trigger"), str):
        where = f"{where} ({raw['trigger']})"
    _keys(raw, frozenset({"trigger", "source", "dest", "rules"}), _MOVE, where)
    if ("on" in raw) == ("hidden" in raw):
        raise LifecycleError(f"{where}: needs either on or hidden")
    fields = raw.get("where", {})
    if not isinstance(fields, Mapping):
        raise LifecycleError(f"{where}: where: must be a table")
    if fields and "on" not in raw:
        raise LifecycleError(f"{where}: where: says nothing without on")
    return Move(
        _text(raw, "trigger", where),
        _texts(raw, "source", where),
        _text(raw, "dest", where),
        _texts(raw, "on", where) if "on" in raw else (),
        tuple((str(key), _values(value, f"{where}: where.{key}")) for key, value in sorted(fields.items())),
        _text(raw, "hidden", where) if "hidden" in raw else "",
        _texts(raw, "rules", where),
        _text(raw, "says", where) if "says" in raw else "",
    )


def _keys(raw: Mapping[str, Any], needed: frozenset[str], known: frozenset[str], where: str) -> None:
    missing, unknown = sorted(needed - set(raw)), sorted(set(raw) - known)
    if missing:
        raise LifecycleError(f"{where}: lacks {', '.join(missing)}")
    if unknown:
        raise LifecycleError(f"{where}: unknown key {', '.join(unknown)}")


def _text(raw: Mapping[str, Any], key: str, where: str) -> str:
    value = raw[key]
    if not isinstance(value, str) or not value.strip():
        raise LifecycleError(f"{where}: {key}: must be a text, got {value!r}")
    return value


def _texts(raw: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = raw[key]
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise LifecycleError(f"{where}: {key}: must be a list of texts, got {value!r}")
    if len(set(value)) != len(value):
        raise LifecycleError(f"{where}: {key}: names something twice")
    if not value and key != "final":
        raise LifecycleError(f"{where}: {key}: is empty")
    return tuple(value)


def _values(value: Any, where: str) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    if not given or not all(isinstance(v, str) and v for v in given):
        raise LifecycleError(f"{where}: must be a text or a list of texts, got {value!r}")
    return tuple(given)


def _table(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise LifecycleError(f"{where}: must be a table")
    return {str(key): _text(value, key, where) for key in value}


def _check(m: Lifecycle, file: str) -> None:
    """What no single key can get wrong: names of states, words and rules; doubled and useless rows."""
    known = {rule.id for rule in load_rules()}
    for key, names in (("initial", (m.initial,)), ("final", m.final)):
        _known(names, m.states, f"{file}: {key}", "state")
    seen: set[tuple[str, str]] = set()
    for number, move in enumerate(m.moves, 1):
        where = f"{file}: move {number} ({move.trigger})"
        _known(move.source, m.states, f"{where}: source", "state")
        _known((move.dest,), {*m.states, SAME}, f"{where}: dest", "state")
        _known(move.on, _WORDS, f"{where}: on", "observation or command")
        _known(move.rules, known, f"{where}: rules", "rule")
        for source in move.source:
            if (move.trigger, source) in seen:
                raise LifecycleError(f"{where}: source: {move.trigger} leaves {source} twice")
            seen.add((move.trigger, source))
    _reachable(m, file)


def _known(names: tuple[str, ...], known: Any, where: str, what: str) -> None:
    for name in names:
        if name not in known:
            raise LifecycleError(f"{where}: there is no {what} {name!r}")


def _reachable(m: Lifecycle, file: str) -> None:
    reached, todo = {m.initial}, [m.initial]
    while todo:
        state = todo.pop()
        for move in m.moves:
            for source, dest in move.edges():
                if source == state and dest not in reached:
                    reached.add(dest)
                    todo.append(dest)
    lost = [state for state in m.states if state not in reached]
    if lost:
        raise LifecycleError(f"{file}: states: {', '.join(lost)}: no move leads there")
