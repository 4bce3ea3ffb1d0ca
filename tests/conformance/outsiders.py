"""Drivers as somebody writes them who knows the fixed text alone, and the same with one fault each.

No observation names a session, a run, a step or an attempt: the format asks for none of them.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
DECLARED = [
    *("start", "cancel", "outcome", "advance", "config.tools", "config.max_steps"),
    *(f"provider.{item}" for item in ("delta", "call_delta", "return", "fail")),
    *("tool.return", "tool.fail"),
    *(f"observe.{what}" for what in ("events", "requests", "executions", "outcome", "replies", "busy", "history")),
    *("observe.revision", "observe.waiting_on"),
]
UNITS = {"ms": 1, "s": 1000, "m": 60_000}


def in_ms(text: str) -> int:
    unit = next(unit for unit in UNITS if text.endswith(unit))
    return round(float(text.removesuffix(unit)) * UNITS[unit])


class Small:
    """One session, tools one after the other, three retries after 1, 2 and 4 seconds."""

    requests_in_a_step = 4
    profiles: tuple[str, ...] = ("common",)

    def hello(self) -> Json:
        return {
            "protocol": 1,
            "name": "small",
            "profiles": list(self.profiles),
            "capabilities": DECLARED,
            "time": "virtual",
            "deterministic": True,
        }

    def open(self, config: Json) -> Json:
        self.tools, self.limit = config.get("tools", {}), config.get("max_steps", 32)
        self.history: list[Json] = []
        self.talk: list[Json] = []
        self.calls: list[Json] = []
        self.ends: dict[str, Json] = {}
        self.awaited: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.run: str | None = None
        self.due: int | None = None
        self.newest = ""
        self.model = False
        self.seq = self.step = self.now = self.revision = self.turn = self.tried = 0
        return {}

    def close(self) -> None:
        return None

    def perform(self, stimuli: list[Json]) -> Json:
        self.step += 1
        self.seen: list[Json] = []
        for stimulus in stimuli:
            ((name, value),) = stimulus.items()
            assert self.declared(name, value), f"{stimulus} was not declared"
            getattr(self, f"on_{name}")(value)
        for name in [name for name, run in self.awaited.items() if run in self.ends]:
            self.reply(name, self.ends[self.awaited.pop(name)])
        waits = ["model"] * self.model + [f"tool:{call['id']}" for call in self.calls[:1]]
        return {
            "observations": self.seen,
            "waiting_on": waits + ["timer"] * (self.due is not None),
            "facts": self.facts(),
        }

    def declared(self, name: str, value: Any) -> bool:
        if name not in ("provider", "tool"):
            return name in DECLARED
        items = [key for key in value if key not in ("id", "text", "calls", "reasoning", "usage")]
        return all(f"{name}.{item}" in DECLARED for item in items) and not {"reasoning", "usage"} & set(value)

    def facts(self) -> Json:
        return {"busy": self.run is not None, "revision": self.revision, "history": list(self.history)}

    def see(self, what: str, /, **fields: Any) -> None:
        self.seq += 1
        self.seen.append({"seq": self.seq, "step": self.step, "at_ms": self.now, what: fields})

    def reply(self, name: str, value: Any) -> None:
        self.see("Reply", name=name, value=value)

    def filed(self, command: str, value: Json) -> str:
        self.numbers[command] = self.numbers.get(command, 0) + 1
        return str(value.get("as", f"{command}{self.numbers[command]}"))

    # ---- the host ------------------------------------------------------------------------------------------------

    def on_start(self, value: Any) -> None:
        name = self.filed("r", {})
        if self.run is not None:
            self.reply(name, {"error": "SessionBusy"})
            return
        self.run = self.newest = name
        self.reply(name, "ok")
        self.see("Started", revision=self.revision)
        self.talk = [*self.history, {"user": value if isinstance(value, str) else value["text"]}]
        self.turn, self.text = 0, ""
        self.next_step()

    def on_cancel(self, value: Json) -> None:
        self.reply(self.filed("cancel", value), "ok")
        if self.run is not None and self.meant(value):
            if self.model or self.calls:
                self.see("Abandoned", upcall="ModelCall" if self.model else "ToolExecute")
            self.end("Cancelled", {"error": "Cancelled"})

    def meant(self, value: Json) -> bool:
        return value.get("run", self.run) == self.run

    def on_outcome(self, value: Json) -> None:
        self.awaited[self.filed("outcome", value)] = value.get("run", self.newest)

    def on_advance(self, value: str) -> None:
        until = self.now + in_ms(value)
        if self.due is not None and self.due <= until:
            self.now, self.due = self.due, None
            self.request()
        self.now = until

    # ---- the model and the tools ---------------------------------------------------------------------------------

    def on_provider(self, item: Json) -> None:
        if not self.model:
            return
        if "delta" in item:
            self.see("AssistantTextDelta", text=item["delta"])
        elif "fail" in item:
            self.failed(item["fail"])
        elif "call_delta" not in item:
            self.answered(item.get("return", item), streamed="return" not in item)

    def failed(self, fault: Json) -> None:
        self.model = False
        if fault.get("retryable") and self.tried < self.requests_in_a_step:
            self.see("ProviderStreamReset", reason={"RetryableFailure": {"kind": fault["kind"]}})
            self.due = self.now + 500 * 2**self.tried
        else:
            self.end("Failed", {"error": "Provider", "kind": fault["kind"], "message": "provider failed: "})

    def answered(self, response: Json, streamed: bool) -> None:
        self.model, calls = False, response.get("calls", [])
        if streamed and "text" in response:
            self.see("AssistantTextDelta", text=response["text"])
        if "text" not in response and not calls:
            self.end("Failed", {"error": "Provider", "kind": "InvalidResponse"})
            return
        self.text, self.calls = response.get("text", ""), list(calls)
        self.talk.append({"assistant": {"text": self.text, "calls": [call["id"] for call in calls]}})
        for call in calls:
            self.see("ToolProposed", call={"id": call["id"], "name": call["tool"], "arguments": call.get("args", {})})
        if calls:
            self.next_call()
        else:
            self.completed("EndTurn")

    def on_tool(self, item: Json) -> None:
        if self.calls and self.calls[0]["id"] == item["id"]:
            self.result("return" in item, str(item.get("return", item.get("fail"))))
            self.see("ToolFinished", call_id=item["id"], result="ok" if "return" in item else "failed")
            self.next_call()

    # ---- the runtime ---------------------------------------------------------------------------------------------

    def next_step(self) -> None:
        if self.turn == self.limit:
            self.completed("MaxSteps")
            return
        self.turn, self.tried = self.turn + 1, 0
        self.see("StepStarted", step=self.turn)
        self.request()

    def request(self) -> None:
        self.tried, self.model = self.tried + 1, True
        self.see("ModelCall", messages=list(self.talk), tools=sorted(self.tools))

    def next_call(self) -> None:
        while self.calls and self.calls[0]["tool"] not in self.tools:
            self.see("ToolFinished", call_id=self.calls[0]["id"], result="unavailable")
            self.result(False, "no such tool")
        if not self.calls:
            self.next_step()
            return
        self.see("ToolStarted", call_id=self.calls[0]["id"], name=self.calls[0]["tool"])
        self.see("ToolExecute", call_id=self.calls[0]["id"])

    def result(self, ok: bool, text: str) -> None:
        self.talk.append({"result": {"id": self.calls.pop(0)["id"], "ok": ok, "text": text}})

    def completed(self, stop: str) -> None:
        self.end("Completed", {"ok": {"text": self.text, "stop": stop, "revision": self.revision + 1}})

    def end(self, event: str, outcome: Json) -> None:
        assert self.run is not None
        while self.calls:
            self.result(False, "interrupted")
        self.history, self.revision = self.talk, self.revision + 1
        self.ends[self.run] = outcome
        self.run, self.due, self.model = None, None, False
        self.see(event)


# ---- the same, otherwise spelled ----------------------------------------------------------------------------------


class Spelled(Small):
    """Replies without `value`, facts by session."""

    def reply(self, name: str, value: Any) -> None:
        if value == "ok":
            self.see("Reply", name=name, ok=True)
        elif "ok" in value:
            self.see("Reply", name=name, ok=value["ok"])
        else:
            self.see("Reply", name=name, **value)

    def facts(self) -> Json:
        return {"s1": super().facts()}


class Wrapped(Small):
    """Replies under `reply`, facts under `sessions`, and `pending` where an outcome is asked for too early."""

    def reply(self, name: str, value: Any) -> None:
        self.see("Reply", name=name, reply=value)

    def facts(self) -> Json:
        return {"sessions": {"s1": super().facts()}}

    def on_outcome(self, value: Json) -> None:
        super().on_outcome(value)
        name, run = next(reversed(self.awaited.items()))
        if run not in self.ends:
            self.reply(name, "pending")


class Forgetful(Small):
    """Says `pending`, and nothing more: it expects to be asked again."""

    def on_outcome(self, value: Json) -> None:
        name = self.filed("outcome", value)
        self.reply(name, self.ends.get(value.get("run", self.newest), "pending"))


class Bare(Small):
    """Says neither ok nor error, but a word of its own."""

    def reply(self, name: str, value: Any) -> None:
        self.see("Reply", name=name, value="accepted" if value == "ok" else value)


# ---- one fault each ------------------------------------------------------------------------------------------------


class TwoTerminals(Small):
    def end(self, event: str, outcome: Json) -> None:
        super().end(event, outcome)
        self.see(event)


class FinishedTwice(Small):
    def see(self, what: str, /, **fields: Any) -> None:
        super().see(what, **fields)
        if what == "ToolFinished":
            super().see(what, **fields)


class BeforeStarted(Small):
    def see(self, what: str, /, **fields: Any) -> None:
        if what == "Started":
            super().see("StepStarted", step=1)
        super().see(what, **fields)


class Unanswered(Small):
    """Forgets the calls that a cancel interrupts."""

    def end(self, event: str, outcome: Json) -> None:
        if event == "Cancelled":
            self.calls.clear()
        super().end(event, outcome)


class FifthRequest(Small):
    requests_in_a_step = 5
    profiles = ("common", "rho")


class StaleCancel(Small):
    """Takes every cancel for one of the run that is active."""

    def meant(self, value: Json) -> bool:
        return True
