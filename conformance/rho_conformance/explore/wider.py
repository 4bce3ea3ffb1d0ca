"""The wider scopes: more room, calls, jobs, steers and failures than `small`. `medium` takes minutes, `large` hours."""

from __future__ import annotations

from rho_core import inputs as inp
from rho_core.config import Compaction
from rho_core.errors import Error, ErrorName, ToolErrorKind
from rho_core.events import Failure, Success

from .configuration import Allowance, Configuration, Response, call
from .configurations import (
    A2,
    ASYNC,
    B2,
    BARRIER,
    BATCH,
    FAIL,
    GUARDED,
    HINT,
    JOBS,
    NOTHING,
    OPEN,
    PAIR,
    PERMANENT,
    READS,
    SLOW,
    STREAM_KINDS,
    SUMMARY,
    SYNC,
    TEXT,
    WRITES,
    A,
    B,
    Config,
    policy,
)
from .lifecycle import Lifecycle

WIDE, MILLIONS = 1_500_000, 4_000_000
"""States at which a search gives up; one takes about 2 kB."""
B3 = call("E", "tool")
THREE = Response("three sync", (B, B2, B3), times=1)
JOBS_AND_CALL = Response("two async and sync", (A, B, A2), ("A", "C"), times=1)

MEDIUM: tuple[Config, ...] = (
    Configuration(
        "three calls in two places",
        policy(event_capacity=2),
        Allowance(1, 1, progress=1, panics=1),
        (TEXT, THREE),
        plans=(("B", (OPEN, READS)), ("D", (OPEN, WRITES, "broken")), ("E", (OPEN, READS))),
    ),
    Configuration(
        "three calls, authorised",
        policy(max_parallel_tools=3),
        Allowance(1, 1),
        (TEXT, THREE),
        plans=(("B", (GUARDED,)), ("D", (OPEN, BARRIER)), ("E", (GUARDED, WRITES))),
        authorisations=(True, False),
        completions=(Success("done"), Failure(ToolErrorKind.EXECUTION, "failed")),
    ),
    Configuration(
        "two jobs and a call",
        policy(),
        Allowance(1, 1, 1, steers=2, progress=2, panics=1),
        (TEXT, JOBS_AND_CALL),
        limit=WIDE,
    ),
    Configuration(
        "two jobs and a call, with room",
        policy(event_capacity=3, max_parallel_tools=3),
        Allowance(1, 1, progress=1),
        (TEXT, JOBS_AND_CALL),
        plans=(("A", (SLOW,)), ("B", (OPEN, GUARDED))),
        authorisations=(True, False),
    ),
    Configuration(
        "two jobs with time, dropped",
        policy(event_capacity=2),
        Allowance(1, 1, 1, progress=1, panics=1),
        (TEXT, JOBS, PERMANENT),
        plans=(("A", (SLOW,)), ("C", (SLOW, GUARDED))),
        authorisations=(True, False),
        asks=(("A", "q1"),),
    ),
    Configuration(
        "three steers",
        policy(event_capacity=2),
        Allowance(1, 1, 1, steers=3, retracts=2),
        (TEXT, SYNC, FAIL),
        limit=WIDE,
    ),
    Configuration(
        "three delivered steers",
        policy(steerable=True, event_capacity=2),
        Allowance(1, 1, steers=3, retracts=1, claims=2),
        (TEXT, NOTHING),
    ),
    Configuration(
        "failures in two steps",
        policy(event_capacity=2),
        Allowance(1, 1, 1, deltas=2, panics=1),
        (TEXT, SYNC, NOTHING, FAIL, HINT, PERMANENT),
    ),
    Configuration(
        "failures, recorded, in two steps",
        policy(recorder=True),
        Allowance(1, 1, deltas=2),
        (TEXT, SYNC, NOTHING, FAIL),
        stream=("text", "physical", "usage"),
    ),
    Configuration(
        "three questions",
        policy(max_steps=1, max_parallel_tools=3),
        Allowance(1, 1, responds=2, withdrawals=1),
        (TEXT, THREE),
        limit=WIDE,
        asks=(("B", "q1"), ("D", "q2"), ("E", "q1")),
    ),
    Configuration(
        "every extension at once",
        policy(compaction=Compaction(messages=2), boundary=True, recorder=True, steerable=True),
        Allowance(1, 1, steers=1, retracts=1, claims=1),
        (TEXT, PAIR, ASYNC),
        compactions=(SUMMARY, inp.CompactorReturned(()), inp.CompactorFailed(Error(ErrorName.TOOL, "no"))),
        replies=(inp.BoundaryReplied(None), inp.BoundaryReplied("note"), inp.BoundaryGone()),
    ),
    Configuration(
        "every stream item twice",
        policy(max_steps=1, event_capacity=2, recorder=True, cooperative_provider=True),
        Allowance(1, 1, 1, deltas=2, panics=1),
        (TEXT, FAIL, PERMANENT),
        stream=STREAM_KINDS,
    ),
    Configuration(
        "three steps",
        policy(max_steps=3, boundary=True),
        Allowance(1, 1, steers=2, progress=1),
        (TEXT, ASYNC, SYNC),
        limit=WIDE,
        replies=(inp.BoundaryReplied(None), inp.BoundaryReplied("note")),
    ),
    Lifecycle("three runs", starts=3, compacts=1),
)

