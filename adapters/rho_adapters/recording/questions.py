"""Questions in a recording.

The scenario format knows one question, `q` with the choices yes and no, and what judges a trace asks only whether a
response fits it and reaches its tool. So a response that fits its own request is written as the answer yes, and one
that does not as it is; what was really said stands beside it as `given`.
"""

from __future__ import annotations

from typing import Any

from rho_core.asks import Answers, HostInputRequest, validate
from rho_core.normal import encode

Json = dict[str, Any]
FITS: Json = {"q": ["yes"]}


class Questions:
    """The requests that were posed, and what was responded to them."""

    def __init__(self) -> None:
        self._requests: dict[str, HostInputRequest] = {}
        self._responses: dict[str, list[Answers]] = {}

    def posed(self, request: HostInputRequest) -> None:
        """A tool asks."""
        self._requests[request.id] = request

    def response(self, request_id: str, answers: Answers) -> Json:
        """`answers` and `given` of a response."""
        request = self._requests.get(request_id)
        given = encode.answers(answers)
        if request is None or validate(request, answers) is not None:
            return {"answers": given}
        self._responses.setdefault(request_id, []).append(answers)
        return {"answers": FITS, "given": given}

    def answer(self, request_id: str, answers: Answers) -> Json:
        """`answers` and `given` of what a tool got: no yes, if nobody responded that."""
        given = encode.answers(answers)
        responded = answers in self._responses.get(request_id, [])
        return {"answers": FITS if responded else given, "given": given}
