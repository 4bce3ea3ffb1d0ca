"""The scopes: fixed lists of named configurations, each searched completely."""

from __future__ import annotations

from dataclasses import replace

from rho_core import inputs as inp
from rho_core.config import Compaction, Policy, ToolDecl
from rho_core.errors import Error, ErrorName, ProviderError, ToolErrorKind
from rho_core.events import Failure, Success
from rho_core.messages import Text, user

from .configuration import Allowance, Configuration, Response, call
from .environment import STREAM
from .lifecycle import Lifecycle

TOOLS = (ToolDecl("tool"), ToolDecl("job", asynchronous=True))
ONE = Policy(event_capacity=1, max_steps=2, max_parallel_tools=2, tools=TOOLS)
"""Capacity 1: every send may block."""

A, A2, B, B2, GHOST = call("A", "job"), call("C", "job"), call("B", "tool"), call("D", "tool"), call("G", "nobody")
TEXT = Response("text", (Text("a"),))
NOTHING = Response("malformed")
FAIL = Response("fail", error=ProviderError("Timeout", "no", True))
HINT = Response("hint", error=ProviderError("RateLimit", "no", True, 2_500))
LONG = Response("long hint", error=ProviderError("RateLimit", "no", True, 90_000))
PERMANENT = Response("permanent", error=ProviderError("Other", "no", False, None, "why"))
ASYNC = Response("async", (A,), ("A",), times=1)
PAIR = Response("async and sync", (A, B), ("A",), times=1)
JOBS = Response("two async", (A, A2), ("A", "C"), times=1)
SYNC = Response("sync", (B,), times=1)
BATCH = Response("two sync", (B, B2), times=1)
OPEN = inp.Plan(metadata="m")
GUARDED = inp.Plan(capability="net")
BARRIER = inp.Plan(exclusive=True)
READS, WRITES = inp.Plan(accesses=(inp.Access("r"),)), inp.Plan(accesses=(inp.Access("r", False),))
SLOW = inp.Plan(complete_within_ms=5)
STREAM_KINDS = tuple(STREAM)
CALM = Allowance(cancels=1, closes=1)
SUMMARY = inp.CompactorReturned((user("summary"),))


def policy(**changes: object) -> Policy:
    return replace(ONE, **changes)  # type: ignore[arg-type]


