"""What a reader, a host and the extensions have seen so far, as far as a rule still needs it: the ghost state.

Written from the contract, not from the core's code. It sees inputs, effects, the committed ledger and the session's
state, and nothing else; it is part of the search key, so every rule is judged on traces and not on single states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from rho_core import effects as out
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core.config import Policy
from rho_core.messages import Block, History
from rho_core.run.state import Run

from .configuration import Configuration
from .work import Issue, Open


class Call(NamedTuple):
    """One proposed call. `stage`: due, proposed, started, detached, finished: what the reader knows of it.

    `detach`: honoured as async. `plan`: what its preparation gave. `access`: none, asked, granted or denied.
    `completion`: the one that its ToolFinished must show. `ran`: its executor was entered. `step`: where it finished.
    """

    id: str
    name: str
    detach: bool
    stage: str = "due"
    plan: inp.Plan | None = None
    asked: bool = False
    access: str = "none"
    ran: bool = False
    completion: ev.ToolCompletion | None = None
    step: int = 0


class Steer(NamedTuple):
    """An accepted steer: staged, claimed, delivered, applied or retracted. `due`: before the next StepStarted.

    `loose`: given back when its attempt was recorded and perhaps not yet judged; a retract may find it either way.
    """

    id: str
    stage: str = "staged"
    due: bool = False
    loose: bool = False


@dataclass(slots=True)
class Ghost:
    """`turn`: boundary, begun, open, returned, bad, failed, reset, waiting, fired: where the model step stands.

    `ending`: why nothing new may begin (empty while it may). `abnormal`: why the run may end without a commit.
    `over`: this very step commits the end. `owed`: events that must be delivered next, in order. `commits`: of
    compactions and boundary inputs. `records`: (number, outcome, kind) that the recorder must be given, in order.
    `said`: responses that were announced as completed since the last compaction.
    """

    started: bool = False
    ending: str = ""
    cancelled: bool = False
    abnormal: str = ""
    reader: bool = True
    terminal: Any = None
    outcome: Any = None
    reported: bool = False
    closed: bool = False
    # the turn
    step: int = 0
    turn: str = "boundary"
    attempt: int = 0
    malformed: int = 0
    failed: int = 0
    error: Any = None
    request: History = ()
    content: tuple[Block, ...] = ()
    captured: str = ""
    more: bool = False
    owed: tuple[Any, ...] = ()
    marks: tuple[str, ...] = ()
    physical: int = 0
    records: tuple[tuple[int, str, str | None], ...] = ()
    tokens: int = 0
    spent: int = 0
    answer: str = ""
    said: int = 0
    # calls and questions
    calls: tuple[Call, ...] = ()
    asks: tuple[tuple[str, str, str], ...] = ()
    stopping: tuple[str, ...] = ()
    doubled: bool = False
    # the boundary
    steers: tuple[Steer, ...] = ()
    applied: tuple[str, ...] = ()
    commits: int = 0
    compaction: str = ""
    compactor: Any = None
    compacted: bool = False
    collector: str = ""
    inputs: tuple[str, ...] = ()
    added: int = 0
    # not part of the key
    config: Any = field(default=None, compare=False)
    issues: list[Issue] = field(default_factory=list, compare=False)
    open: Open = ()
    over: bool = False

    @property
    def policy(self) -> Policy:
        policy: Policy = self.config.policy
        return policy

    @property
    def compact_at(self) -> int | None:
        """Messages at which the history is compacted."""
        return None if self.policy.compaction is None else self.policy.compaction.messages

    def say(self, rule: str, text: str) -> None:
        """Something went against the rule."""
        self.issues.append((rule, text))

    def need(self, holds: bool, rule: str, text: str) -> None:
        if not holds:
            self.issues.append((rule, text))

    def call(self, call_id: str) -> Call | None:
        """The newest call of that id."""
        return next((c for c in reversed(self.calls) if c.id == call_id), None)

    def put(self, old: Call, **changes: Any) -> None:
        """Replace a call."""
        new = old._replace(**changes)
        self.calls = tuple(new if c is old else c for c in self.calls)

    def steer(self, steering_id: str) -> Steer | None:
        return next((s for s in self.steers if s.id == steering_id), None)

    def move(self, steer: Steer, stage: str) -> None:
        self.steers = tuple(s._replace(stage=stage) if s is steer else s for s in self.steers)

    @property
    def pending(self) -> bool:
        """Is a call open that runs on by itself?"""
        return any(c.detach and c.stage in ("proposed", "started", "detached") for c in self.calls)


KEYS = tuple(name for name in Ghost.__slots__ if name not in ("config", "issues", "open", "over"))
freeze = attrgetter(*KEYS)
"""The part of a ghost that belongs to the search key."""


def thaw(key: tuple[Any, ...], config: Configuration, issues: list[Issue], open_work: Open) -> Ghost:
    ghost = Ghost(*key)
    ghost.config, ghost.issues, ghost.open = config, issues, open_work
    return ghost


class Moment(NamedTuple):
    """One step, as the ghost sees it; `state` is the session's after it."""

    input: Any
    effects: tuple[Any, ...]
    before: Run
    after: Run
    state: str

    def sent(self, *kinds: type) -> tuple[Any, ...]:
        """The effects of these kinds."""
        return tuple([e for e in self.effects if type(e) in kinds]) if self.effects else ()

    def delivered(self, *kinds: type) -> tuple[Any, ...]:
        """The events of these kinds that were delivered in this step."""
        return tuple(e.event for e in self.effects if type(e) is out.Deliver and type(e.event) in kinds)
