"""How fast the core is, as ratios against yardsticks measured in the same run (machines differ, ratios less)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from importlib.metadata import entry_points
from statistics import median
from time import process_time
from typing import Any

from rho_conformance.explore import SCOPES, search
from rho_core import inputs as inp
from rho_core import session
from rho_core.config import Policy, ToolDecl
from rho_core.events import Success
from rho_core.messages import Text, ToolCall
from rho_core.run import state, step
from rho_core.session import Session, new_session

ROUNDS = 5


def bench() -> dict[str, dict[str, Any]]:
    """`{name: {value, unit}}`. CPU time, median of a few rounds; nothing here is a test.

    Other packages add their own figures by the entry-point group `rho_core.benchmarks`; one that cannot be
    measured says why, and leaves the others alone.
    """
    figures = _of_the_core()
    for entry in entry_points(group="rho_core.benchmarks"):
        try:
            figures |= entry.load()()
        except ImportError as absent:
            figures[entry.name] = {"value": None, "unit": f"missing: {absent.name or absent} is not installed"}
    return figures


def _of_the_core() -> dict[str, dict[str, Any]]:
    few, many = 1_000, 100_000
    per_few, per_many = _delta_ns(few), _delta_ns(many)
    yardstick = _yardstick_ns(many)
    generic = _generic_ns(10_000)
    return {
        "delta_ns": _figure(per_many, "ns per text delta, session level"),
        "deltas_per_second": _figure(round(1e9 / per_many), "1/s"),
        "delta_to_dict_dispatch_ratio": _figure(per_many / yardstick, "delta over one dict-dispatched method call"),
        "delta_cost_growth": _figure(per_many / per_few, "100,000 over 1,000 deltas, per delta"),
        "generic_to_hot_ratio": _figure(generic / per_many, "table interpreter over hot path"),
        "batch_inputs_per_second": _figure(round(_batch_rate()), "1/s"),
        "explore_transitions_per_second": _figure(round(_explore_rate()), "1/s in one process, all monitors on"),
    }


def _figure(value: float, unit: str) -> dict[str, Any]:
    return {"value": round(value, 2), "unit": unit}


def _time(work: Callable[[], int]) -> float:
    """Nanoseconds for each unit of work; the collector is off, since it measures the rest of the program."""
    costs = []
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        begun = process_time()
        units = work()
        costs.append((process_time() - begun) / units * 1e9)
        gc.enable()
    return median(costs)


def _streaming(policy: Policy) -> Session:
    at = new_session("s1", policy)
    at = session.step(at, inp.Start("c1", "r1", (Text("go"),))).state
    return session.step(at, inp.Admitted("r1")).state


def _delta_ns(count: int) -> float:
    start = _streaming(Policy(event_capacity=count + 10))
    delta = inp.TextDelta(1, 1, "ten chars.")

    def work() -> int:
        at, feed = start, session.step
        for _ in range(count):
            at = feed(at, delta).state
        return count

    return _time(work)


def _generic_ns(count: int) -> float:
    start = _streaming(Policy(event_capacity=count + 10)).run
    delta = inp.TextDelta(1, 1, "ten chars.")
    assert start is not None

    def work() -> int:
        at: state.Run = start
        for _ in range(count):
            at = step.generic(at, delta).state
        return count

    return _time(work)


class _Counter:
    """The yardstick: a dict lookup by type, a bound call, a small object made."""

    def __init__(self) -> None:
        self.table: dict[type, Callable[[Any], tuple[int, Any]]] = {inp.TextDelta: self.count}
        self.seen = 0

    def count(self, i: Any) -> tuple[int, Any]:
        self.seen += 1
        return (self.seen, i)


def _yardstick_ns(count: int) -> float:
    delta = inp.TextDelta(1, 1, "ten chars.")

    def work() -> int:
        counter = _Counter()
        for _ in range(count):
            counter.table[type(delta)](delta)
        return count

    return _time(work)


def _batch_rate() -> float:
    """Inputs per second of a run made of batches of two calls."""
    batches = 200
    policy = Policy(
        event_capacity=batches * 12 + 20, max_steps=batches + 1, max_parallel_tools=2, tools=(ToolDecl("t"),)
    )
    start = _streaming(policy)

    def work() -> int:
        at, fed = start, 0
        for n in range(1, batches + 1):
            a, b = f"a{n}", f"b{n}"
            calls = (ToolCall(a, "t", "{}"), ToolCall(b, "t", "{}"))
            inputs: tuple[inp.SessionInput, ...] = (
                inp.ModelReturned(n, 1, calls),
                inp.Prepared(a, inp.Plan()),
                inp.Prepared(b, inp.Plan()),
                inp.ToolReturned(a, Success("x")),
                inp.ToolReturned(b, Success("x")),
            )
            for i in inputs:
                at = session.step(at, i).state
            fed += len(inputs)
        return fed

    return 1e9 / _time(work)


def _explore_rate() -> float:
    """Transitions per second of the exhaustive search, over configurations that differ in what they make it do."""
    names = ("async and sync", "host input", "the id of an open call")
    chosen = [c for c in SCOPES["small"] if c.name in names]
    return 1e9 / _time(lambda: sum(search(c).transitions for c in chosen))
