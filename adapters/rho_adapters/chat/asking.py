"""Questions answered in place: what is asked, and how a typed line becomes an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from rho_adapters.tools.policy import Decision
from rho_core.asks import Choice, HostInputRequest, Question
from rho_core.messages import ToolCall


class NotAnAnswer(ValueError):
    """The line answers nothing; its text says what would."""


def parse(question: Question, line: str) -> tuple[str, ...]:
    """The values that a line chooses: numbers, values or labels, several with commas; else free text if allowed.

    An empty line is the default, or nothing where no answer is required. Raises NotAnAnswer.
    """
    text = line.strip()
    if not text:
        if question.default is not None:
            return (question.default,)
        if question.required:
            raise NotAnAnswer(hint(question))
        return ()
    parts = [p for p in re.split(r"[,\s]+", text) if p] if question.many else [text]
    chosen = [_choice(question, part) for part in parts]
    if all(c is not None for c in chosen):
        return tuple(dict.fromkeys(c for c in chosen if c is not None))
    if question.allow_other:
        return (text,)
    raise NotAnAnswer(hint(question))


def _choice(question: Question, text: str) -> str | None:
    number = text.removeprefix("#")
    marked = number != text
    # Where an answer of one's own is allowed, a bare number is such an answer: it may be an amount.
    if (marked or not question.allow_other) and number.isdecimal() and 1 <= int(number) <= len(question.choices):
        return question.choices[int(number) - 1].value
    for choice in question.choices:
        if text.casefold() in (choice.value.casefold(), choice.label.casefold()):
            return choice.value
    return None


def hint(question: Question) -> str:
    """How to answer."""
    sign, count = "#" if question.allow_other else "", len(question.choices)
    text = f"type a number from {sign}1 to {sign}{count}" if count > 1 else f"type {sign}1"
    if question.many:
        text += ", or several with commas"
    if question.allow_other:
        text += ", or an answer of your own"
    if question.default is not None:
        text += f"; empty means {question.default}"
    elif not question.required:
        text += "; empty skips it"
    return text


def numbered(question: Question) -> list[str]:
    """The choices, each with what is typed for it."""
    sign = "#" if question.allow_other else ""
    more = (f" – {c.description}" if c.description else "" for c in question.choices)
    return [
        f"{sign}{number}. {choice.label or choice.value}{rest}"
        for number, (choice, rest) in enumerate(zip(question.choices, more, strict=True), 1)
    ]


@dataclass(eq=False, slots=True)
class Asking:
    """One request that waits for the person, question by question.

    `owner`: the call that asks. `done`: called with all answers when the last is there. `at`: the question that
    is open. `problem`: why the last line was no answer.
    """

    title: str
    questions: tuple[Question, ...]
    owner: str
    done: Callable[[dict[str, tuple[str, ...]]], None]
    at: int = 0
    problem: str = ""
    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def question(self) -> Question:
        """The open question."""
        return self.questions[self.at]

    def take(self, line: str) -> bool:
        """Give a line; True when it was the last answer. An unusable line is remembered as `problem`."""
        try:
            self.answers[self.question.id] = parse(self.question, line)
        except NotAnAnswer as why:
            self.problem = str(why)
            return False
        self.problem = ""
        self.at += 1
        if self.at < len(self.questions):
            return False
        self.at = 0
        self.done(self.answers)
        return True

    def again(self, problem: str) -> None:
        """From the first question: the answers did not do."""
        self.at, self.answers, self.problem = 0, {}, problem

    def summary(self) -> str:
        """The answers on one line."""
        given = (", ".join(self._label(q, v) for v in self.answers.get(q.id, ())) for q in self.questions)
        return "; ".join(one or "–" for one in given)

    @staticmethod
    def _label(question: Question, value: str) -> str:
        return next((c.label or c.value for c in question.choices if c.value == value), value)


def of_request(call_id: str, request: HostInputRequest, done: Callable[[dict[str, tuple[str, ...]]], None]) -> Asking:
    """A tool's question."""
    return Asking(request.title, request.questions, call_id, done)


_DECISIONS = {
    "once": Decision.once,
    "always": Decision.always,
    "no": Decision.deny,
    "never": Decision.never,
}
_APPROVAL = (
    Choice("once", "once"),
    Choice("always", "always", "and do not ask again for this tool and capability"),
    Choice("no", "not this time"),
    Choice("never", "never", "and do not ask again for this tool and capability"),
)


def of_capability(call: ToolCall, capability: str, done: Callable[[Decision], None]) -> Asking:
    """May the call use the capability?"""
    question = Question("allow", f"with {call.arguments}", _APPROVAL, header=f"it wants {capability}")

    def decided(answers: dict[str, tuple[str, ...]]) -> None:
        done(_DECISIONS[answers["allow"][0]]())

    return Asking(f"Allow {call.name}?", (question,), call.id, decided)
