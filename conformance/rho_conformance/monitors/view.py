"""One reading of a trace: runs, attempts, calls, questions, steers and the timeline of facts, in one linear
pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .base import TraceLike
from .build import Builder
from .entities import NEVER, Call, Obs, Run
from .stimuli import STARTS, Stim

Json = Any
WAITS = ("model", "tool", "timer", "compactor", "collector", "host", "reader", "recorder")


class View:
    """A trace, parsed. Every list is in trace order; steps count from 1 as in ``Obs.step``."""

    def __init__(self, trace: TraceLike) -> None:
        built = Builder(trace)
        self.trace = trace
        self.config: Mapping[str, Json] = trace.config
        self.obs: list[Obs] = built.obs
        self.stims: list[Stim] = built.stims
        self.stims_at: dict[int, list[Stim]] = built.stims_at
        self.obs_at: dict[int, list[Obs]] = built.obs_at
        self.replies: dict[str, list[Obs]] = built.replies
        self.runs: list[Run] = [r for r in built.runs.values() if r.accepted]
        self.refused: list[Run] = [r for r in built.runs.values() if not r.accepted]
        self.by_name: dict[str, Run] = built.runs
        self.taken_known: bool = built.taken_known
        self.length = len(trace.steps)
        self.first_session = built.sessions[0]
        self.sessions = built.sessions
        self._waiting = [frozenset(s.waiting_on) for s in trace.steps]
        self._eager, self._eager_default = built.eager, built.eager_default
        self._attempt_no = built.attempt_no
        self.clock = built.clock
        self._max_sent: dict[str, dict[int, int]] = {}
        self._contexts: dict[int, tuple[object, ...]] = {}

    # -- steps -------------------------------------------------------------------------------------

    def waiting(self, step: int) -> frozenset[str]:
        """What the runtime waited for when ``step`` had settled; nothing before the first."""
        return self._waiting[step - 1] if 1 <= step <= self.length else frozenset()

    def waits_for(self, step: int, kind: str) -> bool:
        """Whether a wait of this kind (``model``, ``tool``, ``reader``, …) was open when ``step`` had
        settled."""
        return any(w == kind or w.startswith(kind + ":") for w in self.waiting(step))

    def kinds(self, step: int) -> tuple[str, ...]:
        """The kinds of wait open when ``step`` had settled."""
        return tuple(k for k in WAITS if self.waits_for(step, k))

    def full(self, step: int) -> bool:
        """Whether a send was blocked on the reader when ``step`` had settled."""
        return self.waits_for(step, "reader")

    def eager(self, step: int, session: str | None = None) -> bool:
        """Whether the reader of a session (the first by default) took everything at the end of ``step``."""
        known = self._eager[step] if 0 <= step < len(self._eager) else {}
        return known.get(session or self.first_session, self._eager_default)

    def alone(self, stim: Stim) -> bool:
        """Whether it was the only stimulus of its ``perform``: no race."""
        return len(self.stims_at.get(stim.step, ())) == 1

    def single(self, step: int) -> bool:
        """Whether ``step`` had one stimulus."""
        return len(self.stims_at.get(step, ())) == 1

    # -- facts -------------------------------------------------------------------------------------

    def facts(self, step: int, session: str) -> Mapping[str, Json]:
        """Facts of one session after ``step``; empty where none were reported."""
        if not 1 <= step <= self.length:
            return {}
        facts = self.trace.steps[step - 1].facts or {}
        inner = (facts.get("sessions") or {}).get(session)
        if session == self.first_session:
            top = {k: facts[k] for k in ("state", "busy", "revision", "history", "tokens", "saves") if k in facts}
            return {**(inner or {}), **top}
        return inner or {}

    def before(self, step: int, session: str) -> Mapping[str, Json]:
        """Facts of one session before ``step``; from the configuration at the start."""
        known = self.facts(step - 1, session)
        if known or step > 1 or session != self.first_session:
            return known
        revision = self.config.get("revision", 0)
        return {
            "revision": 2**64 - 1 if revision == "max" else revision,
            "history": self.start_history(),
            "state": "Idle",
            "busy": False,
        }

    def token(self, step: int, run: Run) -> Json:
        """State of a run's token after ``step``: ``live``, ``cancelled``, or ``None`` where it is not reported."""
        return (self.facts(step, self.first_session).get("tokens") or {}).get(run.name)

    def start_history(self) -> list[Json]:
        """History of the first session before anything happened."""
        history = list(self.config.get("history") or ())
        system = self.config.get("system")
        return [{"system": system}] if system and not history else history

    def after(self, run: Run) -> Mapping[str, Json]:
        """Facts once a run had ended, unless something else touched its session in that very step."""
        if run.end_step == NEVER or self.touched(run, run.end_step):
            return {}
        return self.facts(run.end_step, run.session)

    def touched(self, run: Run, step: int) -> bool:
        """Whether the step did more to the session than end this run: a new run, a host mutation, a
        restore."""
        other = (*STARTS, "append", "replace_history", "reset", "restore", "crash", "compact")
        own = [s for s in self.stims if s.session == run.session or s.name == "crash"]
        own = [s for s in own if s is not run.stim]
        # A manual compaction keeps the session busy, so the step at which the run ended is not known then.
        busy = any(s.name == "compact" and run.start_step <= s.step <= step for s in own)
        return busy or any(s.name in other and s.step == step for s in own)

    # -- back-pressure -----------------------------------------------------------------------------

    def max_sent(self, run: Run, step: int) -> int:
        """An upper bound on the number of events of ``run`` that can have been sent when ``step`` had
        settled.

        An eager reader has taken all that was sent; a held one leaves at most a channel full behind.
        Nothing can
        be said after the channel was drained by ``outcome`` or lost its reader.
        """
        if any(s <= step for s in (*run.outcomes_asked, *run.drops, *run.closes)):
            return NEVER
        if run.name not in self._max_sent:
            taken: dict[int, int] = {}
            for event in run.events:
                taken[event.step] = taken.get(event.step, 0) + 1
            total, upto = 0, {}
            for at in range(run.start_step, self.length + 1):
                total += taken.get(at, 0)
                upto[at] = total
            self._max_sent[run.name] = upto
        read = self._max_sent[run.name].get(step, 0)
        return read if self.eager(step, run.session) else read + run.capacity

    def unsent(self, run: Run, event: Obs, step: int) -> bool:
        """Whether this event certainly had not been sent when ``step`` had settled."""
        return run.place(event) >= self.max_sent(run, step)

    def crowded(self, run: Run, step: int, required: Iterable[Obs | None]) -> bool:
        """Whether these events cannot all have been sent: more were unread after ``step`` than fit the channel."""
        if self.max_sent(run, step) == NEVER:
            return False
        unread = sum(1 for event in required if event is None or event.step > step)
        return unread > (0 if self.eager(step, run.session) else run.capacity)

    # -- entities ----------------------------------------------------------------------------------

    def calls(self) -> Iterator[Call]:
        """All calls of all runs."""
        for run in self.runs:
            yield from run.calls

    def stim(self, *names: str) -> list[Stim]:
        """Stimuli by name."""
        return [s for s in self.stims if s.name in names]

    def reply(self, stim: Stim) -> Obs | None:
        """The first reply of a command."""
        found = self.replies.get(stim.reply, ())
        return next((r for r in found if r.step >= stim.step), None)

    def live(self, step: int) -> list[Run]:
        """Runs unfinished when ``step`` had settled."""
        return [r for r in self.runs if r.start_step <= step < r.end_step]

    def tool_config(self, name: str) -> Mapping[str, Json]:
        """Configuration of a tool, empty for an unavailable one."""
        return (self.config.get("tools") or {}).get(name) or {}

    def compactor_mode(self) -> str:
        """How the compactor is cancelled: ``external`` or ``cooperative``."""
        policy = self.config.get("compaction")
        inner = policy.get("compactor") if isinstance(policy, Mapping) else None
        return str(inner or self.config.get("compactor") or "external")

    def max_steps(self) -> int:
        """The configured step limit."""
        return int(self.config.get("max_steps") or 32)

    # -- contexts ----------------------------------------------------------------------------------

    def context(self, step: int) -> tuple[object, ...]:
        """The signature of a step: phase before it, stimulus class, channel, reader, open calls, attempt."""
        if step not in self._contexts:
            self._contexts[step] = self._context(step)
        return self._contexts[step]

    def _context(self, step: int) -> tuple[object, ...]:
        stims: Sequence[Stim] = self.stims_at.get(step, ())
        opened = sum(w.startswith("tool:") for w in self.waiting(step - 1))
        return (
            "+".join(self.kinds(step - 1)) or "idle",
            "+".join(s.label for s in stims) or "none",
            "full" if self.full(step - 1) else "room",
            "eager" if self.eager(step) else "held",
            min(opened, 2),
            self._attempt_no[step - 1] if step - 1 < len(self._attempt_no) else 0,
        )


def context(view: View, step: int) -> tuple[object, ...]:
    """The signature of a step, as a function (see :meth:`View.context`)."""
    return view.context(step)
