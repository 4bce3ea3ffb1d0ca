"""What session and runtime owe their hosts: one answer a command, one operation at a time, shutdown that counts.

Written from RHO-SHUT-*, RHO-DROP-2, RHO-STATE-* and design D20.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.errors import ErrorName
from rho_core.session import session_state

from .work import Issue

if TYPE_CHECKING:
    from .lifecycle import Node


class Life(NamedTuple):
    """`pending`: (command, operation) of the operation under way, that is not answered yet; `active`: its operation.

    `registered`: operations the runtime has admitted and not been told to forget. `commits`: revisions owed so far.
    `ended`: the outcome of the active run was reported, or it was dropped. `signalled`: its token was cancelled.
    `shows`: what the last operation left to be seen.
    """

    active: str = ""
    pending: str = ""
    registered: tuple[str, ...] = ()
    shut: bool = False
    revision: int = 0
    ended: bool = False
    signalled: bool = False
    shows: str = "Idle"


def judge(before: Node, after: Node, i: Any, effects: tuple[Any, ...], issues: list[Issue]) -> Life:
    """The life after one input; what went against a rule is added to `issues`."""
    life = before.life
    _revision(before, after, issues)
    for e in effects:
        if isinstance(e, out.Admit):
            life = life._replace(active=e.operation, ended=False, signalled=False)
        elif isinstance(e, out.Admitted):
            life = _admitted(life, e, issues)
        elif isinstance(e, out.ReportOutcome):
            life = _reported(life, e, after, issues)
        elif isinstance(e, out.Release):
            life = _released(life, e, issues)
            if e.operation.startswith("m"):
                done = after.session.ledger.revision > before.session.ledger.revision
                life = life._replace(shows="Completed" if done else "Idle")
        elif isinstance(e, out.SignalCancel):
            if life.signalled:
                issues.append(("RHO-CAN-2", "the token of one operation is cancelled twice"))
            life = life._replace(signalled=True)
        elif isinstance(e, out.CallModel) and life.shut and not before.world.queue:
            issues.append(("RHO-SHUT-3", "a request after the shutdown reached everyone"))
    _answers(life, before, i, effects, issues)
    _by_hand(life, before, after, i, effects, issues)
    if isinstance(i, inp.Released):
        life = life._replace(registered=tuple(o for o in life.registered if o != i.operation))
    if isinstance(i, inp.Shutdown):
        life = _shutdown(life, effects, issues)
    if isinstance(i, (inp.Start, inp.Compact)) and not before.session.busy:
        life = life._replace(pending=i.command_id)
    replied = {e.command_id for e in effects if isinstance(e, (out.Reply, out.Rejected))}
    if isinstance(i, inp.Refused):
        life = life._replace(active="", shows="Idle")
    return life._replace(pending="") if life.pending in replied else life


def _by_hand(life: Life, before: Node, after: Node, i: Any, effects: tuple[Any, ...], issues: list[Issue]) -> None:
    """A manual compaction is told of a cancel and never cut off by it: its answer decides (RHO-CAN-5)."""
    if not before.life.active.startswith("m") or not any(work[0] == "compactor" for work, _ in before.world.open):
        return
    cut = any(isinstance(e, out.AbortCompactor) for e in effects)
    if cut != isinstance(i, inp.Drop):
        issues.append(("RHO-CAN-5", f"{type(i).__name__} {'stops' if cut else 'does not stop'} a manual compaction"))
    if isinstance(i, inp.CompactorReturned):
        grown = after.session.ledger.revision > before.session.ledger.revision
        if grown != bool(i.messages):
            issues.append(("RHO-ORD-11b", f"a manual compaction gives {len(i.messages)} messages, installed: {grown}"))
    state = session_state(after.session)
    if life.active and state != ("Cancelling" if life.signalled else "Running"):
        issues.append(("RHO-STATE-1", f"{state} while a manual compaction is under way"))


def _admitted(life: Life, e: out.Admitted, issues: list[Issue]) -> Life:
    if life.shut:
        issues.append(("RHO-SHUT-6", f"{e.operation} is admitted after the shutdown"))
    return life._replace(registered=(*life.registered, e.operation))


def _reported(life: Life, e: out.ReportOutcome, after: Node, issues: list[Issue]) -> Life:
    if life.ended or not life.active:
        issues.append(("RHO-TERM-2", "an outcome is reported twice, or of no run"))
    shows = "Idle"
    if isinstance(e.outcome, ev.RunOutcome):
        shows = "Completed"
    elif e.outcome is not None and e.outcome.error.name is ErrorName.PROVIDER:
        shows = "Failed"
    return life._replace(ended=True, shows=shows)


def _released(life: Life, e: out.Release, issues: list[Issue]) -> Life:
    manual = e.operation.startswith("m")
    if e.operation != life.active or not (life.ended or manual):
        issues.append(("RHO-DROP-2", f"{e.operation} is released, active is {life.active or 'nothing'}"))
    return life._replace(active="")


def _shutdown(life: Life, effects: tuple[Any, ...], issues: list[Issue]) -> Life:
    """The first one cancels and counts what is registered; later ones count nothing (RHO-SHUT-2…5)."""
    want = () if life.shut else life.registered
    cancels = tuple(e.operation for e in effects if isinstance(e, out.CancelOperation))
    if cancels != want:
        issues.append(("RHO-SHUT-3", f"the shutdown cancels {cancels}, registered are {want}"))
    counts = [e.value for e in effects if isinstance(e, out.Reply)]
    if counts != [len(want)]:
        issues.append(("RHO-SHUT-5" if life.shut else "RHO-SHUT-4", f"the shutdown counts {counts}, not {len(want)}"))
    return life._replace(shut=True)


def _answers(life: Life, before: Node, i: Any, effects: tuple[Any, ...], issues: list[Issue]) -> None:
    """A command is answered once: at once, or (an operation) when it is admitted, refused or over."""
    found = [e for e in effects if isinstance(e, (out.Reply, out.Rejected))]
    expected: list[str] = []
    if isinstance(i, (inp.Start, inp.Compact, inp.AppendMessage)):
        busy = before.session.busy
        refused = [e for e in found if isinstance(e, out.Rejected) and e.error.name is ErrorName.SESSION_BUSY]
        if busy != bool(refused):
            issues.append(("RHO-DROP-2", f"{type(i).__name__} while the session is {'busy' if busy else 'at rest'}"))
        expected = [i.command_id] if busy or isinstance(i, inp.AppendMessage) else []
    elif isinstance(i, (inp.Cancel, inp.Shutdown)) and i.command_id is not None:
        expected = [i.command_id]
    others = [e for e in found if e.command_id not in expected]
    if [e.command_id for e in found if e.command_id in expected] != expected:
        issues.append(("RHO-CAN-2", f"{type(i).__name__} is answered {len(found)} times"))
    if [e.command_id for e in others] not in ([], [before.life.pending]):
        issues.append(("RHO-COORD-1", f"{[e.command_id for e in others]} are answered and not owed"))


def _revision(before: Node, after: Node, issues: list[Issue]) -> None:
    """A history of one revision never changes, and revisions are counted one by one."""
    old, new = before.session.ledger, after.session.ledger
    same = old.revision == new.revision and old.history == new.history
    if not same and new.revision != old.revision + 1:
        issues.append(("RHO-CAN-11", f"revision {old.revision} becomes {new.revision}"))


def judge_settled(node: Node, state: str) -> Iterator[Issue]:
    """At rest nothing is registered, nothing is owed, and the state tells how the last operation ended."""
    life = node.life
    if life.pending or life.active:
        yield "RHO-DROP-2", f"at rest, and {life.pending or life.active} is open"
    if node.runtime.operations or life.registered:
        yield "RHO-DROP-2", f"at rest, and {node.runtime.operations} is registered"
    if state != life.shows:
        yield "RHO-STATE-2", f"at rest, and the state is {state}, not {life.shows}"
