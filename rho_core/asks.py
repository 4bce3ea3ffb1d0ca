"""Host input: questions, their validation (rho.md 1.3), and the registry of one tool batch (RHO-COORD-*)."""

from __future__ import annotations

from .record import record


@record
class Choice:
    """One answer a question offers."""

    value: str
    label: str = ""
    description: str | None = None


@record
class Question:
    """One question. `many`: several answers allowed; `allow_other`: free text allowed."""

    id: str
    prompt: str
    choices: tuple[Choice, ...]
    many: bool = False
    allow_other: bool = False
    required: bool = True
    header: str | None = None
    help: str | None = None
    default: str | None = None


@record
class HostInputRequest:
    """What a tool asks of the host; its id is fresh for each request."""

    id: str
    title: str
    questions: tuple[Question, ...]


Answers = tuple[tuple[str, tuple[str, ...]], ...]
"""Answers by question id, one entry a question, as given."""


def check_request(request: HostInputRequest) -> str | None:
    """Why a request cannot be made, or None: blank or doubled ids, no questions, no or doubled choices."""
    if not request.questions:
        return "a host-input request needs at least one question"
    ids = [q.id for q in request.questions]
    for question in request.questions:
        if not question.id.strip():
            return "a question has a blank id"
        if ids.count(question.id) > 1:
            return f"question id {question.id!r} is used twice"
        values = [c.value for c in question.choices]
        if not values:
            return f"question {question.id!r} has no choices"
        if len(set(values)) != len(values):
            return f"question {question.id!r} offers a choice twice"
    return None


def validate(request: HostInputRequest, answers: Answers) -> str | None:
    """Why a response does not fit, or None; the first failure in the contract's order wins (RHO-HOST-3)."""
    known = {q.id for q in request.questions}
    unknown = sorted(key for key, _ in answers if key not in known)
    if unknown:
        return f"no question has the id {unknown[0]!r}"
    given: dict[str, tuple[str, ...]] = {}
    for key, values in answers:
        if key in given:
            return f"question {key!r} is answered twice"
        given[key] = values
    for question in request.questions:
        issue = _check_answer(question, given.get(question.id))
        if issue is not None:
            return issue
    return None


def _check_answer(question: Question, values: tuple[str, ...] | None) -> str | None:
    if values is None:
        return f"question {question.id!r} is required" if question.required else None
    if not values and question.required:
        return f"question {question.id!r} is required"
    if len(values) > 1 and not question.many:
        return f"question {question.id!r} takes one answer"
    if len(set(values)) != len(values):
        return f"question {question.id!r} has an answer twice"
    offered = {c.value for c in question.choices}
    for value in values:
        if value not in offered and not question.allow_other:
            return f"question {question.id!r} does not offer {value!r}"
    return None


@record
class OpenAsk:
    """A question that was announced and awaits its one answer."""

    call_id: str
    request: HostInputRequest


@record
class Asks:
    """The registry of one batch: open questions in announcing order, and every id the batch has used."""

    open: tuple[OpenAsk, ...] = ()
    used: tuple[str, ...] = ()

    def announce(self, call_id: str, request: HostInputRequest) -> Asks:
        """The question is open from now on."""
        return Asks((*self.open, OpenAsk(call_id, request)), (*self.used, request.id))

    def find(self, request_id: str) -> OpenAsk | None:
        """The open question of that id."""
        return next((a for a in self.open if a.request.id == request_id), None)

    def close(self, request_id: str) -> Asks:
        """The question was answered or withdrawn."""
        return Asks(tuple(a for a in self.open if a.request.id != request_id), self.used)

    def close_call(self, call_id: str) -> Asks:
        """A tool that returns closes what it had asked (RHO-HOST-5)."""
        return Asks(tuple(a for a in self.open if a.call_id != call_id), self.used)


NO_ASKS = Asks()
