"""What CrossHair must be told to make values of the core: record classes, and `Literal`.

A record's constructor is compiled in a namespace of its own, in which its annotations cannot be resolved. CrossHair
then takes it for one without parameters, makes the *one* value that the defaults give, and confirms over it whatever
is asked. So every record class is registered with a maker that gives each field a symbolic value of its type; a
maker that cannot resolve a type raises. A `Literal` is a choice among its values.

A slice of a tuple up to a symbolic bound would try the bound's values one by one, without end. It depends on no
more than where the bound stands among the places of the tuple, so that is what is branched on.
"""

from __future__ import annotations

import dis
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

import rho_core
from rho_conformance.contracts.shapes import Numbers


@cache
def register() -> tuple[type, ...]:
    """Tell CrossHair, once a process; the classes it was told of. Raises ImportError without CrossHair."""
    import crosshair.core_and_libs  # noqa: F401 (forgets what was registered before it)
    from crosshair import register_type

    register_type(Literal, _literal)  # type: ignore[arg-type]
    _register_slices()
    classes = (*records(), Numbers)
    for cls in classes:
        register_type(cls, _maker(cls))
    return classes


def records() -> Iterator[type]:
    """Every record class of the core."""
    for info in pkgutil.walk_packages(rho_core.__path__, "rho_core."):
        if info.name in ("rho_core.wire", "rho_core._entry"):
            continue
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, type) and is_dataclass(value) and value.__module__ == info.name:
                yield value


def _literal(factory: Any, *values: object) -> object:
    from crosshair.statespace import context_statespace

    options = get_args(factory.pytype) or values
    space = context_statespace()
    for option in options[:-1]:
        if space.smt_fork(desc=f"{factory.varname}_is_{option}"):
            return option
    return options[-1]


def _maker(cls: type) -> Callable[..., Any]:
    def make(factory: Any, *arguments: object) -> Any:
        hints = _hints(cls)
        values = {f.name: factory(hints[f.name], f"_{f.name}") for f in fields(cls) if f.init}
        return cls(**values)

    return make


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _register_slices() -> None:
    from crosshair.core import register_opcode_patch
    from crosshair.libimpl.builtinslib import SymbolicInt
    from crosshair.statespace import context_statespace
    from crosshair.tracers import (  # type: ignore[attr-defined]
        TracingModule,
        frame_stack_read,
        frame_stack_write,
    )

    def placed(bound: Any, length: int) -> Any:
        """The same slice bound as a plain number, if it is a symbolic one of at least 0."""
        space = context_statespace()
        if not isinstance(bound, SymbolicInt) or not space.smt_fork(bound.var >= 0):
            return bound
        return next((place for place in range(length) if space.smt_fork(bound.var <= place)), length)

    class TupleSlices(TracingModule):  # type: ignore[no-untyped-call]
        opcodes_wanted = frozenset(dis.opmap[name] for name in ("BINARY_SUBSCR", "BINARY_SLICE") if name in dis.opmap)

        def trace_op(self, frame: Any, codeobj: Any, codenum: int) -> None:
            if codenum == dis.opmap.get("BINARY_SLICE"):
                size = _tuple_size(frame_stack_read(frame, -3))
                for place in (-1, -2):
                    if size is not None:
                        frame_stack_write(frame, place, placed(frame_stack_read(frame, place), size))
                return
            key, size = frame_stack_read(frame, -1), _tuple_size(frame_stack_read(frame, -2))
            if size is not None and isinstance(key, slice):
                frame_stack_write(frame, -1, slice(placed(key.start, size), placed(key.stop, size), key.step))

    register_opcode_patch(TupleSlices())


def _tuple_size(value: object) -> int | None:
    return len(value) if type(value) is tuple else None
