"""Configurations to draw: small numbers at which limits are met, and every choice that changes what may happen."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rho_conformance.driver import JsonMap

SYNC: JsonMap = {}
ASYNC: JsonMap = {"mode": "async"}
TOOL_TABLES: tuple[JsonMap, ...] = (
    {"t": SYNC, "u": SYNC, "job": ASYNC},
    {"t": SYNC, "job": ASYNC, "job2": ASYNC},
    {"one": {"access": "exclusive"}, "t": SYNC, "two": {"access": "exclusive"}},
    {"wx": {"access": {"write": ["x"]}}, "wxy": {"access": {"write": ["x", "y"]}}, "t": SYNC},
    {"gated": {"prepare": "gated", "authorize": "gated"}, "t": SYNC, "job": {**ASYNC, "authorize": "gated"}},
    {"asked": {"authorize": "gated"}, "job": {**ASYNC, "prepare": "gated"}},
    {"slow": {**ASYNC, "on_cancel": {"complete": "2s"}}, "job": ASYNC, "t": SYNC},
    {"deaf": {"on_cancel": "ignore"}, "job": {**ASYNC, "on_cancel": "ignore"}, "t": SYNC},
    {"slow": {**ASYNC, "on_cancel": {"complete": "500ms"}}, "slower": {**ASYNC, "on_cancel": {"complete": "5s"}}},
    {},
)
PROVIDERS: tuple[JsonMap, ...] = (
    {},
    {"steerable": True},
    {"steerable": True, "mode": "cooperative"},
    {"mode": "cooperative", "on_cancel": "ignore"},
)
COMPACTIONS: tuple[JsonMap, ...] = (
    {"messages": 2},
    {"messages": 4},
    {"tokens": 40},
    {"messages": 3, "compactor": "cooperative"},
)
PAST: list[JsonMap] = [
    {"user": "long ago"},
    {"assistant": {"text": "yes", "calls": ["old"]}},
    {"result": {"id": "old", "ok": True, "text": "it was"}},
    {"assistant": {"text": "so it was"}},
]
PASTS: tuple[list[JsonMap], ...] = ([{"user": "before"}], PAST, [*PAST, {"aborted": {"text": "but then"}}])


def _sometimes(values: st.SearchStrategy[Any], chance: int) -> st.SearchStrategy[Any]:
    """None, or in one of `chance` cases a value."""
    return st.integers(0, chance - 1).flatmap(lambda k: values if k == chance - 1 else st.none())


@st.composite
def configs(draw: st.DrawFn) -> JsonMap:
    """A configuration of the rho profile; parts that a target did not declare are taken off later."""
    config: JsonMap = {
        "tools": draw(st.sampled_from(TOOL_TABLES)),
        "max_parallel_tools": draw(st.sampled_from((1, 2, 4))),
        "max_steps": draw(st.sampled_from((4, 3, 2, 1, 32))),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "event_capacity": _sometimes(st.sampled_from((1, 2)), 2),
        "reader": _sometimes(st.just("held"), 2),
        "provider": st.sampled_from(PROVIDERS),
        "compaction": _sometimes(st.sampled_from(COMPACTIONS), 3),
        "boundary": _sometimes(st.just("gated"), 3),
        "recorder": _sometimes(st.sampled_from(("auto", "gated")), 2),
        "history": _sometimes(st.sampled_from(PASTS), 4),
        "revision": _sometimes(st.sampled_from((7, "max")), 6),
        "system": _sometimes(st.just("be brief"), 4),
        "sessions": _sometimes(st.just(["s1", "s2"]), 4),
    }
    for key, values in optional.items():
        value = draw(values)
        if value:
            config[key] = value
    if "sessions" in config and "recorder" in config:
        config["recorder"] = "auto"  # a gated one can be answered in the first session alone
    if "revision" in config and "history" not in config:
        config["history"] = PASTS[0]
    return config
