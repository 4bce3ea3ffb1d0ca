"""Properties of single states: late and stray inputs, and a blocked run with each input class (design 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import Error, ErrorName, ProviderError
from rho_core.messages import Text, Usage, user
from rho_core.run import state as rs
from rho_core.run import step as run_step
from rho_core.run import table
from rho_core.step import Step

from .configuration import Configuration
from .coverage import Coverage
from .environment import YES, World, moves, question
from .work import Issue, Work

TEXT = (Text("late"),)
OTHER = Error(ErrorName.TOOL, "late")


def _unchanged(run: rs.Run, after: Step[rs.Run], allowed: tuple[type, ...]) -> bool:
    same = after.state is run or after.state == run
    return same and all(type(e) in allowed for e in after.effects)


# --- answers of work that is over ------------------------------------------------------------------------------------


def _late_model(work: Work) -> tuple[Any, ...]:
    at = (int(work[1]), int(work[2]))
    failed = inp.ModelFailed(*at, ProviderError("Other", "late", True))
    return inp.TextDelta(*at, "late"), inp.ModelReturned(*at, TEXT), failed, inp.ModelPanicked(*at)


def _late_tool(work: Work) -> tuple[Any, ...]:
    name = str(work[1])
    return inp.ToolReturned(name, ev.Success("late")), inp.ToolPanicked(name), inp.ToolProgress(name, "late")


def _late_auth(work: Work) -> tuple[Any, ...]:
    return inp.Authorized(str(work[1])), inp.Denied(str(work[1]), "late")


LATE: dict[str | int, Callable[[Work], tuple[Any, ...]]] = {
    "model": _late_model,
    "prepare": lambda w: (inp.Prepared(str(w[1]), inp.Plan()), inp.PrepareFailed(str(w[1]), "late")),
    "authorize": _late_auth,
    "execute": _late_tool,
    "timer": lambda w: (inp.TimerFired(str(w[1])),),
    "compactor": lambda w: (inp.CompactorReturned((user("late"),)), inp.CompactorFailed(OTHER)),
    "boundary": lambda w: (inp.BoundaryReplied("late"), inp.BoundaryGone()),
    "recorder": lambda w: (inp.UsageRecorded(),),
}


def _witnessed(run: rs.Run, i: Any, coverage: Coverage) -> Step[rs.Run]:
    path: run_step.Path = []
    after = run_step.generic(run, i, path)
    if path:
        coverage.add(run, path)
    return after


def late_properties(run: rs.Run, world: World, coverage: Coverage) -> Iterator[Issue]:
    """What was answered or aborted may answer once more, and nothing comes of it (design 3.5)."""
    busy = {w[1] for w in world.open if len(w) > 1}
    kinds = {w[0] for w in world.open}
    for work in world.ended:
        if (
            work in world.open
            or (work[0] != "model" and work[1:] and work[1] in busy)
            or (not work[1:] and work[0] in kinds)
        ):
            continue
        for i in LATE[work[0]](work):
            if not _unchanged(run, _witnessed(run, i, coverage), (out.NotReady,)):
                yield "RHO-CAN-7", f"a late {type(i).__name__} of {work} is not ignored"


# --- inputs that name nothing the run knows --------------------------------------------------------------------

STRAYS: tuple[Any, ...] = (
    inp.TextDelta(99, 1, "x"),
    inp.RawReasoning(99, 1, "x"),
    inp.SummaryDelta(99, 1, "x"),
    inp.CallDelta(99, 1, 0, "x", "x", "{}"),
    inp.ContextBlock(99, 1, "x"),
    inp.UsageReported(99, 1, Usage(output_tokens=1)),
    inp.GenerationTokensReported(99, 1, ev.NotReported()),
    inp.WebSearched(99, 1, "x"),
    inp.HostedTool(99, 1, "x", "x"),
    inp.TierFallback(99, 1, "x", "x"),
    inp.PhysicalAttemptFailed(99, 1, "Other", Usage()),
    inp.ModelReturned(99, 1, TEXT),
    inp.ModelFailed(99, 1, ProviderError("Other", "x", True)),
    inp.ModelPanicked(99, 1),
    inp.SteerClaimed(99, 1, "x"),
    inp.SteerDelivered(99, 1, "x"),
    inp.SteerReleased(99, 1, "x"),
    inp.Prepared("x", inp.Plan()),
    inp.PrepareFailed("x", "x"),
    inp.Authorized("x"),
    inp.Denied("x", "x"),
    inp.ToolProgress("x", "x"),
    inp.ToolAsked("x", question("x")),
    inp.AskWithdrawn("x", "x"),
    inp.ToolReturned("x", ev.Success("x")),
    inp.ToolPanicked("x"),
    inp.TimerFired("x"),
    inp.Retract("x", "x"),
    inp.Respond("x", "x", YES),
    inp.Taken(0),
)
"""One input of every kind that can miss. Answers are allowed, a change is not."""

UNASKED: tuple[tuple[type, tuple[Any, ...]], ...] = (
    (rs.Compacting, (inp.CompactorReturned((user("x"),)), inp.CompactorFailed(OTHER), inp.CompactorPanicked())),
    (rs.Collecting, (inp.BoundaryReplied("x"), inp.BoundaryGone())),
    (rs.Recording, (inp.UsageRecorded(),)),
)
ANSWERS = (out.NotReady, out.Reply, out.Rejected, out.ClaimAnswered)


def stray_properties(run: rs.Run, coverage: Coverage) -> Iterator[Issue]:
    """Each kind of input once in each kind of phase, blocked or not: the machine is total, defaults ignore."""
    unasked = [i for phase, group in UNASKED if not isinstance(run.phase, (phase, rs.Ebbing)) for i in group]
    for i in (*STRAYS, *unasked):
        if not _unchanged(run, _witnessed(run, i, coverage), ANSWERS):
            yield "CORE-LIVE", f"a stray {type(i).__name__} in {type(run.phase).__name__} is not ignored"
        if (type(run.phase), type(i)) not in table.WAIT and type(i) not in table.COMMON:
            coverage.default(type(i))


# --- a blocked run --------------------------------------------------------------------------------------------------


def held_properties(config: Configuration, run: rs.Run, world: World) -> Iterator[Issue]:
    """Every gated input that the world holds is left as it is: unchanged state, the input itself given back."""
    for i, _, _ in moves(config, world, True):
        if inp.INPUT_CLASS[type(i)] != "gated":
            continue  # an edge of its own: see `blocked_step`
        after = run_step.generic(run, i)
        if (after.state is not run and after.state != run) or after.effects != (out.NotReady(i),):
            yield "RHO-BUF-3", f"{type(i).__name__} is taken while a send is blocked"


def blocked_step(run: rs.Run, i: Any, after: Step[rs.Run]) -> Iterator[Issue]:
    """What a blocked run does with an input that is never held: a record is stored, and the same send waits."""
    if after.effects and type(after.effects[0]) is out.NotReady:
        yield "RHO-COORD-1", f"{type(i).__name__} is held back while a send is blocked"
    elif inp.INPUT_CLASS[type(i)] == "record" and not _only_stored(run, after):
        yield "RHO-BUF-4", f"{type(i).__name__} does more than to be stored while a send is blocked"


def _only_stored(run: rs.Run, after: Step[rs.Run]) -> bool:
    before, now = run.blocked, after.state.blocked
    same = before is not None and now is not None and before.sends == now.sends and run.free == after.state.free
    return same and all(type(e) in (out.CancelTimer, out.AbortTool) for e in after.effects)
