"""Wrong cores around the shutdown of the runtime and the state of a session: RHO-SHUT-*, RHO-STATE-*."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rho_core.runtime
import rho_core.session
from rho_conformance.drivers.corework import commands
from rho_core import effects as out
from rho_core import inputs as inp
from rho_core.run import end
from rho_core.run import state as s
from rho_core.runtime import ROWS, Runtime
from rho_core.session import IDLE_ONLY, Active, Resting, Session
from rho_core.step import Step

from .base import Mutant, Patch, Wrap, attr, entry, serving

# --- compaction by hand ------------------------------------------------------------------------------------------


def _untold(by_hand: Any) -> Any:
    """A compaction by hand is registered and counted, and its compactor never hears of the shutdown."""

    def handler(session: Session, phase: Any, i: Any) -> Step[Session]:
        after: Step[Session] = by_hand(session, phase, i)
        if not isinstance(i, inp.Cancel):
            return after
        return Step(after.state, tuple(e for e in after.effects if not isinstance(e, out.SignalCancel)))

    return handler


# --- shutdown -----------------------------------------------------------------------------------------------------


def _runtime_row(key: type, wrap: Wrap) -> Patch:
    return entry(ROWS, key, lambda original: (wrap(original[0]), original[1]))


def _joins() -> tuple[Patch, ...]:
    """Answers when the last of the cancelled operations is released, not before."""
    waiting: list[out.Reply] = []

    def shutdown(original: Any) -> Any:
        def handler(state: Runtime, i: inp.Shutdown) -> Step[Runtime]:
            step: Step[Runtime] = original(state, i)
            if not state.shut:
                waiting.clear()
            if not state.operations:
                return step
            waiting.extend(e for e in step.effects if isinstance(e, out.Reply))
            return Step(step.state, tuple(e for e in step.effects if not isinstance(e, out.Reply)))

        return handler

    def released(original: Any) -> Any:
        def handler(state: Runtime, i: inp.Released) -> Step[Runtime]:
            step: Step[Runtime] = original(state, i)
            if step.state.operations:
                return step
            answers = tuple(waiting)
            waiting.clear()
            return Step(step.state, answers)

        return handler

    return _runtime_row(inp.Shutdown, shutdown), _runtime_row(inp.Released, released)


def _opens_again(released: Any) -> Any:
    def handler(state: Runtime, i: inp.Released) -> Step[Runtime]:
        after: Step[Runtime] = released(state, i)
        return Step(Runtime(after.state.shut and bool(after.state.operations), after.state.operations), ())

    return handler


def _only_the_first(shutdown: Any) -> Any:
    def handler(state: Runtime, i: inp.Shutdown) -> Step[Runtime]:
        step: Step[Runtime] = shutdown(state, i)
        first = tuple(out.CancelOperation(o) for o in state.operations[:1])
        replies = tuple(e for e in step.effects if isinstance(e, out.Reply))
        return Step(step.state, (*(() if state.shut else first), *replies))

    return handler


def _counts_nothing(shutdown: Any) -> Any:
    """Counts what is left after it has cancelled everything."""

    def handler(state: Runtime, i: inp.Shutdown) -> Step[Runtime]:
        step: Step[Runtime] = shutdown(state, i)
        effects = (out.Reply(i.command_id, 0) if isinstance(e, out.Reply) else e for e in step.effects)
        return Step(step.state, tuple(effects))

    return handler


def _counts_every_time(shutdown: Any) -> Any:
    def handler(state: Runtime, i: inp.Shutdown) -> Step[Runtime]:
        if state.shut:
            return Step(state, (out.Reply(i.command_id, len(state.operations)),))
        kept: Step[Runtime] = shutdown(state, i)
        return kept

    return handler


def _admits_when_shut(wanted: Any) -> Wrap:
    """Admits operations of one sort although the runtime is shut."""

    def wrap(admit: Any) -> Any:
        def handler(state: Runtime, i: inp.Admit) -> Step[Runtime]:
            step: Step[Runtime] = admit(replace(state, shut=state.shut and not wanted(i.operation)), i)
            return Step(Runtime(state.shut, step.state.operations), step.effects)

        return handler

    return wrap


def _is_compaction(operation: str) -> bool:
    return operation.startswith("compact:")


def _opens_sessions_when_shut(new_session: Any) -> Any:
    def handler(performer: commands.Performer, stimulus: commands.Stimulus) -> None:
        runtime = performer.world.runtime
        performer.world.runtime = Runtime(False, runtime.operations)
        new_session(performer, stimulus)
        performer.world.runtime = runtime

    return handler


# --- state --------------------------------------------------------------------------------------------------------


def _inner_phases(session_state: Any) -> Any:
    shown = {s.BackingOff: "Retrying", s.Compacting: "Compacting", s.Collecting: "Collecting"}

    def wrapped(session: Session) -> str:
        phase = session.phase.run.phase if isinstance(session.phase, Active) else None
        found: str = shown.get(type(phase)) or session_state(session)
        return found

    return wrapped


def _idle_at_rest(session_state: Any) -> Any:
    def wrapped(session: Session) -> str:
        found: str = "Idle" if isinstance(session.phase, Resting) else session_state(session)
        return found

    return wrapped


def _remembers_the_label(admit: Any) -> Any:
    def start(session: Session, i: inp.Start) -> Step[Session]:
        label = rho_core.session.session_state(session)
        identity = replace(session.identity, metadata=(("last", label),))
        kept: Step[Session] = admit(Session(identity, session.phase), i)
        return kept

    return start


def _shows_the_label(session_state: Any) -> Any:
    def wrapped(session: Session) -> str:
        last = dict(session.metadata).get("last")
        shown: str = session_state(session)
        return last if shown == "Running" and last in ("Completed", "Failed") else shown

    return wrapped


def _cancelled_is_failed(ending: Any) -> Any:
    def wrapped(core: s.Core, how: s.Ending) -> Any:
        outcome, label, events = ending(core, how)
        return outcome, "Failed" if isinstance(how, s.CancelRun) else label, events

    return wrapped


def _busy_after_a_failure(busy: Any) -> Any:
    def wrapped(session: Session) -> bool:
        return bool(busy.fget(session)) or rho_core.session.session_state(session) == "Failed"

    return property(wrapped)


MUTANTS: tuple[Mutant, ...] = (
    *serving(
        _joins(),
        "answers a shutdown when the last run that it cancelled is gone",
        **{"shutdown-answers-late": "RHO-SHUT-1", "shutdown-joins": "RHO-SHUT-8"},
    ),
    Mutant(
        "shutdown-wears-off",
        "RHO-SHUT-2",
        "opens the runtime again when the last cancelled run is gone",
        (_runtime_row(inp.Released, _opens_again),),
    ),
    Mutant(
        "shutdown-cancels-one",
        "RHO-SHUT-3",
        "cancels the operation that was registered first, and no other",
        (_runtime_row(inp.Shutdown, _only_the_first),),
    ),
    Mutant(
        "compaction-by-hand-untold",
        "RHO-SHUT-3",
        "does not tell the compactor of a compaction by hand that it is cancelled",
        (attr(rho_core.session, "_by_hand", _untold),),
    ),
    Mutant(
        "shutdown-counts-the-rest",
        "RHO-SHUT-4",
        "counts the registered runs after it has cancelled them, and reports none",
        (_runtime_row(inp.Shutdown, _counts_nothing),),
    ),
    Mutant(
        "shutdown-counts-again",
        "RHO-SHUT-5",
        "reports the runs that are still ending in every later call",
        (_runtime_row(inp.Shutdown, _counts_every_time),),
    ),
    Mutant(
        "runs-admitted-when-shut",
        "RHO-SHUT-6",
        "starts runs after a shutdown",
        (_runtime_row(inp.Admit, _admits_when_shut(lambda operation: not _is_compaction(operation))),),
    ),
    Mutant(
        "compactions-admitted-when-shut",
        "RHO-SHUT-6",
        "starts compactions by hand after a shutdown",
        (_runtime_row(inp.Admit, _admits_when_shut(_is_compaction)),),
    ),
    Mutant(
        "sessions-opened-when-shut",
        "RHO-SHUT-6",
        "opens new sessions after a shutdown",
        (entry(commands.HANDLERS, "new_session", _opens_sessions_when_shut),),
    ),
    Mutant(
        "inner-phases-shown",
        "RHO-STATE-1",
        "shows states of its own while it retries, compacts or asks the collector",
        (attr(rho_core.session, "session_state", _inner_phases),),
    ),
    Mutant(
        "terminal-state-fades",
        "RHO-STATE-2",
        "shows Idle as soon as a run is over, whatever its end was",
        (attr(rho_core.session, "session_state", _idle_at_rest),),
    ),
    Mutant(
        "terminal-state-sticks",
        "RHO-STATE-3",
        "goes on showing Completed or Failed while the next run works",
        (
            entry(IDLE_ONLY, inp.Start, _remembers_the_label),
            attr(rho_core.session, "session_state", _shows_the_label),
        ),
    ),
    Mutant(
        "cancelled-shows-failed",
        "RHO-STATE-4",
        "leaves a session in state Failed when its run was cancelled",
        (attr(end, "_ending", _cancelled_is_failed),),
    ),
    Mutant(
        "busy-after-a-failure",
        "RHO-STATE-5",
        "calls a session busy until its failed run is replaced",
        (attr(Session, "busy", _busy_after_a_failure),),
    ),
)
