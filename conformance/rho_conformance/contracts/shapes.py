"""Runs with numbers left open: one concrete arrangement a shape, every number and choice symbolic.

Between them the shapes have every phase of a run, and every continuation a blocked send may go on with in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from rho_core import effects as out
from rho_core import events as ev
from rho_core.asks import Asks, Choice, HostInputRequest, Question
from rho_core.budget import Budget
from rho_core.calls import Slot
from rho_core.calls import Stage as SlotStage
from rho_core.capture import NOTHING
from rho_core.config import Compaction, Policy, ToolDecl
from rho_core.errors import INTERRUPTED
from rho_core.inputs import Plan
from rho_core.jobs import Job
from rho_core.jobs import Stage as JobStage
from rho_core.ledger import Ledger
from rho_core.messages import Text, ToolCall, user
from rho_core.record import record
from rho_core.run import state as s
from rho_core.steering import Stage as SteerStage
from rho_core.steering import Steer, Steers

JOBS: tuple[JobStage | None, ...] = (None, "running", "returned", "parked")
"""The detached call besides, if any."""


@record
class Numbers:
    """What is symbolic in every shape. `job`: place in JOBS; `gone`: nobody reads any more."""

    capacity: int
    free: int
    max_steps: int
    step: int
    parallel: int
    request_budget: int
    malformed_budget: int
    base_delay: int
    requests: int
    malformed: int
    physical: int
    revision: int
    serial: int
    gone: bool
    steer: bool
    recorder: bool
    boundary: bool
    cooperative: bool
    steerable: bool
    finish: bool
    job: int
    delay: int


def within(n: Numbers) -> bool:
    """What a policy and an open run guarantee of the numbers; joined for the solver."""
    policy = (n.capacity >= 1) & (n.max_steps >= 1) & (n.parallel >= 1) & (n.base_delay >= 1)
    budgets = (n.request_budget >= 1) & (n.malformed_budget >= 1) & (n.requests >= 1) & (n.malformed >= 0)
    return bool(
        policy
        & budgets
        & (n.free >= 0)
        & (n.free <= n.capacity)
        & (n.serial >= 2)
        & (n.delay >= 0)
        & (n.job >= 0)
        & (n.job <= 3)
    )


def plain(n: Numbers) -> bool:
    """Besides: a reader, no steer waiting, and a running job or none."""
    return within(n) and not n.gone and not n.steer and n.job <= 1


Waiting = Literal[
    "Fresh",
    "Compacting",
    "Collecting",
    "Streaming",
    "Recording",
    "BackingOff",
    "Spawning",
    "Awaiting",
    "AwaitingBatch",
    "Batch",
    "Draining",
    "Ebbing",
    "Stopping",
    "Settled",
]
Sending = Literal[
    "Top",
    "CallTheCompactor",
    "ConsiderBoundary",
    "AfterInput",
    "SteeringIn",
    "StepBegun",
    "Delay",
    "Watch",
    "Responded",
    "WatchRecorder",
    "WatchBackoff",
    "Propose",
    "Dispatch",
    "Spawn",
    "JobStarted",
    "JobDetached",
    "Await",
    "Schedule",
    "CallStarted",
    "CallFinished",
    "Asked",
    "Hold",
    "Conclude",
    "Exit",
]
WAITING: tuple[Waiting, ...] = get_args(Waiting)
SENDING: tuple[Sending, ...] = get_args(Sending)

CALL = ToolCall("a", "t", "{}")
OTHER = ToolCall("b", "t", "{}")
ASYNC = ToolCall("d", "d", "{}")
BESIDE = ToolCall("j", "d", "{}")
OPENING = ToolCall("e", "d", "{}")
DONE = ev.Success("done")
CONTENT = (Text("t"), CALL, ASYNC)
QUESTION = Question("x", "", (Choice("y"),))
ASKED = HostInputRequest("q", "", (QUESTION,))


def _policy(n: Numbers) -> Policy:
    return Policy(
        n.capacity,
        n.max_steps,
        n.parallel,
        n.request_budget,
        n.malformed_budget,
        n.base_delay,
        tools=(ToolDecl("t"), ToolDecl("d", True)),
        compaction=Compaction(messages=99, cooperative=n.cooperative),
        boundary=n.boundary,
        steerable=n.steerable,
        cooperative_provider=n.cooperative,
        recorder=n.recorder,
    )


def _turn(n: Numbers, spent: bool = False) -> s.Turn:
    failed = n.requests - n.malformed if spent else n.requests - 1 - n.malformed
    return s.Turn((user("u"),), Budget(n.requests, n.malformed, failed), n.physical)


def _job(stage: JobStage, call: ToolCall = BESIDE, serial: int = 0) -> Job:
    done = stage in ("failed", "returned", "closed", "parked")
    plan = Plan(complete_within_ms=5 if stage in ("running", "stopping") else None)
    return Job(call, serial, stage, plan, DONE if done else None)


def slot(call: ToolCall, stage: SlotStage) -> Slot:
    """A slot with a completion exactly in the stages that have one."""
    return Slot(call, stage, Plan(), DONE if stage in ("refused", "returned", "done", "unavailable") else None)


def _beside(n: Numbers) -> tuple[Job, ...]:
    for place, stage in enumerate(JOBS):
        if stage is not None and n.job == place:
            return (_job(stage),)
    return ()


def _core(n: Numbers, jobs: tuple[Job, ...] = (), *, empty: bool = False, steered: bool = False) -> s.Core:
    if not empty:
        jobs = (*_beside(n), *jobs)
    stage: SteerStage = "staged"
    steers = Steers((Steer("s", (Text("S"),), stage),) if n.steer or steered else (), ("z",))
    ledger = Ledger((user("h"),), n.revision)
    suffix = () if empty else (user("u"),)
    reader: Literal["open", "gone"] = "gone" if n.gone else "open"
    return s.Core(
        "s", "r", _policy(n), ledger, suffix, n.step, steers=steers, jobs=jobs, serial=n.serial, reader=reader
    )


def waiting(shape: Waiting, n: Numbers, one: SlotStage = "running", two: SlotStage = "done") -> s.Run:
    """A run that waits in a phase."""
    return s.Run(_phase(shape, n, one, two), n.free, None, _waiting_core(shape, n))


def _phase(shape: Waiting, n: Numbers, one: SlotStage, two: SlotStage) -> s.Phase:
    turn, at = _turn(n), n.requests
    if shape == "Recording":
        then = s.Judge(CONTENT, None) if n.finish else s.Reset(_turn(n, True), ev.InvalidResponse(), "", n.delay)
        return s.Recording(turn, at, NOTHING, (), then)
    phases: dict[Waiting, Callable[[], s.Phase]] = {  # made on demand: every choice looked at is one more branch
        "Fresh": s.Fresh,
        "Compacting": lambda: s.Compacting(2),
        "Collecting": lambda: s.Collecting("before_completion" if n.finish else "before_provider"),
        "Streaming": lambda: s.Streaming(turn, at),
        "BackingOff": lambda: s.BackingOff(_turn(n, True), "retry"),
        "Spawning": lambda: s.Spawning((), (CALL,) if n.finish else ()),
        "Awaiting": lambda: s.Awaiting(()),
        "AwaitingBatch": lambda: s.Awaiting((CALL,)),
        "Batch": lambda: s.Batch((slot(CALL, one), slot(OTHER, two)), _asks(one)),
        "Draining": lambda: s.Draining(turn, at, NOTHING),
        "Ebbing": s.Ebbing,
        "Stopping": lambda: s.Stopping(s.Conclude(s.CancelRun() if n.finish else s.Complete("EndTurn"))),
        "Settled": lambda: s.Settled("Completed"),
    }
    return phases[shape]()


def _asks(one: SlotStage) -> Asks:
    return Asks().announce("a", ASKED) if one == "running" else Asks((), ("q",))


def _waiting_core(shape: Waiting, n: Numbers) -> s.Core:
    if shape in ("Settled", "Ebbing", "Compacting", "Fresh"):
        return _core(n, empty=True)
    if shape == "Spawning":
        stage: JobStage = "preparing" if n.finish else "authorizing"
        return _core(n, (_job(stage, OPENING, 1),))
    if shape == "Stopping":
        return _core(n, (_job("stopping", OPENING, 1),))
    return _core(n)


def sending(shape: Sending, n: Numbers, one: SlotStage = "running", two: SlotStage = "done") -> s.Run:
    """A run whose send is blocked; the channel is full."""
    phase, then = _resuming(shape, n, one, two)
    keeps = isinstance(then, (s.ConsiderBoundary, s.AfterInput, s.Hold, s.Conclude, s.Exit))
    blocked = s.Blocked((ev.ToolUpdated("x", "p"),), not keeps, then)
    return s.Run(phase, 0, blocked, _sending_core(shape, n))


def _resuming(shape: Sending, n: Numbers, one: SlotStage, two: SlotStage) -> tuple[s.Phase, s.Continuation]:
    batch = s.Batch((slot(CALL, one), slot(OTHER, two)), _asks(one))
    among: dict[Sending, tuple[s.Phase, s.Continuation]] = {
        "Top": (s.Between(), s.Top()),
        "CallTheCompactor": (s.Between(), s.CallTheCompactor()),
        "ConsiderBoundary": (s.Between(), s.ConsiderBoundary()),
        "SteeringIn": (s.Between(), s.SteeringIn(("s",))),
        "StepBegun": (s.Between(), s.StepBegun((user("u"),))),
        "Propose": (s.Proposing((CALL, ASYNC), ("d",)), s.Propose()),
        "Dispatch": (s.Proposing((CALL, ASYNC), ("d",)), s.Dispatch()),
        "Schedule": (batch, s.Schedule()),
        "CallStarted": (batch, s.CallStarted(0)),
        "CallFinished": (batch, s.CallFinished(0)),
        "Asked": (batch, s.Asked("a", HostInputRequest("r", "", ()))),
        "Conclude": (s.Cancelling(), s.Conclude(s.CancelRun())),
        "Exit": (s.Settling(out.RunFailed(INTERRUPTED, ()), "Idle", True), s.Exit(None, "Idle")),
    }
    return among[shape] if shape in among else _choosing(shape, n)


def _choosing(shape: Sending, n: Numbers) -> tuple[s.Phase, s.Continuation]:
    """Those with a choice of their own: only the one that is asked for is made, since each choice is a branch."""
    turn, at = _turn(n), n.requests
    if shape == "AfterInput":
        return s.Between(), s.AfterInput("before_completion" if n.finish else "before_provider")
    if shape == "Delay":
        return s.Between(), s.Delay(_turn(n, True), n.delay)
    if shape == "Watch":
        return s.Streaming(turn, at), s.Watch()
    if shape == "Responded":
        return s.Responding(turn, at, NOTHING), s.Responded(CONTENT, None if n.finish else "bad")
    if shape == "WatchRecorder":
        judge = s.Judge(CONTENT, None if n.finish else "bad")
        stage: Literal["answered", "written"] = "answered" if n.steer else "written"
        return s.Recording(turn, at, NOTHING, (), judge, stage), s.WatchRecorder()
    if shape == "WatchBackoff":
        return s.BackingOff(_turn(n, True), "retry", "fired" if n.finish else "armed"), s.WatchBackoff()
    if shape == "Await":
        return s.Awaiting((CALL,) if n.finish else ()), s.Await()
    if shape == "Hold":
        return s.Draining(turn, at, NOTHING), s.Hold()
    spawning = s.Spawning((OTHER,) if n.finish else (), (CALL,))
    if shape == "JobStarted":
        return spawning, s.JobStarted("e")
    return spawning, s.JobDetached("e") if shape == "JobDetached" else s.Spawn()


def _sending_core(shape: Sending, n: Numbers) -> s.Core:
    if shape in ("CallTheCompactor", "Exit"):
        return _core(n, empty=True)
    if shape in ("JobStarted", "JobDetached", "Spawn"):
        opened: JobStage = "started" if shape == "JobDetached" else "failed" if n.finish else "ready"
        return _core(n, (_job(opened, OPENING, 1),))
    return _core(n, steered=shape == "SteeringIn")
