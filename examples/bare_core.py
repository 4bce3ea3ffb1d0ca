"""The bare core driven by hand: the standard library, one thread, no event loop. See docs/embedding.md.

A scripted model streams, fails once, calls a tool and answers; the reader is slow and its channel holds two events;
a steer arrives while the tool works; a second run is cancelled in mid-stream. `--real` waits for real.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator

from rho_core import effects as fx
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import retry_after, runtime
from rho_core import session as core
from rho_core.config import Policy, ToolDecl
from rho_core.errors import ProviderError, ProviderErrorKind
from rho_core.messages import Text, ToolCall, text_of

Stream = Iterator[inp.ModelInput]


class Host:
    """An interpreter of the core. `held`: the item of the stream that waits for room."""

    def __init__(self, policy: Policy, models: list[Callable[[int, int], Stream]], sleep: Callable[[float], None]):
        self.session, self.runtime = core.new_session("s1", policy, system="You add."), runtime.Runtime()
        self.models, self.sleep, self.now_ms = iter(models), sleep, 0
        self.inbox, self.channel = deque[inp.SessionInput](), deque[ev.Event]()
        self.calls, self.timers = dict[str, ToolCall](), dict[str, int]()
        self.stream: Stream | None = None
        self.held: inp.ModelInput | None = None
        self.run, self.not_ready, self.cancel_at = "", 0, ""

    def feed(self, value: inp.SessionInput) -> bool:
        """Give the core one input and do what it says; False when it cannot take the input now."""
        step = core.step(self.session, value)
        self.session = step.state
        if any(isinstance(effect, fx.NotReady) for effect in step.effects):
            return False
        for effect in step.effects:
            self.do(effect)
        return True

    def later(self, value: inp.RunInput) -> None:
        """An answer to the present run: its name goes along, so that a late one meets no other run."""
        self.inbox.append(inp.ForRun(self.run, value))

    def do(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Admit(operation):
                self.run, self.runtime = operation, runtime.step(self.runtime, inp.Admit(operation)).state
                refused = operation not in self.runtime.operations
                self.inbox.append(inp.Refused(operation) if refused else inp.Admitted(operation))
            case fx.Release(operation):
                self.runtime = runtime.step(self.runtime, inp.Released(operation)).state
            case fx.Deliver(event):
                self.channel.append(event)
            case fx.CallModel(step, attempt, messages):
                print(f"  model asked: step {step}, attempt {attempt}, {len(messages)} messages")
                self.stream = next(self.models)(step, attempt)
            case fx.AbortModel():
                self.stream = self.held = None
            case fx.StartTimer(timer_id, milliseconds):
                self.timers[timer_id] = self.now_ms + milliseconds
            case fx.CancelTimer(timer_id):
                self.timers.pop(timer_id, None)  # it may have fired already
            case fx.Prepare(call):
                self.calls[call.id] = call
                self.later(inp.Prepared(call.id, inp.Plan()))
            case fx.Execute(call_id):
                self.later(inp.Steer("c2", "st1", (Text("Answer in one word."),)))  # a host that interferes
                numbers = json.loads(self.calls.pop(call_id).arguments).values()
                self.later(inp.ToolReturned(call_id, ev.Success(str(sum(numbers)))))
            case fx.Reply(command_id) | fx.Rejected(command_id):
                print(f"  {effect.kind} to {command_id}")
            case fx.ReportOutcome(end):
                print("  outcome:", end.error.name if isinstance(end, fx.RunFailed) else end and end.text)
            case fx.SignalCancel() | fx.CloseEvents():
                pass  # no task of ours watches a token, and the reader stops at the end of the channel
            case _:
                raise NotImplementedError(effect)  # the policy in `main` leads to no other

    def work(self) -> None:
        """Until nothing can move: answers, the model, then the reader (so it is slow), then time."""
        while self.inbox or self.stream or self.channel or self.timers:
            if self.inbox:
                self.feed(self.inbox.popleft())
            elif self.stream is not None and (self.held is None or core.accepts(self.session)):
                self.pull(self.stream)
            elif self.channel:
                event = self.channel.popleft()
                self.later(inp.Taken(1))
                print("  event", getattr(event, "text", event.kind))
                if event.kind == self.cancel_at:
                    self.later(inp.Cancel("c4"))
            else:
                timer_id, due = min(self.timers.items(), key=lambda timer: timer[1])
                self.sleep((self.timers.pop(timer_id) - self.now_ms) / 1000)
                self.now_ms = due
                self.later(inp.TimerFired(timer_id))

    def pull(self, stream: Stream) -> None:
        """Offer the item that was held, else the next one; the stream is done when its last item is taken."""
        item = self.held or next(stream)
        last = isinstance(item, inp.ModelReturned | inp.ModelFailed)
        self.stream, self.held = (None if last else stream), None  # before the effects, which may open another
        if not self.feed(inp.ForRun(self.run, item)):
            self.stream, self.held, self.not_ready = stream, item, self.not_ready + 1


def busy(step: int, attempt: int) -> Stream:
    yield inp.TextDelta(step, attempt, "Let")
    wait = retry_after.parse("2", now_unix_ms=0)  # the text of a Retry-After header
    yield inp.ModelFailed(step, attempt, ProviderError(ProviderErrorKind.RATE_LIMIT, "busy", True, wait))


def calling(step: int, attempt: int) -> Stream:
    yield from (inp.TextDelta(step, attempt, text) for text in ("Let ", "me ", "add ", "them."))
    call = ToolCall("call1", "add", '{"a":2,"b":3}')
    yield inp.CallDelta(step, attempt, 0, call.id, call.name, call.arguments)
    yield inp.ModelReturned(step, attempt, (Text("Let me add them."), call))


def answer(step: int, attempt: int) -> Stream:
    yield inp.ModelReturned(step, attempt, (Text("Five."),))


def endless(step: int, attempt: int) -> Stream:
    while True:
        yield inp.TextDelta(step, attempt, "la ")


if __name__ == "__main__":
    wait = time.sleep if "--real" in sys.argv else lambda seconds: print(f"  {seconds} s pass")
    host = Host(Policy(event_capacity=2, tools=(ToolDecl("add"),)), [busy, calling, answer, endless], wait)
    host.feed(inp.Start("c1", "r1", (Text("2 + 3?"),)))
    host.work()
    print("  held back for want of room:", host.not_ready, "times\nsecond run")
    host.cancel_at = "step_started"
    host.feed(inp.Start("c3", "r2", (Text("Sing."),)))
    host.work()
    print(f"  revision {host.session.ledger.revision}, {core.session_state(host.session)}; the history:")
    for message in host.session.ledger.history:
        print(f"  {message.kind}: {text_of(getattr(message, 'content', ())) or getattr(message, 'content', '-')}")
