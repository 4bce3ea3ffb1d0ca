"""One named configuration of the search: a policy, a world that may answer in a few ways, and how often."""

from __future__ import annotations

from typing import NamedTuple

from rho_core import inputs as inp
from rho_core.config import Policy
from rho_core.errors import ProviderError
from rho_core.events import Success, ToolCompletion
from rho_core.messages import Block, user
from rho_core.messages import ToolCall as Call
from rho_core.record import record


class Allowance(NamedTuple):
    """How often the world may still do what nothing obliges it to do."""

    cancels: int = 0
    closes: int = 0
    drops: int = 0
    steers: int = 0
    retracts: int = 0
    deltas: int = 0
    progress: int = 0
    responds: int = 0
    withdrawals: int = 0
    panics: int = 0
    claims: int = 0


@record
class Response:
    """One way in which a model request may end. `marks`: calls that are marked as detachable before it returns."""

    name: str
    content: tuple[Block, ...] = ()
    marks: tuple[str, ...] = ()
    error: ProviderError | None = None
    times: int = 99


Preparation = inp.Plan | str
"""What preparing a call gives: a plan, or the text of a failure."""


@record
class Configuration:
    """`plans` by call id (a call without an entry gets a plain plan); `asks`: (call, request id), each at most once.

    `authorisations`: answers to an authorisation request. `stream`: kinds of model items a delta may be.
    `completions`: what an executor may return. `limit`: states at which the search gives up, and says so.
    """

    name: str
    policy: Policy
    allowance: Allowance
    menu: tuple[Response, ...]
    plans: tuple[tuple[str, tuple[Preparation, ...]], ...] = ()
    authorisations: tuple[bool, ...] = (True,)
    completions: tuple[ToolCompletion, ...] = (Success("done"),)
    asks: tuple[tuple[str, str], ...] = ()
    stream: tuple[str, ...] = ("text",)
    compactions: tuple[inp.RunInput, ...] = ()
    replies: tuple[inp.RunInput, ...] = ()
    begin: inp.Begin = inp.Begin((user("hello"),))
    revision: int = 0
    limit: int = 400_000

    def plans_of(self, call_id: str) -> tuple[Preparation, ...]:
        """The ways in which preparing that call may end."""
        return next((plans for name, plans in self.plans if name == call_id), (inp.Plan(),))


def call(call_id: str, tool: str) -> Call:
    """A proposed call without arguments."""
    return Call(call_id, tool, "{}")
