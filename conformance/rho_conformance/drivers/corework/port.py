"""One session as the driver holds it: feeding the core, carrying out its effects, reading, handing over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rho_core.session
import rho_core.waiting
from rho_conformance.drivers.corework import interpret, items
from rho_conformance.drivers.corework.runs import Run
from rho_conformance.drivers.corework.upcalls import STOPPED, Item, ModelUpcall, ToolUpcall, Upcall
from rho_core import effects as fx
from rho_core import inputs as i
from rho_core.messages import History
from rho_core.normal import encode, events
from rho_core.session import Session

if TYPE_CHECKING:
    from rho_conformance.drivers.corework.world import World

U = TypeVar("U", bound=Upcall)
NO_RUN = "-"


class SessionPort:
    """`active`: the run that the session owns now; `runs`: all accepted ones; `queue`: inputs not yet fed."""

    def __init__(self, world: World, name: str, session: Session, eager: bool) -> None:
        self.world = world
        self.name = name
        self.opening = session
        self.eager = eager
        self.incarnation = 0
        self.runs: list[Run] = []
        self.requests = 0
        self.install(session)

    def install(self, session: Session) -> None:
        """A session begins here: the first one, or one that was restored."""
        self.incarnation += 1
        self.session = session
        self.world.journal.append((self.name, session))
        self.queue: deque[i.SessionInput] = deque()
        self.active: Run | None = None
        self.deferred: list[tuple[i.SessionInput, Session]] = []
        self.starting: dict[str, Run] = {}
        self.upcalls: list[Upcall] = []
        self.latest: dict[tuple[str, str | None], Upcall] = getattr(self, "latest", {})
        self.claiming: ModelUpcall | None = None
        self.leaving: Run | None = None
        self._shown: tuple[History, list[dict[str, Any]]] | None = None

    # -- feeding the core --------------------------------------------------------------------------

    def feed(self, value: i.SessionInput) -> None:
        """Feed an input. Our core refuses items alone; an input that another one refuses is offered again."""
        if not self.offer(value):
            self.deferred.append((value, self.session))

    def offer(self, value: i.SessionInput, taken: Callable[[], None] | None = None) -> bool:
        """Feed an input; False if the core was not ready. `taken` is called before the effects are done."""
        if self.world.restless:
            return False
        self.world.fed += 1
        self.world.journal.append((self.name, value))
        step = rho_core.session.step(self.session, value)
        self.session = step.state
        if any(isinstance(effect, fx.NotReady) for effect in step.effects):
            return False
        if taken is not None:
            taken()
        for effect in step.effects:
            interpret.effect(self, effect)
        if any(isinstance(effect, fx.SignalCancel) for effect in step.effects):
            interpret.token_cancelled(self)
        self.flush()
        return True

    def flush(self) -> bool:
        """Feed what was answered at once; whether there was anything."""
        moved = False
        while self.queue:
            moved = True
            self.feed(self.queue.popleft())
        return moved

    def _again(self) -> bool:
        """Offer what was refused, once the state is another."""
        waiting, self.deferred = self.deferred, []
        moved = False
        for value, refused_by in waiting:
            if refused_by is self.session or not self.offer(value):
                self.deferred.append((value, self.session))
            else:
                moved = True
        return moved

    # -- what happens by itself --------------------------------------------------------------------

    def work(self) -> bool:
        """One round of settling: queued inputs, then readers, then items, then the end of a drop."""
        moved = self.flush()
        moved = self._again() or moved
        for run in self.runs:
            moved = self._read(run) or moved
        for upcall in list(self.upcalls):
            moved = self.hand_over(upcall) or moved
        self.upcalls = [u for u in self.upcalls if u.open]
        return self._bury() or moved

    def _read(self, run: Run) -> bool:
        """The reader takes what it wants; what `outcome` drains is shown to nobody."""
        moved = False
        while run.channel and not self.world.restless and (self.eager or run.wanted or run.draining):
            self._take(run, show=self.eager or run.wanted > 0)
            moved = True
        if (self.eager or run.wanted) and run.ended and not run.channel:
            self._see_end(run)
        return moved

    def _take(self, run: Run, *, show: bool) -> None:
        event = run.channel.popleft()
        run.wanted = max(0, run.wanted - 1)
        if show:
            name, fields = events.event(event, self.world.names)
            self.see(name, fields, run)
        if run is self.active:
            self.feed(i.Taken(1))

    def _see_end(self, run: Run) -> None:
        """The reader finds the stream at its end, once."""
        if not run.gone and not run.seen_end:
            run.seen_end = True
            self.see("EventsClosed", {}, run)

    def rest(self) -> None:
        """The step is over: a reader that wanted more than there was does not go on wanting it."""
        for run in self.runs:
            run.wanted = 0

    def _bury(self) -> bool:
        """After a drop the session is free once nothing that the run started is alive (RHO-DROP-2).

        What a recorder was given is in its own hands.
        """
        run = self.leaving
        if run is None or any(u.run is run and u.open and u.kind != "Record" for u in self.upcalls):
            return False
        self.leaving = None
        self.feed(i.TasksGone(run.name))
        return True

    # -- upcalls -----------------------------------------------------------------------------------

    def open(self, upcall: U, fields: dict[str, Any]) -> U:
        """The runtime asks for something; from now on items for it are handed over."""
        self.latest[upcall.kind, upcall.call_id] = upcall
        self.upcalls.append(upcall)
        self.see(upcall.kind, {**upcall.fields, **fields}, upcall.run)
        return upcall

    def find(self, kind: str, call_id: str | None = None) -> Upcall | None:
        """The newest upcall of that kind (and call), open or not."""
        return self.latest.get((kind, call_id))

    def abandon(self, upcall: Upcall | None, how: str) -> None:
        """The runtime stopped waiting (`dropped`), or only told it to stop (`token`)."""
        if upcall is None or not upcall.open:
            return
        if how == "dropped":
            upcall.finish()
        elif upcall.told:
            return
        upcall.told = True
        self.see("Abandoned", {"upcall": upcall.kind, **upcall.fields, "how": how}, upcall.run)

    def give(self, upcall: Upcall, given: list[Item]) -> None:
        """Items of the scenario for an upcall. Late ones change nothing: the core itself must see to that."""
        if upcall.open:
            upcall.queue.extend(given)
            upcall.offered_to = None
            self.hand_over(upcall)
            return
        for item in given:
            if upcall.incarnation == self.incarnation and item[0] not in items.TOKEN_ITEMS:
                self.offer(self.addressed(upcall.run, self.input_of(upcall, item)))

    def addressed(self, run: Run | None, value: i.RunInput) -> i.SessionInput:
        """An input for a run that may be over: the core tells by the name whether it comes too late."""
        return value if run is self.active else i.ForRun(NO_RUN if run is None else run.name, value)

    def hand_over(self, upcall: Upcall) -> bool:
        """Offer the queue to the core until it is empty or not wanted; whether anything was taken."""
        moved = False
        while upcall.open and upcall.queue and upcall.offered_to is not self.session:
            if not self._hand_one(upcall, upcall.queue[0]):
                upcall.offered_to = self.session
                break
            moved = True
        return moved

    def _hand_one(self, upcall: Upcall, item: Item) -> bool:
        def taken() -> None:
            if upcall.ends_with(item[0]):
                upcall.finish()
            else:
                upcall.queue.popleft()
            if isinstance(upcall, ModelUpcall):
                self.claiming = upcall
                upcall.saw(item[0], self.world.now_ms)
            if item[0] != STOPPED:
                shown = {"upcall": upcall.kind, **upcall.fields, "item": {item[0]: item[1]}}
                self.see("Taken", shown, upcall.run)
            if item[0] in ("deliver", "release") and isinstance(upcall, ModelUpcall):
                interpret.steer_moved(self, upcall, item)

        if item[0] in items.TOKEN_ITEMS:
            taken()
            if item[0] == "cancel_token" and not (isinstance(upcall, ToolUpcall) and upcall.detachable):
                self.feed(i.Cancel(None))
            return True
        return self.offer(self.input_of(upcall, item), taken)

    def input_of(self, upcall: Upcall, item: Item) -> i.RunInput:
        """What the core is told when this item is handed over."""
        if isinstance(upcall, ModelUpcall):
            return items.model_input(upcall, item, self.world.around)
        if isinstance(upcall, ToolUpcall):
            return items.tool_input(upcall, item, self.world.around)
        return items.compactor_input(item)

    # -- what is seen ------------------------------------------------------------------------------

    def see(self, name: str, fields: dict[str, Any], run: Run | None) -> None:
        """One observation of this session."""
        self.world.see(name, self.name, None if run is None else run.name, fields)

    def waiting_on(self) -> list[str]:
        """What the session's unfinished operation waits for, with the scenario's names."""
        waits = rho_core.waiting.waiting_on(self.session)
        return [f"host:{self.world.names.ask(w.removeprefix('host:'))}" if w.startswith("host:") else w for w in waits]

    def facts(self) -> dict[str, Any]:
        """State, busy-ness, revision and committed history."""
        ledger = self.session.ledger
        if self._shown is None or self._shown[0] is not ledger.history:
            self._shown = (ledger.history, encode.messages(ledger.history))
        return {
            "state": str(rho_core.session.session_state(self.session)),
            "busy": self.session.busy,
            "revision": ledger.revision,
            "history": list(self._shown[1]),
        }
