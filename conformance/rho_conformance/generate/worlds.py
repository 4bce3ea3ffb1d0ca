"""The worlds in which the directed walks are played: small, each with what its walks need."""

from __future__ import annotations

from rho_conformance.driver import JsonMap
from rho_conformance.generate.configs import PAST

TWO: JsonMap = {"tools": {"t": {}, "u": {}, "job": {"mode": "async"}}, "max_parallel_tools": 2}
JOBS: JsonMap = {
    "tools": {"job": {"mode": "async"}, "job2": {"mode": "async"}, "t": {}},
    "max_steps": 2,
    "max_parallel_tools": 4,
}
SLOW: JsonMap = {"tools": {"slow": {"mode": "async", "on_cancel": {"complete": "2s"}}, "t": {}}}
GATED: JsonMap = {
    "tools": {"g": {"prepare": "gated", "authorize": "gated"}, "job": {"mode": "async", "authorize": "gated"}}
}
BOUND: JsonMap = {**TWO, "boundary": "gated"}
FULL: JsonMap = {**TWO, "boundary": "gated", "compaction": {"messages": 3}}
STEER: JsonMap = {**TWO, "provider": {"steerable": True}}
COOP: JsonMap = {**TWO, "provider": {"mode": "cooperative", "on_cancel": "ignore"}}
KEEN: JsonMap = {**TWO, "compaction": {"messages": 1}}
RECORDED: JsonMap = {**TWO, "recorder": "gated"}
RECORDED_JOBS: JsonMap = {**JOBS, "max_steps": 6, "recorder": "gated"}
DEAF: JsonMap = {"tools": {"deaf": {"on_cancel": "ignore"}, "job": {"mode": "async", "on_cancel": "ignore"}}}
EXCL: JsonMap = {"tools": {"t": {}, "one": {"access": "exclusive"}}, "max_parallel_tools": 4}
OLD: JsonMap = {**TWO, "history": PAST, "revision": 7}
CLOSE: JsonMap = {**JOBS, "max_steps": 4, "compaction": {"messages": 3}}
TIGHT: JsonMap = {**JOBS, "event_capacity": 1}
TIGHT_SLOW: JsonMap = {
    "tools": {"slow": {"mode": "async", "on_cancel": {"complete": "2s"}}},
    "max_parallel_tools": 4,
    "event_capacity": 1,
}
DEAF_SLOW: JsonMap = {**TIGHT_SLOW, "provider": {"mode": "cooperative", "on_cancel": "ignore"}}
SPAWN: JsonMap = {
    "tools": {"gated": {"mode": "async", "prepare": "gated"}, "job": {"mode": "async"}},
    "max_parallel_tools": 4,
}
