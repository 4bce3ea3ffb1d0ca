"""One run of one scenario: perform its steps, read what is left, judge (scenario format §3 and §4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rho_conformance.driver import ConnectedDriver, Hello, JsonMap
from rho_conformance.scenario.book import PENDING, Book, Run, read_book
from rho_conformance.scenario.expect import Judgement, asks_for, judge
from rho_conformance.scenario.filegrammar import JUDGING
from rho_conformance.scenario.match import matches_observation
from rho_conformance.scenario.model import Scenario, Step
from rho_conformance.scenario.names import OPEN
from rho_conformance.scenario.normalise import show, show_near, show_observation
from rho_conformance.scenario.standing import CAPABILITY, is_breach, is_deadlock
from rho_conformance.scenario.steps import Delivery, deliveries, lost_address, unopened
from rho_conformance.scenario.view import View
from rho_conformance.trace import StepRecord, Trace
from rho_conformance.vocabulary import COMMANDS

PASS, VARIANT, FAIL, ERROR, NOT_APPLICABLE = "pass", "variant", "fail", "error", "n/a"


class End(Exception):
    """The scenario is decided before its end."""

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(detail)
        self.verdict, self.detail = verdict, detail


@dataclass(slots=True)
class Play:
    """One run of one scenario: the driver, what was recorded, and what the runner itself added to it."""

    scenario: Scenario
    driver: ConnectedDriver
    hello: Hello
    trace: Trace
    implicit: set[int] = field(default_factory=set)
    variant: str | None = None
    _book: tuple[int, Book] | None = None

    # --- the driver ---------------------------------------------------------------------------------------

    def perform(self, stimuli: list[JsonMap], *, implicit: bool = False) -> StepRecord:
        answer = self.driver.perform(stimuli)
        record = StepRecord(stimuli, answer["observations"], answer["waiting_on"], answer["facts"])
        self.trace.steps.append(record)
        if implicit:
            self.implicit.add(len(self.trace.steps))
        return record

    def settle_again(self) -> bool:
        """On a driver whose settle is no proof: give it a second one. Whether there was one."""
        if self.hello.exact:
            return False
        self.perform([], implicit=True)
        return True

    def settle_first(self) -> None:
        """Before the first stimulus nobody has reported anything yet: ask for it."""
        if not self.trace.steps:
            self.perform([], implicit=True)

    def book(self) -> Book:
        if self._book is None or self._book[0] != len(self.trace.steps):
            self._book = (len(self.trace.steps), read_book(self.trace, frozenset(self.implicit)))
        return self._book[1]

    # --- steps --------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        if step.name in JUDGING:
            self.settle_first()
        if step.name == "until":
            self.until(step)
        elif step.name == "check":
            self.judged(step.value, f"check (line {step.line})")
        else:
            for delivery in deliveries(step, self.trace):
                self.deliver(delivery, step)

    def deliver(self, delivery: Delivery, step: Step) -> None:
        lost = lost_address(delivery, self.trace, self.book())
        if lost is not None:
            raise End(FAIL, f"{step}: {lost}")
        if any("crash" in stimulus for stimulus in delivery.stimuli):
            # What a finished run came to is known; only after the crash nobody can be asked any more.
            self.take_outcomes_of_finished()
        record = self.perform(delivery.stimuli)
        refused = next((seen for seen in record.seen() if seen.name == "Refused"), None)
        if refused is not None:
            declared = is_breach(refused, self.hello.raw)
            what = f"declared but refused ({CAPABILITY})" if declared else "not declared, and refused"
            raise End(FAIL if declared else NOT_APPLICABLE, f"{step}: {what}: {show_observation(refused)}")
        closed = unopened(delivery, record)
        if closed is not None:
            raise End(FAIL, f"{step}: not open: no upcall for {closed} was ever open")
        if is_deadlock(record, self.trace):
            again = self.settle_again()
            if again and not is_deadlock(self.trace.steps[-1], self.trace):
                raise End(ERROR, f"{step}: the driver settled too early: it went on by itself afterwards")

    def until(self, step: Step) -> None:
        if self.observed(step.value):
            return
        if self.settle_again() and self.observed(step.value):
            raise End(ERROR, f"{step}: the driver settled too early: {show(step.value)} came after it")
        names = [show_observation(seen) for seen in self.trace.observations() if seen.name not in COMMANDS]
        near = show_near(names, len(names))
        raise End(FAIL, f"{step}: {show(step.value)} has not been observed; seen last: {near}")

    def observed(self, pattern: Any) -> bool:
        return any(matches_observation(pattern, seen.name, seen.fields) for seen in self.trace.observations())

    # --- judgements ---------------------------------------------------------------------------------------

    def judged(self, expectation: dict[str, Any], what: str) -> None:
        """Judge a map of §4 here; raises `End` unless it holds."""
        self.take_needed_outcomes(expectation)
        judgement = self.judge(expectation, what)
        if judgement.complaints:
            again = self.settle_again()
            if again and not self.judge(expectation, what).complaints:
                raise End(ERROR, f"the driver settled too early; true only later: {judgement.complaints[0]}")
            raise End(FAIL, "; ".join(judgement.complaints))
        self.variant = self.variant or judgement.variant

    def judge(self, expectation: dict[str, Any], what: str) -> Judgement:
        snapshot = self.take_snapshot() if asks_for(expectation, "snapshot") else None
        return judge(expectation, View(self.trace, self.book(), snapshot), what)

    def take_snapshot(self) -> str | None:
        self.perform([{"snapshot": {}}], implicit=True)
        book = self.book()
        reply = book.replies.get(book.commands[-1].filed)
        text = reply.get("ok") if isinstance(reply, dict) else None
        return text if isinstance(text, str) else None

    def take_needed_outcomes(self, expectation: dict[str, Any]) -> None:
        """In a `check`, ask for the outcomes of finished runs; an unfinished one is pending, not drained."""
        if asks_for(expectation, "outcome") or asks_for(expectation, "outcomes"):
            self.take_outcomes_of_finished()

    def take_outcomes_of_finished(self) -> None:
        """Take the outcome of every run that is over."""
        book = self.book()
        for run in book.runs.values():
            busy = self.trace.facts_of(run.session).get("busy") is True
            if not (busy and book.newest(run.session) is run):
                self.take_outcome(run)

    def take_outcome(self, run: Run) -> None:
        if run.gone is None and not run.asked and self.hello.supports("outcome"):
            self.perform([{"outcome": self.address(run)}], implicit=True)

    def address(self, run: Run) -> JsonMap:
        return {"run": run.name, "session": run.session}

    def finish(self) -> None:
        """Read everything and take every outcome that is still to be had (§4, last paragraph)."""
        for name, known in self.book().runs.items():
            if known.gone is None and not known.reader_closed and self.hello.supports("read"):
                self.perform([{"read": self.read_all(known)}], implicit=True)
            self.take_outcome(self.book().runs[name])
        if any(self.book().outcome(run) == PENDING for run in self.book().runs.values() if run.gone is None):
            self.settle_again()

    def read_all(self, run: Run) -> Any:
        # The bare form is the format's; the other says which reader, where there may be several.
        newest = self.book().newest(self.scenario.main_session)
        return "all" if newest is not None and newest.name == run.name else {"n": "all", **self.address(run)}

    # --- the whole ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Play the scenario to its end; raises `End` unless everything in it holds."""
        self.trace.open_error = self.driver.open(self.scenario.config)
        if self.trace.open_error is None:
            for step in self.scenario.steps:
                self.step(step)
            self.settle_first()
            self.finish()
        elif not _expects_refusal(self.scenario.expect):
            raise End(FAIL, f"the configuration was refused: {self.trace.open_error}")
        self.judged(self.scenario.expect, "expect")


def _expects_refusal(expectation: dict[str, Any]) -> bool:
    return OPEN in expectation.get("replies", {}) or any(
        _expects_refusal(alternative) for alternative in expectation.get("any_of", [])
    )
