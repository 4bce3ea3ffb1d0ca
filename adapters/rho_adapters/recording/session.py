"""A session and its runs that write down what the host does with them and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rho_adapters.errors import CommandRejected, RhoError, RunFailed
from rho_adapters.recording.items import given_call
from rho_adapters.runtime.port import SessionPort
from rho_adapters.runtime.run import Run
from rho_adapters.runtime.session import Session
from rho_adapters.runtime.text import Content, blocks
from rho_adapters.store import StoreError
from rho_core.effects import RunFailed as Failed
from rho_core.events import Event, RunOutcome
from rho_core.messages import History, Message, ToolCall, text_of
from rho_core.normal import encode, events

if TYPE_CHECKING:
    from rho_adapters.recording.recorder import Recording

Json = dict[str, Any]
T = TypeVar("T")


class _Known:
    """Names in the recording: steers are counted, questions keep their ids."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def steer(self, steering_id: str) -> str:
        return self._recording.steer_name(steering_id)

    def ask(self, request_id: str) -> str:
        return request_id


class Commands:
    """Writes commands and their replies; a reply is filed under the command's name and number."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._counts: dict[str, int] = {}

    def given(self, stimulus: str, value: Any, name: str | None = None) -> str:
        """A command is given; the name of its reply."""
        self._counts[stimulus] = count = self._counts.get(stimulus, 0) + 1
        self._recording.tape.did({stimulus: value})
        return name or f"{stimulus}{count}"

    def answered(self, name: str, value: Any, run: str | None = None) -> None:
        """Its reply."""
        self._recording.see_in(run, "Reply", {"name": name, "value": value})

    def do(self, stimulus: str, value: Any, act: Callable[[], T], run: str | None = None, told: bool = False) -> T:
        """Give a command that is answered at once. `told`: its answer is in the reply. Raises CommandRejected."""
        name = self.given(stimulus, value)
        try:
            answer = act()
        except CommandRejected as refused:
            self.answered(name, encode.error(refused.error, refused.rule), run)
            raise
        self.answered(name, {"ok": answer} if told else "ok", run)
        return answer


class RecordedSession(Session):
    """A session whose commands are written down."""

    def __init__(self, port: SessionPort, recording: Recording) -> None:
        super().__init__(port)
        self._recording = recording
        self._commands = Commands(recording)
        self._starts = 0

    def start(self, content: Content, *, run_id: str | None = None) -> Run:
        given = text_of(blocks(content))
        return self._started({"start": given}, lambda: super(RecordedSession, self).start(content, run_id=run_id))

    def start_with_tool_call(self, call: ToolCall, *, run_id: str | None = None) -> Run:
        given = {"start_tool": {"call": given_call(call)}}
        return self._started(given, lambda: super(RecordedSession, self).start_with_tool_call(call, run_id=run_id))

    def _started(self, stimulus: Json, begin: Callable[[], Run]) -> Run:
        self._starts += 1
        name = f"r{self._starts}"
        self._recording.tape.did(stimulus)
        try:
            run = begin()
        except CommandRejected as refused:
            self._commands.answered(name, encode.error(refused.error, refused.rule))
            raise
        self._recording.begun(run.id, name)
        self._commands.answered(name, "ok", name)
        return RecordedRun(run, name, self._recording, self._commands)

    async def compact(self) -> int:
        name = self._commands.given("compact", {})
        try:
            revision = await super().compact()
        except RhoError as refused:
            self._commands.answered(name, encode.error(refused.error, refused.rule))
            raise
        self._commands.answered(name, "ok")
        return revision

    def append(self, message: Message) -> int:
        given = {"message": encode.message(message)}
        return self._commands.do("append", given, lambda: super(RecordedSession, self).append(message))

    def replace_history(self, messages: History) -> int:
        given = {"messages": encode.messages(messages)}
        return self._commands.do(
            "replace_history", given, lambda: super(RecordedSession, self).replace_history(messages)
        )

    def reset(self) -> int:
        return self._commands.do("reset", {}, super().reset)

    async def save(self) -> None:
        try:
            await super().save()
        except StoreError as fault:
            self._commands.answered(self._commands.given("save", {"fail": True}), encode.error(fault.error, fault.rule))
            raise
        self._commands.answered(self._commands.given("save", {}), "ok")


class RecordedRun(Run):
    """A run whose commands and events are written down. It takes the place of the handle it is made from."""

    def __init__(self, inner: Run, name: str, recording: Recording, commands: Commands) -> None:
        inner._finalizer.detach()
        super().__init__(inner._port, inner._state)
        self._name, self._recording, self._commands = name, recording, commands
        self._draining = False
        self._seen_end = False

    def _see(self, name: str, shown: Json) -> None:
        self._recording.see_in(self._name, name, shown)

    async def __anext__(self) -> Event:
        channel = self._state.channel
        if channel or await self._filled():
            # Before it is taken: taking it may let things happen that come after it.
            if not self._draining:  # what an outcome throws away was read by nobody
                name, shown = events.event(channel[0], _Known(self._recording))
                self._see(name, {**shown, "run_id": self._name} if "run_id" in shown else shown)
        elif not self._seen_end and not self._state.gone and not self._draining:
            self._seen_end = True
            self._see("EventsClosed", {})
        return await super().__anext__()

    async def outcome(self) -> RunOutcome:
        name = self._commands.given("outcome", {"run": self._name})
        self._draining = True
        try:
            outcome = await super().outcome()
        except RunFailed as failed:
            self._commands.answered(
                name,
                encode.outcome(Failed(failed.error, failed.unapplied_steering), self._recording.steer_name),
                self._name,
            )
            raise
        finally:
            self._draining = False
        self._commands.answered(name, encode.outcome(outcome, self._recording.steer_name), self._name)
        return outcome

    def close_reader(self) -> None:
        self._recording.tape.did({"close_reader": {"run": self._name}})
        super().close_reader()

    def cancel(self) -> None:
        self._commands.do("cancel", {"run": self._name}, super().cancel, self._name)

    def steer(self, content: Content, *, steering_id: str | None = None) -> str:
        made = steering_id or self._port.rho.serial("steer-")
        given = {"text": text_of(blocks(content)), "run": self._name}
        self._recording.steers[made] = f"steer{self._commands._counts.get('steer', 0) + 1}"
        return self._commands.do(
            "steer", given, lambda: super(RecordedRun, self).steer(content, steering_id=made), self._name
        )

    def retract_steering(self, steering_id: str) -> str:
        given = {"ref": self._recording.steer_name(steering_id), "run": self._name}
        return self._commands.do(
            "retract", given, lambda: super(RecordedRun, self).retract_steering(steering_id), self._name, told=True
        )

    def respond(self, request_id: str, answers: Mapping[str, Iterable[str]]) -> None:
        plain = {question: tuple(values) for question, values in answers.items()}
        written = self._recording.responded(request_id, tuple(plain.items()))
        given = {"ref": request_id, **written, "run": self._name}
        self._commands.do("respond", given, lambda: super(RecordedRun, self).respond(request_id, plain), self._name)

    def drop(self) -> None:
        if not self._state.resolved and not self._state.dropped:
            self._commands.answered(self._commands.given("drop", {"run": self._name}), "ok", self._name)
        super().drop()