LARGE: tuple[Config, ...] = (
    Configuration(
        "three calls, three ways each",
        policy(event_capacity=3, max_parallel_tools=3),
        Allowance(1, 1, 1, steers=1, progress=2, panics=1),
        (TEXT, THREE),
        plans=(("B", (GUARDED, READS)), ("D", (OPEN, BARRIER, "broken")), ("E", (GUARDED, WRITES))),
        authorisations=(True, False),
        completions=(Success("done"), Failure(ToolErrorKind.EXECUTION, "failed")),
        limit=MILLIONS,
    ),
    Configuration(
        "two jobs and a call, everything allowed",
        policy(event_capacity=2, max_parallel_tools=3),
        Allowance(1, 1, 1, steers=2, retracts=1, progress=2, responds=1, panics=1),
        (TEXT, JOBS_AND_CALL, SYNC, FAIL),
        plans=(("A", (SLOW, GUARDED)), ("B", (OPEN, GUARDED)), ("C", (SLOW,))),
        authorisations=(True, False),
        asks=(("B", "q1"),),
        limit=MILLIONS,
    ),
    Configuration(
        "four steers",
        policy(event_capacity=3, steerable=True, max_steps=3),
        Allowance(1, 1, 1, steers=4, retracts=2, claims=3),
        (TEXT, SYNC, NOTHING, FAIL),
        limit=MILLIONS,
    ),
    Configuration(
        "failures in three steps",
        policy(event_capacity=2, max_steps=3, recorder=True),
        Allowance(1, 1, 1, deltas=3, panics=1),
        (TEXT, SYNC, BATCH, NOTHING, FAIL, HINT, PERMANENT),
        stream=("text", "physical", "usage"),
        limit=MILLIONS,
    ),
    Configuration(
        "every extension at once, in three steps",
        policy(max_steps=3, compaction=Compaction(messages=3), boundary=True, recorder=True, steerable=True),
        Allowance(1, 1, 1, steers=2, retracts=1, claims=1, progress=1, panics=1),
        (TEXT, PAIR, ASYNC, FAIL),
        compactions=(SUMMARY, inp.CompactorReturned(()), inp.CompactorFailed(Error(ErrorName.TOOL, "no"))),
        replies=(inp.BoundaryReplied(None), inp.BoundaryReplied("note"), inp.BoundaryGone()),
        limit=MILLIONS,
    ),
    Lifecycle("three runs and two compactions", starts=3, compacts=2, cancels=2, limit=MILLIONS),
)
