"""One session of the hosted runtime: commands go to its API, items to the doubles, and what is seen is written down.

Shares the bookkeeping of the core's driver (`corework`); the core is stepped by the runtime alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from rho_conformance.drivers.corework import interpret, items
from rho_conformance.drivers.corework.port import SessionPort
from rho_conformance.drivers.corework.runs import Run
from rho_conformance.drivers.corework.upcalls import STOPPED, Item, ModelUpcall, ToolUpcall, Upcall
from rho_conformance.drivers.live.api import API, LATER
from rho_conformance.drivers.live.source import SOURCE
from rho_conformance.errors import DriverError
from rho_core import effects as fx
from rho_core import inputs as i
from rho_core.effects import RunFailed
from rho_core.normal import encode

if TYPE_CHECKING:
    from rho_conformance.drivers.live.world import LiveWorld


RECORDED: Item = ("ok", None)


@dataclass(frozen=True, slots=True)
class Addressed:
    """An input of the host for a run by its handle."""

    run: Run | None
    value: i.RunInput


@dataclass(eq=False, slots=True)
class Inbox:
    """Items that a double has not taken yet. `handed`: the one it gave the runtime, until that took it.

    `left`: the double has ended.
    """

    items: deque[Item] = field(default_factory=deque)
    news: anyio.Event = field(default_factory=anyio.Event)
    handed: Item | None = None
    token: Any = None
    left: bool = False


class LivePort(SessionPort):
    """`handle`: the runtime's session. `handles`: its runs by name."""

    world: LiveWorld

    def __init__(self, world: LiveWorld, name: str, handle: Any, eager: bool) -> None:
        self.handle: Any = handle
        self.handles: dict[str, Any] = {}
        self.inboxes: dict[Upcall, Inbox] = {}
        self.detachable: dict[str, bool] = {}
        self.asked: dict[str, anyio.Event] = {}
        self.draining: set[str] = set()
        super().__init__(world, name, world.state_of(handle), eager)
        world.oracle.begins(world.state_of(handle))

    def install_handle(self, handle: Any) -> None:
        """Another session stands here now: one that was restored."""
        self.handle = handle
        for upcall in self.upcalls:
            upcall.finish()
        self.inboxes.clear()
        self.install(self.world.state_of(handle))
        self.world.oracle.begins(self.world.state_of(handle))

    @property
    def active(self) -> Run | None:
        """The run that the session is busy with."""
        return self._active if self.handle.busy else None

    @active.setter
    def active(self, run: Run | None) -> None:
        self._active = run

    def run_now(self) -> Run | None:
        """The newest run, over or not: a record may come when its run is."""
        return self._active

    # -- commands ----------------------------------------------------------------------------------------------

    def addressed(self, run: Run | None, value: i.RunInput) -> Any:
        """Commands are given through the handle of their run."""
        return Addressed(run, value)

    def feed(self, value: Any) -> None:
        """What the host does, by the runtime's own API."""
        run, given = (value.run, value.value) if isinstance(value, Addressed) else (self.active, value)
        command_id = getattr(given, "command_id", None)
        if isinstance(given, i.ForRun) or type(given) in (i.BoundaryReplied, i.BoundaryGone):
            self._answered(given)
            return
        act = API.get(type(given))
        if act is None:
            raise DriverError(f"the hosted driver cannot do {given!r}")
        try:
            answer = act(self, run, given)
        except self.world.hosting.rejected as fault:
            self._rejected(command_id, fault)
        else:
            if answer is not LATER and command_id is not None:
                self.world.answer(command_id, answer)

    def _rejected(self, command_id: str | None, fault: Any) -> None:
        assert command_id is not None
        self.world.reject(fx.Rejected(command_id, fault.error, fault.rule))

    def start(self, value: Any, begin: Callable[[str], Any]) -> None:
        """Begin a run under the scenario's name for it."""
        run = self.starting.pop(value.run)
        handle = begin(value.run)
        self.handles[run.name] = handle
        self.active = run
        self.runs.append(run)
        self.world.runs[run.name] = run

    async def compact(self, command_id: str) -> None:
        """A compaction by hand, in a task of its own."""
        try:
            revision = await self.handle.compact()
        except self.world.hosting.rejected as fault:
            self._rejected(command_id, fault)
        else:
            self.world.answer(command_id, revision)

    # -- what happens by itself --------------------------------------------------------------------------------

    def flush(self) -> bool:
        """Nothing is queued here: the runtime feeds itself."""
        return False

    def work(self) -> bool:
        """One round of settling, when the loop is idle: tokens are observed, readers read, outcomes are told."""
        for upcall in [u for u, inbox in self.inboxes.items() if inbox.left and u.open]:
            self._gave_up(upcall)  # aborted between its last item and the core
        moved = self._tokens()
        for run in self.runs:
            moved = self._read_live(run) or moved
            moved = self._resolve(run) or moved
        self.upcalls = [u for u in self.upcalls if u.open]
        for run in self.runs:
            run.token_cancelled = self.handles[run.name].token.cancelled
        return moved

    def _read_live(self, run: Run) -> bool:
        handle = self.handles[run.name]
        moved = False
        while not run.gone and (self.eager or run.wanted):
            event = handle.try_next()
            if event is None:
                break
            moved = True
            run.wanted = max(0, run.wanted - 1)
            self.world.show(self, run, event)
        if (self.eager or run.wanted) and handle.at_end:
            self._see_end(run)
        return moved

    def _resolve(self, run: Run) -> bool:
        """Await the outcome: when someone asked and nobody reads, and in any case when it is there."""
        handle = self.handles[run.name]
        wanted = handle.resolved or (bool(run.draining) and not self.eager)
        if not wanted or run.lost or run.name in self.draining:
            return False
        self.draining.add(run.name)
        self.world.spawn(self._drain, run, handle)
        return True

    async def _drain(self, run: Run, handle: Any) -> None:
        """Await the outcome as a host does: unread events are thrown away meanwhile."""
        try:
            run.outcome = await handle.outcome()
        except self.world.hosting.run_failed as ended:
            run.outcome = RunFailed(ended.error, ended.unapplied_steering)  # type: ignore[attr-defined]
        except self.world.hosting.rejected:
            return  # dropped: no outcome will come
        run.resolved = True
        for command_id in run.draining:
            interpret.resolve(self, command_id)
        run.draining.clear()

    def _tokens(self) -> bool:
        """Whoever is still at work observes that its token is set; a provider that heeds it stops by itself."""
        moved = False
        for upcall in list(self.upcalls):
            inbox = self.inboxes.get(upcall)
            if not upcall.open or upcall.told or inbox is None or inbox.token is None or not inbox.token.cancelled:
                continue
            self.abandon(upcall, "token")
            moved = True
            if isinstance(upcall, ModelUpcall) and self.world.settings.provider_stops:
                inbox.items.clear()
                self._put(upcall, [(STOPPED, None)])
        return moved

    # -- upcalls -----------------------------------------------------------------------------------------------

    def open_live(self, upcall: Upcall, fields: dict[str, Any], token: Any) -> None:
        """The runtime called a double."""
        self.inboxes[upcall] = Inbox(token=token)
        self.open(upcall, fields)

    async def next_item(self, upcall: Upcall, *, taken: bool = True) -> Item:
        """The next item of the scenario; it counts as taken when the core took what became of it."""
        inbox = self.inboxes[upcall]
        while True:
            while not inbox.items:
                inbox.news = anyio.Event()
                await inbox.news.wait()
            item = inbox.items.popleft()
            if item[0] not in items.TOKEN_ITEMS:
                break
            self._see_taken(upcall, item)
            if item[0] == "cancel_token":
                self._cancel_by(upcall, inbox)
        if taken:
            inbox.handed = item
        return item

    def _cancel_by(self, upcall: Upcall, inbox: Inbox) -> None:
        """The double cancels its clone of the token; one in preparation was lent none but knows its run's.

        A job's token is its own: what it does with that is nobody's news.
        """
        if isinstance(upcall, ToolUpcall) and upcall.detachable:
            return
        token = inbox.token
        if token is None and upcall.run is not None:
            token = self.handles[upcall.run.name].token
        if token is not None:
            token.cancel()

    def left(self, upcall: Upcall) -> None:
        """The double ended. If it gave no last item, the runtime gave it up; else the core is about to take that."""
        inbox = self.inboxes.get(upcall)
        if inbox is None or not upcall.open:
            self.inboxes.pop(upcall, None)
            return
        inbox.left = True
        if inbox.handed is None or not upcall.ends_with(inbox.handed[0]):
            self._gave_up(upcall)

    def _gave_up(self, upcall: Upcall) -> None:
        self.inboxes.pop(upcall, None)
        if upcall.incarnation == self.incarnation:
            self.abandon(upcall, "dropped")

    def give(self, upcall: Upcall, given: list[Item]) -> None:
        """Items of the scenario for an upcall; for one that is over there is nobody to take them."""
        if upcall.open:
            self._put(upcall, given)

    def _put(self, upcall: Upcall, given: list[Item]) -> None:
        inbox = self.inboxes.get(upcall)
        if inbox is not None:
            inbox.items.extend(given)
            inbox.news.set()

    def _answered(self, given: Any) -> None:
        """An answer of the collector or the recorder, whose upcall counts as over already."""
        if isinstance(given, i.ForRun):
            upcall, item = self.find("Record"), RECORDED
        elif isinstance(given, i.BoundaryReplied):
            upcall, item = self.find("Collect"), ("input", given.input)
        else:
            upcall, item = self.find("Collect"), ("gone", None)
        if upcall is not None:
            self._put(upcall, [item])

    def expect_ask(self, call_id: str) -> anyio.Event:
        """Set when the core took the question that is asked now."""
        self.asked[call_id] = anyio.Event()
        return self.asked[call_id]

    def steer_seen(self, upcall: ModelUpcall, kind: str, name: str, granted: bool) -> None:
        """The provider did something with a steer."""
        self.see("SteerClaim", {"n": upcall.n, "item": kind, "id": name, "granted": granted}, upcall.run)

    # -- the tap: what the core took ---------------------------------------------------------------------------

    def stepped(self, value: Any, effects: tuple[Any, ...]) -> None:
        """One step of the core, before its effects are carried out."""
        if not (effects and type(effects[0]) is fx.NotReady):
            late = type(value) is i.ForRun
            inner = value.input if late else value
            upcall = self._handed_by(inner)
            if upcall is not None and not late:
                self._accepted(upcall)
            if type(inner) is i.ToolAsked and inner.call_id in self.asked:
                self.asked.pop(inner.call_id).set()
        for effect in effects:
            self.world.expect(self, effect)

    def _handed_by(self, value: Any) -> Upcall | None:
        found = SOURCE.get(type(value))
        if found is None:
            return None
        kinds, items_ = found
        for upcall in self.upcalls:
            inbox = self.inboxes.get(upcall)
            if inbox is None or inbox.handed is None or upcall.kind not in kinds or inbox.handed[0] not in items_:
                continue
            if isinstance(upcall, ModelUpcall) and (upcall.step, upcall.attempt) != (value.step, value.attempt):
                continue
            if isinstance(upcall, ToolUpcall) and upcall.call_id != value.call_id:
                continue
            return upcall
        return None

    def _accepted(self, upcall: Upcall) -> None:
        inbox = self.inboxes[upcall]
        item, inbox.handed = inbox.handed, None
        assert item is not None
        if upcall.ends_with(item[0]):
            upcall.finish()
            self.inboxes.pop(upcall, None)
        if isinstance(upcall, ModelUpcall):
            upcall.saw(item[0], self.world.now_ms)
        if item[0] != STOPPED:
            self._see_taken(upcall, item)
        if item[0] in ("deliver", "release") and isinstance(upcall, ModelUpcall):
            self.steer_seen(upcall, item[0], item[1], item[1] in upcall.granted)
            upcall.granted.discard(item[1])

    def _see_taken(self, upcall: Upcall, item: Item) -> None:
        shown = {"upcall": upcall.kind, **upcall.fields, "item": {item[0]: item[1]}}
        self.see("Taken", shown, upcall.run)

    # -- what is reported --------------------------------------------------------------------------------------

    def waiting_on(self) -> list[str]:
        """What the session's unfinished operation waits for, with the scenario's names."""
        names = self.world.names
        waits = self.handle.waiting_on
        return [f"host:{names.ask(w.removeprefix('host:'))}" if w.startswith("host:") else w for w in waits]

    def facts(self) -> dict[str, Any]:
        """State, busy-ness, revision and committed history, as the runtime's session shows them."""
        history = self.handle.history
        if self._shown is None or self._shown[0] is not history:
            self._shown = (history, encode.messages(history))
        return {
            "state": str(self.handle.state),
            "busy": self.handle.busy,
            "revision": self.handle.revision,
            "history": list(self._shown[1]),
        }
