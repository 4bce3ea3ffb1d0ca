"""Inputs as JSON lines; a process that dies in mid-run; a second one that goes on. See docs/embedding.md.

`journal_resume.py FOLDER` starts a child that kills itself while the model streams, then resumes from its journal:
the replay gives the state the child died with, byte for byte, and what was asked and never answered is done again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rho_core import effects as fx
from rho_core import events as ev
from rho_core import inputs as inp
from rho_core import session as core
from rho_core.codec import dump_state, load_state
from rho_core.config import Policy, ToolDecl
from rho_core.digest import digest
from rho_core.errors import ProviderError, ProviderErrorKind
from rho_core.messages import Text, ToolCall, calls_of
from rho_core.wire import dump_input, load_input

CALL = ToolCall("call1", "clock", "{}")


class Journaled:
    """A session behind a journal. `owed`: effects that were asked for and whose answer is not in the journal."""

    def __init__(self, path: Path) -> None:
        self.owed: dict[str, fx.Effect] = {}
        self.channel: list[ev.Event] = []
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]  # a torn last line was never acted on
        lines = whole.splitlines()
        self.session = load_state(lines[0]) if lines else core.new_session("s1", Policy(tools=(ToolDecl("clock"),)))
        for line in lines[1:]:
            self.apply(load_input(line))  # type: ignore[arg-type]  # this journal holds inputs of one session alone
        self.file = path.open("r+b" if path.exists() else "w+b")
        self.file.truncate(len(whole))
        self.file.seek(len(whole))
        if not lines:
            self.write(dump_state(self.session))

    def write(self, line: str) -> None:
        self.file.write(line.encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def feed(self, value: inp.SessionInput) -> None:
        """Write ahead: what is not in the journal has not happened, and nothing is done before it is."""
        self.write(dump_input(value))
        self.apply(value)

    def apply(self, value: inp.SessionInput) -> None:
        """The step alone, at first and in a replay: no effect is carried out here."""
        match value.input if isinstance(value, inp.ForRun) else value:
            case inp.ModelReturned() | inp.ModelFailed():
                self.owed.pop("model", None)
            case inp.Admitted() | inp.Refused():
                self.owed.pop("admission", None)
            case inp.Prepared(call_id) | inp.ToolReturned(call_id):
                self.owed.pop(call_id, None)
            case inp.TimerFired(timer_id):
                self.owed.pop(timer_id, None)
            case inp.Taken(n):
                del self.channel[:n]
        step = core.step(self.session, value)
        self.session = step.state
        for effect in step.effects:
            match effect:
                case fx.CallModel():
                    self.owed["model"] = effect
                case fx.AbortModel():
                    self.owed.pop("model", None)
                case fx.Admit():
                    self.owed["admission"] = effect
                case fx.Prepare(call):
                    self.owed[call.id] = effect
                case fx.Execute(call_id):
                    self.owed[call_id] = effect
                case fx.StartTimer(timer_id):
                    self.owed[timer_id] = effect
                case fx.Deliver(event):
                    self.channel.append(event)


def work(at: Journaled, die: bool = False) -> None:
    """Read what was delivered, then carry out what is owed, one at a time, until there is neither."""
    while at.channel or at.owed:
        if at.channel:
            print("  event", at.channel[0].kind)
            at.feed(inp.ForRun("r1", inp.Taken(1)))
            continue
        match next(iter(at.owed.values())):
            case fx.Admit(operation):
                at.feed(inp.Admitted(operation))  # a runtime of one session that never shuts down
            case fx.CallModel(step, attempt, messages):
                at.feed(inp.ForRun("r1", inp.TextDelta(step, attempt, "It is ")))
                if die:
                    print("dies at", digest(at.session), flush=True)
                    os._exit(9)
                asked = any(calls_of(getattr(message, "content", ())) for message in messages)
                content = (Text("It is noon."),) if asked else (Text("It is "), CALL)
                at.feed(inp.ForRun("r1", inp.ModelReturned(step, attempt, content)))
            case fx.Prepare(call):
                at.feed(inp.ForRun("r1", inp.Prepared(call.id, inp.Plan())))
            case fx.Execute(call_id):  # may have run before: this tool does no harm twice
                at.feed(inp.ForRun("r1", inp.ToolReturned(call_id, ev.Success("noon"))))
            case fx.StartTimer(timer_id):
                at.feed(inp.ForRun("r1", inp.TimerFired(timer_id)))  # virtual time


def resume(path: Path) -> None:
    at = Journaled(path)
    print("resumes at", digest(at.session))
    print("owed:", *(effect.kind for effect in at.owed.values()), "unread:", len(at.channel))
    lost = at.owed.get("model")
    if isinstance(lost, fx.CallModel):  # its stream died with the process: that attempt failed, another follows
        error = ProviderError(ProviderErrorKind.INTERRUPTED, "the process died", retryable=True)
        at.feed(inp.ForRun("r1", inp.ModelFailed(lost.step, lost.attempt, error)))
    work(at)
    print("revision", at.session.ledger.revision, core.session_state(at.session))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python examples/journal_resume.py FOLDER")
    journal = Path(sys.argv[1]) / "s1.jsonl"
    journal.parent.mkdir(parents=True, exist_ok=True)
    if "--child" in sys.argv:
        child = Journaled(journal)
        child.feed(inp.Start("c1", "r1", (Text("What time is it?"),)))
        work(child, die=True)
    status = subprocess.run([sys.executable, __file__, sys.argv[1], "--child"], check=False).returncode
    print("the child ended with status", status, flush=True)
    resume(journal)
