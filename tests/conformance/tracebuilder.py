"""Hand-made traces in a few lines: a small model of a well-behaved runtime, and tools to break what it
recorded.

Each stimulus method records one ``perform``; the model keeps history, revision and state, so that a
conforming trace
needs only its stimuli. ``drop``, ``edit``, ``add`` and ``move`` then make it wrong in one place.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from rho_conformance.trace import StepRecord, Trace

Json = Any
EVENT_OF = {
    "delta": ("AssistantTextDelta", "text"),
    "reasoning": ("ReasoningDelta", "text"),
    "summary": ("ReasoningSummaryDelta", "text"),
    "web_search": ("WebSearch", "detail"),
}
HELLO = {
    "protocol": 1,
    "name": "hand",
    "version": "1",
    "profiles": ["rho"],
    "time": "virtual",
    "deterministic": True,
}


@dataclass
class SimCall:
    """A call while its run lives."""

    id: str
    tool: str
    job: bool
    result: Json = None


@dataclass
class SimRun:
    """The run under construction."""

    name: str
    session: str
    candidate: list[Json] = field(default_factory=list)
    step: int = 0
    attempt: int = 1
    failed: int = 0
    text: str = ""
    captured: bool = False
    usage: dict[str, int] = field(default_factory=dict)
    attempt_usage: dict[str, int] = field(default_factory=dict)
    calls: list[SimCall] = field(default_factory=list)
    batch: list[SimCall] = field(default_factory=list)
    staged: list[tuple[str, str]] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)
    generation: Json = None
    request: int = 0
    outcome: Json = None


class Sim:
    """Builds a trace. ``config`` is that of a scenario file; tools default to one synchronous ``t`` and one
    job ``j``."""

    def __init__(self, profile: str = "rho", **config: Json) -> None:
        config.setdefault("tools", {"t": {}, "j": {"mode": "async"}})
        self.trace = Trace(dict(HELLO), config, profile)
        self.seq = self.at_ms = self.n = self.runs = 0
        first = (config.get("sessions") or ["s1"])[0]
        self.first = first
        self.sessions: dict[str, dict[str, Json]] = {}
        for name in config.get("sessions") or ["s1"]:
            history = list(config.get("history") or ()) if name == first else []
            self.sessions[name] = {
                "state": "Idle",
                "busy": False,
                "revision": config.get("revision", 0) if name == first else 0,
                "history": history,
            }
        self.tokens: dict[str, str] = {}
        self.live: dict[str, SimRun] = {}
        self.saves = 0
        self.counts: dict[str, int] = {}

    # -- recording -------------------------------------------------------------------------------

    def do(self, *stimuli: Json, wait: list[str] | None = None) -> StepRecord:
        """Begin a new ``perform``; what is seen next belongs to it."""
        self.trace.steps.append(StepRecord(list(stimuli), [], list(wait or []), {}))
        self.note()
        return self.trace.steps[-1]

    def see(self, name: str, run: SimRun | str | None = None, /, **fields: Json) -> Json:
        """Record an observation in the current ``perform``."""
        owner = run.name if isinstance(run, SimRun) else run
        session = run.session if isinstance(run, SimRun) else fields.pop("session", self.first)
        data = {"session": session, **({"run": owner} if owner else {}), **copy.deepcopy(fields)}
        self.seq += 1
        obs = {"seq": self.seq, "step": len(self.trace.steps), "at_ms": self.at_ms, name: data}
        self.trace.steps[-1].observations.append(obs)
        return data

    def wait(self, *waits: str) -> None:
        """What the current ``perform`` settled on."""
        self.trace.steps[-1].waiting_on = list(waits)

    def note(self) -> None:
        """Write the facts of now into the current ``perform``."""
        record = self.trace.steps[-1]
        every = copy.deepcopy(self.sessions)
        record.facts = {
            **every[self.first],
            "tokens": dict(self.tokens),
            "saves": self.saves,
            "sessions": every,
        }

    def reply(self, name: str, value: Json, run: SimRun | None = None) -> None:
        """A reply."""
        self.see("Reply", run, name=name, value=value)

    def counted(self, stimulus: str) -> str:
        """The reply name of the next stimulus of a kind."""
        self.counts[stimulus] = self.counts.get(stimulus, 0) + 1
        return f"{stimulus}{self.counts[stimulus]}"

    def done(self) -> Trace:
        """The trace."""
        return self.trace

    # -- runs ------------------------------------------------------------------------------------

    def start(self, text: str = "hi", session: str | None = None, quiet: bool = False) -> SimRun:
        """Start a run up to its first model request."""
        session = session or self.first
        self.runs += 1
        run = SimRun(f"r{self.runs}", session)
        self.do({"start": text if session == self.first else {"text": text, "session": session}})
        self.live[session] = run
        self.sessions[session].update(state="Running", busy=True)
        self.tokens[run.name] = "live"
        run.candidate.append({"user": text})
        self.reply(run.name, "ok", run)
        self.see("Started", run, run_id=run.name, revision=self.sessions[session]["revision"])
        if not quiet:
            self.next_step(run)
        self.note()
        return run

    def run(self, session: str | None = None) -> SimRun:
        """The live run of a session."""
        return self.live[session or self.first]

    def next_step(self, run: SimRun) -> None:
        """Cross a step boundary: steering, StepStarted, request."""
        if run.staged:
            self.see("SteeringApplied", run, ids=[name for name, _ in run.staged])
            run.candidate += [{"user": text} for _, text in run.staged]
            run.staged = []
        run.step += 1
        run.attempt, run.failed = 1, 0
        self.see("StepStarted", run, step=run.step, estimated_context_tokens=10 + run.step)
        self.request(run)

    def request(self, run: SimRun) -> None:
        """One model request."""
        self.n += 1
        run.request = self.n
        run.text, run.captured, run.attempt_usage, run.generation = "", False, {}, None
        messages = self.sessions[run.session]["history"] + run.candidate
        tools = list(self.trace.config["tools"])
        self.see("ModelCall", run, n=self.n, step=run.step, attempt=run.attempt, messages=messages, tools=tools)
        self.wait("model", *(f"tool:{c.id}" for c in run.calls if c.job and c.result is None))

    def taken(self, run: SimRun, item: Json, call: str | None = None) -> None:
        """The runtime took an item."""
        if call is None:
            self.see("Taken", run, upcall="ModelCall", n=run.request, item=item)
        else:
            self.see("Taken", run, upcall="ToolExecute", call_id=call, item=item)

    def give(self, session: str | None = None, **item: Json) -> None:
        """One provider item that does not end the request."""
        run = self.run(session)
        waits = list(self.trace.steps[-1].waiting_on)
        self.do({"provider": item if session is None else {**item, "session": session}}, wait=waits)
        self.taken(run, item)
        ((kind, value),) = item.items()
        if kind in EVENT_OF:
            name, key = EVENT_OF[kind]
            self.see(name, run, **{key: value}, attempt=run.attempt)
            run.captured = run.captured or kind in ("delta", "summary")
            run.text += value if kind == "delta" else ""
        elif kind == "call_delta":
            self.see(
                "ToolCallUpdated",
                run,
                index=value["index"],
                arguments_delta=value["arguments"],
                attempt=run.attempt,
            )
            run.captured = True
        elif kind == "usage":
            run.captured = True
            for key, number in value.items():
                run.attempt_usage[key] = run.attempt_usage.get(key, 0) + number
            self.see("UsageUpdated", run, usage=self._sum(run))
        elif kind == "context":
            run.captured = True
            self.see("ProviderContextUpdated", run, kind=value["kind"])
        elif kind == "hosted":
            self.see("HostedToolActivity", run, **value)
        elif kind == "physical_retry":
            run.attempt_usage, run.generation = {}, None
            self.see("ProviderRequestRetry", run)
        elif kind == "generation_tokens":
            run.generation = {"Reported": value} if isinstance(value, int) else "Unavailable"

    def _sum(self, run: SimRun) -> dict[str, int]:
        return {k: run.usage.get(k, 0) + run.attempt_usage.get(k, 0) for k in {*run.usage, *run.attempt_usage}}

    def completed_call(self, run: SimRun) -> None:
        """ModelCallCompleted with the metrics of the attempt."""
        metrics: dict[str, Json] = {"total_latency_ms": 1}
        if "output_tokens" in run.attempt_usage:
            metrics["output_tokens"] = run.attempt_usage["output_tokens"]
        if run.generation is not None:
            metrics["generation_output_tokens"] = run.generation
        self.see("ModelCallCompleted", run, metrics=metrics, attempt=run.attempt)

    def ret(self, text: str | None = None, calls: list[Json] | None = None, session: str | None = None) -> None:
        """The provider returns; the run ends, or its calls open."""
        run = self.run(session)
        blocks = {k: v for k, v in (("text", text), ("calls", calls)) if v is not None}
        self.do({"provider": {"return": blocks, **({"session": session} if session else {})}})
        self.taken(run, {"return": blocks})
        self.completed_call(run)
        if not blocks:
            self.malformed(run)
            return
        run.usage = self._sum(run)
        ids = [c["id"] for c in calls or ()]
        run.candidate.append({"assistant": {"text": text or "", "calls": ids}})
        if calls:
            self.open_calls(run, calls)
        elif run.staged and run.step < self.trace.config.get("max_steps", 32):
            self.next_step(run)
        else:
            self.complete(run)
        self.note()

    def malformed(self, run: SimRun) -> None:
        """A malformed response: a reset and a retry at once, or the end."""
        run.failed += 100
        if run.failed >= 200:
            error = {"error": "Provider", "kind": "InvalidResponse", "retryable": False, "message": "bad"}
            self.end(run, "Failed", error)
        else:
            self.see("ProviderStreamReset", run, reason="InvalidResponse", detail="", attempt=run.attempt)
            run.attempt += 1
            self.request(run)
        self.note()

    def fail(self, kind: str = "Unavailable", retryable: bool = True, **more: Json) -> None:
        """The provider fails; a delay begins, or the run ends."""
        run = self.run()
        item = {"fail": {"kind": kind, "retryable": retryable, **more}}
        self.do({"provider": item})
        self.taken(run, item)
        if not retryable or run.attempt == 4:
            message = "provider failed: " + more.get("message", "x")
            if "diagnostic" in more:
                self.see("ProviderDiagnostic", run, detail=more["diagnostic"])
            self.end(run, "Failed", {"error": "Provider", "kind": kind, "retryable": retryable, "message": message})
        else:
            run.failed += 1
            inner: dict[str, Json] = {"kind": kind}
            hint = more.get("retry_after")
            if hint:
                inner["retry_after_ms"] = int(hint[:-1]) * 1000
            self.see("ProviderStreamReset", run, reason={"RetryableFailure": inner}, detail="", attempt=run.attempt)
            self.wait("timer")
        self.note()

    def advance(self, ms: int, retry: bool = True) -> None:
        """Time passes; by default the retry is due."""
        self.do({"advance": f"{ms}ms"})
        self.at_ms += ms
        if retry:
            run = self.run()
            run.attempt += 1
            self.request(run)
        self.note()

    # -- calls -----------------------------------------------------------------------------------

    def open_calls(self, run: SimRun, calls: list[Json]) -> None:
        """Propose, start and execute the calls of a response."""
        tools = self.trace.config["tools"]
        made = [SimCall(c["id"], c["tool"], bool(c.get("async"))) for c in calls]
        run.calls += made
        run.batch = [c for c in made if not c.job]
        for call in made:
            self.see("ToolProposed", run, call_id=call.id, call={"id": call.id, "name": call.tool, "arguments": {}})
        for call in made:
            if call.tool not in tools:
                call.result = {"result": {"id": call.id, "ok": False, "text": f"tool '{call.tool}' is unavailable"}}
                self.see("ToolFinished", run, call_id=call.id, result="unavailable", text="")
                continue
            self.see("ToolPrepare", run, call_id=call.id, name=call.tool)
            self.see("ToolStarted", run, call_id=call.id, name=call.tool, metadata={})
            if call.job:
                self.see("ToolDetached", run, call_id=call.id)
            self.see("ToolExecute", run, call_id=call.id, name=call.tool)
        self.settle_batch(run)

    def settle_batch(self, run: SimRun) -> None:
        """Go on when every synchronous call has its result."""
        open_ones = [c for c in run.calls if c.result is None]
        if any(not c.job for c in open_ones):
            self.wait(*(f"tool:{c.id}" for c in open_ones), *(f"host:{a}" for a in run.asks))
            return
        run.candidate += [c.result for c in run.batch]
        run.batch = []
        if run.step >= self.trace.config.get("max_steps", 32):
            self.complete(run, "MaxSteps")
        else:
            self.next_step(run)

    def tool(self, call_id: str, **item: Json) -> None:
        """One tool item."""
        run = self.run()
        call = next(c for c in run.calls if c.id == call_id)
        waits = list(self.trace.steps[-1].waiting_on)
        self.do({"tool": {"id": call_id, **item}}, wait=waits)
        self.taken(run, item, call_id)
        ((kind, value),) = item.items()
        if kind == "progress":
            self.see("ToolUpdated", run, call_id=call_id, progress=value)
        elif kind == "ask":
            run.asks.append(value)
            self.see("ToolHostInputRequested", run, call_id=call_id, ask=value, request={"id": value})
            self.sessions[run.session]["state"] = "WaitingForHostInput"
            self.wait(*waits, f"host:{value}")
        elif kind in ("return", "fail"):
            self.close_call(run, call, kind == "return", str(value), waits)
        self.note()

    def close_call(self, run: SimRun, call: SimCall, ok: bool, text: str, waits: list[str]) -> None:
        """A tool ended."""
        call.result = {"result": {"id": call.id, "ok": ok, "text": text}}
        kind = {} if ok else {"kind": "Execution"}
        self.see("ToolFinished", run, call_id=call.id, result="ok" if ok else "failed", text=text, **kind)
        if call.job:
            run.candidate.append(call.result)
            self.wait(*(w for w in waits if w != f"tool:{call.id}"))
        else:
            self.settle_batch(run)

    def respond(self, ask: str, call_id: str, answers: Json = None, value: Json = "ok") -> None:
        """The host answers a question."""
        run = self.run()
        waits = list(self.trace.steps[-1].waiting_on)
        fields = {"ref": ask, **({} if answers is None else {"answers": answers})}
        self.do({"respond": fields}, wait=waits)
        self.reply(self.counted("respond"), value, run)
        if value == "ok":
            self.see("HostAnswer", run, call_id=call_id, ask=ask, answers=answers or {"q": ["yes"]})
            run.asks.remove(ask)
            self.wait(*(w for w in waits if w != f"host:{ask}"))
            self.sessions[run.session]["state"] = "WaitingForHostInput" if run.asks else "Running"
        self.note()

    # -- commands --------------------------------------------------------------------------------

    def steer(self, text: str, name: str, value: Json = "ok") -> None:
        """A steer, accepted by default."""
        waits = list(self.trace.steps[-1].waiting_on)
        self.do({"steer": {"text": text, "as": name}}, wait=waits)
        run = self.live.get(self.first)
        self.reply(name, value, run)
        if value == "ok" and run is not None:
            run.staged.append((name, text))

    def retract(self, ref: str, answer: str = "Retracted") -> None:
        """A retract."""
        waits = list(self.trace.steps[-1].waiting_on)
        self.do({"retract": {"ref": ref}}, wait=waits)
        self.reply(self.counted("retract"), {"ok": answer})
        run = self.live.get(self.first)
        if run is not None and answer == "Retracted":
            run.staged = [s for s in run.staged if s[0] != ref]

    def claim(self, item: str, name: str, granted: bool = True) -> None:
        """A steerable provider claims, delivers or releases."""
        run = self.run()
        self.do({"provider": {item: name}}, wait=["model"])
        self.taken(run, {item: name})
        self.see("SteerClaim", run, n=run.request, item=item, id=name, granted=granted)
        if item == "deliver" and granted:
            self.see("SteeringDelivered", run, id=name)

    def cancel(self, stimulus: Json = None) -> None:
        """Cancel the live run of the first session, by the command unless another stimulus is given."""
        run = self.run()
        self.do(stimulus or {"cancel": {}})
        if stimulus is None:
            self.reply(self.counted("cancel"), "ok", run)
        self.abandon(run)
        self.end(run, "Cancelled", {"error": "Cancelled"})
        self.note()

    def abandon(self, run: SimRun) -> None:
        """Tell every open upcall."""
        if any("ModelCall" in o for s in self.trace.steps for o in s.observations) and "model" in self.waits_before():
            self.see("Abandoned", run, upcall="ModelCall", n=run.request, how="dropped")
        for call in run.calls:
            if call.result is None:
                self.see("Abandoned", run, upcall="ToolExecute", call_id=call.id, how="dropped")

    def waits_before(self) -> list[str]:
        """What the step before the current one waited for."""
        return self.trace.steps[-2].waiting_on if len(self.trace.steps) > 1 else []

    def end(self, run: SimRun, terminal: str, outcome: Json) -> None:
        """Answer open calls, commit, announce."""
        started = [c for c in run.calls if c.result is None]
        for call in started:
            call.result = {"result": {"id": call.id, "ok": False, "text": "tool call interrupted before completion"}}
        run.candidate += [c.result for c in run.batch] + [c.result for c in started if c.job]
        broken = terminal != "Completed" and run.captured and outcome.get("kind") != "InvalidResponse"
        if broken and "model" in self.waits_before():
            run.candidate.append({"aborted": {"text": run.text, "calls": []}})
        state = self.sessions[run.session]
        state["history"] = state["history"] + run.candidate
        state["revision"] += 1
        state.update(state="Idle" if terminal == "Cancelled" else terminal, busy=False)
        for call in started:
            self.see(
                "ToolFinished",
                run,
                call_id=call.id,
                result="failed",
                kind="Cancelled",
                text=call.result["result"]["text"],
            )
        if terminal == "Completed":
            self.see("Completed", run, outcome=outcome["ok"])
        elif terminal == "Cancelled":
            self.see("Cancelled", run, revision=state["revision"])
        else:
            word = "Retryable" if outcome.get("retryable") else "Permanent"
            self.see(
                "Failed",
                run,
                message=outcome.get("message", ""),
                retryability=word,
                revision=state["revision"],
            )
        self.see("EventsClosed", run)
        run.outcome = outcome
        self.wait()
        self.tokens[run.name] = "cancelled" if terminal == "Cancelled" else "live"

    def complete(self, run: SimRun, stop: str = "EndTurn") -> None:
        """Commit success."""
        text = next((m["assistant"]["text"] for m in reversed(run.candidate) if "assistant" in m), "")
        revision = self.sessions[run.session]["revision"] + 1
        if run.staged:
            self.see("SteeringApplied", run, ids=[n for n, _ in run.staged])
            run.candidate += [{"user": t} for _, t in run.staged]
        ok = {"text": text, "stop": stop, "usage": dict(run.usage), "revision": revision}
        self.end(run, "Completed", {"ok": ok})

    def outcome(self, session: str | None = None) -> None:
        """Await the outcome."""
        run = self.run(session)
        self.do({"outcome": {} if session is None else {"session": session}})
        self.reply(self.counted("outcome"), run.outcome, run)

    # -- breaking --------------------------------------------------------------------------------

    def find(self, name: str, nth: int = 0, /, **fields: Json) -> tuple[StepRecord, int]:
        """The step and place of the nth observation of a name whose fields are as given."""
        found = [
            (record, place)
            for record in self.trace.steps
            for place, obs in enumerate(record.observations)
            if name in obs and all(obs[name].get(k) == v for k, v in fields.items())
        ]
        assert found, f"no {name} {fields} in the trace"
        return found[nth]

    def drop(self, name: str, nth: int = 0, /, **fields: Json) -> Sim:
        """Take an observation out."""
        record, place = self.find(name, nth, **fields)
        del record.observations[place]
        return self

    def edit(self, name: str, which: Json = 0, /, **fields: Json) -> Sim:
        """Change fields of an observation: the nth, or the first whose fields are as in a map."""
        nth, where = (which, {}) if isinstance(which, int) else (0, which)
        record, place = self.find(name, nth, **where)
        record.observations[place][name].update(fields)
        return self

    def add(self, after: str, name: str, nth: int = -1, run: str = "r1", /, **fields: Json) -> Sim:
        """Put an observation right behind another one."""
        record, place = self.find(after, nth)
        old = record.observations[place]
        new = {"seq": old["seq"], "step": old["step"], "at_ms": old["at_ms"]}
        record.observations.insert(place + 1, {**new, name: {"session": self.first, "run": run, **fields}})
        return self.renumber()

    def move(self, name: str, before: str, nth: int = 0, to: int = 0) -> Sim:
        """Move an observation to right before another one."""
        record, place = self.find(name, nth)
        obs = record.observations.pop(place)
        target, index = self.find(before, to)
        target.observations.insert(index, obs)
        return self.renumber()

    def renumber(self) -> Sim:
        """Number all observations anew."""
        number = 0
        for step, record in enumerate(self.trace.steps, start=1):
            for obs in record.observations:
                number += 1
                obs.update(seq=number, step=step)
        return self

    def facts(self, step: int, **facts: Json) -> Sim:
        """Change the facts after a step (an index into the steps, negative from the end)."""
        record = self.trace.steps[step]
        record.facts.update(facts)
        record.facts["sessions"][self.first].update({k: v for k, v in facts.items() if k not in ("tokens", "saves")})
        return self

    def waiting(self, step: int, *waits: str) -> Sim:
        """Change what a step settled on."""
        self.trace.steps[step].waiting_on = list(waits)
        return self
