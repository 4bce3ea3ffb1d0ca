"""`rho-core explore`: exhaustive search of the real reducer over a fixed list of named configurations.

The monitors run inside the search, on traces: see `ghost`. A clean report of a complete scope says that no order of
inputs of that scope, whatever its length, breaks a rule the ghost knows, deadlocks, or leaves the tables.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from .configuration import Configuration
from .configurations import Config
from .coverage import Coverage, pairs
from .lifecycle import Lifecycle, LifecycleModel
from .model import RunModel
from .report import Covered, Report
from .scopes import JUDGED, SCOPES
from .search import Result, Search, Violation

__all__ = [
    "SCOPES",
    "Configuration",
    "Covered",
    "Lifecycle",
    "Report",
    "Result",
    "Violation",
    "explore",
    "names",
    "search",
]

Progress = Callable[[str, int, int], None]


def names() -> tuple[str, ...]:
    """The scopes there are."""
    return tuple(SCOPES)


def search(config: Config, on_progress: Progress | None = None) -> Result:
    """Search one configuration in this process."""
    with _no_collector():
        return _search(config, on_progress)


@contextmanager
def _no_collector() -> Iterator[None]:
    """States are tuples without cycles, and all of them are kept: looking for garbage among them finds none."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _search(config: Config, on_progress: Progress | None) -> Result:
    if isinstance(config, Lifecycle):
        return Search(config.name, LifecycleModel(config), config.limit).run(on_progress)
    model = RunModel(config)
    result = Search(config.name, model, config.limit).run(on_progress)
    seen = model.coverage
    return replace(
        result,
        taken=tuple(pairs(seen.taken)),
        unplanned=tuple(pairs(seen.unplanned)),
        defaults=tuple(sorted(seen.defaults)),
    )


def explore(
    scope: str = "small",
    configurations: Iterable[str | Config] | None = None,
    on_progress: Progress | None = None,
    workers: int = 2,
    on_result: Callable[[Result, int, int], None] | None = None,
) -> Report:
    """Search a scope, or the given configurations (by name in the scope, or as values).

    `on_progress(name, states, transitions)` is called now and then, and once at the end of each configuration; with
    more than one worker only at the end. `on_result(result, done, of)` is called once for each configuration. Every
    figure but `seconds` is the same in every run. ValueError for a scope or a configuration that does not exist.
    """
    chosen = _chosen(scope, configurations)
    begun = time.monotonic()
    results: list[Result] = []
    for result in _results(chosen, on_progress, workers):
        results.append(result)
        if on_result is not None:
            on_result(result, len(results), len(chosen))
        if on_progress is not None:
            on_progress(result.name, result.states, result.transitions)
    return Report(
        scope,
        sum(r.states for r in results),
        sum(r.transitions for r in results),
        all(r.complete for r in results),
        tuple(v for r in results for v in r.deadlocks),
        tuple(v for r in results for v in r.violations),
        time.monotonic() - begun,
        tuple(results),
        _covered(results, judged=configurations is None and scope in JUDGED),
    )


def _chosen(scope: str, configurations: Iterable[str | Config] | None) -> list[Config]:
    if scope not in SCOPES:
        raise ValueError(f"no scope {scope!r}; there are: {', '.join(SCOPES)}")
    known = {c.name: c for c in SCOPES[scope]}
    if configurations is None:
        return list(known.values())
    chosen: list[Config] = []
    for c in configurations:
        if isinstance(c, str) and c not in known:
            raise ValueError(f"no configuration {c!r} in scope {scope!r}; there are: {', '.join(known)}")
        chosen.append(known[c] if isinstance(c, str) else c)
    return chosen


def _results(chosen: list[Config], on_progress: Progress | None, workers: int) -> Iterator[Result]:
    """In the order of the list, whoever is done first: a report is the same in every run."""
    if workers < 2 or len(chosen) < 2:
        for config in chosen:
            yield search(config, on_progress)
        return
    with ProcessPoolExecutor(workers) as pool:
        for future in [pool.submit(search, c) for c in chosen]:
            yield future.result()


def _covered(results: list[Result], judged: bool) -> Covered:
    seen = Coverage()
    for r in results:
        seen.merge(list(r.taken), list(r.unplanned), list(r.defaults))
    missing = tuple(seen.missing()) if judged else ()
    return Covered(len(seen.taken), missing, tuple(pairs(seen.unplanned)), tuple(sorted(seen.defaults)), judged)