RUNS: tuple[Configuration, ...] = (
    Configuration("ends", ONE, Allowance(1, 1, 1, deltas=2, panics=1), (TEXT, NOTHING, FAIL, PERMANENT)),
    Configuration(
        "retries", policy(event_capacity=2), Allowance(1, 1, deltas=1), (TEXT, NOTHING, FAIL, HINT, LONG, PERMANENT)
    ),
    Configuration(
        "stream",
        policy(max_steps=1, recorder=True),
        Allowance(1, 1, deltas=2),
        (TEXT, FAIL, NOTHING),
        stream=STREAM_KINDS,
    ),
    Configuration(
        "recorder",
        policy(max_steps=1, recorder=True),
        Allowance(1, 1, 1, deltas=1),
        (TEXT, NOTHING, FAIL, PERMANENT, SYNC),
        stream=("text", "physical"),
    ),
    Configuration(
        "recorder beside jobs",
        policy(recorder=True),
        Allowance(1, 1, progress=1, panics=1),
        (TEXT, ASYNC, FAIL),
        asks=(("A", "q1"),),
    ),
    Configuration(
        "recorder, then a boundary",
        policy(recorder=True, boundary=True, compaction=Compaction(messages=3)),
        Allowance(1, 1, steers=1),
        (TEXT, ASYNC),
        compactions=(SUMMARY,),
        replies=(inp.BoundaryReplied(None), inp.BoundaryReplied("note")),
    ),
    Configuration(
        "recorder and delivered steering",
        policy(max_steps=1, recorder=True, steerable=True),
        Allowance(1, steers=1, retracts=1, claims=1),
        (TEXT, FAIL, NOTHING),
    ),
    Configuration("steering", ONE, Allowance(1, 1, steers=2, retracts=2), (TEXT, SYNC)),
    Configuration(
        "delivered steering", policy(steerable=True), Allowance(1, steers=2, retracts=1, claims=2), (TEXT, FAIL)
    ),
    Configuration(
        "delivered steering, reader lost",
        policy(steerable=True, max_steps=1),
        Allowance(1, 1, steers=1, claims=1),
        (TEXT, NOTHING),
    ),
    Configuration("batch", ONE, Allowance(1, 1, progress=1, panics=1), (TEXT, BATCH), plans=(("B", (OPEN, "broken")),)),
    Configuration(
        "authorised batch",
        ONE,
        Allowance(1, 1, drops=1, progress=1),
        (TEXT, BATCH),
        plans=(("B", (GUARDED,)), ("D", (OPEN, GUARDED))),
        authorisations=(True, False),
    ),
    Configuration(
        "barriers",
        ONE,
        CALM,
        (TEXT, Response("three", (B, GHOST, B2), times=1)),
        plans=(("B", (BARRIER, READS, "broken")), ("D", (OPEN, READS, WRITES))),
        completions=(Success("done"), Failure(ToolErrorKind.EXECUTION, "failed")),
    ),
    Configuration("one place", policy(max_parallel_tools=1), CALM, (TEXT, BATCH, JOBS)),
    Configuration("async", ONE, Allowance(1, 1, steers=1, progress=1, panics=1), (TEXT, ASYNC, FAIL)),
    Configuration("async and sync", ONE, Allowance(1, 1, 1, steers=1, progress=1, panics=1), (TEXT, PAIR)),
    Configuration(
        "async, prepared and authorised",
        ONE,
        Allowance(1, 1, progress=1, panics=1),
        (TEXT, PAIR),
        plans=(("A", (GUARDED, BARRIER, "broken")), ("B", (OPEN, GUARDED))),
        authorisations=(True, False),
    ),
    Configuration(
        "async with time",
        ONE,
        Allowance(1, 1, 1, progress=1, panics=1),
        (TEXT, ASYNC, PERMANENT),
        plans=(("A", (SLOW, OPEN)),),
        asks=(("A", "q1"),),
    ),
    Configuration(
        "two async",
        ONE,
        Allowance(1, 1, progress=1, panics=1),
        (TEXT, JOBS),
        plans=(("A", (SLOW,)), ("C", (SLOW, GUARDED))),
        asks=(("A", "q1"),),
    ),
    Configuration(
        "the id of an open call",
        policy(max_steps=3, event_capacity=2),
        Allowance(1, 1),
        (TEXT, Response("async again", (A,), ("A",), times=2)),
    ),
    Configuration(
        "host input",
        ONE,
        Allowance(1, 1, responds=2, withdrawals=1, progress=1),
        (TEXT, PAIR),
        asks=(("A", "q0"), ("B", "q1")),
    ),
    Configuration(
        "two questions",
        policy(max_steps=1),
        Allowance(1, 1, responds=2),
        (TEXT, BATCH),
        asks=(("B", "q1"), ("D", "q1"), ("D", "q2")),
    ),
    Configuration(
        "boundary input",
        policy(boundary=True),
        Allowance(1, 1, steers=1),
        (TEXT, ASYNC),
        replies=(inp.BoundaryReplied(None), inp.BoundaryReplied("note"), inp.BoundaryGone()),
    ),
    Configuration(
        "compaction",
        policy(compaction=Compaction(messages=2)),
        Allowance(1, 1, steers=1),
        (TEXT, PAIR, ASYNC),
        compactions=(
            SUMMARY,
            inp.CompactorReturned(()),
            *(
                inp.CompactorFailed(Error(n, "no"))
                for n in (ErrorName.CANCELLED, ErrorName.INTERRUPTED, ErrorName.TOOL)
            ),
        ),
    ),
    Configuration(
        "compaction and boundary input",
        policy(compaction=Compaction(messages=2), boundary=True),
        Allowance(1, 1, 1, panics=1),
        (TEXT, ASYNC),
        compactions=(SUMMARY,),
        replies=(inp.BoundaryReplied(None), inp.BoundaryReplied("note")),
    ),
    Configuration(
        "cooperative provider",
        policy(cooperative_provider=True, recorder=True),
        Allowance(1, 1, 1, deltas=1, panics=1),
        (TEXT, ASYNC, PERMANENT),
        plans=(("A", (SLOW, OPEN)),),
        stream=STREAM_KINDS,
        asks=(("A", "q1"),),
    ),
    Configuration(
        "cooperative compactor",
        policy(compaction=Compaction(messages=1, cooperative=True)),
        Allowance(1, 1, 1, panics=1),
        (TEXT, ASYNC),
        compactions=(SUMMARY, inp.CompactorReturned(()), inp.CompactorFailed(Error(ErrorName.TOOL, "no"))),
    ),
    Configuration(
        "host call", ONE, Allowance(1, 1, 1, steers=1, progress=1), (TEXT,), begin=inp.Begin((), call("B", "tool"))
    ),
    Configuration("step limit", policy(step_limit="fail", max_steps=1), Allowance(1, 1, steers=1), (TEXT, PAIR)),
    Configuration(
        "last revision",
        policy(boundary=True, compaction=Compaction(messages=2)),
        CALM,
        (TEXT, ASYNC),
        plans=(("A", (SLOW,)),),
        compactions=(SUMMARY,),
        replies=(inp.BoundaryReplied("note"), inp.BoundaryReplied(None)),
        revision=2**64 - 2,
    ),
    Configuration(
        "last revision, cooperative compactor",
        policy(compaction=Compaction(messages=1, cooperative=True)),
        CALM,
        (TEXT,),
        compactions=(SUMMARY,),
        revision=2**64 - 2,
    ),
    Configuration(
        "no revision, cooperative compactor",
        policy(compaction=Compaction(messages=1, cooperative=True)),
        CALM,
        (TEXT,),
        compactions=(SUMMARY,),
        revision=2**64 - 1,
    ),
)

LIFECYCLES = (
    Lifecycle("sessions"),
    Lifecycle("manual compaction", starts=1, compacts=2, appends=0),
    Lifecycle("cooperative lifecycle", starts=1, compacts=1, cancels=2, cooperative=True),
)

Config = Configuration | Lifecycle
_BY_NAME = {c.name: c for c in RUNS}
TINY: tuple[Config, ...] = (
    *(_BY_NAME[name] for name in ("host call", "host input", "cooperative compactor", "last revision")),
    _BY_NAME["async and sync"],
    Lifecycle("one session", starts=1, appends=0),
)
SMALL: tuple[Config, ...] = (*RUNS, *LIFECYCLES)
SCOPES: dict[str, tuple[Config, ...]] = {"tiny": TINY, "small": SMALL}
"""Scopes by name."""
