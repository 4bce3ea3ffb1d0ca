"""The one pass over a trace that fills the entities of ``View``. Unknown names and missing fields are
skipped, never fatal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rho_conformance.vocabulary import is_refused_again

from .base import TraceLike
from .entities import (
    CALL_EVENTS,
    COUNTERS,
    EVENTS,
    NEVER,
    PROVIDER_EVENTS,
    UPCALLS,
    Ask,
    Attempt,
    Call,
    Obs,
    Run,
    Steer,
    is_malformed,
)
from .stimuli import (
    STARTS,
    Item,
    Stim,
    duration_ms,
    items_of,
    read_stimuli,
    split_item,
)

Json = Any


class Builder:
    """Parses a trace; its attributes are then owned by the view."""

    def __init__(self, trace: TraceLike) -> None:
        self.trace = trace
        self.config = trace.config
        self.sessions: list[str] = list(self.config.get("sessions") or ["s1"])
        self.stims = read_stimuli([s.perform for s in trace.steps], self.sessions[0])
        self.stims_at: dict[int, list[Stim]] = {}
        for stim in self.stims:
            self.stims_at.setdefault(stim.step, []).append(stim)
        self.obs: list[Obs] = []
        self.obs_at: dict[int, list[Obs]] = {}
        self.replies: dict[str, list[Obs]] = {}
        self.runs: dict[str, Run] = {}
        self.newest: dict[str, Run] = {}
        self.steers: dict[str, Steer] = {}
        self.latest: dict[tuple[str, str], Call] = {}
        self.attempt_no: list[int] = [0]
        self._read_observations()
        self._pass()
        self._close()

    # -- reading -----------------------------------------------------------------------------------

    def _read_observations(self) -> None:
        last = -1
        for step, record in enumerate(self.trace.steps, start=1):
            for raw in record.observations:
                obs = self._read(raw, step, last)
                if obs is None:
                    continue
                last = obs.seq
                self.obs.append(obs)
                self.obs_at.setdefault(step, []).append(obs)
                if obs.name == "Reply" and isinstance(obs.get("name"), str):
                    self.replies.setdefault(obs.data["name"], []).append(obs)
        self.taken_known = any(o.name == "Taken" for o in self.obs)

    def _read(self, raw: Json, step: int, last: int) -> Obs | None:
        if not isinstance(raw, Mapping):
            return None
        name = next((k for k in raw if k not in COUNTERS), None)
        if name is None:
            return None
        data = raw[name] if isinstance(raw[name], Mapping) else {}
        seq, at_ms = raw.get("seq"), raw.get("at_ms")
        owner, session = data.get("run"), data.get("session")
        return Obs(
            str(name),
            data,
            step,
            seq if isinstance(seq, int) and seq > last else last + 1,
            int(at_ms) if isinstance(at_ms, int | float) else None,
            session if isinstance(session, str) else self.sessions[0],
            owner if isinstance(owner, str) else None,
        )

    # -- the pass ----------------------------------------------------------------------------------

    def _pass(self) -> None:
        held = self.config.get("reader", "eager") == "held"
        self.eager_default = not held
        now_eager: dict[str, bool] = {}
        self.eager: list[dict[str, bool]] = [{}]
        self.clock = [0]
        for step in range(1, len(self.trace.steps) + 1):
            now = self.clock[-1]
            for stim in self.stims_at.get(step, ()):
                self._stimulus(stim)
                if stim.name == "read" and "all" in (stim.value, stim.get("n"), stim.get("count")):
                    now_eager[stim.session] = True
                elif stim.name == "hold_reader":
                    now_eager[stim.session] = False
                elif stim.name == "advance":
                    now += duration_ms(stim.value if not isinstance(stim.value, Mapping) else stim.get("by"))
            for obs in self.obs_at.get(step, ()):
                self._observation(obs)
            self.eager.append(dict(now_eager))
            self.clock.append(now)
            self.attempt_no.append(max((r.attempts[-1].number for r in self.newest.values() if r.attempts), default=0))

    def _stimulus(self, stim: Stim) -> None:
        if stim.name in STARTS:
            self._start(stim)
            return
        if stim.name == "shutdown":
            for every in self.runs.values():
                every.shutdowns.append(stim.step)
            return
        run = self.runs.get(stim.run or "") or self.newest.get(stim.session)
        if stim.name in ("steer", "retract", "respond") and run is not None:
            self._command(stim, run)
        elif stim.name == "crash":
            # The whole process is lost, with the runs of every session.
            for other in self.runs.values():
                other.crashed = min(other.crashed, stim.step)
        elif run is not None:
            self._act(stim, run)

    def _start(self, stim: Stim) -> None:
        capacity = stim.get("event_capacity") or self.config.get("event_capacity") or 64
        run = Run(stim.run or stim.reply, stim.session, stim, int(capacity))
        self.runs[run.name] = run
        run.reply = next(iter(self.replies.get(run.name, ())), None)
        refused = run.reply is not None and isinstance(run.reply.get("value"), Mapping)
        if refused and run.reply is not None and "error" in run.reply.get("value"):
            return
        self.newest[stim.session] = run
        call = stim.get("call")
        if stim.name == "start_tool" and isinstance(call, Mapping):
            self._call(run, call, 0, None, stim.step)

    def _act(self, stim: Stim, run: Run) -> None:
        run.stims.append(stim)
        places = {
            "cancel": run.cancels,
            "drop": run.drops,
            "close_reader": run.closes,
            "outcome": run.outcomes_asked,
        }
        if stim.name in places:
            places[stim.name].append(stim.step)
        if stim.name in ("provider", "tool", "compactor"):
            self._answer(stim, run)

    def _answer(self, stim: Stim, run: Run) -> None:
        for kind, value in items_of(stim):
            if kind == "panic":
                run.panics.append(stim.step)
            if self.taken_known:
                continue
            item = Item(kind, value, stim.step, None, None)
            if stim.name == "provider":
                attempt = run.attempts[-1] if run.attempts else None
                if attempt is not None and attempt.end is None and attempt.abandoned is None:
                    self._take(attempt, item)
            elif stim.name == "tool":
                call = self.latest.get((run.name, str(stim.get("id"))))
                if call is not None and call.end is None and call.abandoned is None:
                    self._tool_take(call, item)

    def _command(self, stim: Stim, run: Run) -> None:
        reply = next((r for r in self.replies.get(stim.reply, ()) if r.step >= stim.step), None)
        ref = stim.get("ref")
        stim = replace(stim, run=run.name)
        if stim.name == "steer":
            text = stim.get("text", stim.value if isinstance(stim.value, str) else "")
            steer = Steer(stim.reply, str(text), run, stim, reply)
            self.steers[steer.name] = steer
            run.steers.append(steer)
        elif stim.name == "retract" and ref in self.steers:
            self.steers[ref].retracts.append((stim, reply))
        elif stim.name == "respond" and isinstance(ref, str):
            # Through the handle of another run it is another question, which nobody asked.
            self._ask(run, ref).responds.append((stim, reply))
        run.stims.append(stim)

    # -- observations ------------------------------------------------------------------------------

    def _observation(self, obs: Obs) -> None:
        if obs.name == "Reply":
            self._outcome(obs)
            return
        run = self._run_of(obs)
        if run is None:
            return
        if obs.name == "EventsClosed":
            run.closed = run.closed or obs
        elif obs.name in UPCALLS:
            run.upcalls.append(obs)
            handler = getattr(self, f"_up_{obs.name}", None)
            if handler is not None:
                handler(obs, run)
        elif obs.name in EVENTS:
            run.index[obs.seq] = len(run.events)
            run.events.append(obs)
            self._event(obs, run)

    def _run_of(self, obs: Obs) -> Run | None:
        if obs.run is None and obs.get("trigger") == "Manual":
            return None
        if obs.run is None:
            newest = self.newest.get(obs.session)
            return newest if newest is not None and newest.closed is None and newest.terminal is None else None
        if obs.run not in self.runs and obs.name in EVENTS | UPCALLS:
            phantom = Stim("start", "", obs.step, 0, obs.session, obs.run, obs.run)
            self.runs[obs.run] = self.newest[obs.session] = Run(obs.run, obs.session, phantom, 64)
        return self.runs.get(obs.run)

    def _outcome(self, obs: Obs) -> None:
        name = obs.get("name")
        stim = next((s for s in self._outcome_stims() if s.reply == name), None)
        if stim is None or obs.get("value") in (None, "pending"):
            return
        run = self.runs.get(stim.run or obs.run or "") or self.newest.get(stim.session)
        if run is not None and run.outcome_reply is None and not _asked_again(run, stim, obs.get("value")):
            run.outcome_reply = obs

    def _outcome_stims(self) -> list[Stim]:
        if not hasattr(self, "_asked"):
            self._asked = [s for s in self.stims if s.name == "outcome"]
        return self._asked

    def _event(self, obs: Obs, run: Run) -> None:
        if obs.name in CALL_EVENTS and obs.call_id is not None:
            call = self._find(run, obs)
            call.events.append(obs)
            ask = obs.get("ask")
            if obs.name == "ToolHostInputRequested" and isinstance(ask, str):
                self._ask(run, ask).requested.append(obs)
        elif obs.name == "SteeringApplied":
            for name in obs.get("ids") or ():
                if name in self.steers:
                    self.steers[name].applied.append(obs)
        elif obs.name == "SteeringDelivered" and obs.get("id") in self.steers:
            self.steers[obs.get("id")].delivered.append(obs)

    def _find(self, run: Run, obs: Obs) -> Call:
        key = (run.name, obs.call_id or "")
        if key not in self.latest:
            proposed = obs.get("call") or {}
            name = obs.get("name") or proposed.get("name") or ""
            self._call(run, {"id": key[1], "tool": name}, -1, None, obs.step)
        return self.latest[key]

    def _call(self, run: Run, call: Mapping[str, Json], order: int, attempt: Attempt | None, born: int) -> None:
        tools = self.config.get("tools") or {}
        tool, marked = str(call.get("tool", "")), bool(call.get("async"))
        is_async = (tools.get(tool) or {}).get("mode") == "async"
        made = Call(run, str(call.get("id")), tool, order, attempt, marked, marked and is_async, tool in tools, born)
        run.calls.append(made)
        self.latest[run.name, made.id] = made

    def _ask(self, run: Run, name: str) -> Ask:
        return run.asks.setdefault(name, Ask(name, run))

    def _take(self, attempt: Attempt, item: Item) -> None:
        fresh = attempt.end is None
        attempt.take(item)
        if item.kind != "return" or not fresh:
            return
        run = attempt.run
        live = [c.id for c in run.calls if c.honoured and c.end is None and not c.of("ToolFinished")]
        attempt.malformed = is_malformed(item.value, live)
        for order, call in enumerate(attempt.response_calls):
            self._call(run, call, order, attempt, item.step)

    def _tool_take(self, call: Call, item: Item) -> None:
        call.take(item)
        if item.kind == "ask":
            self._ask(call.run, str(item.value)).posed.append((call, item))

    def _up_ModelCall(self, obs: Obs, run: Run) -> None:
        last = run.attempts[-1] if run.attempts else None
        step = obs.get("step") or (last.step_no + 1 if last else 1)
        same = last is not None and last.step_no == step
        number = obs.get("attempt") or (last.number + 1 if last is not None and same else 1)
        run.attempts.append(Attempt(run, step, number, obs))

    def _up_Taken(self, obs: Obs, run: Run) -> None:
        pairs = split_item(obs.get("item"))
        if not pairs:
            return
        item = Item(pairs[0][0], pairs[0][1], obs.step, obs.seq, int(obs.at_ms) if obs.at_ms is not None else None)
        if obs.get("upcall") == "ModelCall":
            n = obs.get("n")
            attempt = next((a for a in reversed(run.attempts) if n is None or a.opened.get("n") in (n, None)), None)
            if attempt is not None:
                self._take(attempt, item)
        elif obs.call_id is not None:
            self._tool_take(self._find(run, obs), item)

    def _up_ToolPrepare(self, obs: Obs, run: Run) -> None:
        self._find(run, obs).prepares.append(obs)

    def _up_ToolExecute(self, obs: Obs, run: Run) -> None:
        self._find(run, obs).executes.append(obs)

    def _up_HostAnswer(self, obs: Obs, run: Run) -> None:
        self._ask(run, str(obs.get("ask"))).answers.append(obs)

    def _up_AskRefused(self, obs: Obs, run: Run) -> None:
        self._ask(run, str(obs.get("ask"))).refused.append(obs)

    def _up_SteerClaim(self, obs: Obs, run: Run) -> None:
        if obs.get("id") in self.steers:
            self.steers[obs.get("id")].claims.append(obs)

    def _up_Abandoned(self, obs: Obs, run: Run) -> None:
        if obs.get("upcall") == "ModelCall" and run.attempts:
            n = obs.get("n")
            attempt = next((a for a in reversed(run.attempts) if n is None or a.opened.get("n") in (n, None)), None)
            if attempt is not None and attempt.abandoned is None:
                attempt.abandoned = obs
        elif obs.call_id is not None and (run.name, obs.call_id) in self.latest:
            call = self.latest[run.name, obs.call_id]
            call.abandoned = call.abandoned or obs

    # -- the end -----------------------------------------------------------------------------------

    def _close(self) -> None:
        for stim in self.stims:
            if stim.name == "new_session" and isinstance(stim.get("as"), str):
                self.sessions.append(stim.get("as"))
        starts: dict[str, list[int]] = {}
        for run in self.runs.values():
            if run.accepted:
                starts.setdefault(run.session, []).append(run.start_step)
        for run in self.runs.values():
            later = [s for s in starts.get(run.session, ()) if s > run.start_step]
            run.end_step = self._end_of(run, min(later, default=NEVER))
            self._trim(run)
            segment(run)

    def _end_of(self, run: Run, next_start: int) -> int:
        found = min(run.crashed, next_start)
        if self.trace.profile == "common":
            # Not every runtime has one run at a time: a later start of the session does not end this one.
            found = min(run.crashed, *(o.step for o in (run.terminal, run.closed) if o is not None), NEVER)
        if run.outcome_reply is not None:
            found = min(found, run.outcome_reply.step)
        known = False
        for step in range(run.start_step, min(found, len(self.trace.steps)) + 1):
            busy = self._busy(step, run.session)
            known = known or busy is not None
            if busy is False:
                return step
        if not known and run.terminal is not None:
            found = min(found, run.terminal.step)
        return found

    def _busy(self, step: int, session: str) -> Json:
        facts = self.trace.steps[step - 1].facts or {}
        inner = (facts.get("sessions") or {}).get(session) or {}
        return facts.get("busy", inner.get("busy")) if session == self.sessions[0] else inner.get("busy")

    def _trim(self, run: Run) -> None:
        """Forget what was asked of the run after its end: it had no effect."""
        for call in run.calls:
            if not call.honoured:
                run.token_cancels += [i.step for i in call.items if i.kind == "cancel_token"]
        for attempt in run.attempts:
            run.token_cancels += [i.step for i in attempt.items if i.kind == "cancel_token"]
        for steps in (run.cancels, run.shutdowns, run.drops, run.closes, run.panics, run.token_cancels):
            steps[:] = [s for s in steps if s <= run.end_step]
        if run.crashed > run.end_step or (
            run.crashed != NEVER and (run.terminal is not None or run.outcome_reply is not None)
        ):
            run.crashed = NEVER


def segment(run: Run) -> None:
    """Give every provider event to its attempt: a StepStarted opens the first, each reset the next one."""
    by_key = {(a.step_no, a.number): a for a in run.attempts}
    step, number = 0, 1
    # Behind a gap it is not known to which attempt an event belongs.
    sure = min(run.outcomes_asked) if run.gap else NEVER
    for event in (e for e in run.events if e.step < sure):
        attempt = by_key.get((step, number))
        if event.name == "StepStarted":
            step, number = event.get("step") or step + 1, 1
        elif event.name == "ProviderStreamReset":
            if attempt is not None:
                attempt.reset = event
            number += 1
        elif attempt is not None and event.name in PROVIDER_EVENTS:
            attempt.events.append(event)
        elif attempt is not None and event.name == "ModelCallCompleted":
            attempt.completed = attempt.completed or event


def _asked_again(run: Run, stim: Stim, value: Json) -> bool:
    """Whether this only refuses a second question for an outcome: it is no outcome of the run."""
    return run.outcomes_asked[:1] != [stim.step] and is_refused_again(value)
