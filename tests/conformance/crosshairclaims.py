"""False claims about records: CrossHair must find them out, or it does not make records of symbolic fields."""

from __future__ import annotations

from rho_core.budget import Budget
from rho_core.config import Policy
from rho_core.steering import Steers


def requests_are_zero(budget: Budget) -> int:
    """
    post: __return__ == 0
    """
    return budget.requests


def every_run_completes_at_its_limit(policy: Policy) -> str:
    """
    post: __return__ == "complete"
    """
    return policy.step_limit


def nothing_waits(steers: Steers) -> int:
    """
    post: __return__ == 0
    """
    return len(steers.waiting)


def a_slice_is_empty(room: int) -> int:
    """
    pre: room >= 0
    post: __return__ < 2
    """
    return len((1, 2)[:room])


CLAIMS = (requests_are_zero, every_run_completes_at_its_limit, nothing_waits, a_slice_is_empty)
